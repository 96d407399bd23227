//! Settings on this machine in a campaign of several machines. The record is on the first machine only, so each
//! machine keeps a note of its own, in a file, from before a setting is applied until it is taken back.
//!
//! A guard, a shell that waits for the end of this process, takes the setting back if the process dies. Both hold
//! the lock of the note. A note without a lock therefore has nobody left who would take its setting back.
//!
//! ```text
//! process   note written, locked -> guard -> apply .... undo -> note removed -> guard ends
//! guard                             waits for the end of the process:  undo -> note removed
//! clean     finds notes that nobody has locked:                        undo -> note removed
//! ```

use std::{
    env,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::{
        fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

use nilometer_model::TargetAddress;
use nilometer_plan::AppliedSetting;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::{setting, user_command::named_target};

/// The environment variable with the directory of the notes.
const STATE: &str = "NILOMETER_STATE";
/// The permissions of the directory and of a note: commands in them run as this user.
const DIRECTORY_MODE: u32 = 0o700;
const NOTE_MODE: u32 = 0o600;
/// The end of a note's name.
const NOTE_SUFFIX: &str = ".setting";

/// The guard. It ignores signals that end the campaign, and runs the undo command when its input ends without a
/// line.
const GUARD: &str = "trap '' INT TERM HUP\n\
                     if ! read -r word; then (eval \"$NILOMETER_UNDO\") >/dev/null 2>&1 && rm -f -- \"$NILOMETER_NOTE\"; fi";

/// A setting in force on this machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SettingNote {
    setting: AppliedSetting,
    target: TargetAddress,
}

/// The settings that this process has applied on its machine, the last one at the end.
#[derive(Debug, Default)]
pub(crate) struct MachineSettings(Vec<SettingInForce>);

#[derive(Debug)]
struct SettingInForce {
    note: SettingNote,
    path: PathBuf,
    /// Held open for its lock.
    _locked: File,
    guard: Child,
}

impl MachineSettings {
    /// Applies a setting. It is to be taken back even if that fails.
    pub(crate) fn apply(
        &mut self,
        node: &str,
        setting: &AppliedSetting,
        at: &TargetAddress,
    ) -> Result<(), String> {
        let note = SettingNote { setting: setting.clone(), target: at.clone() };
        let in_force = guarded(node, note).map_err(|error| format!("its note can't be made: {error}"))?;
        self.0.push(in_force);
        setting::apply(setting, at)
    }

    /// Takes back a setting. Does nothing if this process has not applied it.
    pub(crate) fn undo(&mut self, setting: &AppliedSetting, at: &TargetAddress) -> Result<(), String> {
        let is_it = |of: &SettingInForce| of.note.setting == *setting && of.note.target == *at;
        let Some(place) = self.0.iter().rposition(is_it) else { return Ok(()) };
        let SettingInForce { note, path, mut guard, _locked } = self.0.remove(place);
        let undone = setting::undo(&note.setting, &note.target);
        // If it failed the note stays, so that `clean` tries again. The guard must not.
        if undone.is_ok() {
            fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        if let Some(mut input) = guard.stdin.take() {
            dismiss(&mut input);
        }
        guard.wait().ok();
        undone
    }
}

/// Tells the guard that the setting is taken care of. A guard that is gone needs no message.
fn dismiss(input: &mut ChildStdin) {
    input.write_all(b"undone\n").ok();
}

/// Writes the note of a setting, and starts its guard.
fn guarded(node: &str, note: SettingNote) -> io::Result<SettingInForce> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("{node}.{}.{number}{NOTE_SUFFIX}", std::process::id());
    let path = own_directory()?.join(name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(NOTE_MODE).open(&path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(&serde_json::to_vec(&note)?)?;
    file.sync_all()?;
    let guard = Command::new("sh")
        .args(["-c", GUARD])
        .env("NILOMETER_UNDO", &note.setting.undo)
        .env("NILOMETER_NOTE", &path)
        .env("NILOMETER_TARGET", named_target(&note.target))
        .env(setting::VALUE, &note.setting.value)
        .stdin(Stdio::piped())
        // The lock of the note lasts until both processes have ended.
        .stdout(file.try_clone()?)
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    let guard = guard.inspect_err(|_| drop(fs::remove_file(&path)))?;
    Ok(SettingInForce { note, path, _locked: file, guard })
}

/// Takes back every setting that killed campaigns left on this machine. Returns, for each, its words, or why it is
/// still in force. Leaves those of running campaigns alone.
///
/// # Errors
/// If the notes can't be read.
pub fn take_back_left_here(node: &str) -> io::Result<Vec<Result<String, String>>> {
    let directory = place();
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let directory = own_directory()?;
    let (begin, mut found) = (format!("{node}."), Vec::new());
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&begin) && name.ends_with(NOTE_SUFFIX) {
            found.push(entry.path());
        }
    }
    // The last one first.
    found.sort_by_key(|path| std::cmp::Reverse(written(path)));
    Ok(found.iter().filter_map(|path| taken_back(path)).collect())
}

/// The time at which a note was written, in nanoseconds since 1970.
fn written(path: &Path) -> i128 {
    let seen = fs::symlink_metadata(path);
    seen.map_or(0, |seen| i128::from(seen.mtime()) * 1_000_000_000 + i128::from(seen.mtime_nsec()))
}

/// Takes back the setting of a note. Returns `None` if somebody has it locked, or has removed it.
fn taken_back(path: &Path) -> Option<Result<String, String>> {
    let file = File::open(path).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let shown = path.display();
    let note: SettingNote = match serde_json::from_reader(&file) {
        Ok(note) => note,
        // The process died while it wrote the note, and had not applied the setting.
        Err(error) if error.is_eof() => {
            fs::remove_file(path).ok();
            return None;
        }
        Err(error) => return Some(Err(format!("{shown}: {error}"))),
    };
    let undone = setting::undone(&note.setting, &note.target);
    let tried = setting::undo(&note.setting, &note.target).map_err(|why| format!("{undone} not: {why}"));
    let removed = tried.and_then(|()| fs::remove_file(path).map_err(|error| format!("{shown}: {error}")));
    Some(removed.map(|()| undone))
}

/// The directory of the notes: of this user, and on this machine.
fn place() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    env::var_os(STATE).map_or_else(|| format!("/var/tmp/nilometer-{user}").into(), PathBuf::from)
}

/// The directory of the notes, made if it is missing. Returns an error if others may write to it: they could have
/// commands run.
fn own_directory() -> io::Result<PathBuf> {
    let path = place();
    match DirBuilder::new().mode(DIRECTORY_MODE).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let seen = fs::symlink_metadata(&path)?;
    let user = rustix::process::geteuid().as_raw();
    if seen.is_dir() && seen.uid() == user && seen.mode() & 0o077 == 0 {
        return Ok(path);
    }
    let shown = path.display();
    Err(io::Error::other(format!(
        "{shown} is not a directory of this user alone: remove it, or set {STATE} to another"
    )))
}
