//! The machine on which it was measured.

use nilometer_analysis::Study;

use crate::{
    document::{Block, Cell, Column, Detail, Heading, Role, Row, Section, Table},
    network::links,
};

pub(crate) fn environment(study: &Study<'_>) -> Vec<Section> {
    let facts = study.results.environment.iter().map(|(key, value)| [key.clone(), value.clone()]);
    let links = links(&study.results.machines).into_iter();
    let links = links.map(|(name, link)| [format!("link {name}"), link.to_string()]);
    let rows: Vec<Row> = facts.chain(links).map(|row| Row::of(row.map(Cell::new))).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = vec![Column::new(Role::Name, ""), Column::new(Role::Sentence, "")];
    vec![
        Section::new(Heading::of("Measured on"), vec![Block::Table(Table { columns, rows })])
            .from(Detail::Full),
    ]
}
