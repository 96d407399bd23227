//! Accesses rows by column names, so that adding or moving a column can't mix up values. Also columns that hold
//! JSON, and the rows of histograms.

use nilometer_model::{Histogram, Nanos};
use rusqlite::{Connection, Row, RowIndex, ToSql, Transaction, params, params_from_iter, types::Type};
use serde::{Serialize, de::DeserializeOwned};

/// A column's name and its value.
pub(super) type Column<'a> = (&'static str, &'a dyn ToSql);

/// Reads the version of a record's schema.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

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

/// Reads all rows of a query.
pub(super) fn rows<T>(
    connection: &Connection,
    query: &str,
    each: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare(query)?.query_map([], each)?.collect()
}

/// Makes the error for a text that violates the schema.
pub(super) fn unreadable(why: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, why)
}

/// Parses a column that holds JSON.
pub(super) fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|error| unreadable(format!("{what}: {error}").into()))
}

/// The text of a column that holds JSON.
pub(super) fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Adds the buckets of a histogram of a sample.
pub(super) fn insert_histogram(
    transaction: &Transaction<'_>,
    id: i64,
    kind: &str,
    histogram: &Histogram,
) -> rusqlite::Result<()> {
    let mut insert = transaction
        .prepare_cached("INSERT INTO histogram (sample, kind, bucket, count) VALUES (?1, ?2, ?3, ?4)")?;
    for (bucket, count) in histogram.buckets() {
        insert.execute(params![id, kind, bucket, count])?;
    }
    Ok(())
}
