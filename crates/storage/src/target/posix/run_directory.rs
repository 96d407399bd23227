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

use std::{
    ffi::{CStr, OsStr},
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

use rustix::{
    fs::{self, AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, StatxFlags},
    io::{Errno, retry_on_intr},
};
use serde::{Deserialize, Serialize};

use super::{
    super::TargetError,
    joined::{self, JOINED, open_marker},
};

/// The prefix of every name that a run makes in its directory.
pub const OURS: &[u8] = b"n_";
pub(super) const PREFIX: &str = "nilometer-";
pub(super) const MARKER: &str = ".nilometer-run";
/// The marker before it is complete.
pub(super) const NEW_MARKER: &str = ".nilometer-run.new";

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

/// Opens the new directory and marks it; on failure it removes a partial marker.
fn open_marked(parent: &OwnedFd, name: &str) -> Result<(OwnedFd, OwnedFd), Errno> {
    let root = retry_on_intr(|| fs::openat(parent, name, DIRECTORY, Mode::empty()))?;
    let marker = write_marker(&root).inspect_err(|_| {
        for name in [NEW_MARKER, MARKER] {
            fs::unlinkat(&root, name, AtFlags::empty()).ok();
        }
    })?;
    Ok((root, marker))
}

/// Writes the marker under another name and then renames it: a marker is whole or absent.
fn write_marker(root: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let marker = retry_on_intr(|| fs::openat(root, NEW_MARKER, flags, Mode::RUSR | Mode::WUSR))?;
    fs::flock(&marker, FlockOperation::NonBlockingLockExclusive)?;
    let [identity, _] = marker_texts(root)?;
    let text = format!("{identity}{PROCESS}{}\n", std::process::id());
    if retry_on_intr(|| rustix::io::write(&marker, text.as_bytes()))? != text.len() {
        return Err(Errno::NOSPC);
    }
    // Without this, a directory that survives a crash of the machine may hold an empty marker, which proves
    // nothing.
    retry_on_intr(|| fs::fsync(&marker))?;
    fs::renameat(root, NEW_MARKER, root, MARKER)?;
    Ok(marker)
}

/// Returns the two texts that a marker in this directory may have. The first names inode and birth, which no
/// copy shares and no new mount changes, if the birth is available. The second names inode and device.
fn marker_texts(directory: &OwnedFd) -> Result<[String; 2], Errno> {
    let stat = fs::fstat(directory)?;
    let device = marker_text(stat.st_ino, &format!("of device {}", stat.st_dev));
    let born = birth(directory).map(|birth| marker_text(stat.st_ino, &birth));
    Ok([born.unwrap_or_else(|| device.clone()), device])
}

fn marker_text(inode: u64, which: &str) -> String {
    format!("A run of nilometer made this directory. `nilometer clean` removes it.\ninode {inode} {which}\n")
}

/// Returns the directory's creation time, if the file system stores it.
fn birth(directory: &OwnedFd) -> Option<String> {
    let stat = fs::statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
    let known = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    known.then(|| format!("born {}.{:09}", stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec))
}

/// Checks that the directory is ours; the error gives the reason if it is not.
fn verify(root: &OwnedFd, marker: &OwnedFd, name: &str) -> Result<(), String> {
    if !well_named(name) {
        return Err(NOT_WELL_NAMED.into());
    }
    verify_plain(root, marker)?;
    let content = content(marker).map_err(text)?;
    let valid = marker_texts(root).map_err(text)?;
    if !valid.iter().any(|valid| content.strip_prefix(valid.as_str()).is_some_and(is_process_or_nothing)) {
        return Err("the marker was made for another directory".into());
    }
    Ok(())
}

const NOT_WELL_NAMED: &str = "the name is not nilometer- and 16 hexadecimal digits";

/// Checks that directory and marker are plain and belong to this user; the error gives the reason if not.
fn verify_plain(root: &OwnedFd, marker: &OwnedFd) -> Result<(), String> {
    let directory = fs::fstat(root).map_err(text)?;
    let file = fs::fstat(marker).map_err(text)?;
    let user = rustix::process::geteuid().as_raw();
    if directory.st_uid != user || file.st_uid != user {
        return Err("it belongs to another user".into());
    }
    if !FileType::from_raw_mode(file.st_mode).is_file()
        || file.st_dev != directory.st_dev
        || file.st_nlink != 1
    {
        return Err("the marker is not a plain file of its own".into());
    }
    Ok(())
}

/// Returns true if a marker's text names the inode of this directory. It checks only the inode:
/// another node may see another device, so the caller compares the whole text with the maker's.
fn names_inode(marker: &str, root: &OwnedFd) -> bool {
    fs::fstat(root).is_ok_and(|stat| marker.starts_with(marker_text(stat.st_ino, "").trim_end_matches('\n')))
}

/// Returns true if an unfinished marker is the beginning of a marker of this directory.
pub(super) fn is_unfinished(directory: &OwnedFd, marker: &OwnedFd) -> bool {
    let (Ok(content), Ok(texts)) = (content(marker), marker_texts(directory)) else { return false };
    let is_whole = |text: &String| {
        content.strip_prefix(text.as_str()).is_some_and(|rest| PROCESS_LINE_MAX >= rest.len())
    };
    texts.iter().any(|text| text.starts_with(&content) || is_whole(text))
}

/// The longest length of `process ` and a number.
const PROCESS_LINE_MAX: usize = 32;

/// Reads a marker. A marker that is no text, or longer than any of ours, is not ours.
fn content(marker: &OwnedFd) -> Result<String, Errno> {
    let mut content = [0; 256];
    let count = rustix::io::pread(marker, &mut content, 0)?;
    Ok(String::from_utf8_lossy(&content[..count]).into_owned())
}

/// The start of a marker's last line. Markers of older versions end before it.
const PROCESS: &str = "process ";

fn is_process_or_nothing(rest: &str) -> bool {
    let line = rest.strip_prefix(PROCESS).and_then(|rest| rest.strip_suffix('\n'));
    rest.is_empty() || line.is_some_and(|id| id.parse::<u32>().is_ok())
}

/// Returns the process that made a marker, if the marker names it.
pub(super) fn process(marker: &OwnedFd) -> Option<u32> {
    content(marker).ok()?.lines().find_map(|line| line.strip_prefix(PROCESS)?.parse().ok())
}

/// Returns the marker of a directory that a running campaign holds; `None` if none does.
pub(super) fn held_marker(parent: &OwnedFd, name: &str) -> Option<OwnedFd> {
    let root = fs::openat(parent, name, DIRECTORY, Mode::empty()).ok()?;
    let marker = open_marker(&root, MARKER).ok()?;
    let locked = fs::flock(&marker, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
    (locked || joined::claim(&root).is_err()).then_some(marker)
}

fn text(errno: Errno) -> String {
    errno.to_string()
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

/// An entry that was left where it is.
struct Kept {
    /// Relative to the directory in question.
    path: PathBuf,
    why: String,
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
fn remove_closed(root: &OwnedFd) -> Result<Option<Kept>, Errno> {
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
fn remove_when_closed(parent: &OwnedFd, name: &OsStr, root: &OwnedFd) -> Result<(), Errno> {
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
pub(super) fn names(directory: &OwnedFd) -> Result<Vec<(std::ffi::CString, FileType)>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push((entry.file_name().to_owned(), entry.file_type()));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
