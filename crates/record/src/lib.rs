//! The record of a campaign: one SQLite file, the narrow waist between measuring and judging.
//!
//! The campaign writes it, the analysis reads it, neither knows the other. A sample is committed as soon as it is
//! measured, so an interrupted campaign is a shorter valid record. The schema is documented in `schema.sql`.

#![forbid(unsafe_code)]

mod background;
pub mod import;
mod ingest;
mod lock;
mod network;
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

/// The version of the schema that this program writes (`PRAGMA user_version`). Another one for every change of
/// `schema.sql`, which a test remembers. From this one on every version stays readable (CONTRIBUTING.md).
pub const SCHEMA_VERSION: i64 = 9;

/// A record that can't be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A record is never overwritten.
    #[error("{path}: exists already: choose another --record, or move it away")]
    Exists {
        /// Which file.
        path: PathBuf,
    },
    /// No such file.
    #[error("{path}: no such record")]
    Missing {
        /// Which file.
        path: PathBuf,
    },
    /// A schema that this program does not read.
    #[error(
        "{path} has schema {found}; this program reads schema {SCHEMA_VERSION}: measure again, or use the program that \
         wrote it (nilometer {by})"
    )]
    Schema {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The program that wrote it.
        by: String,
    },
    /// Nilometer did not write it.
    #[error("{path}: not a record of nilometer")]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// What is in it was changed: something that only looks like a record of ours may do anything when it is read.
    #[error("{path}: not a record of nilometer: {what} in it is not what nilometer made")]
    Changed {
        /// Which file.
        path: PathBuf,
        /// The table, view, index or trigger.
        what: String,
    },
    /// SQLite would take a file that lies there for a part of the record, and remove it.
    #[error("{path}: lies where a part of the record would be: choose another --record, or move it away")]
    Companion {
        /// Which file.
        path: PathBuf,
    },
    /// It can't be opened.
    #[error("{path}: can't read the record: {source}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// What it holds was not measured by a campaign that can go on.
    #[error(
        "{path}: the record holds no campaign of nilometer: its results can be read, and not gone on with"
    )]
    NoCampaign {
        /// Which file.
        path: PathBuf,
    },
    /// Another process writes it.
    #[error("{path}: in use by a running nilometer (process {holder})")]
    InUse {
        /// Which file.
        path: PathBuf,
        /// The process's id.
        holder: String,
    },
    /// The lock file beside a record could not be made.
    #[error("{path}: can't lock the record: {source}")]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A new record could not be put in its place.
    #[error("{path}: can't create the record: {source}")]
    Unnamed {
        /// Which file.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("{path}: can't {action} the record: {source}")]
    Sqlite {
        /// Which file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}
