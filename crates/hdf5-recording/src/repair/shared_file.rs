//! The index of an HDF5 file that several lanes have written, of one process or of several.
//!
//! ```text
//! lane 0   frames into its strides, positions into its journal  \
//! lane 1   frames into its strides, positions into its journal   > all positions -> index behind all frames,
//! lane 2   frames into its strides, positions into its journal  /                   then the superblock
//! ```
//!
//! One process completes the file once all lanes have ended. A process that dies before leaves a file without a
//! superblock, which no program takes for whole; [`crate::repair_recording`] can still complete it.

use std::{fs::File, io, path::PathBuf};

use nilometer_hdf5::tree::TreeGroup;
use nilometer_model::Nanos;
use nilometer_recording::reader::{Recording, Trust};
use rustix::fs::OFlags;

use super::{
    Expected, RepairError,
    held::opened_own_for,
    known::{FileFrames, by_file},
    remake,
};
use crate::kept_values::KeptValues;

/// Errors of completing a shared file.
#[derive(Debug, thiserror::Error)]
pub enum SharedDatasetError {
    /// A journal can't be read.
    #[error(transparent)]
    Journal(#[from] RepairError),
    /// Not all journals are there.
    #[error("{missing} of {lanes} journals of the recording {name} can't be read here")]
    Lacking {
        /// The recording's name.
        name: String,
        /// Number of its journals that are missing.
        missing: usize,
        /// Number of its lanes.
        lanes: u32,
    },
    /// The file can't be opened.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The index can't be written, or does not agree with the journals.
    #[error("{path}: {why}")]
    Index {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

/// A file of frames that all lanes of a recording share, with the positions of all frames.
#[derive(Debug)]
pub struct SharedDatasetFile {
    recording: Recording,
    frames: FileFrames,
    path: PathBuf,
    file: File,
}

/// The time for the index that each frame adds at the most: some reads and a look-up on slow storage.
const INDEX_TIME_OF_FRAME: Nanos = Nanos::from_millis(4);

impl SharedDatasetFile {
    /// The longest time that the index of this many frames takes, beside the time in which storage must answer.
    pub const fn index_time_max(frames: u64) -> Nanos {
        Nanos(frames.saturating_mul(INDEX_TIME_OF_FRAME.0))
    }

    /// Opens the file of the recording with these journals, one a lane, all in the same directory.
    ///
    /// # Errors
    /// A journal or the file can't be read, or a journal is missing.
    pub fn open(journals: &[PathBuf]) -> Result<Self, SharedDatasetError> {
        let directories: Vec<PathBuf> =
            journals.first().and_then(|journal| journal.parent()).map(PathBuf::from).into_iter().collect();
        let (mut found, _) = Recording::open_journals(journals, &directories, Trust::Acknowledged);
        let recording = found.next().ok_or_else(|| lacking(journals, 0))?;
        if recording.index.heads.len() < journals.len() || !recording.unreadable.is_empty() {
            let there = recording.index.heads.len().saturating_sub(recording.unreadable.len());
            return Err(lacking(journals, there));
        }
        let path = recording.directory(0).join(recording.head().file_name(recording.name(), 0));
        let failed = |source| SharedDatasetError::File { path: path.clone(), source };
        let file = opened_own_for(&path, OFlags::RDWR).map_err(failed)?;
        let mut frames = by_file(&recording)?.pop_first().map(|(_, frames)| frames).unwrap_or_default();
        // Without any frame the file still has its number of places.
        frames.settle(&recording, recording.head());
        let file = SharedDatasetFile { recording, frames, path, file };
        file.check_apart()?;
        Ok(file)
    }

    /// Checks that no frame lies on another one.
    fn check_apart(&self) -> Result<(), SharedDatasetError> {
        let extents = self.frames.frames.values().map(|frame| frame.place.extent);
        let mut ranges: Vec<_> = extents.map(|extent| (extent.offset, u64::from(extent.length))).collect();
        ranges.sort_unstable();
        match ranges.windows(2).find(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
            None => Ok(()),
            Some(pair) => Err(self.refused(format!("two frames have byte {}", pair[1].0))),
        }
    }

    /// The number of frames in it.
    pub fn frames(&self) -> u64 {
        self.frames.frames.len() as u64
    }

    /// The file's path.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Writes everything except the frames, as `tree` describes it: behind them, and the superblock last. It is
    /// durable then.
    ///
    /// # Errors
    /// The storage or HDF5 refuses; the file is then still one without a superblock.
    pub fn complete(&self, tree: &TreeGroup) -> Result<(), SharedDatasetError> {
        let made = remake::make(&self.file, tree, self.expected(tree), KeptValues::default());
        made.map_err(|error| self.refused(format!("its index can't be written: {error}")))
    }

    /// Checks that readers of HDF5 find each frame of the journals in its place.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self, tree: &TreeGroup) -> Result<(), SharedDatasetError> {
        self.expected(tree).check(&self.file).map_err(|why| self.refused(why))
    }

    fn expected<'a>(&'a self, tree: &'a TreeGroup) -> Expected<'a> {
        Expected { recording: &self.recording, file: &self.frames, tree: Some(tree), nothing_else: false }
    }

    fn refused(&self, why: String) -> SharedDatasetError {
        SharedDatasetError::Index { path: self.path.clone(), why }
    }
}

fn lacking(journals: &[PathBuf], there: usize) -> SharedDatasetError {
    let first = journals.first().and_then(|journal| journal.file_name());
    let name = first.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let lanes = journals.len();
    SharedDatasetError::Lacking { name, missing: lanes - there.min(lanes), lanes: lanes as u32 }
}
