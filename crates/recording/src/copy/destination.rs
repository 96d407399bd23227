//! The directories of a copy. A mark in each names the recording until the copy is whole, so that a later copy
//! goes on with its own files only.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, OFlags, fcntl_lock};

use super::{CopyError, partial_copy::sync_directory_of};

/// A directory of the copy, locked against other copies.
#[derive(Debug)]
pub(super) struct CopyDirectory {
    pub(super) path: PathBuf,
    mark: PathBuf,
    /// Held open for its lock.
    _lock: File,
}

/// The mark's name.
const MARK: &str = ".copying";

impl CopyDirectory {
    /// Makes the directory `name`, or goes on with that of an earlier copy of this recording.
    pub(super) fn open(above: &Path, name: &str, recording: u64) -> Result<Self, CopyError> {
        let path = above.join(name);
        let failed = |source| CopyError::Storage { path: path.clone(), source };
        match fs::create_dir(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => check_mark(&path)?,
            made => made.map_err(failed)?,
        }
        let mark = path.join(MARK);
        let mut lock = open_mark(&mark).map_err(failed)?;
        // A lock of this kind, because recorders hold `flock` and copies give way to those.
        if fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(CopyError::Running { path });
        }
        let own = format!("{recording:016x}\n");
        let mut text = String::new();
        lock.read_to_string(&mut text).map_err(failed)?;
        if !own.starts_with(&text) {
            return Err(CopyError::OtherRecording { path });
        }
        lock.write_all(&own.as_bytes()[text.len()..]).map_err(failed)?;
        lock.sync_all().and_then(|()| sync_directory_of(&mark)).map_err(failed)?;
        sync_directory_of(&path).map_err(failed)?;
        Ok(CopyDirectory { path, mark, _lock: lock })
    }

    /// Removes the mark: the copy is whole.
    pub(super) fn finish(&self) -> io::Result<()> {
        fs::remove_file(&self.mark)?;
        sync_directory_of(&self.mark)
    }
}

/// Refuses a directory without a mark, unless it is empty.
fn check_mark(path: &Path) -> Result<(), CopyError> {
    let failed = |source| CopyError::Storage { path: path.to_owned(), source };
    if path.join(MARK).symlink_metadata().is_ok() {
        return Ok(());
    }
    let is_empty = fs::read_dir(path).map_err(failed)?.next().is_none();
    if is_empty { Ok(()) } else { Err(CopyError::Exists { path: path.to_owned() }) }
}

fn open_mark(mark: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let nofollow = OFlags::NOFOLLOW.bits().cast_signed();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(nofollow);
    options.open(mark)
}
