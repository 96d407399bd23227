//! Connections to a record: they refuse other files, and their transactions survive a loss of power.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{OLDEST_SCHEMA, RecordError, SCHEMA_VERSION, place::Place, schema};

/// Opens an existing record by `connect`. Refuses a file of another schema, or one that Nilometer did not write.
pub(super) fn open(
    path: &Path,
    connect: impl Fn(&Path) -> rusqlite::Result<Connection>,
) -> Result<Connection, RecordError> {
    let real = PathBuf::from(&Place::existing(path)?);
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => RecordError::Foreign { path: path.into() },
        _ => RecordError::Sqlite { path: path.into(), action: "read", source },
    };
    let connection = connect(&real).map_err(failed)?;
    let found = match schema::version(&connection) {
        // Undoing a killed process's half-written transaction needs write access.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ReadOnly) => {
            to_write(&real).and_then(|connection| schema::version(&connection))
        }
        found => found,
    };
    let found = found.map_err(failed)?;
    let by = writer(&connection).ok_or_else(|| RecordError::Foreign { path: path.into() })?;
    if !(OLDEST_SCHEMA..=SCHEMA_VERSION).contains(&found) {
        return Err(RecordError::Schema { path: path.into(), found, by });
    }
    match schema::foreign_object(&connection, found).map_err(failed)? {
        None => Ok(connection),
        Some(what) => Err(RecordError::Changed { path: path.into(), what }),
    }
}

/// Opens a record to read it.
pub(super) fn to_read(path: &Path) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread only: SQLite need not lock at every column.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW)
}

/// The version of the program that wrote a record; none if it is no record.
fn writer(connection: &Connection) -> Option<String> {
    connection.query_row("SELECT nilometer FROM campaign", [], |row| row.get(0)).ok()
}

/// Opens a record to write to it.
pub(super) fn to_write(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    durable(&connection)?;
    Ok(connection)
}

/// A transaction ends when SQLite has removed its journal. EXTRA also syncs the directory. Otherwise a loss of
/// power can bring the journal back, which undoes the last transaction
/// (<https://www.sqlite.org/pragma.html#pragma_synchronous>).
fn durable(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "EXTRA")
}
