//! The record of a campaign: one SQLite file, the narrow waist between measuring and judging.
//!
//! The campaign writes it, the analysis reads it, neither knows the other. A sample is committed as soon as it is
//! measured, so an interrupted campaign is a shorter valid record. The schema is documented in `schema.sql`.

#![forbid(unsafe_code)]

mod read;
mod write;

pub use read::read;
pub use write::Record;

use std::path::PathBuf;

/// The version of the schema that this program writes and reads (`PRAGMA user_version`).
pub const SCHEMA_VERSION: i64 = 1;

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
    /// Another schema than this program's.
    #[error("{path}: the record has schema {found}, this program reads {SCHEMA_VERSION}")]
    Schema {
        /// Which file.
        path: PathBuf,
        /// Its version; 0 if it is no record of nilometer.
        found: i64,
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
