//! Each machine's share of figures that several processes measured.

use nilometer_analysis::{StageFigures, letter};

use crate::{
    document::{Block, Cell, Column, Heading, Role, Row, Section, Table},
    words,
};

pub(crate) fn machines(stages: &[&StageFigures<'_>]) -> Vec<Section> {
    let rows = stages.iter().flat_map(|stage| {
        let of = move |(outcome, words): (&nilometer_analysis::CellOutcome<'_>, String)| {
            let label = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
            let named = [stage.name, label, outcome.phase.name(), &letter(outcome.target), &words];
            Row::of(named.map(Cell::new))
        };
        words::across_machines(stage).into_iter().map(of)
    });
    let rows: Vec<Row> = rows.collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = ["stage", "parameters", "phase", "target"].map(|name| Column::new(Role::Name, name));
    let columns = columns.into_iter().chain([Column::new(Role::Sentence, "each machine")]).collect();
    let section =
        Section::new(Heading::of("Over processes and machines"), vec![Block::Table(Table { columns, rows })]);
    vec![section.at("machines", "").on_screen()]
}
