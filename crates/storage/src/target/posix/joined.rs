//! The second lock of a run's directory: processes that work in one that another process of their campaign made hold it
//! together. The first is the marker's, which only the maker holds: were that shared, nobody could tell who may remove.
//!
//! The maker makes its file, so that a directory which is not shared can't be joined. Who wants to remove takes the marker's
//! lock first, then all of this one, and keeps both to the end; who joins takes its part of this one first and looks then
//! whether the marker is there.

use std::{os::fd::OwnedFd, time::Duration};

use rustix::{
    fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags},
    io::Errno,
};

/// The file that is locked.
pub(super) const JOINED: &str = ".nilometer-joined";

/// Makes the file; it may be there already.
pub(super) fn allow(root: &OwnedFd) -> Result<(), Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(root, JOINED, flags, Mode::RUSR | Mode::WUSR).map(drop)
}

/// Who asks whether the lock is free holds it for a moment.
const TRIES: u32 = 50;
const TRY_EVERY: Duration = Duration::from_millis(2);

/// Takes the lock, which others may hold too; it is kept for as long as the descriptor.
pub(super) fn hold(root: &OwnedFd) -> Result<OwnedFd, Errno> {
    let file = open_marker(root, JOINED)?;
    for _ in 0..TRIES {
        match fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(TRY_EVERY),
            result => return result.map(|()| file),
        }
    }
    Err(Errno::WOULDBLOCK)
}

/// Takes the lock from all others, to remove what it guards: nobody can join as long as the descriptor is kept. None where the
/// directory is not shared. Fails where another process works in it, and where that can't be known.
pub(super) fn claim(root: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    match open_marker(root, JOINED) {
        Ok(file) => fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map(|()| Some(file)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Opens a marker if it is a plain file: to open a device may already do something. Writable, because NFS wants that for
/// an exclusive lock.
pub(super) fn open_marker(root: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let mode = fs::statat(root, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode;
    if !FileType::from_raw_mode(mode).is_file() {
        return Err(Errno::INVAL);
    }
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    fs::openat(root, name, flags, Mode::empty())
}
