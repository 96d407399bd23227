//! Where a record is: a name in a directory. SQLite opens a record by its path and keeps a journal under the same name with
//! `-journal` behind it, which it replays and removes. So what lies there is looked
//! at before SQLite opens anything.

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

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Without links in it.
    pub(super) directory: PathBuf,
    pub(super) name: OsString,
}

impl Place {
    /// Of a record that is to be made. The directory must be there.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(ErrorKind::InvalidFilename)?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Place { directory: parent.canonicalize()?, name })
    }

    /// Of a record that is there: of the file itself, by whatever name it was given, so that there is one lock for it.
    pub(super) fn existing(path: &Path) -> Result<Self, RecordError> {
        let real = path.canonicalize().map_err(|_| RecordError::Missing { path: path.into() })?;
        let foreign = || RecordError::Foreign { path: path.into() };
        let place = Place::of(&real).map_err(|_| foreign())?;
        let unreadable = |source| RecordError::Unreadable { path: path.into(), source };
        if !is_database(&real).map_err(unreadable)? || names_other_files(&place.beside("-journal")) {
            return Err(foreign());
        }
        Ok(place)
    }

    /// The directory, held.
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(open(&self.directory, flags, Mode::empty())?)
    }

    /// A file beside the record that SQLite would take for its own, if there is one.
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

/// What an SQLite file begins with (<https://www.sqlite.org/fileformat.html>, section 1.3).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Bytes 18 and 19: written and read with a rollback journal, as ours are. Other modes bring more files.
const ROLLBACK: [u8; 2] = [1, 1];

/// Opens a plain file, and nothing that makes a reader wait or that does something when it is opened.
fn open_plain(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    // To open a device may already do something.
    if !path.metadata()?.is_file() {
        return Ok(None);
    }
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

fn is_database(path: &Path) -> io::Result<bool> {
    let Some(file) = open_plain(path)? else { return Ok(false) };
    let mut head = [0; 20];
    match file.read_exact_at(&mut head, 0) {
        Ok(()) => Ok(head.starts_with(MAGIC) && head.ends_with(&ROLLBACK)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// What the last bytes of a rollback journal are if it belongs to a transaction over several files (fileformat.html,
/// section 3). In front of them it names a file, which SQLite opens, and removes where its name and content fit. A record
/// is one file: we never write this.
const SUPER_JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Whether a journal is not one of a record. One that can't be read is none: SQLite then can't either.
fn names_other_files(journal: &Path) -> bool {
    if journal.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return true;
    }
    last_bytes(journal).is_ok_and(|last| last == SUPER_JOURNAL)
}

/// The last bytes of a file; zeros if it is not there.
fn last_bytes(path: &Path) -> io::Result<[u8; 8]> {
    let mut last = [0; 8];
    if let Some(mut file) = open_plain(path)? {
        file.seek(SeekFrom::End(-8))?;
        file.read_exact(&mut last)?;
    }
    Ok(last)
}
