//! A record before it is complete: a file with a unique temporary name next to the final one. If its process is
//! killed, the next record made in the same directory on the same machine removes the file.

use std::{
    ffi::OsString,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, RenameFlags, fsync, linkat, openat, renameat_with, unlinkat},
    io::Errno,
    process::{Pid, test_kill_process},
    system::uname,
};

use super::place::Place;

/// An unfinished record. Dropping it removes the file, unless `finish` has succeeded.
#[derive(Debug)]
pub(super) struct Unfinished {
    place: Place,
    directory: OwnedFd,
    name: OsString,
    is_there: bool,
}

impl Unfinished {
    /// Makes an empty file, which SQLite takes for an empty database.
    pub(super) fn create(place: &Place) -> io::Result<Self> {
        let directory = place.open()?;
        remove_abandoned(&place.directory);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name: OsString = format!("{}{:x}-{now:x}.new", of_this_machine(), std::process::id()).into();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
        openat(&directory, &name, flags, mode)?;
        Ok(Unfinished { place: place.clone(), directory, name, is_there: true })
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> PathBuf {
        self.place.directory.join(&self.name)
    }

    /// Gives the file its final name, durably. It never replaces an existing file.
    ///
    /// It looks for files of killed processes once more: one that was killed just before may have been in a system
    /// call until now.
    pub(super) fn finish(mut self) -> io::Result<()> {
        remove_abandoned(&self.place.directory);
        let (directory, from, to) = (&self.directory, &self.name, &self.place.name);
        match renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE) {
            // Some network file systems lack this rename, but support links.
            Err(Errno::INVAL | Errno::NOSYS) => linkat(directory, from, directory, to, AtFlags::empty())?,
            renamed => {
                renamed?;
                self.is_there = false;
            }
        }
        Ok(fsync(&self.directory)?)
    }
}

/// Returns the prefix of temporary names on this machine. Other machines may share the directory and have the
/// same process ids.
fn of_this_machine() -> String {
    let mut hasher = DefaultHasher::new();
    uname().nodename().hash(&mut hasher);
    format!(".nilometer-{:x}-", hasher.finish())
}

/// Removes files of killed processes, with their SQLite journals. Files that can't be removed are harmless.
fn remove_abandoned(directory: &Path) {
    let ours = of_this_machine();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(&ours)).and_then(process_of);
        if process.is_some_and(|process| test_kill_process(process) == Err(Errno::SRCH)) {
            fs::remove_file(entry.path()).ok();
        }
    }
}

/// Parses the process id from the rest of a name.
fn process_of(rest: &str) -> Option<Pid> {
    let (number, _) = rest.split_once('-')?;
    Pid::from_raw(i32::from_str_radix(number, 16).ok()?)
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.is_there {
            unlinkat(&self.directory, &self.name, AtFlags::empty()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_goes_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut child = std::process::Command::new("true").spawn().expect("it is there");
        let dead = child.id();
        child.wait().expect("it ends");
        let ours = of_this_machine();
        let left = [format!("{ours}{dead:x}-1.new"), format!("{ours}{dead:x}-1.new-journal")];
        let kept = [
            format!("{ours}{:x}-1.new", std::process::id()),
            format!(".nilometer-0-{dead:x}-1.new"),
            format!("{ours}x-1.new"),
            "record.sqlite".into(),
        ];
        for name in left.iter().chain(&kept) {
            fs::write(directory.path().join(name), "").expect("room");
        }
        remove_abandoned(directory.path());
        assert!(left.iter().all(|name| !directory.path().join(name).exists()));
        assert!(kept.iter().all(|name| directory.path().join(name).exists()));
    }
    #[test]
    fn a_process_that_dies_while_a_record_begins_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = Place::of(&directory.path().join("record.sqlite")).expect("a place");
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("it is there");
        let left = directory.path().join(format!("{}{:x}-1.new", of_this_machine(), child.id()));
        fs::write(&left, "").expect("room");
        let new = Unfinished::create(&place).expect("room");
        assert!(left.exists(), "its process runs");
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        new.finish().expect("room");
        let names: Vec<_> = fs::read_dir(directory.path()).expect("a directory").flatten().collect();
        let names: Vec<_> = names.iter().map(fs::DirEntry::file_name).collect();
        assert_eq!(names, ["record.sqlite"]);
    }
}
