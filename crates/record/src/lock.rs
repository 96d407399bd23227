//! Allows one writer per record: a campaign holds a lock file next to it while it writes. The kernel releases
//! the lock when the process dies for any reason, so a file left by a killed process blocks nobody.
//!
//! The file's content identifies it as ours. The lock follows no links and never touches a file with other
//! content.

use std::{
    ffi::OsString,
    fs::{self, File, TryLockError},
    io::{self, Read, Seek, Write},
    os::fd::OwnedFd,
    path::PathBuf,
    thread,
    time::Duration,
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat, unlinkat};

use super::{RecordError, place::Place};

/// A held lock. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct Lock {
    directory: OwnedFd,
    name: OsString,
    file: File,
}

/// Number of tries while another process holds the lock, because a killed process releases it a moment later.
const TRIES: u32 = 40;
/// Number of tries if that process was killed, but slow or hanging storage keeps it from ending.
const TRIES_WHILE_IT_ENDS: u32 = 1200;
const STEP: Duration = Duration::from_millis(50);

/// Text of a lock file before the process id.
const SAYS: &str = "nilometer ";
/// Longest lock file, in bytes.
const LENGTH_MAX: u64 = 64;

impl Lock {
    /// Takes the lock of a record.
    pub(super) fn of(place: &Place) -> Result<Self, RecordError> {
        let mut name = OsString::from(".");
        name.push(&place.name);
        name.push(".nilometer-lock");
        let path = place.directory.join(&name);
        let failed = |source| RecordError::Lock { path: path.clone(), source };
        let directory = place.open().map_err(failed)?;
        let mut tries = TRIES;
        let mut attempts = 0;
        loop {
            let holder = match try_lock(&directory, &name).map_err(failed)? {
                Tried::Taken(file) => {
                    // Without space for the text, dropping the lock removes its file.
                    let mut lock = Lock { directory, name, file };
                    lock.sign().map_err(failed)?;
                    return Ok(lock);
                }
                Tried::Held(process) => process,
            };
            if is_ending(&holder) {
                tries = TRIES_WHILE_IT_ENDS;
            }
            attempts += 1;
            if attempts >= tries {
                return Err(RecordError::InUse { path: PathBuf::from(place), holder });
            }
            thread::sleep(STEP);
        }
    }

    /// Writes the holder into the file.
    fn sign(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        writeln!(self.file, "{SAYS}{}", std::process::id())
    }
}

/// Returns true if this process was killed or has ended, but still exists: proc(5), `/proc/pid/stat`.
fn is_ending(process: &str) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| stat_says_ending(&stat))
}

/// Field 3 is the state, field 9 the kernel's flags, field 31 the pending signals.
fn stat_says_ending(stat: &str) -> bool {
    const FLAG_EXITING: u64 = 4;
    const PENDING_KILL: u64 = 1 << 8;
    let Some((_, fields)) = stat.rsplit_once(") ") else { return false };
    let fields: Vec<&str> = fields.split(' ').collect();
    let has = |field: usize, bit: u64| {
        let value = fields.get(field - 3).and_then(|text| text.parse::<u64>().ok());
        value.is_some_and(|value| value & bit != 0)
    };
    fields[0] == "Z" || has(9, FLAG_EXITING) || has(31, PENDING_KILL)
}

/// The result of one try.
enum Tried {
    Taken(File),
    /// Another process holds it: its id, or an empty text if that is unreadable.
    Held(String),
}

fn try_lock(directory: &OwnedFd, name: &OsString) -> io::Result<Tried> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let file = openat(directory, name, flags | OFlags::CLOEXEC, mode)?;
    let stat = fstat(&file)?;
    if !FileType::from_raw_mode(stat.st_mode).is_file() || stat.st_nlink > 1 {
        return Err(foreign());
    }
    let mut file = File::from(file);
    let said = said(&mut file)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Tried::Held(said)),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // The previous holder may have removed the file opened here.
    let there = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    if !there.is_ok_and(|there| (there.st_dev, there.st_ino) == (stat.st_dev, stat.st_ino)) {
        return Ok(Tried::Held(said));
    }
    Ok(Tried::Taken(file))
}

/// Returns the process in a lock file. A file with any other content is not ours.
fn said(file: &mut File) -> io::Result<String> {
    let mut text = Vec::new();
    file.rewind()?;
    file.take(LENGTH_MAX).read_to_end(&mut text)?;
    if text.is_empty() {
        // Another process has just made the file, or died while it did.
        return Ok(String::new());
    }
    let text = String::from_utf8(text).map_err(|_| foreign())?;
    let process = text.strip_prefix(SAYS).and_then(|rest| rest.strip_suffix('\n')).ok_or_else(foreign)?;
    process.parse::<u32>().map_err(|_| foreign())?;
    Ok(process.into())
}

fn foreign() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "it is not a lock file of nilometer: move it away")
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Remove the file while holding the lock. A process that opened it meanwhile sees that it is gone.
        let ours = fstat(&self.file).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        let there = statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        if ours.is_some() && there.map(|stat| (stat.st_dev, stat.st_ino)).ok() == ours {
            unlinkat(&self.directory, &self.name, AtFlags::empty()).ok();
        }
        drop(self.file.unlock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::fs::symlink, path::Path};

    fn lock(directory: &Path) -> Result<Lock, RecordError> {
        Lock::of(&Place::of(&directory.join("r.sqlite")).expect("a directory"))
    }

    #[test]
    fn one_holds_it_and_a_file_left_behind_stops_nobody() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join(".r.sqlite.nilometer-lock");
        for left in ["nilometer 12345\n", ""] {
            fs::write(&file, left).expect("left by a killed process");
            let held = lock(directory.path()).expect("nobody holds it");
            let error = lock(directory.path()).expect_err("held").to_string();
            assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
            drop(held);
            assert!(!file.exists());
        }
        lock(directory.path()).expect("free again");
    }

    #[test]
    fn a_process_that_was_killed_and_still_ends_is_told_from_one_that_runs() {
        assert!(!is_ending(&std::process::id().to_string()));
        let stat = |state, flags, pending| {
            format!("7 (a) b) {state} 1 7 7 0 -1 {flags}{} {pending} 0 0", " 0".repeat(21))
        };
        assert!(!stat_says_ending(&stat("S", 4_194_304, 0)));
        assert!(stat_says_ending(&stat("Z", 4_194_304, 0)));
        assert!(stat_says_ending(&stat("D", 4_194_304 | 4, 0)));
        assert!(stat_says_ending(&stat("D", 4_194_304, 1 << 8)));
        let mut child = std::process::Command::new("true").spawn().expect("it starts");
        let child_id = child.id().to_string();
        while !is_ending(&child_id) {
            thread::sleep(STEP);
        }
        child.wait().expect("it is over");
        assert!(!is_ending(&child_id), "there is no such process");
    }

    #[test]
    fn what_somebody_else_put_there_is_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join(".r.sqlite.nilometer-lock");
        let keys = directory.path().join("authorized_keys");
        fs::write(&keys, "").expect("space");
        for foreign in ["my notes\n", "nilometer 12345", "nilometer x\n", "12345\n", "\0"] {
            fs::write(&file, foreign).expect("space");
            let error = lock(directory.path()).expect_err("not ours").to_string();
            assert!(error.contains("not a lock file of nilometer"), "{error}");
            assert_eq!(fs::read_to_string(&file).expect("still there"), foreign);
        }
        fs::remove_file(&file).expect("a file");
        symlink(&keys, &file).expect("a link");
        lock(directory.path()).expect_err("a link");
        fs::remove_file(&file).expect("a link");
        fs::hard_link(&keys, &file).expect("a link");
        lock(directory.path()).expect_err("a file that has another name");
        assert_eq!(fs::read(&keys).expect("still there"), b"", "nothing was written through a link");
    }
}
