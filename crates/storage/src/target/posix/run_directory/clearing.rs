//! Removes the entries of a run in its directory. Foreign entries stay.

use std::{
    ffi::{CStr, OsStr},
    os::fd::{AsRawFd, OwnedFd},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    time::Duration,
};

use rustix::{
    fs::{self, AtFlags, Dir, FileType, Mode},
    io::Errno,
};

use super::{
    super::joined::JOINED,
    DIRECTORY, OURS,
    marker::{MARKER, NEW_MARKER},
};

/// An entry that was left where it is.
pub(super) struct Kept {
    /// Relative to the directory in question.
    pub(super) path: PathBuf,
    pub(super) why: String,
}

impl Kept {
    /// Returns true if it vanishes as soon as the processes that use it close it.
    fn is_removed(&self) -> bool {
        is_removed(self.path.file_name().unwrap_or_default().as_bytes())
    }
}

/// The prefixes of a file that was removed while a process of this machine had it open. Such a file vanishes when
/// it is closed (Linux, fs/nfs/unlink.c and fs/smb/client/inode.c).
const REMOVED: [&[u8]; 3] = [b".nfs", b".smb", b".__smb"];

fn is_removed(name: &[u8]) -> bool {
    REMOVED.iter().any(|prefix| name.starts_with(prefix))
}

/// Tries and delay for such files: the kernel closes those of a ring some time after the ring.
const CLOSED_TRIES: u32 = 500;
const CLOSED_EVERY: Duration = Duration::from_millis(10);

/// Removes our entries in a run directory, and waits until removed files are closed. Returns the first that stays.
pub(super) fn remove_closed(root: &OwnedFd) -> Result<Option<Kept>, Errno> {
    for _ in 1..CLOSED_TRIES {
        match remove_ours(root)? {
            Some(kept) if kept.is_removed() => std::thread::sleep(CLOSED_EVERY),
            kept => return Ok(kept),
        }
    }
    remove_ours(root)
}

/// Removes a run directory that was cleared, and waits until removed files in it are closed. On a busy machine another
/// thread's child has our descriptors for a while, until it runs its program.
pub(super) fn remove_when_closed(parent: &OwnedFd, name: &OsStr, root: &OwnedFd) -> Result<(), Errno> {
    let remove = || fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
    let is_left = || remove_ours(root).is_ok_and(|kept| kept.is_none_or(|kept| kept.is_removed()));
    for _ in 1..CLOSED_TRIES {
        match remove() {
            Err(Errno::NOTEMPTY) if is_left() => std::thread::sleep(CLOSED_EVERY),
            done => return done,
        }
    }
    remove()
}

/// Removes our entries in a run directory. Returns the first that stays.
fn remove_ours(root: &OwnedFd) -> Result<Option<Kept>, Errno> {
    let mount = mount_of(root)?;
    let mut kept = None;
    for (name, kind) in names(root)? {
        if ![MARKER, NEW_MARKER, JOINED].map(str::as_bytes).contains(&name.to_bytes()) {
            let stays = remove_entry(root, &name, kind, mount);
            kept = kept.or(stays);
        }
    }
    Ok(kept)
}

/// Removes an entry with its content. Returns the part that stays, if any.
fn remove_entry(directory: &OwnedFd, name: &CStr, kind: FileType, mount: u64) -> Option<Kept> {
    let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
    if is_removed(name.to_bytes()) {
        return Some(Kept { path, why: "it was removed, but a process still has it open".into() });
    }
    if !name.to_bytes().starts_with(OURS) {
        return Some(Kept { path, why: "it is in a run directory, but the run did not make it".into() });
    }
    let removed = match known(directory, name, kind) {
        Ok(FileType::RegularFile) => fs::unlinkat(directory, name, AtFlags::empty()),
        Ok(FileType::Directory) => match remove_below(directory, name, mount) {
            Ok(Some(kept)) => return Some(kept),
            Ok(None) => fs::unlinkat(directory, name, AtFlags::REMOVEDIR),
            Err(errno) => Err(errno),
        },
        Ok(_) => {
            let why = "it is neither a file nor a directory, and a run makes nothing else".into();
            return Some(Kept { path, why });
        }
        Err(errno) => Err(errno),
    };
    match removed {
        Ok(()) | Err(Errno::NOENT) => None,
        Err(errno) => Some(Kept { path, why: errno.to_string() }),
    }
}

/// Returns the kind of an entry, since not every file system includes it in a listing.
fn known(directory: &OwnedFd, name: &CStr, kind: FileType) -> Result<FileType, Errno> {
    match kind {
        FileType::Unknown => fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map(|stat| FileType::from_raw_mode(stat.st_mode)),
        kind => Ok(kind),
    }
}

/// Removes the content of a directory of ours. Returns the first entry that stays.
fn remove_below(directory: &OwnedFd, name: &CStr, mount: u64) -> Result<Option<Kept>, Errno> {
    let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
    let below = fs::openat(directory, name, DIRECTORY, Mode::empty())?;
    if mount_of(&below)? != mount {
        return Ok(Some(Kept { path, why: "something is mounted there".into() }));
    }
    let mut kept = None;
    for (name, kind) in names(&below)? {
        let stays = remove_entry(&below, &name, kind, mount);
        kept = kept.or(stays);
    }
    Ok(kept.map(|Kept { path: inner, why }| Kept { path: path.join(inner), why }))
}

/// Returns the mount of an open directory. A bind mount has the device of its origin, but a number of its
/// own.
fn mount_of(directory: &OwnedFd) -> Result<u64, Errno> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", directory.as_raw_fd()))
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let number = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    number.ok_or(Errno::NOSYS)
}

/// Lists all names of a directory except `.` and `..`, before anything is removed.
pub(in super::super) fn names(directory: &OwnedFd) -> Result<Vec<(std::ffi::CString, FileType)>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push((entry.file_name().to_owned(), entry.file_type()));
        }
    }
    Ok(names)
}
