//! Targets beside each other: an answer for each stage and phase.

use nilometer_analysis::Study;

use super::glance::glance;
use crate::{
    document::{Block, Cell, Column, Detail, Heading, Role, Row, Section, Table},
    words,
};

pub(crate) fn comparisons(study: &Study<'_>, detail: Detail) -> Vec<Section> {
    if detail == Detail::Page {
        return glance(study);
    }
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
        Row::of([Cell::new(stage), Cell::new(phase), Cell { lines, ..Cell::new("") }])
    };
    let table = Table { columns, rows: comparisons.into_iter().map(row).collect() };
    let blocks = vec![Block::Table(table), Block::soft(words::margin_note(study.results))];
    vec![Section::new(Heading::of("Compared"), blocks)]
}
