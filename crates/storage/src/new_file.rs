//! A new file that gets its name only when it is whole.
//!
//! It is written under a temporary name in the same directory and renamed at the end. It replaces another file
//! only if the caller asks for that. A process that is killed leaves only the temporary file, whose name identifies
//! the process ([`PartialName`]). [`remove_dead`] finds it by that.

mod partial_name;
mod remove_dead;

use std::{
    ffi::OsStr,
    fs::{File, Permissions},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, RenameFlags},
    io::{Errno, retry_on_intr},
};

pub use partial_name::PartialName;
pub use remove_dead::{DeadPartials, remove_dead};

/// A file without its final name. Dropping it before [`NewFile::finish`] removes it.
#[derive(Debug)]
pub struct NewFile {
    directory: OwnedFd,
    name: String,
    temporary: String,
    file: File,
    finished: bool,
}

/// The most bytes of a name.
const NAME_MAX: usize = 255;
/// The number of temporary names to try.
const TRIES: u32 = 1000;

impl NewFile {
    /// Makes an empty file in a directory, readable and writable by its owner alone.
    pub fn create(directory: &Path, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        NewFile::create_in(retry_on_intr(|| rustix::fs::open(directory, flags, Mode::empty()))?, name)
    }

    /// Does the same in an open directory, even if its path leads elsewhere by now.
    pub fn create_in(directory: OwnedFd, name: &str) -> io::Result<Self> {
        if name.is_empty() || name.len() > NAME_MAX || name.contains('/') || [".", ".."].contains(&name) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a file"));
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for number in 0..TRIES {
            let temporary = PartialName::of_this_process(name, number).to_string();
            let open = || rustix::fs::openat(&directory, &temporary, flags, Mode::RUSR | Mode::WUSR);
            match retry_on_intr(open) {
                Err(Errno::EXIST) => {}
                file => {
                    let file = file?.into();
                    return Ok(NewFile { directory, name: name.into(), temporary, file, finished: false });
                }
            }
        }
        Err(Errno::EXIST.into())
    }

    /// Returns its temporary name.
    pub fn temporary(&self) -> &str {
        &self.temporary
    }

    /// Returns the file, for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name and these mode bits, reduced by this process's umask. File and name then
    /// survive a loss of power. Fails if the name is taken.
    pub fn finish(mut self, mode: u32) -> io::Result<()> {
        self.file.set_permissions(permissions(mode))?;
        self.file.sync_all()?;
        let directory = self.directory.as_fd();
        rename_new(directory, &self.temporary, directory, &self.name)?;
        self.finished = true;
        Ok(retry_on_intr(|| rustix::fs::fsync(&self.directory))?)
    }

    /// Does the same under this name in its directory, and replaces a file there: readers find the old file or the
    /// new one.
    pub fn finish_over(mut self, mode: u32, name: &OsStr) -> io::Result<()> {
        self.file.set_permissions(permissions(mode))?;
        self.file.sync_all()?;
        rustix::fs::renameat(&self.directory, self.temporary.as_str(), &self.directory, name)?;
        self.finished = true;
        Ok(retry_on_intr(|| rustix::fs::fsync(&self.directory))?)
    }
}

/// Moves a file to a name that must be free. Not every file system can rename without replacing; there a hard
/// link does it, which replaces nothing either.
pub(crate) fn rename_new(from: BorrowedFd<'_>, old: &str, to: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    match rustix::fs::renameat_with(from, old, to, name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        renamed => return Ok(renamed?),
    }
    match rustix::fs::linkat(from, old, to, name, AtFlags::empty()) {
        Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        linked => {
            linked?;
            return Ok(rustix::fs::unlinkat(from, old, AtFlags::empty())?);
        }
    }
    match rustix::fs::statat(to, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(rustix::fs::renameat(from, old, to, name)?),
        there => Err(there.err().unwrap_or(Errno::EXIST).into()),
    }
}

/// Returns the mode of a file: the bits that this process's umask permits. Its owner may always read and
/// write.
pub(crate) fn permissions(mode: u32) -> Permissions {
    PermissionsExt::from_mode((mode & !umask()) | 0o600)
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.finished {
            // A file that can't be removed still identifies itself by its name.
            rustix::fs::unlinkat(&self.directory, &self.temporary, AtFlags::empty()).ok();
        }
    }
}

/// Returns a free name for a directory in which such a file is made, with others, until it is whole.
pub fn partial_directory(directory: &Path, name: &str) -> String {
    let named = |number: u32| PartialName::of_this_process(name, number).to_string();
    let free = |name: &String| directory.join(name).symlink_metadata().is_err();
    (0..TRIES).map(named).find(free).unwrap_or_else(|| named(TRIES))
}

/// Lists temporary files for this name in a directory, of killed processes and of ones that still write.
pub fn partial_files(directory: &Path, name: &str) -> Vec<String> {
    let names = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut partial: Vec<_> = names.filter(|partial| PartialName::is_of(partial, name)).collect();
    partial.sort();
    partial
}

/// Returns this process's umask, or the usual 022 if it can't be read.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write, os::unix::fs::symlink};

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("it is there");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("it is read").file_name().into_string().expect("plain"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole_and_its_mode() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let made = NewFile::create(directory.path(), "all").expect("room");
        made.file().write_all(b"bytes").expect("room");
        assert_eq!(names(directory.path()), [made.temporary()]);
        assert_eq!(partial_files(directory.path(), "all"), [made.temporary()]);
        assert!(partial_files(directory.path(), "al").is_empty());
        let bits = |name: &str| {
            let status = fs::metadata(directory.path().join(name)).expect("it is there");
            status.permissions().mode() & 0o777
        };
        assert_eq!(bits(made.temporary()), 0o600);
        made.finish(0o440).expect("the name is free");
        assert_eq!((names(directory.path()), bits("all") & !0o040), (vec!["all".to_owned()], 0o600));
        assert_eq!(fs::read(directory.path().join("all")).expect("it is there"), b"bytes");
        drop(NewFile::create(directory.path(), "given up").expect("room"));
        assert_eq!(names(directory.path()), ["all"], "what is not finished is removed");
    }

    #[test]
    fn it_replaces_a_file_only_if_asked() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("page"), "old").expect("room");
        let made = NewFile::create(directory.path(), "page").expect("room");
        made.file().write_all(b"new").expect("room");
        made.finish_over(0o666, OsStr::new("page")).expect("it may be replaced");
        assert_eq!(fs::read(directory.path().join("page")).expect("it is there"), b"new");
        assert_eq!(names(directory.path()), ["page"]);
    }

    #[test]
    fn it_takes_the_place_of_nothing() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let name = "n".repeat(NAME_MAX);
        for other in ["a file", "a link"] {
            let [made, again] = [(); 2].map(|()| NewFile::create(directory.path(), &name).expect("room"));
            assert_ne!(made.temporary(), again.temporary());
            let taken = directory.path().join(&name);
            match other {
                "a file" => fs::write(&taken, "mine").expect("room"),
                _ => symlink("/no/such/file", &taken).expect("room"),
            }
            let error = made.finish(0o444).expect_err("the name is taken");
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            drop(again);
            assert_eq!(names(directory.path()), [name.as_str()]);
            assert!(fs::symlink_metadata(&taken).expect("it is there").len() < 20, "it is the other one");
            fs::remove_file(&taken).expect("it is there");
        }
        for wrong in ["", "..", "a/b"] {
            assert!(NewFile::create(directory.path(), wrong).is_err(), "{wrong}");
        }
    }
}
