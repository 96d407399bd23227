//! How a workload grows with the elements that do it at once.

use nilometer_analysis::{AtOnce, ElementGrowth, StudyStage};

use crate::{
    document::{Block, Cell, Column, Heading, Row, Section, Table},
    growth::{COLUMNS, heading, row, sentences},
};

/// Letters of a rate with its interval.
const RATE: usize = 19;

pub(super) fn growth(stage: &StudyStage<'_>, margin: f64) -> Vec<Section> {
    let section = |of: &ElementGrowth| {
        let heading = Heading::with("Elements at once", format!(": {}", heading(of)));
        Section::part(heading, vec![Block::Table(table(of)), Block::list(sentences(of, margin))])
    };
    stage.growths.iter().map(section).collect()
}

fn table(of: &ElementGrowth) -> Table {
    let [count, rate, share, tool] = COLUMNS;
    let columns = vec![
        Column::figure(count),
        Column::figure(rate).at_least(RATE),
        Column::figure(share),
        Column::figure(tool).ranked(1),
    ];
    let row = |at: &AtOnce| Row::of(row(of, at).map(Cell::new));
    Table { columns, rows: of.counts.iter().map(row).collect() }
}
