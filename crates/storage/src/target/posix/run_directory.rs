//! The directory that a run makes on a target, and the proof that it is ours.
//!
//! Its name is `nilometer-` and 16 hexadecimal digits. It holds a marker, which names the directory's own
//! inode and birth. A marker that was copied or moved elsewhere proves nothing; one from before the file
//! system was mounted again still counts. The marker is locked while the run lives, and names its process.
//!
//! All entries that the run makes in it begin with [`OURS`]; nothing else is ever removed. The code follows
//! no symlinks and crosses no mount points. Every step is relative to an open descriptor, so a path that
//! changes in the meantime leads nowhere else.
//!
//! Other processes of the same campaign may work in it ([`RunDirectory::join`]), on this node or on others.
//! Its maker tells them the content of its marker, which is the proof; only the maker clears and removes.
//! Each of the others holds a lock of its own ([`joined`]). Neither the maker nor `clean` can then remove
//! files still in use, even when the maker is gone.

pub(super) mod clearing;
pub(super) mod marker;

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Mutex,
};

use rustix::{
    fs::{self, AtFlags, FlockOperation, Mode, OFlags},
    io::{Errno, retry_on_intr},
};
use serde::{Deserialize, Serialize};

use super::{
    super::TargetError,
    joined::{self, JOINED, open_marker},
};
use clearing::{Kept, remove_closed, remove_when_closed};
use marker::{MARKER, NOT_WELL_NAMED, content, names_inode, open_marked, process, verify, verify_plain};

/// The prefix of every name that a run makes in its directory.
pub const OURS: &[u8] = b"n_";
pub(super) const PREFIX: &str = "nilometer-";

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Returns the name of a run's directory.
pub fn name(id: u64) -> String {
    format!("{PREFIX}{id:016x}")
}

/// An existing, verified and locked run directory.
#[derive(Debug)]
pub(super) struct RunDirectory {
    path: PathBuf,
    parent: OwnedFd,
    root: OwnedFd,
    /// Holds the lock: the marker's, or in a joined directory the lock of those who joined. `None` once the
    /// directory was removed or given up.
    marker: Mutex<Option<OwnedFd>>,
    /// Another process made the directory, and removes it.
    is_joined: bool,
    /// This process may remove the content.
    clears: bool,
}

/// The data by which another process of the campaign finds a run's directory and recognises it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedRun {
    /// Its name below the path under test.
    pub name: String,
    /// The content of its marker: the inode and birth of the directory, and the process that made it.
    pub marker: String,
}

impl RunDirectory {
    /// Makes a new directory below `parent`.
    pub(super) fn create(parent: &Path, id: u64) -> Result<Self, TargetError> {
        let name = name(id);
        let path = parent.join(&name);
        let open = || fs::open(parent, DIRECTORY, Mode::empty());
        let parent_fd = retry_on_intr(open).map_err(TargetError::io(parent, "open"))?;
        fs::mkdirat(&parent_fd, &name, Mode::RWXU).map_err(TargetError::io(&path, "make the directory"))?;
        match open_marked(&parent_fd, &name) {
            Ok((root, marker)) => Ok(RunDirectory::held(path, parent_fd, root, marker)),
            Err(errno) => {
                // Leave nothing behind on a full disk. If this fails too, the first error explains it.
                fs::unlinkat(&parent_fd, &name, AtFlags::REMOVEDIR).ok();
                Err(TargetError::io(&path, "write the marker in")(errno))
            }
        }
    }

    /// Takes over a directory that a killed run left.
    pub(super) fn adopt(parent: &Path, name: &str) -> Result<Self, TargetError> {
        let path = parent.join(name);
        let not_ours = |why: String| TargetError::NotOurs { path: path.clone(), why };
        let open = || fs::open(parent, DIRECTORY, Mode::empty());
        let parent_fd = retry_on_intr(open).map_err(TargetError::io(parent, "open"))?;
        let root = fs::openat(&parent_fd, name, DIRECTORY, Mode::empty())
            .map_err(|errno| not_ours(format!("it can't be opened as a directory: {errno}")))?;
        let marker =
            open_marker(&root, MARKER).map_err(|errno| not_ours(format!("no marker {MARKER}: {errno}")))?;
        verify(&root, &marker, name).map_err(not_ours)?;
        match fs::flock(&marker, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if joined::claim(&root).is_err() => Err(TargetError::InUse { path, process: None }),
            Ok(()) => Ok(RunDirectory::held(path, parent_fd, root, marker)),
            Err(Errno::WOULDBLOCK) => Err(TargetError::InUse { path, process: process(&marker) }),
            Err(errno) => Err(TargetError::io(&path, "lock the marker in")(errno)),
        }
    }

    fn held(path: PathBuf, parent: OwnedFd, root: OwnedFd, marker: OwnedFd) -> Self {
        RunDirectory { path, parent, root, marker: Mutex::new(Some(marker)), is_joined: false, clears: true }
    }

    /// Lets other processes of the campaign join, and returns the data they need.
    pub(super) fn share(&self) -> Result<SharedRun, TargetError> {
        joined::allow(&self.root).map_err(TargetError::io(&self.path, "let others join"))?;
        let marker = open_marker(&self.root, MARKER).and_then(|marker| content(&marker));
        let marker = marker.map_err(TargetError::io(&self.path, "read the marker in"))?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(SharedRun { name, marker })
    }

    /// Works in the directory that another process of the campaign made and shares. Dropping this value
    /// leaves it in place.
    pub(super) fn join(parent: &Path, shared: &SharedRun) -> Result<Self, TargetError> {
        let SharedRun { name, marker: expected } = shared;
        let path = parent.join(name);
        let not_ours = |why: String| TargetError::NotOurs { path: path.clone(), why };
        if !well_named(name) {
            return Err(not_ours(NOT_WELL_NAMED.into()));
        }
        let open = || fs::open(parent, DIRECTORY, Mode::empty());
        let parent_fd = retry_on_intr(open).map_err(TargetError::io(parent, "open"))?;
        let root = fs::openat(&parent_fd, name.as_str(), DIRECTORY, Mode::empty())
            .map_err(|errno| not_ours(format!("it can't be opened as a directory: {errno}")))?;
        let lock = joined::hold(&root).map_err(|errno| not_ours(format!("it can't be joined: {errno}")))?;
        // The lock is held: from here on nobody removes the directory.
        let marker =
            open_marker(&root, MARKER).map_err(|errno| not_ours(format!("no marker {MARKER}: {errno}")))?;
        verify_plain(&root, &marker).map_err(not_ours)?;
        if content(&marker).ok().as_ref() != Some(expected) || !names_inode(expected, &root) {
            return Err(not_ours("its marker is not that of this campaign".into()));
        }
        let mut run = RunDirectory::held(path, parent_fd, root, lock);
        run.is_joined = true;
        run.clears = false;
        Ok(run)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Duplicates the descriptor, for an engine.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.root.try_clone()
    }

    /// The directory as a place for this process alone, although another one made it.
    pub(super) fn for_itself(mut self) -> Self {
        self.clears = true;
        self
    }

    /// Removes all entries that are ours. Foreign entries stay, and the first is returned as an error. Does
    /// nothing if another process made the directory for several: clearing is up to that process.
    pub(super) fn clear(&self) -> Result<(), TargetError> {
        if !self.clears {
            return Ok(());
        }
        let kept = remove_closed(&self.root).map_err(TargetError::io(&self.path, "clear"))?;
        kept.map_or(Ok(()), |Kept { path, why }| Err(TargetError::Kept { path: self.path.join(path), why }))
    }

    /// Removes everything: contents, marker, directory. Does nothing the second time.
    pub(super) fn remove(&self) -> Result<(), TargetError> {
        let mut marker = self.marker.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if self.is_joined {
            *marker = None;
        }
        if marker.is_none() {
            return Ok(());
        }
        let Ok(claimed) = joined::claim(&self.root) else {
            return Err(TargetError::InUse { path: self.path.clone(), process: None });
        };
        self.clear()?;
        let gone = |result: Result<(), Errno>| if result == Err(Errno::NOENT) { Ok(()) } else { result };
        gone(fs::unlinkat(&self.root, JOINED, AtFlags::empty()))
            .map_err(TargetError::io(&self.path, "remove the second lock in"))?;
        gone(fs::unlinkat(&self.root, MARKER, AtFlags::empty()))
            .map_err(TargetError::io(&self.path, "remove the marker in"))?;
        // Nobody can join any more. NFS keeps a removed file in its directory while it is open.
        drop(claimed);
        *marker = None;
        let name = self.path.file_name().unwrap_or_default();
        if same(&self.root, fs::statat(&self.parent, name, AtFlags::SYMLINK_NOFOLLOW)) {
            gone(remove_when_closed(&self.parent, name, &self.root))
                .map_err(TargetError::io(&self.path, "remove"))?;
        }
        Ok(())
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // Callers that need the result call `remove`. `nilometer clean` handles anything left here.
        drop(self.remove());
    }
}

/// Returns true if a name is that of a run directory.
pub fn well_named(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn same(directory: &OwnedFd, other: Result<fs::Stat, Errno>) -> bool {
    match (fs::fstat(directory), other) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
