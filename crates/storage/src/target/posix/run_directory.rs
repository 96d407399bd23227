//! The one directory that a run makes on a target, and the proof that it is ours.
//!
//! It is named `nilometer-` and 16 hexadecimal digits and holds a marker, which names the directory's own device and
//! inode: a marker that was copied or moved elsewhere proves nothing. The marker is locked while the run lives. All
//! entries that the run makes in it begin with [`OURS`]; nothing else is ever removed. Symlinks are not followed, and
//! every step is relative to an open descriptor, so that a path which changes in the meantime leads nowhere else.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Mutex,
};

use rustix::{
    fs::{self, AtFlags, Dir, FileType, FlockOperation, Mode, OFlags},
    io::Errno,
};

use super::super::TargetError;

/// The prefix of every name that a run makes in its directory.
pub(super) const OURS: &[u8] = b"n_";
pub(super) const PREFIX: &str = "nilometer-";
pub(super) const MARKER: &str = ".nilometer-run";
/// The marker before it is complete.
pub(super) const NEW_MARKER: &str = ".nilometer-run.new";

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An existing, verified and locked run directory.
#[derive(Debug)]
pub(super) struct RunDirectory {
    path: PathBuf,
    parent: OwnedFd,
    root: OwnedFd,
    /// Keeps the lock. Gone once the directory was removed or given up.
    marker: Mutex<Option<OwnedFd>>,
}

impl RunDirectory {
    /// Makes a new one below `parent`.
    pub(super) fn create(parent: &Path, id: u64) -> Result<Self, TargetError> {
        let name = format!("{PREFIX}{id:016x}");
        let path = parent.join(&name);
        let parent_fd =
            fs::open(parent, DIRECTORY, Mode::empty()).map_err(TargetError::io(parent, "open"))?;
        fs::mkdirat(&parent_fd, &name, Mode::RWXU).map_err(TargetError::io(&path, "make the directory"))?;
        let root = fs::openat(&parent_fd, &name, DIRECTORY, Mode::empty())
            .map_err(TargetError::io(&path, "open"))?;
        let marker = write_marker(&root).map_err(TargetError::io(&path, "write the marker in"))?;
        Ok(RunDirectory { path, parent: parent_fd, root, marker: Mutex::new(Some(marker)) })
    }

    /// Takes over one that a killed run left.
    pub(super) fn adopt(parent: &Path, name: &str) -> Result<Self, TargetError> {
        let path = parent.join(name);
        let not_ours = |why: String| TargetError::NotOurs { path: path.clone(), why };
        let parent_fd =
            fs::open(parent, DIRECTORY, Mode::empty()).map_err(TargetError::io(parent, "open"))?;
        let root = fs::openat(&parent_fd, name, DIRECTORY, Mode::empty())
            .map_err(|errno| not_ours(format!("it can't be opened as a directory: {errno}")))?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let marker = fs::openat(&root, MARKER, flags, Mode::empty())
            .map_err(|errno| not_ours(format!("no marker {MARKER}: {errno}")))?;
        verify(&root, &marker, name).map_err(not_ours)?;
        match fs::flock(&marker, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(RunDirectory { path, parent: parent_fd, root, marker: Mutex::new(Some(marker)) }),
            Err(Errno::WOULDBLOCK) => Err(TargetError::InUse { path }),
            Err(errno) => Err(TargetError::io(&path, "lock the marker in")(errno)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// A descriptor of its own for an engine.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.root.try_clone()
    }

    /// Removes all entries that are ours; foreign ones stay, and are told as an error.
    pub(super) fn clear(&self) -> Result<(), TargetError> {
        let foreign = remove_ours(&self.root).map_err(TargetError::io(&self.path, "clear"))?;
        match foreign {
            None => Ok(()),
            Some(name) => Err(TargetError::NotOurs {
                path: self.path.join(name),
                why: "it is in a run directory, but was not made by it".into(),
            }),
        }
    }

    /// Removes it all: contents, marker, directory. Does nothing the second time.
    pub(super) fn remove(&self) -> Result<(), TargetError> {
        let mut marker = self.marker.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if marker.is_none() {
            return Ok(());
        }
        self.clear()?;
        let gone = |result: Result<(), Errno>| if result == Err(Errno::NOENT) { Ok(()) } else { result };
        gone(fs::unlinkat(&self.root, MARKER, AtFlags::empty()))
            .map_err(TargetError::io(&self.path, "remove the marker in"))?;
        *marker = None;
        let name = self.path.file_name().unwrap_or_default();
        if same(&self.root, fs::statat(&self.parent, name, AtFlags::SYMLINK_NOFOLLOW)) {
            gone(fs::unlinkat(&self.parent, name, AtFlags::REMOVEDIR))
                .map_err(TargetError::io(&self.path, "remove"))?;
        }
        Ok(())
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // Whoever needs to know calls `remove`; what is left here is left to `nilometer clean`.
        drop(self.remove());
    }
}

/// Completes the marker under another name first: a marker is whole or absent.
fn write_marker(root: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let marker = fs::openat(root, NEW_MARKER, flags, Mode::RUSR | Mode::WUSR)?;
    fs::flock(&marker, FlockOperation::NonBlockingLockExclusive)?;
    let text = marker_text(&fs::fstat(root)?);
    if rustix::io::write(&marker, text.as_bytes())? != text.len() {
        return Err(Errno::NOSPC);
    }
    fs::renameat(root, NEW_MARKER, root, MARKER)?;
    Ok(marker)
}

fn marker_text(directory: &fs::Stat) -> String {
    format!(
        "A run of nilometer made this directory. `nilometer clean` removes it.\ninode {} of device {}\n",
        directory.st_ino, directory.st_dev
    )
}

/// Why this is not ours, if it is not.
fn verify(root: &OwnedFd, marker: &OwnedFd, name: &str) -> Result<(), String> {
    if !well_named(name) {
        return Err(format!("the name is not {PREFIX} and 16 hexadecimal digits"));
    }
    let (directory, file) = (fs::fstat(root).map_err(text)?, fs::fstat(marker).map_err(text)?);
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
    let mut content = [0; 256];
    let count = rustix::io::pread(marker, &mut content, 0).map_err(text)?;
    if content[..count] != *marker_text(&directory).as_bytes() {
        return Err("the marker was made for another directory".into());
    }
    Ok(())
}

fn text(errno: Errno) -> String {
    errno.to_string()
}

/// Whether a name is that of a run directory.
pub(super) fn well_named(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn same(directory: &OwnedFd, other: Result<fs::Stat, Errno>) -> bool {
    match (fs::fstat(directory), other) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
        _ => false,
    }
}

/// Removes the entries of ours below an open directory, deepest first. The name of a foreign entry, if there is one.
fn remove_ours(directory: &OwnedFd) -> Result<Option<String>, Errno> {
    let device = fs::fstat(directory)?.st_dev;
    let mut foreign = None;
    for (name, kind) in names(directory)? {
        let bytes = name.to_bytes();
        if bytes == MARKER.as_bytes() || bytes == NEW_MARKER.as_bytes() {
            continue;
        }
        if !bytes.starts_with(OURS) || !remove_entry(directory, &name, kind, device, &mut foreign)? {
            foreign.get_or_insert(name.to_string_lossy().into_owned());
        }
    }
    Ok(foreign)
}

/// Removes one entry; false if it is not ours after all.
fn remove_entry(
    directory: &OwnedFd,
    name: &CStr,
    kind: FileType,
    device: u64,
    foreign: &mut Option<String>,
) -> Result<bool, Errno> {
    let kind = match kind {
        FileType::Unknown => {
            FileType::from_raw_mode(fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
        }
        known => known,
    };
    match kind {
        FileType::RegularFile => fs::unlinkat(directory, name, AtFlags::empty()).map(|()| true),
        FileType::Directory => {
            let below = fs::openat(directory, name, DIRECTORY, Mode::empty())?;
            if fs::fstat(&below)?.st_dev != device {
                return Ok(false);
            }
            if let Some(inner) = remove_ours(&below)? {
                foreign.get_or_insert(format!("{}/{inner}", name.to_string_lossy()));
                return Ok(true);
            }
            fs::unlinkat(directory, name, AtFlags::REMOVEDIR).map(|()| true)
        }
        _ => Ok(false),
    }
}

/// All names of a directory but `.` and `..`, read before anything is removed.
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
