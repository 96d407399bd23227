//! The second lock of a run's directory. Processes that work in a directory which another process of their
//! campaign made hold this lock together. The first lock is the marker's, held only by the maker. If it were
//! shared, nobody could tell who may remove the directory.
//!
//! The maker creates the lock file, so a directory that is not shared can't be joined. To remove the directory,
//! a process takes the marker's lock, then all of this one. It keeps both until the marker is gone. To join, a
//! process first takes its share of this lock and then checks that the marker is there.

use std::{os::fd::OwnedFd, time::Duration};

use rustix::{
    fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags},
    io::Errno,
};

/// The lock file.
pub(super) const JOINED: &str = ".nilometer-joined";

/// Creates the lock file; it may exist already.
pub(super) fn allow(root: &OwnedFd) -> Result<(), Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(root, JOINED, flags, Mode::RUSR | Mode::WUSR).map(drop)
}

/// Processes that test the lock hold it for a moment.
const TRIES: u32 = 50;
const TRY_EVERY: Duration = Duration::from_millis(2);

/// Takes the lock, which other processes may share, for the life of the descriptor.
pub(super) fn hold(root: &OwnedFd) -> Result<OwnedFd, Errno> {
    let file = open_marker(root, JOINED)?;
    take_share(&file).map(|()| file)
}

/// Takes a lock that other processes may share. A lock that this descriptor has becomes a shared one.
pub(super) fn take_share(file: &OwnedFd) -> Result<(), Errno> {
    for _ in 0..TRIES {
        match fs::flock(file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(TRY_EVERY),
            result => return result,
        }
    }
    Err(Errno::WOULDBLOCK)
}

/// Takes the lock alone, to remove the directory it guards: nobody can join while the descriptor is open.
/// `None` if the directory is not shared. Fails if another process works in it, or if that can't be
/// determined.
pub(super) fn claim(root: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    match open_marker(root, JOINED) {
        Ok(file) => fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map(|()| Some(file)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Opens a marker if it is a plain file, because opening a device may already have effects. It opens for
/// writing, because NFS requires that for an exclusive lock.
pub(super) fn open_marker(root: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let mode = fs::statat(root, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode;
    if !FileType::from_raw_mode(mode).is_file() {
        return Err(Errno::INVAL);
    }
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    fs::openat(root, name, flags, Mode::empty())
}
