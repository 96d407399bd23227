//! Finds recordings by a parent directory, such as a disk with one directory for each recording.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::fs::FileType;

use super::{OpenError, journals_in};
use crate::{recording_file, recording_storage::MountedDirectories};

/// Returns these directories and those in them that hold journals. Each given directory must exist.
pub fn with_below(directories: &[PathBuf]) -> Result<Vec<PathBuf>, OpenError> {
    let mut all = Vec::new();
    for directory in directories {
        all.push(directory.clone());
        match below(directory) {
            Ok(below) => all.extend(below),
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::Directory { path: directory.clone(), source });
            }
            // The disk is lost.
            Err(_) => {}
        }
    }
    Ok(all)
}

/// Returns the journals in directories, except in those that can't be read.
pub fn journals_below(directories: &[PathBuf]) -> Vec<PathBuf> {
    let journals =
        directories.iter().filter_map(|directory| journals_in(&MountedDirectories, directory).ok()).flatten();
    journals.map(|(_, path)| path).collect()
}

fn below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut below = Vec::new();
    recording_file::each_name(directory, |name, kind| {
        // Some file systems don't report the type of an entry.
        let may_be = matches!(kind, FileType::Directory | FileType::Symlink | FileType::Unknown);
        if may_be && name != "." && name != ".." {
            below.push(directory.join(name));
        }
    })?;
    below.retain(|path| journals_in(&MountedDirectories, path).is_ok_and(|journals| !journals.is_empty()));
    below.sort();
    Ok(below)
}
