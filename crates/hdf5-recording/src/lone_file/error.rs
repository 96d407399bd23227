//! Reasons why a file of HDF5 without a journal is not read.

use std::path::PathBuf;

use nilometer_hdf5::{BrokenObject, Hdf5Error};

/// Reasons why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum LoneFileError {
    /// It can't be opened, or belongs to another user.
    #[error("{path}: {source}")]
    Storage {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no HDF5 file, or damaged.
    #[error("{path}: {source}")]
    Hdf5 {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Hdf5Error,
    },
    /// No dataset fits, several fit, or it can't be read here.
    #[error("{path}: {why}")]
    Frames {
        /// The file.
        path: PathBuf,
        /// The alternatives.
        why: String,
    },
    /// A newer version of HDF5 made it.
    #[error(
        "{path}: it is newer than this library, HDF5 1.14.6: {why}; make it with libver=\"v114\", or read it with HDF5 2"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The thing that the library does not know.
        why: String,
    },
    /// The frames may be in the part that can't be read.
    #[error("{path}: its frames can't be read: {}", named(objects))]
    Broken {
        /// The file.
        path: PathBuf,
        /// The objects that can't be read.
        objects: Vec<BrokenObject>,
        /// Other datasets that may have frames.
        others: Vec<String>,
    },
}

/// Limit on the objects named in a message.
const NAMED_MAX: usize = 20;

/// Lists objects, each with its error.
fn named(objects: &[BrokenObject]) -> String {
    let named = objects.iter().take(NAMED_MAX).map(|BrokenObject { path, why }| format!("{path}: {why}"));
    let more = objects.len().saturating_sub(NAMED_MAX);
    named.chain((more > 0).then(|| format!("{more} more"))).collect::<Vec<_>>().join("; ")
}

impl LoneFileError {
    /// Returns true if the file is damaged, false if the request was wrong.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            LoneFileError::Hdf5 { source: Hdf5Error::Refused { .. }, .. } | LoneFileError::Broken { .. }
        )
    }
}
