//! Rows by the names of their columns, so that a column may be added or moved without a figure ending up in another.

use nilometer_model::Nanos;
use rusqlite::{Row, RowIndex, ToSql, Transaction};

/// A column's name and its value.
pub(super) type Column<'a> = (&'static str, &'a dyn ToSql);

/// Adds a row to a table.
pub(super) fn insert_row(
    transaction: &Transaction<'_>,
    table: &str,
    columns: &[Column<'_>],
) -> rusqlite::Result<()> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let values: Vec<&dyn ToSql> = columns.iter().map(|(_, value)| *value).collect();
    let places = vec!["?"; columns.len()].join(", ");
    let query = format!("INSERT INTO {table} ({}) VALUES ({places})", names.join(", "));
    transaction.prepare_cached(&query)?.execute(values.as_slice()).map(drop)
}

/// A count or a number of bytes.
pub(super) fn number(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<u64> {
    row.get(column)
}

/// A time in nanoseconds.
pub(super) fn nanos(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Nanos> {
    number(row, column).map(Nanos)
}
