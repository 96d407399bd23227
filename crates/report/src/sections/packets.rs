//! What recording packets costs: a row for each rate, a column for each size.

use nilometer_analysis::{Curve, Study};

use crate::{
    document::{Block, Cell, Column, Heading, Row, Section, Table},
    packets::{LEGEND, begins, columns, heading, rows},
};

/// Letters of a time with a share.
const FIGURE: usize = 16;

pub(crate) fn packets(study: &Study<'_>) -> Vec<Section> {
    let tables = study.curves.chunk_by(|a, b| (a.target, a.onto_nothing) == (b.target, b.onto_nothing));
    let section = |curves: &[Curve]| {
        let table = Block::Table(table(curves));
        let begins = Block::list(curves.iter().map(begins));
        Section::new(Heading::of(heading(&curves[0])), vec![Block::soft(LEGEND), table, begins])
    };
    tables.map(section).collect()
}

fn table(curves: &[Curve]) -> Table {
    let columns = std::iter::once("rate".to_owned()).chain(columns(curves));
    let columns = columns.map(|heading| Column::figure(heading).at_least(FIGURE));
    let rows = rows(curves).into_iter().map(|row| Row::of(row.into_iter().map(Cell::new)));
    Table { columns: columns.collect(), rows: rows.collect() }
}
