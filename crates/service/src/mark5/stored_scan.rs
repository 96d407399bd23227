//! Recordings in the directories of the configuration that this service did not make: of an earlier service, of another
//! program, or copied from another recorder.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use nilometer_recording::{foreign::is_foreign_file, view::Scan as Scanned};

use super::{
    commands::Mark5Session,
    file_copy::file_in,
    peer::chunk_store::{is_scan_name, open},
    scan::view,
};
use crate::state::EndedScan;

/// Finds a recording by its whole name. It reads the journals, or the headers of chunks without one.
pub(super) fn stored(name: &str, directories: &[PathBuf]) -> Option<EndedScan> {
    if !is_scan_name(name) {
        return None;
    }
    let below = directories.iter().map(|directory| directory.join(name));
    let paths: Vec<PathBuf> = below.filter(|path| path.is_dir()).collect();
    if paths.is_empty() { None } else { found(name, paths) }
}

/// The recording in these directories or in this file.
fn found(name: &str, paths: Vec<PathBuf>) -> Option<EndedScan> {
    let scan = EndedScan { name: name.to_owned(), paths, ..EndedScan::default() };
    let view = view(&scan).ok()?;
    let scanned = Scanned::of(&view);
    let packets_of_frame = view.packets_of_frame();
    let in_gaps: u64 = scanned.gaps.iter().map(|hole| hole.packets).sum();
    Some(EndedScan {
        bytes: scanned.bytes,
        packets: scanned.frames * packets_of_frame,
        missing_packets: in_gaps + scanned.missing_frames * packets_of_frame,
        ..scan
    })
}

impl Mark5Session {
    /// Opens a file in a directory for recordings that other recorders may read: one that this service made, or one of
    /// frames or captured packets. The second value is its length.
    pub(super) fn readable_file(&self, named: &str) -> Option<(File, u64)> {
        let path = self.readable_path(named)?;
        let file = open(&path).ok()?;
        let length = file.metadata().ok()?.len();
        Some((file, length))
    }

    /// The recording in such a file.
    pub(super) fn scan_in_file(&self, named: &str) -> Option<EndedScan> {
        found(named, vec![self.readable_path(named)?])
    }

    fn readable_path(&self, named: &str) -> Option<PathBuf> {
        let path = file_in(named, &self.shared.directories)?;
        // Neither a link nor a pipe, which would hold up the reader.
        let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
        let is_ours = self.shared.copy().has_made(&path);
        let is_readable = is_file(&path) && (is_ours || is_foreign_file(&path));
        is_readable.then_some(path)
    }
}
