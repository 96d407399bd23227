//! Settings that this process applies on its machine, in a campaign of several processes. Each has a note
//! ([`setting_notes`](crate::setting_notes)) from before it is applied until it is taken back.
//!
//! A guard, a shell that waits for the end of this process, takes the setting back if the process dies.
//!
//! ```text
//! process   note written, locked -> guard -> apply .... undo -> note removed -> guard ends
//! guard                             waits for the end of the process:  undo -> note removed
//! clean     finds notes that nobody has locked:                        undo -> note removed
//! ```
//!
//! A guard waits until nobody can write to its input any more. Three hold that end of the pipe: the process, the
//! command that applies the setting, and the guard of the next setting. The guards of a dead process therefore take
//! its settings back one after the other, the last one first. None does so while a command still applies one.

use std::{
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Child, Command, Stdio},
};

use nilometer_model::TargetAddress;
use nilometer_plan::AppliedSetting;

use crate::{
    setting,
    setting_notes::{LockedNote, SettingNote},
    user_command::named_target,
};

/// The guard. It ignores signals that end the campaign, and runs the undo command when its input ends without a
/// line. Its descriptor 3 is the input of the guard before it. Commands must not hold that, nor the note's lock.
const GUARD: &str = "\
    trap '' INT TERM HUP QUIT\n\
    exec 3>&2 2>/dev/null\n\
    if read -r word; then exit; fi\n\
    limit=\"timeout -k 2 $NILOMETER_SECONDS\"\n\
    command -v timeout >/dev/null || limit=\n\
    $limit sh -c \"$NILOMETER_UNDO\" </dev/null >/dev/null 3>&- && rm -f -- \"$NILOMETER_NOTE\"\n";

/// The settings that this process has applied on its machine, the last one at the end.
#[derive(Debug, Default)]
pub(crate) struct MachineSettings(Vec<GuardedSetting>);

#[derive(Debug)]
struct GuardedSetting {
    note: LockedNote,
    guard: Child,
}

impl MachineSettings {
    /// Applies a setting. It is to be taken back even if that fails.
    pub(crate) fn apply(
        &mut self,
        machine: &str,
        wanted: &AppliedSetting,
        at: &TargetAddress,
    ) -> Result<(), String> {
        let unguarded = |error: io::Error| format!("its note or its guard can't be made: {error}");
        let note = SettingNote { setting: wanted.clone(), target: at.clone() };
        let note = LockedNote::write(machine, note).map_err(unguarded)?;
        let earlier = self.0.last().map_or(Ok(None), GuardedSetting::input).map_err(unguarded)?;
        // Nothing was applied. If the note can't be removed, `clean` finds it.
        let guard = guard(&note, earlier).inspect_err(|_| drop(note.remove())).map_err(unguarded)?;
        let guarded = GuardedSetting { note, guard };
        let input = guarded.input().map_err(unguarded);
        self.0.push(guarded);
        setting::apply(wanted, at, input?)
    }

    /// Takes back a setting. Does nothing if this process has not applied it.
    pub(crate) fn undo(&mut self, applied: &AppliedSetting, at: &TargetAddress) -> Result<(), String> {
        let is_it = |of: &GuardedSetting| of.note.note.setting == *applied && of.note.note.target == *at;
        let Some(place) = self.0.iter().rposition(is_it) else { return Ok(()) };
        let GuardedSetting { note, mut guard } = self.0.remove(place);
        let undone = note.undo();
        // The guard must not try again, even if that failed. One that is gone needs no message.
        if let Some(mut input) = guard.stdin.take() {
            input.write_all(b"undone\n").ok();
        }
        guard.wait().ok();
        undone.map_err(|why| format!("{why} (run `nilometer clean --settings` on that machine to try again)"))
    }
}

impl GuardedSetting {
    /// Another end of the guard's input, which the guard waits for too; `None` if the guard has no input any more.
    fn input(&self) -> io::Result<Option<OwnedFd>> {
        self.guard.stdin.as_ref().map(|input| input.as_fd().try_clone_to_owned()).transpose()
    }
}

/// Starts the guard of a setting. `earlier` is the input of the guard of the setting that was applied before.
fn guard(noted: &LockedNote, earlier: Option<OwnedFd>) -> io::Result<Child> {
    let SettingNote { setting, target } = &noted.note;
    Command::new("sh")
        .args(["-c", GUARD])
        .env("NILOMETER_UNDO", &setting.undo)
        .env("NILOMETER_NOTE", &noted.path)
        .env("NILOMETER_SECONDS", setting.time_limit.duration().as_secs().max(1).to_string())
        .env("NILOMETER_TARGET", named_target(target))
        .env(setting::VALUE, &setting.value)
        .stdin(Stdio::piped())
        // The lock of the note lasts until both processes have ended.
        .stdout(noted.lock()?)
        .stderr(earlier.map_or_else(Stdio::null, Stdio::from))
        .process_group(0)
        .spawn()
}
