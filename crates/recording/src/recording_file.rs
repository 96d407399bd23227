//! Opens the files of a recording: journals and files of frames that another user may have named and made.
//!
//! ```text
//! directory -> openat without following -> fstat: a regular file, of whom -> File
//! ```
//!
//! Rules for journals and files of frames alike:
//!
//! - The reader opens only regular files. A symbolic link, FIFO, socket, device or directory in place of a file
//!   is an error at once, without waiting.
//! - A file of frames must belong to the same user as its journal, unless the journal belongs to the reader. A
//!   journal therefore can't name a file that its owner could not read.
//! - The reader opens a file with several names (hard links) only if nobody else could have made the name in
//!   this directory. The directory must belong to root, the file's owner or the reader, and only its owner may
//!   write to it.
//! - Root follows a symbolic link to the directory only if the link belongs to root.
//!
//! Each opening of a file opens the directory anew and closes it afterwards. The reader thus finds a disk that
//! was remounted, and does not keep a disk busy that should be unmounted.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat},
    io::Errno,
    process::geteuid,
};

use crate::stored_file::StoredFile;

/// An open file of a recording, with its permissions.
#[derive(Debug)]
pub struct RecordingFile<F = Box<dyn StoredFile>> {
    /// The open file.
    pub file: F,
    /// The users who may read it at its place.
    pub access: ReadAccess,
}

impl<F: StoredFile + 'static> RecordingFile<F> {
    /// Returns the same file behind the common interface of all storage.
    pub fn stored(self) -> RecordingFile {
        RecordingFile { file: Box::new(self.file), access: self.access }
    }
}

/// The users who may read a file, or all of several files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadAccess {
    /// The owner of the file.
    pub user: u32,
    /// The group of the file.
    pub group: u32,
    /// Mode bits, a subset of 0o444. The owner's bit is always set.
    pub mode: u32,
}

pub(crate) const USER: u32 = 0o400;
const GROUP: u32 = 0o040;
const OTHERS: u32 = 0o004;

impl ReadAccess {
    /// Returns the users who may both enter the directory and read the file.
    fn of(file: &Stat, directory: &Stat) -> Self {
        let enter = (directory.st_mode & 0o111) << 2;
        let same_group = file.st_gid == directory.st_gid;
        let group = if same_group { enter & GROUP } else { enter << 3 & GROUP };
        let mode = file.st_mode & (group | enter & OTHERS) | USER;
        ReadAccess { user: file.st_uid, group: file.st_gid, mode }
    }

    /// Returns the users who may read both. If the groups differ, a group needs the permission for others.
    #[must_use]
    pub fn and(self, other: ReadAccess) -> Self {
        let group = if self.group == other.group { other.mode & GROUP } else { other.mode << 3 & GROUP };
        ReadAccess { mode: self.mode & (group | other.mode & OTHERS) | USER, ..self }
    }

    /// Returns the mode for a file of `group` that lets only these users read it.
    pub fn mode_in_group(self, group: u32) -> u32 {
        let of_group = if group == self.group { self.mode } else { self.mode << 3 };
        self.mode & (USER | OTHERS) | of_group & GROUP
    }

    /// Returns true if all these users may read files with the access `other`.
    pub fn may_read(self, other: ReadAccess) -> bool {
        self.and(other) == self
    }
}

/// Chooses if data read stay in the kernel's page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageCache {
    /// Reads through the page cache, the default.
    Through,
    /// Reads past the page cache, if the file system can.
    Past,
}

/// Opens a journal, or another file that depends on no journal.
pub fn open(path: &Path) -> io::Result<RecordingFile<File>> {
    open_past(path, PageCache::Through)
}

/// Opens a file that belongs to a journal of this user.
pub fn open_of(path: &Path, journal_user: u32, cache: PageCache) -> io::Result<RecordingFile<File>> {
    let opened = open_past(path, cache)?;
    let user = opened.access.user;
    if user == journal_user || journal_user == geteuid().as_raw() {
        return Ok(opened);
    }
    Err(refused(format!(
        "it belongs to user {user} and its journal to user {journal_user}: all files of a recording belong to one"
    )))
}

/// Opens a file that the user named, also through links. It must be a regular file, and opening never waits.
pub(crate) fn open_named(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    regular(&rustix::fs::stat(path)?)?;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    regular(&rustix::fs::fstat(&file)?)?;
    Ok(file.into())
}

fn open_past(path: &Path, cache: PageCache) -> io::Result<RecordingFile<File>> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a file");
    let name = path.file_name().ok_or_else(wrong)?;
    let above = path.parent().ok_or_else(wrong)?;
    let directory = open_directory(if above.as_os_str().is_empty() { Path::new(".") } else { above })?;
    // Opening a device or FIFO can have side effects, so check the type first.
    regular(&rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = |flags| rustix::fs::openat(&directory, name, flags, Mode::empty());
    let file = match cache {
        PageCache::Through => open(flags)?,
        PageCache::Past => match open(flags | OFlags::DIRECT) {
            Err(Errno::INVAL) => open(flags)?,
            opened => opened?,
        },
    };
    // Another file may have replaced it since the check.
    let status = rustix::fs::fstat(&file)?;
    let around = rustix::fs::fstat(&directory)?;
    regular(&status)?;
    only_name(&status, &around)?;
    Ok(RecordingFile { file: file.into(), access: ReadAccess::of(&status, &around) })
}

/// Opens a directory of recordings for looking up names.
fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let followed = || rustix::fs::open(path, flags, Mode::empty());
    if !geteuid().is_root() {
        return Ok(followed()?);
    }
    match rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) => {
            follows(path)?;
            Ok(followed()?)
        }
        opened => Ok(opened?),
    }
}

/// Returns an error if root would follow a link to a directory that another user could have made.
pub(crate) fn follows(path: &Path) -> io::Result<()> {
    let status = rustix::fs::lstat(path)?;
    let link = FileType::from_raw_mode(status.st_mode).is_symlink();
    if link && geteuid().is_root() && status.st_uid != 0 {
        return Err(refused("it is a symbolic link of another user: name the directory itself".into()));
    }
    Ok(())
}

/// Passes each name in a directory and its file type to `take`, if the name is valid UTF-8. Opens the directory
/// by the same rules.
pub fn each_name(path: &Path, mut take: impl FnMut(&str, FileType)) -> io::Result<()> {
    let directory = open_directory(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = rustix::fs::openat(directory.as_fd(), ".", flags, Mode::empty())?;
    for entry in rustix::fs::Dir::new(listed)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().to_str() {
            take(name, entry.file_type());
        }
    }
    Ok(())
}

fn regular(status: &Stat) -> io::Result<()> {
    let kind = match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe (FIFO)",
        FileType::Socket => "a socket",
        FileType::Directory => "a directory",
        FileType::BlockDevice | FileType::CharacterDevice => "a device",
        FileType::Unknown => "not known",
    };
    let why = format!("it is {kind}, not a regular file");
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Returns an error for a file with hard links in a directory where another user may have made them: see the
/// module's rules.
fn only_name(file: &Stat, directory: &Stat) -> io::Result<()> {
    let trusted = [0, file.st_uid, geteuid().as_raw()].contains(&directory.st_uid);
    if file.st_nlink <= 1 || trusted && directory.st_mode & 0o022 == 0 {
        return Ok(());
    }
    let names = file.st_nlink;
    Err(refused(format!(
        "it has {names} names (hard links), in a directory in which another user may have made this one: copy it"
    )))
}

fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::{fs::PermissionsExt, net::UnixListener},
    };

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn only_a_regular_file_is_opened_and_nothing_is_waited_for() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "bytes").expect("room");
        fs::create_dir(at("directory")).expect("room");
        std::os::unix::fs::symlink("file", at("link")).expect("room");
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).expect("room");
        let _socket = UnixListener::bind(at("socket")).expect("room");
        for cache in [PageCache::Through, PageCache::Past] {
            let opened = open_of(&at("file"), geteuid().as_raw(), cache).expect("it is a file");
            assert_eq!(opened.file.metadata().expect("it is open").len(), 5);
            for (name, kind) in
                [("directory", "a directory"), ("link", "link"), ("pipe", "FIFO"), ("socket", "socket")]
            {
                let why = open_of(&at(name), geteuid().as_raw(), cache).expect_err("it is none").to_string();
                assert!(why.contains(kind), "{name}: {why}");
            }
        }
        let why = open(Path::new("/dev/zero")).expect_err("it is a device").to_string();
        assert!(why.contains("a device"), "{why}");
        assert_eq!(open(&at("no")).expect_err("it is not there").kind(), io::ErrorKind::NotFound);
        assert!(open(&at("..")).is_err());
    }

    #[test]
    fn what_has_several_names_is_opened_only_where_nobody_else_makes_names() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let [file, other] = ["file", "other"].map(|name| directory.path().join(name));
        fs::write(&file, "bytes").expect("room");
        fs::hard_link(&file, &other).expect("room");
        mode(directory.path(), 0o755);
        assert!(open(&other).is_ok(), "as backups by `cp -al` have it");
        for shared in [0o775, 0o1777] {
            mode(directory.path(), shared);
            let why = open(&other).expect_err("anybody may have made it").to_string();
            assert!(why.contains("2 names"), "{why}");
        }
        fs::remove_file(&file).expect("it is there");
        assert!(open(&other).is_ok());
    }

    #[test]
    fn files_of_another_user_than_the_journal_are_refused_unless_it_is_the_readers_own() {
        let file = tempfile::NamedTempFile::new().expect("room");
        let own = geteuid().as_raw();
        assert!(open_of(file.path(), own, PageCache::Through).is_ok());
        let why = open_of(file.path(), own + 1, PageCache::Through).expect_err("of another").to_string();
        assert!(why.contains(&format!("user {own} ")) && why.contains(&(own + 1).to_string()), "{why}");
        if geteuid().is_root() {
            std::os::unix::fs::chown(file.path(), Some(1234), None).expect("root may");
            assert!(open_of(file.path(), 1234, PageCache::Through).is_ok());
            assert!(open_of(file.path(), 0, PageCache::Through).is_ok(), "root's own journal");
            assert!(open_of(file.path(), 4321, PageCache::Through).is_err());
        }
    }

    #[test]
    fn root_follows_no_link_of_another_user_to_a_directory() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (real, link) = (directory.path().join("real"), directory.path().join("link"));
        fs::create_dir(&real).expect("room");
        fs::write(real.join("file"), "bytes").expect("room");
        std::os::unix::fs::symlink("real", &link).expect("room");
        assert!(open(&link.join("file")).is_ok() && each_name(&link, |_, _| {}).is_ok());
        if geteuid().is_root() {
            std::os::unix::fs::lchown(&link, Some(1234), None).expect("root may");
            assert!(open(&link.join("file")).is_err() && each_name(&link, |_, _| {}).is_err());
        }
    }

    #[test]
    fn who_may_read_is_whom_file_and_directory_let() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("file");
        fs::write(&file, "bytes").expect("room");
        let of = |around: u32, within: u32| {
            mode(directory.path(), around);
            mode(&file, within);
            open(&file).expect("it is there").access.mode
        };
        assert_eq!([of(0o755, 0o644), of(0o755, 0o600), of(0o750, 0o644)], [0o444, 0o400, 0o440]);
        assert_eq!(of(0o700, 0o666), 0o400);
        let access = |group, mode| ReadAccess { user: 1, group, mode };
        assert_eq!(access(5, 0o444).and(access(5, 0o440)), access(5, 0o440));
        assert_eq!(access(5, 0o440).and(access(6, 0o440)), access(5, 0o400), "of another group");
        assert_eq!(access(5, 0o440).and(access(6, 0o444)), access(5, 0o440));
        let modes =
            [(0o440, 5), (0o440, 6), (0o444, 6)].map(|(mode, group)| access(5, mode).mode_in_group(group));
        assert_eq!(modes, [0o440, 0o400, 0o444]);
        assert!(access(5, 0o440).may_read(access(5, 0o444)));
        assert!(!access(5, 0o444).may_read(access(5, 0o440)));
    }
}
