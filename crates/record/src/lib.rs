//! The record of a campaign: one SQLite file that connects measurement and analysis.
//!
//! The campaign writes it and the analysis reads it; neither depends on the other. Each sample is committed as
//! soon as it is measured, so an interrupted campaign leaves a shorter valid record. `schema.sql` documents the
//! schema.

#![forbid(unsafe_code)]

mod background;
mod connection;
pub mod import;
mod ingest;
mod lock;
mod machine;
mod network;
mod network_interval;
mod node_start;
mod numbered;
mod observed;
mod place;
mod read;
mod resume;
mod row;
mod schema;
mod seal;
mod unfinished;
mod write;

pub use observed::{COUNTERS_MAX, LINE_MAX, ObservedError, read_observed};
pub use read::{read, read_figures};
pub use resume::Begun;
pub use seal::{Concluded, SealState, concluded, file_digest, text_digest};
pub use write::Record;

use std::path::PathBuf;

/// The version of the schema that this program writes (`PRAGMA user_version`). Raise it with every change of
/// `schema.sql`; a test checks that.
pub const SCHEMA_VERSION: i64 = 11;

/// The oldest schema that this program reads. All versions from this one on stay readable (CONTRIBUTING.md).
pub const OLDEST_SCHEMA: i64 = 9;

/// Error from writing or reading a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The record exists already, and is never overwritten.
    #[error("{path}: exists already: choose another --record, or move it away")]
    Exists {
        /// The record.
        path: PathBuf,
    },
    /// The file does not exist.
    #[error("{path}: no such record{near}")]
    Missing {
        /// The record.
        path: PathBuf,
        /// The records beside it, as the end of the sentence; empty if there are none.
        near: String,
    },
    /// This program does not read the record's schema.
    #[error(
        "{path} has schema {found}; this program reads schemas {OLDEST_SCHEMA} to {SCHEMA_VERSION}: measure again, or use \
         the program that wrote it (nilometer {by})"
    )]
    Schema {
        /// The record.
        path: PathBuf,
        /// The record's version of the schema.
        found: i64,
        /// The program that wrote the record.
        by: String,
    },
    /// Nilometer did not write the file.
    #[error("{path}: not a record of nilometer")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A table, view, index or trigger differs from Nilometer's. A file that only resembles a record could run
    /// anything when it is read.
    #[error("{path}: not a record of nilometer: {what} in it differs from the one that nilometer makes")]
    Changed {
        /// The file.
        path: PathBuf,
        /// The table, view, index or trigger.
        what: String,
    },
    /// SQLite would take an existing file for a part of the record, and remove it.
    #[error("{path}: lies where a part of the record would be: choose another --record, or move it away")]
    Companion {
        /// The existing file.
        path: PathBuf,
    },
    /// The file can't be opened.
    #[error("{path}: can't read the record: {source}")]
    Unreadable {
        /// The record.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The record holds results of other programs, so no campaign can resume it.
    #[error("{path}: the record holds no campaign of nilometer: you can read its results, but not resume it")]
    NoCampaign {
        /// The record.
        path: PathBuf,
    },
    /// Another process is writing the record.
    #[error(
        "{path}: in use by a running nilometer (process {holder}): wait for its end, or name another --record FILE"
    )]
    InUse {
        /// The record.
        path: PathBuf,
        /// The id of that process.
        holder: String,
    },
    /// The lock file next to a record could not be made.
    #[error("{path}: can't lock the record; --record FILE names another place: {source}")]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// A new record could not be moved to its final name.
    #[error("{path}: can't create the record: {source}")]
    Unnamed {
        /// The record.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// SQLite failed.
    #[error("{path}: can't {action} the record: {source}")]
    Sqlite {
        /// The record.
        path: PathBuf,
        /// The action that failed.
        action: &'static str,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}
