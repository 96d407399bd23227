//! The path of a record: a name in a directory. SQLite opens a record by path and keeps a journal under the
//! same name plus `-journal`, which it replays and removes. Nilometer therefore checks existing files before SQLite
//! opens anything.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, ErrorKind, Read, Seek, SeekFrom},
    os::{
        fd::OwnedFd,
        unix::fs::{FileExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, open};

use super::RecordError;

/// A record's directory and file name.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The directory, with links resolved.
    pub(super) directory: PathBuf,
    pub(super) name: OsString,
}

impl Place {
    /// Returns the place of a new record. Its directory must exist.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(ErrorKind::InvalidFilename)?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Place { directory: parent.canonicalize()?, name })
    }

    /// Returns the place of an existing record. It resolves links, so that each record has only one lock.
    pub(super) fn existing(path: &Path) -> Result<Self, RecordError> {
        let real =
            path.canonicalize().map_err(|_| RecordError::Missing { path: path.into(), near: near(path) })?;
        let foreign = || RecordError::Foreign { path: path.into() };
        let place = Place::of(&real).map_err(|_| foreign())?;
        let unreadable = |source| RecordError::Unreadable { path: path.into(), source };
        if !is_database(&real).map_err(unreadable)? || names_other_files(&place.beside("-journal")) {
            return Err(foreign());
        }
        Ok(place)
    }

    /// Opens the directory.
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(open(&self.directory, flags, Mode::empty())?)
    }

    /// Returns a file next to the record that SQLite would take for its own, if there is one.
    pub(super) fn companion(&self) -> Option<PathBuf> {
        let names = ["-journal", "-wal", "-shm"].map(|suffix| self.beside(suffix));
        names.into_iter().find(|path| path.symlink_metadata().is_ok())
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.name.clone();
        name.push(suffix);
        self.directory.join(name)
    }
}

impl From<&Place> for PathBuf {
    fn from(place: &Place) -> PathBuf {
        place.directory.join(&place.name)
    }
}

/// The first bytes of an SQLite file (<https://www.sqlite.org/fileformat.html>, section 1.3).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Bytes 18 and 19 of a file that uses a rollback journal, as records do. Other modes add more files.
const ROLLBACK: [u8; 2] = [1, 1];

/// Opens a regular file. It refuses files that block a reader or have effects when opened.
fn open_plain(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    // Opening a device may have effects.
    if !path.metadata()?.is_file() {
        return Ok(None);
    }
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

/// `; did you mean a.sqlite?`: the record with this name, or the records beside it; empty if there are none.
fn near(path: &Path) -> String {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let files = parent.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let is_record = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "sqlite");
    let mut names: Vec<String> =
        files.filter(is_record).filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
    names.sort_unstable();
    let same = names.iter().position(|name| Path::new(name).file_stem() == path.file_name());
    let shown = same.map_or(&names[..names.len().min(NAMED)], |same| &names[same..=same]);
    match (shown.is_empty(), names.len().saturating_sub(NAMED)) {
        (true, _) => String::new(),
        (false, more) if same.is_none() && more > 0 => {
            format!("; there are {} and {more} more", shown.join(", "))
        }
        (false, _) => format!("; did you mean {}?", shown.join(" or ")),
    }
}

/// Records that an error names.
const NAMED: usize = 3;

fn is_database(path: &Path) -> io::Result<bool> {
    let Some(file) = open_plain(path)? else { return Ok(false) };
    let mut head = [0; 20];
    match file.read_exact_at(&mut head, 0) {
        Ok(()) => Ok(head.starts_with(MAGIC) && head.ends_with(&ROLLBACK)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The last bytes of a rollback journal for a transaction over several files (fileformat.html, section 3). The
/// name of a file stands before them. SQLite opens that file, and removes it if name and content match. A
/// record is one file, so Nilometer never writes such a journal.
const SUPER_JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Returns true if a journal is not one of a single record. Returns false for an unreadable journal, which
/// SQLite can't read either.
fn names_other_files(journal: &Path) -> bool {
    if journal.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return true;
    }
    last_bytes(journal).is_ok_and(|last| last == SUPER_JOURNAL)
}

/// Returns the last bytes of a file, or zeros if it does not exist.
fn last_bytes(path: &Path) -> io::Result<[u8; 8]> {
    let mut last = [0; 8];
    if let Some(mut file) = open_plain(path)? {
        file.seek(SeekFrom::End(-8))?;
        file.read_exact(&mut last)?;
    }
    Ok(last)
}
