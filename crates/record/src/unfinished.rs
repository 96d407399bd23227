//! A record before it is complete: a file with a unique temporary name next to the final one.
//!
//! If its process is killed, the file stays. The next process on this machine that holds the record's lock removes it.
//! The dead one has closed the lock, so it can't write any more, whoever has its number now. New records also remove
//! files of other records, if no process has the number in their name.

use std::{
    ffi::OsString,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::fd::OwnedFd,
    path::PathBuf,
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
    /// Makes an empty file, which SQLite takes for an empty database. The caller holds the record's lock.
    pub(super) fn create(place: &Place) -> io::Result<Self> {
        let directory = place.open()?;
        remove_abandoned(place, None);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let process = std::process::id();
        let name: OsString = format!("{}{process:x}-{now:x}{}", of_this_machine(), of_record(place)).into();
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
        remove_abandoned(&self.place, self.name.to_str());
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
    format!(".nilometer-{:x}-", hash_of(uname().nodename()))
}

/// Returns the end of temporary names of this record.
fn of_record(place: &Place) -> String {
    format!("-{:x}.new", hash_of(&place.name))
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Removes files of killed processes, with their SQLite journals, but not `own`. The caller holds the record's lock.
/// Files that can't be removed are harmless.
pub(super) fn remove_abandoned(place: &Place, own: Option<&str>) {
    for entry in fs::read_dir(&place.directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_str().filter(|name| own.is_none_or(|own| !name.starts_with(own)));
        if name.is_some_and(|name| is_abandoned(place, name)) {
            fs::remove_file(entry.path()).ok();
        }
    }
}

/// Returns true for a file of a dead process beside the record.
fn is_abandoned(place: &Place, name: &str) -> bool {
    let Some(rest) = name.strip_prefix(&of_this_machine()) else { return false };
    if rest.strip_suffix("-journal").unwrap_or(rest).ends_with(&of_record(place)) {
        return true;
    }
    process_of(rest).is_some_and(|process| test_kill_process(process) == Err(Errno::SRCH))
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
    use std::path::Path;

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
        remove_abandoned(&place_in(directory.path()), None);
        assert!(left.iter().all(|name| !directory.path().join(name).exists()));
        assert!(kept.iter().all(|name| directory.path().join(name).exists()));
    }

    fn place_in(directory: &Path) -> Place {
        Place::of(&directory.join("record.sqlite")).expect("a place")
    }

    /// The kernel gives numbers again, here that of this test.
    #[test]
    fn what_is_left_of_the_same_record_goes_though_its_process_number_is_in_use() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = place_in(directory.path());
        let other = Place::of(&directory.path().join("other.sqlite")).expect("a place");
        let process = std::process::id();
        let name = |place: &Place| format!("{}{process:x}-1{}", of_this_machine(), of_record(place));
        let left = [name(&place), format!("{}-journal", name(&place))];
        for name in left.iter().chain([&name(&other)]) {
            fs::write(directory.path().join(name), "").expect("room");
        }
        Unfinished::create(&place).and_then(Unfinished::finish).expect("room");
        assert!(left.iter().all(|name| !directory.path().join(name).exists()));
        assert!(directory.path().join(name(&other)).exists(), "another record may be in the making");
        assert!(directory.path().join("record.sqlite").exists());
    }

    #[test]
    fn a_process_that_dies_while_a_record_begins_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = place_in(directory.path());
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
