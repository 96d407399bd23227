//! Removes files that a recorder made ahead, so that it would never wait for a new file. If it is killed, the
//! last one is empty or only begun, and HDF5 readers that open all files of a recording stop there.
//!
//! A recorder writes the superblock of a new file behind everything else that the library puts there:
//!
//! ```text
//! empty    |
//! begun    | 48 zeros   texts and structure
//! whole    | superblock texts and structure
//! ```

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

/// The signature of files that HDF5 readers open. It stands at the start, or behind a user block of 512 bytes or of
/// a power of two times that. Source: HDF5 File Format Specification, section II.A.
const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// Bytes read at once. A begun file is shorter than that.
const AT_ONCE: usize = 1 << 20;
/// Bytes of the shortest user block.
const USER_BLOCK: usize = 512;
/// Bytes of the superblock, with which every file begins.
const SUPERBLOCK: usize = 48;

/// The treatment of files that a recorder began and no journal mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BegunFileTreatment {
    /// Remove those that end in front of this position, where the frames of the recording's files begin.
    RemoveBefore(u64),
    /// Only name them: records of journals may be lost, and frames may be in them.
    Keep,
}

/// The files of a recording that no journal mentions.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnusedFiles<'a> {
    /// The name of the recording.
    pub(super) name: &'a str,
    /// Files that journals mention.
    pub(super) known: &'a [PathBuf],
    pub(super) begun: BegunFileTreatment,
    pub(super) options: RepairOptions,
}

/// Checks all files of a recording that HDF5 readers can't open and no journal mentions, and removes those in which
/// no frame can be.
pub(super) fn each_unused(
    held: &HeldDirectories,
    unused: UnusedFiles<'_>,
    tell: &mut dyn FnMut(&RepairedFile),
) {
    for (path, directory) in held.each() {
        for file in files_of(path, unused.name).into_iter().filter(|file| !unused.known.contains(file)) {
            if let Some(outcome) = unused.looked_at(directory, &file) {
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
            let unused = UnusedFiles { name, known: &[], begun: BegunFileTreatment::Keep, options };
            each_unused(&held, unused, tell);
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

/// Digits of a file's number.
const DIGITS: usize = 8;

/// Returns true if a file's name is that of a file of frames: `NAME.h5`, `NAME.1.h5`, `NAME.00000013.h5`,
/// `NAME.1.00000013.h5`.
fn is_of_frames(file: &str, name: &str) -> bool {
    let Some(numbers) = file.strip_prefix(name).and_then(|rest| rest.strip_suffix(".h5")) else {
        return false;
    };
    let is_file = |part: &str| part.len() == DIGITS && part.chars().all(|letter| letter.is_ascii_digit());
    let is_lane = |part: &str| part.parse().is_ok_and(|lane: u32| lane.to_string() == part);
    let parts: Vec<_> = numbers.split('.').collect();
    match parts[..] {
        [""] => true,
        ["", part] => is_lane(part) || is_file(part),
        ["", lane, file] => is_lane(lane) && is_file(file),
        _ => false,
    }
}

impl UnusedFiles<'_> {
    /// The outcome for a file; `None` if HDF5 readers open it, or it belongs to another user.
    fn looked_at(&self, directory: &OwnedFd, path: &Path) -> Option<RepairOutcome> {
        let mut file = open_own(directory, path, OFlags::RDONLY).ok()?;
        let content = match UnusedContent::of(&mut file) {
            Ok(content) => content,
            Err(error) => return Some(RepairOutcome::Failed(format!("it can't be read: {error}"))),
        };
        match content {
            UnusedContent::Signed => None,
            UnusedContent::Blank => Some(self.removed(directory, path)),
            UnusedContent::Begun { end } if self.holds_no_frame(end) => Some(self.removed(directory, path)),
            UnusedContent::Begun { .. } | UnusedContent::Unknown => {
                let why =
                    "readers of HDF5 can't open it, and no journal describes its content: move it elsewhere";
                Some(RepairOutcome::Failed(why.into()))
            }
        }
    }

    /// Returns true if a begun file with zeros only from `end` on has no frame.
    fn holds_no_frame(&self, end: u64) -> bool {
        match self.begun {
            BegunFileTreatment::RemoveBefore(frames) => end <= frames,
            BegunFileTreatment::Keep => false,
        }
    }

    fn removed(&self, directory: &OwnedFd, path: &Path) -> RepairOutcome {
        if self.options.dry_run {
            return RepairOutcome::ToBeRemoved;
        }
        match remove(directory, path) {
            Ok(()) => RepairOutcome::Removed,
            Err(error) => {
                RepairOutcome::Failed(format!("no frame is in it, and it can't be removed: {error}"))
            }
        }
    }
}

/// The content of a file that no journal mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnusedContent {
    /// It has the signature: HDF5 readers open it.
    Signed,
    /// All bytes are zero, or there are none.
    Blank,
    /// A short file without a superblock, as a recorder begins it. All bytes from `end` on are zero.
    Begun { end: u64 },
    /// Any other bytes.
    Unknown,
}

impl UnusedContent {
    fn of(file: &mut File) -> io::Result<Self> {
        let mut first = Vec::new();
        file.take(AT_ONCE as u64).read_to_end(&mut first)?;
        if is_signed(&first) {
            return Ok(UnusedContent::Signed);
        }
        let is_short = first.len() < AT_ONCE;
        match first.iter().position(|byte| *byte != 0) {
            Some(at) if at >= SUPERBLOCK && is_short => {
                let end = first.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
                Ok(UnusedContent::Begun { end })
            }
            None if is_short || is_zero(file)? => Ok(UnusedContent::Blank),
            Some(_) | None => Ok(UnusedContent::Unknown),
        }
    }
}

/// Returns true if the signature stands at one of its places in the first bytes of a file.
fn is_signed(first: &[u8]) -> bool {
    let behind_block = std::iter::successors(Some(USER_BLOCK), |at| at.checked_mul(2));
    let places = std::iter::once(0).chain(behind_block).take_while(|at| *at < first.len());
    places.map(|at| &first[at..]).any(|rest| rest.starts_with(SIGNATURE))
}

/// Returns true if all remaining bytes of a file are zero.
fn is_zero(file: &mut File) -> io::Result<bool> {
    let mut piece = vec![0; AT_ONCE];
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            return Ok(true);
        }
        if piece[..count].iter().any(|byte| *byte != 0) {
            return Ok(false);
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
            "r.0.h5",
            "r.01.h5",
            "r.2026.h5",
            "r.0.2026.h5",
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
        let expected = ["r.0.h5", "r.00000013.h5", "r.1.00000013.h5", "r.2026.h5", "r.h5"]
            .map(|name| home.path().join(name));
        assert_eq!(files_of(home.path(), "r"), expected);
    }

    #[test]
    fn a_file_without_a_superblock_is_blank_or_begun() {
        let content = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().expect("a temporary file");
            std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).expect("room");
            UnusedContent::of(&mut file).expect("it can be read")
        };
        let begun = [&[0; SUPERBLOCK][..], b"texts"].concat();
        let zeros = vec![0; 2 * AT_ONCE];
        let long = [&begun[..], &zeros].concat();
        let cut = &begun[1..];
        assert_eq!([b"".as_slice(), &zeros[..5000], &zeros].map(content), [UnusedContent::Blank; 3]);
        assert_eq!(content(b"\x89HDF\r\n\x1a\n..."), UnusedContent::Signed);
        assert_eq!(content(&begun), UnusedContent::Begun { end: SUPERBLOCK as u64 + 5 });
        let with_zeros = [&begun[..], &[0; 100]].concat();
        assert_eq!(content(&with_zeros), content(&begun));
        for block in [USER_BLOCK, 4 * USER_BLOCK] {
            let user_block = [&vec![0; block][..], SIGNATURE].concat();
            assert_eq!(content(&user_block), UnusedContent::Signed, "a user block of {block} B");
        }
        assert_eq!([b"\0\0frames".as_slice(), &long, cut].map(content), [UnusedContent::Unknown; 3]);
    }
}
