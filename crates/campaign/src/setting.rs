//! Settings outside of the program, which the user's own commands apply for a repeat. The campaign takes them
//! back in any case: after a failure, and after a kill when the campaign is resumed. The record's events show
//! that they were applied.

use std::os::fd::OwnedFd;

use nilometer_model::TargetAddress;
use nilometer_plan::{AppliedSetting, Event, PlannedCampaign};

use crate::user_command::{UserCommand, output_of};

/// The environment variable that passes the value to a command.
pub(crate) const VALUE: &str = "NILOMETER_VALUE";

/// The note before a setting is applied.
pub(crate) fn applied(setting: &AppliedSetting, at: &TargetAddress) -> String {
    format!("{}: applied {}", of(setting, at), setting.value)
}

/// The note when a setting was taken back.
pub(crate) fn undone(setting: &AppliedSetting, at: &TargetAddress) -> String {
    format!("{}: undone", of(setting, at))
}

/// The note before several processes apply a setting on their machines. A campaign that goes on does not take it for
/// one that the record alone has: each machine has notes of its own.
pub(crate) fn applied_on_all(setting: &AppliedSetting, at: &TargetAddress, machines: u32) -> String {
    let plural = if machines == 1 { "" } else { "s" };
    format!("{}: applied {} on {machines} machine{plural}", of(setting, at), setting.value)
}

/// A setting in words. Two stages may have settings of one name that are taken back in different ways.
pub(crate) fn of(setting: &AppliedSetting, at: &TargetAddress) -> String {
    format!("setting `{}` on {at}, undone by `{}`", setting.name, setting.undo.escape_debug())
}

/// Applies a setting, and compares the value in force with the requested one. The command holds the descriptor until
/// it has ended.
pub(crate) fn apply(
    setting: &AppliedSetting,
    at: &TargetAddress,
    holds: Option<OwnedFd>,
) -> Result<(), String> {
    output_of(UserCommand { holds, ..command(setting, &setting.apply, at) })?;
    let Some(read_back) = &setting.read_back else { return Ok(()) };
    let found = output_of(UserCommand { is_read: true, ..command(setting, read_back, at) })?;
    if found.trim() == setting.value {
        return Ok(());
    }
    // A command may print anything, of any length.
    let found: String = found.trim().chars().take(FOUND_MOST).collect();
    Err(format!("`{read_back}` says {found:?}, not {:?}", setting.value))
}

/// The longest part of a command's output that a message quotes.
const FOUND_MOST: usize = 80;

/// Takes a setting back.
pub(crate) fn undo(setting: &AppliedSetting, at: &TargetAddress) -> Result<(), String> {
    output_of(command(setting, &setting.undo, at)).map(drop)
}

/// One of a setting's commands. Its output is discarded.
fn command<'a>(setting: &'a AppliedSetting, command: &'a str, at: &'a TargetAddress) -> UserCommand<'a> {
    let AppliedSetting { value, time_limit, .. } = setting;
    UserCommand {
        command,
        target: at,
        time_limit: *time_limit,
        variable: Some((VALUE, value)),
        is_read: false,
        holds: None,
    }
}

/// Takes back every setting that a killed campaign left on a target. Returns the targets with the notes to
/// make; a note is an error if a setting could not be taken back.
pub(crate) fn undo_left(
    resolved: &PlannedCampaign,
    events: &[Event],
) -> Vec<(usize, Result<String, String>)> {
    let settings = resolved.plan.cells.iter().flat_map(|cell| cell.settings().iter().rev());
    let mut told = Vec::new();
    let mut undone_already: Vec<String> = Vec::new();
    for setting in settings {
        for (number, target) in resolved.targets.iter().enumerate() {
            let address = &target.address;
            let at = |what: &str| events.iter().rposition(|event| event.what == what);
            let done = undone(setting, address);
            if at(&applied(setting, address)) <= at(&done) || undone_already.contains(&done) {
                continue;
            }
            undone_already.push(done.clone());
            let tried = undo(setting, address);
            told.push((number, tried.map(|()| done.clone()).map_err(|why| format!("{done} not: {why}"))));
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::Nanos;

    fn setting(apply: &str, read_back: Option<&str>) -> AppliedSetting {
        AppliedSetting {
            name: "mode".into(),
            value: "fast".into(),
            apply: apply.into(),
            read_back: read_back.map(str::to_owned),
            undo: "rm \"$NILOMETER_TARGET/mode\"".into(),
            time_limit: Nanos::from_millis(60_000),
        }
    }

    #[test]
    fn what_is_in_force_is_held_against_what_was_asked_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = TargetAddress::from(directory.path());
        let write = "echo $NILOMETER_VALUE > \"$NILOMETER_TARGET/mode\"";
        let read = Some("cat \"$NILOMETER_TARGET/mode\"");
        assert_eq!(apply(&setting(write, read), &at, None), Ok(()));
        assert_eq!(undo(&setting(write, read), &at), Ok(()));
        assert!(!directory.path().join("mode").exists());
        let wrong = setting("echo slow > \"$NILOMETER_TARGET/mode\"", read);
        let why = apply(&wrong, &at, None).expect_err("another value");
        assert!(why.contains("says \"slow\", not \"fast\""), "{why}");
        let binary = setting(write, Some("printf '\\377\\000\\033[31m'"));
        let why = apply(&binary, &at, None).expect_err("no text");
        assert!(why.contains("not \"fast\"") && !why.contains('\u{1b}'), "{why:?}");
        let fails = setting("echo no such mode >&2; exit 2", None);
        assert!(apply(&fails, &at, None).expect_err("it fails").contains("no such mode"));
        let hangs = AppliedSetting { time_limit: Nanos::from_millis(300), ..setting("sleep 3600", None) };
        assert!(apply(&hangs, &at, None).expect_err("it hangs").contains("took longer than 300 ms"));
    }
}
