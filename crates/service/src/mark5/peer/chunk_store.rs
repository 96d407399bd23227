//! Recordings in chunks over several directories, as a `FlexBuff` has them: `NAME/NAME.00000000` and on. Chunks
//! that another recorder sends have no journal.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use nilometer_model::Bytes;
use rustix::fs::OFlags;

use super::file_sink::require_room;

/// The digits of a chunk's number.
const DIGITS: usize = 8;
/// The most characters of a name.
const NAME_MAX: usize = 200;
/// The letters that make a name unique, as jive5ab adds them.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// A chunk, by its recording and its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChunkId {
    pub(crate) recording: String,
    pub(crate) number: u64,
}

impl ChunkId {
    /// Reads `NAME/NAME.00000000`. `None` for any other path.
    pub(crate) fn read(relative: &str) -> Option<Self> {
        let (recording, file) = relative.split_once('/')?;
        let number = file.strip_prefix(recording)?.strip_prefix('.')?;
        let is_number = number.len() >= DIGITS && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|_| is_number && is_scan_name(recording))?;
        Some(ChunkId { recording: recording.to_owned(), number })
    }

    /// The path below a directory for recordings.
    pub(crate) fn relative(&self) -> String {
        format!("{0}/{0}.{1:02$}", self.recording, self.number, DIGITS)
    }
}

/// Returns true for a name of a recording that is one plain part of a path.
pub(crate) fn is_scan_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-.".contains(&byte);
    (1..=NAME_MAX).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(plain)
}

/// The directories into which chunks go, in turn.
#[derive(Debug, Clone)]
pub(crate) struct ChunkStore {
    roots: Vec<PathBuf>,
    /// The bytes that stay free on each storage.
    reserve: Bytes,
    /// The directory whose turn it is.
    turn: usize,
}

impl ChunkStore {
    /// A store in these directories, of which there is at least one.
    pub(crate) fn new(roots: Vec<PathBuf>, reserve: Bytes) -> Self {
        ChunkStore { roots, reserve, turn: 0 }
    }

    /// The directory for the next chunk: the next one in turn that has room. The error is that of the last one.
    pub(crate) fn root_for(&mut self, bytes: u64) -> io::Result<PathBuf> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no directory");
        for _ in 0..self.roots.len() {
            let root = &self.roots[self.turn % self.roots.len()];
            self.turn += 1;
            match require_room(root, self.reserve, bytes) {
                Ok(()) => return Ok(root.clone()),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The chunks of a recording that are here, in the order of their numbers, with their paths. If a chunk
    /// is here twice, the first one counts.
    pub(crate) fn chunks(&self, recording: &str) -> io::Result<Vec<(ChunkId, PathBuf)>> {
        let mut found = Vec::new();
        for root in &self.roots {
            found.extend(chunks_in(root, recording)?);
        }
        found.sort();
        found.dedup_by(|later, first| later.0 == first.0);
        Ok(found)
    }

    /// Returns true if a recording of this name with a journal is here.
    pub(crate) fn has_journal(&self, recording: &str) -> bool {
        let is_journal = |path: &Path| path.extension().is_some_and(|ending| ending == "journal");
        let has = |root: &PathBuf| {
            let entries = fs::read_dir(root.join(recording)).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).any(|path| is_journal(&path))
        };
        self.roots.iter().any(has)
    }

    /// The name, or the name with a letter if it is taken. `None` if all letters are taken too.
    pub(crate) fn free_name(&self, recording: &str) -> Option<String> {
        let lettered = LETTERS.chars().map(|letter| format!("{recording}{letter}"));
        let is_free = |name: &String| !self.roots.iter().any(|root| root.join(name).exists());
        std::iter::once(recording.to_owned()).chain(lettered).find(is_free)
    }
}

/// The chunks of a recording in one directory. One that is not there has none.
fn chunks_in(root: &Path, recording: &str) -> io::Result<Vec<(ChunkId, PathBuf)>> {
    let entries = match fs::read_dir(root.join(recording)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let relative = format!("{recording}/{}", name.to_string_lossy());
        if let Some(chunk) = ChunkId::read(&relative).filter(|_| entry.path().is_file()) {
            found.push((chunk, entry.path()));
        }
    }
    Ok(found)
}

/// Makes a new file, and its directory if that is not there. It follows no link.
pub(super) fn create(path: &Path) -> io::Result<File> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path)
}

/// Opens a file for reading, without following a link.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_named_as_on_a_flexbuff() {
        let chunk = ChunkId { recording: "ex_st_1".into(), number: 12 };
        assert_eq!(chunk.relative(), "ex_st_1/ex_st_1.00000012");
        assert_eq!(ChunkId::read("ex_st_1/ex_st_1.00000012"), Some(chunk));
        for other in [
            "x/y.00000000",
            "x/x.0000000",
            "x/x.0000000a",
            "../...00000000",
            "x/../x.00000000",
            "x",
            "/x/x.00000000",
            ".x/.x.00000000",
            "x/x.journal",
        ] {
            assert_eq!(ChunkId::read(other), None, "{other}");
        }
    }

    #[test]
    fn chunks_are_found_in_all_directories_and_go_where_there_is_room() {
        let roots = [(); 2].map(|()| tempfile::tempdir().expect("space"));
        let paths = roots.each_ref().map(|root| root.path().to_owned());
        let mut store = ChunkStore::new(paths.to_vec(), Bytes(0));
        assert_eq!(store.free_name("x").as_deref(), Some("x"));
        for (root, number) in [(0, 1), (1, 0), (1, 1), (0, 7)] {
            let relative = ChunkId { recording: "x".into(), number }.relative();
            drop(create(&paths[root].join(relative)).expect("space"));
        }
        std::fs::write(paths[0].join("x/.x.00000009.partial"), "x").expect("space");
        let found = store.chunks("x").expect("readable");
        let numbers: Vec<u64> = found.iter().map(|(chunk, _)| chunk.number).collect();
        assert_eq!(numbers, [0, 1, 7]);
        assert_eq!(store.free_name("x").as_deref(), Some("xa"));
        assert!(!store.has_journal("x"));
        std::fs::write(paths[1].join("x/x.journal"), "").expect("space");
        assert!(store.has_journal("x"));
        let turns = [(); 3].map(|()| store.root_for(1).expect("room"));
        assert_eq!(turns, [&paths[0], &paths[1], &paths[0]].map(Clone::clone));
        assert!(ChunkStore::new(paths.to_vec(), Bytes(u64::MAX)).root_for(1).is_err(), "the reserve stays");
    }
}
