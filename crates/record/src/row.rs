//! Accesses rows by column names, so that adding or moving a column can't mix up values.

use nilometer_model::Nanos;
use rusqlite::{Row, RowIndex, ToSql, Transaction, params_from_iter};

/// A column's name and its value.
pub(super) type Column<'a> = (&'static str, &'a dyn ToSql);

/// Adds a row to a table.
pub(super) fn insert_row(
    transaction: &Transaction<'_>,
    table: &str,
    columns: &[Column<'_>],
) -> rusqlite::Result<()> {
    // An import has millions of rows: allocate once for each query.
    let mut query = String::with_capacity(64 + 24 * columns.len());
    query.extend(["INSERT INTO ", table, " ("]);
    for (at, (name, _)) in columns.iter().enumerate() {
        query.extend([if at == 0 { "" } else { "," }, name]);
    }
    query.push_str(") VALUES (?");
    query.extend(std::iter::repeat_n(",?", columns.len() - 1));
    query.push(')');
    let values = columns.iter().map(|(_, value)| *value);
    transaction.prepare_cached(&query)?.execute(params_from_iter(values)).map(drop)
}

/// Reads a count or a number of bytes.
pub(super) fn number(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<u64> {
    row.get(column)
}

/// Reads a time in nanoseconds.
pub(super) fn nanos(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Nanos> {
    number(row, column).map(Nanos)
}
