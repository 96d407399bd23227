//! Recordings by the directories above theirs: a disk holds a directory for each.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{OpenError, journals_in};

/// These directories, and those in them that hold journals. Each must be there.
pub fn with_below(directories: &[PathBuf]) -> Result<Vec<PathBuf>, OpenError> {
    let mut all = Vec::new();
    for directory in directories {
        all.push(directory.clone());
        match below(directory) {
            Ok(below) => all.extend(below),
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::Directory { path: directory.clone(), source });
            }
            // A disk that is lost.
            Err(_) => {}
        }
    }
    Ok(all)
}

/// The journals in directories; none in those that can't be read.
pub fn journals_below(directories: &[PathBuf]) -> Vec<PathBuf> {
    let journals = directories.iter().filter_map(|directory| journals_in(directory).ok()).flatten();
    journals.map(|(_, path)| path).collect()
}

fn below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut below = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() && journals_in(&path).is_ok_and(|journals| !journals.is_empty()) {
            below.push(path);
        }
    }
    below.sort();
    Ok(below)
}
