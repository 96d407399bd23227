//! The comparison of targets: an answer for each stage and phase.

use nilometer_analysis::StageFigures;
use nilometer_plan::Results;

use super::glance::glance;
use crate::{
    document::{Block, Cell, Column, Detail, Heading, Role, Row, Section, Table},
    words,
};

pub(crate) fn comparisons(results: &Results, stages: &[&StageFigures<'_>], detail: Detail) -> Vec<Section> {
    if detail == Detail::Page {
        return glance(results, stages);
    }
    let comparisons = words::comparisons(stages, results.margin);
    if comparisons.is_empty() {
        return Vec::new();
    }
    let row = |(stage, phase, lines): (&str, &str, Vec<String>)| answer_row(stage, phase, lines);
    let table = answer_table(comparisons.into_iter().map(row).collect());
    let blocks = vec![table, Block::soft(words::margin_note(results))];
    vec![Section::new(Heading::of("Compared"), blocks)]
}

/// A row for each stage and phase.
pub(crate) fn answer_table(rows: Vec<Row>) -> Block {
    let columns = vec![
        Column::new(Role::Label, "stage"),
        Column::new(Role::Group, "phase"),
        Column::new(Role::Sentence, "answer"),
    ];
    Block::Table(Table { columns, rows })
}

/// A row of that table.
pub(crate) fn answer_row(stage: &str, phase: &str, lines: Vec<String>) -> Row {
    Row::of([Cell::new(stage), Cell::new(phase), Cell { lines, ..Cell::new("") }])
}
