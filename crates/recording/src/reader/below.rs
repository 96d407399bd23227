//! Finds recordings by a parent directory, such as a disk with one directory for each recording.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::fs::FileType;

use super::{OpenError, Unreadable, journals_in};
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

/// Returns the directories directly below these that can't be read, with the errors. Recordings may be in them.
pub fn unreadable_below(directories: &[PathBuf]) -> Unreadable {
    let candidates = directories.iter().filter_map(|directory| candidates(directory).ok()).flatten();
    candidates
        .filter_map(|path| journals_in(&MountedDirectories, &path).err().map(|error| (path, error)))
        .filter(|(path, error)| !is_none_of_ours(path, error))
        .collect()
}

/// True if this is no directory, or the one that ext4 keeps for root.
fn is_none_of_ours(path: &Path, error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    // The search passes over a link that it can't follow.
    let is_other = [NotADirectory, NotFound].contains(&error.kind()) || path.is_symlink();
    is_other || path.ends_with("lost+found")
}

fn below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut below = candidates(directory)?;
    below.retain(|path| journals_in(&MountedDirectories, path).is_ok_and(|journals| !journals.is_empty()));
    Ok(below)
}

/// The entries that may be directories, sorted.
fn candidates(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut below = Vec::new();
    recording_file::each_name(directory, |name, kind| {
        // Some file systems don't report the type of an entry.
        let may_be = matches!(kind, FileType::Directory | FileType::Symlink | FileType::Unknown);
        if may_be && name != "." && name != ".." {
            below.push(directory.join(name));
        }
    })?;
    below.sort();
    Ok(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_that_may_hold_recordings_count_as_unreadable() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let [closed, link, kept] = ["closed", "link", "lost+found"].map(|name| place.path().join(name));
        std::fs::create_dir(&closed).expect("space");
        std::os::unix::fs::symlink("/root", &link).expect("space");
        let refused = || io::Error::from(io::ErrorKind::PermissionDenied);
        assert!(!is_none_of_ours(&closed, &refused()));
        assert!(is_none_of_ours(&link, &refused()) && is_none_of_ours(&kept, &refused()));
        assert!(is_none_of_ours(&closed, &io::ErrorKind::NotADirectory.into()), "a file");
        let all = [place.path().to_owned()];
        assert_eq!(unreadable_below(&all).len(), 0, "its owner may read it");
        assert_eq!(with_below(&all).expect("it is there"), all);
    }
}
