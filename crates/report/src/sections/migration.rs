//! Copies from a target to other storage beside users, and the time that a whole move takes.

use nilometer_analysis::Migration;

use crate::{
    document::{Block, Cell, Column, Heading, Role, Row, Section, Sentence, Table, Tone},
    migration::{COLUMNS, forecasts, has_users, heading, rows},
};

pub(crate) fn migrations(found: &[Migration], margin: f64) -> Vec<Section> {
    found.iter().map(|migration| section(migration, margin)).collect()
}

fn section(migration: &Migration, margin: f64) -> Section {
    let heading = Heading::with("Migration", format!(": {}", heading(migration)));
    let cautions = migration.cautions.iter().map(|caution| Sentence::toned(Tone::Doubtful, caution));
    let blocks = vec![
        Block::Table(table(migration, margin)),
        Block::list(forecasts(migration)),
        Block::List(cautions.collect()),
    ];
    Section::new(heading, blocks)
}

/// Without a known effect on users there is no column for it.
fn table(migration: &Migration, margin: f64) -> Table {
    let [copy, tree, rate, files, users] = COLUMNS;
    let shown = if has_users(migration) { COLUMNS.len() } else { COLUMNS.len() - 1 };
    let columns = [
        Column::new(Role::Label, copy),
        Column::new(Role::Name, tree),
        Column::figure(rate),
        Column::figure(files),
        Column::figure(users),
    ];
    let rows = migration.levels.iter().flat_map(|level| rows(level, margin));
    let rows = rows.map(|row| Row::of(row.into_iter().take(shown).map(Cell::new)));
    Table { columns: columns.into_iter().take(shown).collect(), rows: rows.collect() }
}
