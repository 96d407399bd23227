//! Notes of the settings in force on this machine, one file each, in a directory of this user. The record of a
//! campaign is on its first machine only, so each machine keeps notes of its own.
//!
//! The process that applied a setting holds the lock of its note, and the setting's guard does too. A note without a
//! lock therefore has nobody left who would take its setting back.

use std::{
    cmp::Reverse,
    env,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use nilometer_model::TargetAddress;
use nilometer_plan::AppliedSetting;
use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::setting;

/// The environment variable with the directory of the notes.
const STATE: &str = "NILOMETER_STATE";
/// The permissions of the directory and of a note: commands in them run as this user.
const DIRECTORY_MODE: u32 = 0o700;
const NOTE_MODE: u32 = 0o600;
/// The permissions that others have in a directory.
const OTHERS: u32 = 0o077;
/// The end of a note's name, and its end while the note is written.
const NOTE: &str = "setting";
const UNFINISHED: &str = "unfinished";

/// A setting in force on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SettingNote {
    pub(crate) setting: AppliedSetting,
    pub(crate) target: TargetAddress,
}

/// A note in its file, locked by this process.
#[derive(Debug)]
pub(crate) struct LockedNote {
    pub(crate) note: SettingNote,
    pub(crate) path: PathBuf,
    /// Held open for its lock.
    file: File,
}

impl LockedNote {
    /// Writes the note of a setting. A file of its name is always complete and locked.
    pub(crate) fn write(machine: &str, note: SettingNote) -> io::Result<Self> {
        let directory = own_directory()?;
        let path = free_path(&directory, machine);
        let unfinished = path.with_extension(UNFINISHED);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(NOTE_MODE);
        let mut file = options.open(&unfinished)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let bytes = serde_json::to_vec(&note)?;
        let written = file.write_all(&bytes).and_then(|()| file.sync_all());
        let named = written.and_then(|()| fs::rename(&unfinished, &path));
        named.inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
        File::open(&directory)?.sync_all()?;
        Ok(LockedNote { note, path, file })
    }

    /// Another descriptor of the file, which keeps the lock as long as it is open.
    pub(crate) fn lock(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Takes the setting back. The note stays if that fails, for the next try.
    pub(crate) fn undo(&self) -> Result<(), String> {
        setting::undo(&self.note.setting, &self.note.target)?;
        self.remove().map_err(|error| format!("{}: {error}", self.path.display()))
    }

    /// Removes the note.
    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// The settings that campaigns noted on this machine, after a try to take back those of killed ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LeftSettings {
    /// Settings that were taken back.
    pub undone: Vec<String>,
    /// The reasons why the others of killed campaigns are still in force.
    pub stuck: Vec<String>,
    /// Settings that a running campaign, or its guard, will take back.
    pub held: Vec<String>,
}

/// Takes back every setting that killed campaigns left on this machine, the last one first.
///
/// # Errors
/// If the notes can't be listed.
pub fn take_back_left_here(machine: &str) -> io::Result<LeftSettings> {
    let mut left = LeftSettings::default();
    if fs::symlink_metadata(notes_place()).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(left);
    }
    for path in notes_of(machine, &own_directory()?)? {
        if let Err(error) = left.take_back(&path) {
            left.stuck.push(format!("{}: {error}", path.display()));
        }
    }
    Ok(left)
}

impl LeftSettings {
    /// Takes back the setting of a note, if nobody else will.
    fn take_back(&mut self, path: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        let is_held = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => false,
            Err(Errno::WOULDBLOCK) => true,
            Err(error) => return Err(error.into()),
        };
        // Somebody else took the setting back after the notes were listed.
        if file.metadata()?.nlink() == 0 {
            return Ok(());
        }
        let note: SettingNote = serde_json::from_reader(&file)?;
        if is_held {
            self.held.push(setting::of(&note.setting, &note.target));
            return Ok(());
        }
        let undone = setting::undone(&note.setting, &note.target);
        match (LockedNote { note, path: path.into(), file }).undo() {
            Ok(()) => self.undone.push(undone),
            Err(why) => self.stuck.push(format!("{undone} not: {why}")),
        }
        Ok(())
    }
}

/// A path for a new note. The process that had this process's id before may have left notes.
fn free_path(directory: &Path, machine: &str) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let process = std::process::id();
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("{machine}.{process}.{number}.{NOTE}"));
        if fs::symlink_metadata(&path).is_err() {
            return path;
        }
    }
}

/// The paths of all notes of a machine, the last one first.
fn notes_of(machine: &str, directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if let Some(number) = path.file_name().and_then(|name| number_in(name.to_str()?, machine)) {
            found.push((Reverse((written(&path), number)), path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// The number in the name of a note, if it is one of this machine.
fn number_in(name: &str, machine: &str) -> Option<u64> {
    let of_machine = name.strip_prefix(machine)?.strip_prefix('.')?;
    let numbers = of_machine.strip_suffix(NOTE)?.strip_suffix('.')?;
    let (process, number) = numbers.split_once('.')?;
    process.parse::<u32>().ok()?;
    number.parse().ok()
}

/// The time at which a note was written, in nanoseconds since 1970.
fn written(path: &Path) -> i128 {
    let seen = fs::symlink_metadata(path);
    seen.map_or(0, |seen| i128::from(seen.mtime()) * 1_000_000_000 + i128::from(seen.mtime_nsec()))
}

/// The directory of the notes: of this user, and on this machine.
pub fn notes_place() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    env::var_os(STATE).map_or_else(|| format!("/var/tmp/nilometer-{user}").into(), PathBuf::from)
}

/// The directory of the notes, made if it is missing. Returns an error if others may write to it: they could have
/// commands run.
fn own_directory() -> io::Result<PathBuf> {
    let path = notes_place();
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    match DirBuilder::new().mode(DIRECTORY_MODE).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(named(error)),
        _ => {}
    }
    let seen = fs::symlink_metadata(&path)?;
    let user = rustix::process::geteuid().as_raw();
    let is_shared = seen.mode() & OTHERS != 0;
    if seen.is_dir() && seen.uid() == user && !is_shared {
        return Ok(path);
    }
    let shown = path.display();
    Err(io::Error::other(format!(
        "{shown} is not a directory of this user alone: remove it, or set {STATE} to another"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_belongs_to_the_machine_of_its_whole_name() {
        assert_eq!(number_in("a.12.3.setting", "a"), Some(3));
        for other in
            ["a.b.12.3.setting", "ab.12.3.setting", "a.12.3.unfinished", "a.12.setting", "a.x.3.setting"]
        {
            assert_eq!(number_in(other, "a"), None, "{other}");
        }
        assert_eq!(number_in("a.b.12.3.setting", "a.b"), Some(3));
    }
}
