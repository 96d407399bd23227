//! Targets beside each other: an answer for each stage and phase.

use nilometer_analysis::Study;

use crate::{
    document::{Block, Cell, Column, Heading, Role, Row, Section, Table, Tone},
    words,
};

pub(crate) fn comparisons(study: &Study<'_>) -> Vec<Section> {
    let comparisons = words::comparisons(study);
    if comparisons.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        Column::new(Role::Label, "stage"),
        Column::new(Role::Group, "phase"),
        Column::new(Role::Sentence, "answer"),
    ];
    let row = |(stage, phase, lines): (&str, &str, Vec<String>)| {
        Row::of([Cell::new(stage), Cell::new(phase), Cell { lines, tone: Tone::Plain }])
    };
    let table = Table { columns, rows: comparisons.into_iter().map(row).collect() };
    let blocks = vec![Block::Table(table), Block::soft(words::margin_note(study.results))];
    vec![Section::new(Heading::of("Compared"), blocks)]
}
