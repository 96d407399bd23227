//! Removes files that a recorder made ahead, so that it would never wait for a new file. If it is killed, the
//! last one is empty, and HDF5 readers that open all files of a recording stop there.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use nilometer_recording::{reader::journals_below, recording_file};
use rustix::fs::{self, AtFlags, OFlags};

use super::{
    RepairError, RepairOptions, RepairOutcome, RepairedFile,
    held::{HeldDirectories, open_own},
};

/// The signature at the start of files that HDF5 readers open.
const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// Bytes read at once.
const AT_ONCE: usize = 1 << 20;

/// Checks all files of the recording with this name that HDF5 readers can't open and no journal mentions, and
/// removes the empty ones.
pub(super) fn each_unused(
    held: &HeldDirectories,
    name: &str,
    known: &[PathBuf],
    options: RepairOptions,
    tell: &mut dyn FnMut(&RepairedFile),
) {
    for (path, directory) in held.each() {
        for file in files_of(path, name).into_iter().filter(|file| !known.contains(file)) {
            if let Some(outcome) = looked_at(directory, &file, options) {
                tell(&RepairedFile::empty(file, outcome));
            }
        }
    }
}

/// The same for recordings without any record in a journal: the recorder was killed right after its start.
pub(super) fn each_of_empty(
    directories: &[PathBuf],
    options: RepairOptions,
    tell: &mut dyn FnMut(&RepairedFile),
) -> Result<(), RepairError> {
    for directory in directories {
        let journals = journals_below(std::slice::from_ref(directory));
        let Some(journal) = journals.first() else { continue };
        let held = HeldDirectories::hold_one(directory, journal, options)?;
        for name in journals.iter().filter_map(|journal| name_of(journal)) {
            each_unused(&held, name, &[], options, tell);
        }
    }
    Ok(())
}

/// The name of the recording, from the name of its journal.
fn name_of(journal: &Path) -> Option<&str> {
    let name = journal.file_name()?.to_str()?.strip_suffix(".journal")?;
    name.rsplit_once('.').map(|(name, _)| name)
}

/// The files of a recording in a directory that have the name of a file of frames.
fn files_of(directory: &Path, name: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let listed = recording_file::each_name(directory, |file, _| {
        if is_of_frames(file, name) {
            files.push(directory.join(file));
        }
    });
    files.sort();
    listed.map(|()| files).unwrap_or_default()
}

/// Returns true if a file's name is that of a file of frames: `NAME.h5`, `NAME.00000013.h5`,
/// `NAME.1.00000013.h5`.
fn is_of_frames(file: &str, name: &str) -> bool {
    let Some(numbers) = file.strip_prefix(name).and_then(|rest| rest.strip_suffix(".h5")) else {
        return false;
    };
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_digit());
    let mut parts = numbers.split('.');
    parts.next() == Some("") && parts.all(is_number)
}

/// The outcome for a file; `None` if HDF5 readers open it, or it belongs to another user.
fn looked_at(directory: &OwnedFd, path: &Path, options: RepairOptions) -> Option<RepairOutcome> {
    let mut file = open_own(directory, path, OFlags::RDONLY).ok()?;
    let outcome = match is_blank(&mut file) {
        Ok(None) => return None,
        Ok(Some(true)) if options.dry_run => RepairOutcome::ToBeRemoved,
        Ok(Some(true)) => match remove(directory, path) {
            Ok(()) => RepairOutcome::Removed,
            Err(error) => {
                RepairOutcome::Failed(format!("nothing is in it, and it can't be removed: {error}"))
            }
        },
        Ok(Some(false)) => {
            let why =
                "readers of HDF5 can't open it, and no journal describes its content: move it elsewhere";
            RepairOutcome::Failed(why.into())
        }
        Err(error) => RepairOutcome::Failed(format!("it can't be read: {error}")),
    };
    Some(outcome)
}

/// Returns true if all bytes of a file are zero, and `None` if it begins with the signature.
fn is_blank(file: &mut File) -> io::Result<Option<bool>> {
    let mut piece = vec![0; AT_ONCE];
    let mut is_first = true;
    loop {
        let count = file.read(&mut piece)?;
        if is_first && piece[..count].starts_with(SIGNATURE) {
            return Ok(None);
        }
        is_first = false;
        if count == 0 {
            return Ok(Some(true));
        }
        if piece[..count].iter().any(|byte| *byte != 0) {
            return Ok(Some(false));
        }
    }
}

fn remove(directory: &OwnedFd, path: &Path) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(fs::unlinkat(directory, name, AtFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_frames_have_numbers_behind_the_name_of_the_recording() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let names = [
            "r.h5",
            "r.00000013.h5",
            "r.1.00000013.h5",
            "r.x.h5",
            "rr.1.h5",
            "r..h5",
            "r.0.journal",
            "r.1.h5.txt",
        ];
        for name in names {
            std::fs::write(home.path().join(name), "").expect("room");
        }
        let expected = ["r.00000013.h5", "r.1.00000013.h5", "r.h5"].map(|name| home.path().join(name));
        assert_eq!(files_of(home.path(), "r"), expected);
    }

    #[test]
    fn a_file_is_blank_if_nothing_but_zeros_is_in_it() {
        let blank = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().expect("a temporary file");
            std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).expect("room");
            is_blank(&mut file).expect("it can be read")
        };
        assert_eq!((blank(b""), blank(&[0; 5000])), (Some(true), Some(true)));
        assert_eq!((blank(b"\x89HDF\r\n\x1a\n..."), blank(b"\0\0frames")), (None, Some(false)));
    }
}
