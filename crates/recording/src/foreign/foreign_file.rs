//! An open file of a recording without a journal.

use std::{
    io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use nilometer_wire::EPOCH;

use crate::{
    foreign_facts::ForeignLane,
    recording_file::{self, RecordingFile},
};

/// An open file of a recording without a journal.
#[derive(Debug)]
pub(super) struct ForeignFile {
    pub(super) path: PathBuf,
    /// Bytes of the file.
    pub(super) length: u64,
    /// Time of its last change, in seconds since 2000.
    pub(super) near: u64,
    pub(super) opened: RecordingFile,
}

/// Opens a file by the rules of recordings: no link, no device.
pub(super) fn source_file(path: &Path) -> io::Result<ForeignFile> {
    let opened = recording_file::open(path)?;
    let status = opened.file.metadata()?;
    let since_1970 = status.modified()?.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let near = since_1970.saturating_sub(EPOCH);
    Ok(ForeignFile { path: path.to_owned(), length: status.len(), near, opened: opened.stored() })
}

/// The lane of one file.
pub(super) fn lane_of(ForeignFile { path, opened, .. }: ForeignFile) -> ForeignLane {
    ForeignLane { directory: directory_of(&path), access: opened.access, files: vec![path] }
}

/// The directory of a file.
pub(super) fn directory_of(path: &Path) -> PathBuf {
    path.parent().map_or_else(PathBuf::new, Path::to_owned)
}
