//! A state that the user's own commands bring a target into while it is measured, and take back: also after a failure, and
//! after a kill when the campaign is resumed, which knows from the record's events that it was entered.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
};

use nilometer_model::{Nanos, TargetAddress};
use nilometer_plan::{Condition, Event, PlannedCampaign};
use nilometer_storage::Clock;
use rustix::{
    fs::{MemfdFlags, memfd_create},
    process::{Pid, Signal, kill_process_group},
};

use crate::{setting::undo_left, supervise::GLANCE};

/// What is noted before a condition is entered.
pub(crate) fn entered(condition: &Condition, at: &TargetAddress) -> String {
    format!("condition `{}` on {}: entered", condition.name, at)
}

/// What is noted when it was left.
pub(crate) fn left(condition: &Condition, at: &TargetAddress) -> String {
    format!("condition `{}` on {}: left", condition.name, at)
}

/// Brings a target into a condition, and waits until it has settled, or until the campaign is over.
pub(crate) fn enter(
    condition: &Condition,
    at: &TargetAddress,
    is_over: impl Fn() -> bool,
) -> Result<(), String> {
    shell(&condition.enter, at, condition.time_limit)?;
    let mut left = condition.settle;
    while left > Nanos(0) && !is_over() {
        std::thread::sleep(left.min(GLANCE).duration());
        left = left.since(GLANCE);
    }
    Ok(())
}

/// Takes it back.
pub(crate) fn leave(condition: &Condition, at: &TargetAddress) -> Result<(), String> {
    shell(&condition.leave, at, condition.time_limit)
}

/// Leaves every condition that a killed campaign left a target in, and takes its settings back: the target, and what is to be noted, as an error if it
/// could not be left.
pub fn leave_conditions(
    resolved: &PlannedCampaign,
    events: &[Event],
) -> Vec<(usize, Result<String, String>)> {
    let mut told = Vec::new();
    let mut conditions: Vec<&Condition> =
        resolved.plan.recordings().filter_map(|(_, run)| run.condition.as_ref()).collect();
    conditions.dedup();
    for condition in conditions {
        for (number, target) in resolved.targets.iter().enumerate() {
            let at = |what: &str| events.iter().rposition(|event| event.what == what);
            if at(&entered(condition, &target.address)) > at(&left(condition, &target.address)) {
                let done = left(condition, &target.address);
                let tried = leave(condition, &target.address);
                let told_now = tried.map(|()| done.clone()).map_err(|why| format!("{done} not: {why}"));
                told.push((number, told_now));
            }
        }
    }
    told.extend(undo_left(resolved, events));
    told
}

fn shell(command: &str, target: &TargetAddress, time_limit: Nanos) -> Result<(), String> {
    output_of(UserCommand { command, target, time_limit, variable: None, is_read: false }).map(drop)
}

/// A command of the user's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UserCommand<'a> {
    /// For a shell.
    pub(crate) command: &'a str,
    /// What is in `NILOMETER_TARGET`.
    pub(crate) target: &'a TargetAddress,
    /// It is ended when it takes longer.
    pub(crate) time_limit: Nanos,
    /// One more variable, with its value.
    pub(crate) variable: Option<(&'static str, &'a str)>,
    /// What it prints is wanted. Of others it goes nowhere: what they leave in the background may print for ever.
    pub(crate) is_read: bool,
}

/// So much of what a command prints is kept.
const OUTPUT_MOST: u64 = 64 << 10;

/// Runs a command of the user's to its end or for so long, and gives what it printed; an interrupt from the terminal notwithstanding: that ends the
/// campaign, and what was begun is then taken back. What it leaves running in the background is not waited for; one that
/// takes too long is ended with all of that.
pub(crate) fn output_of(asked: UserCommand<'_>) -> Result<String, String> {
    let UserCommand { command, target, time_limit, variable, is_read } = asked;
    let failed = |error: io::Error| format!("`{command}` can't be started: {error}");
    // A pipe would be open for as long as anything in the background holds it.
    let said = memfd_create("condition", MemfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    let mut said = File::from(said);
    let printed = memfd_create("printed", MemfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    let mut printed = File::from(printed);
    let mut run = Command::new("sh")
        .arg("-c")
        .arg(format!("trap '' INT\n{command}"))
        .env("NILOMETER_TARGET", target.directory().map_or_else(|| target.to_string().into(), OsString::from))
        .stdin(Stdio::null())
        .envs(variable)
        .stdout(if is_read { printed.try_clone().map_err(failed)?.into() } else { Stdio::null() })
        .stderr(said.try_clone().map_err(failed)?)
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let Some(status) = ended(&mut run, time_limit).map_err(failed)? else {
        return Err(format!("`{command}` took longer than {time_limit} and {}", put_an_end(&mut run)));
    };
    if status.success() {
        return text_of(&mut printed).map_err(failed);
    }
    let text = text_of(&mut said).map_err(failed)?;
    Err(format!("`{command}` failed ({status}): {}", text.trim()))
}

/// The beginning of what was written to a file.
fn text_of(file: &mut File) -> io::Result<String> {
    let mut text = Vec::new();
    file.rewind()?;
    file.take(OUTPUT_MOST).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// How often it is looked whether a command has ended.
const STEP: Nanos = Nanos::from_millis(5);
/// What a command is given to end when it is told to.
const GRACE: Nanos = Nanos::from_millis(2000);

/// How a command ended, if it did within this time.
fn ended(run: &mut Child, limit: Nanos) -> io::Result<Option<ExitStatus>> {
    let clock = Clock::start();
    loop {
        let status = run.try_wait()?;
        if status.is_some() || clock.now() >= limit {
            return Ok(status);
        }
        std::thread::sleep(STEP.duration());
    }
}

/// Ends a command and all that it started, first by asking; what came of it.
fn put_an_end(run: &mut Child) -> &'static str {
    let group = Pid::from_child(run);
    for signal in [Signal::TERM, Signal::KILL] {
        // Its process stays until it is waited for, so that the group is still this one.
        kill_process_group(group, signal).ok();
        if signal == Signal::TERM {
            std::thread::sleep(GRACE.duration());
        }
    }
    match ended(run, GRACE) {
        Ok(Some(_)) => "was ended",
        _ => "can't be ended: it hangs in the kernel",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(enter: &str) -> Condition {
        let (name, leave, settle) = ("c".into(), "true".into(), Nanos(0));
        Condition { name, enter: enter.into(), leave, settle, time_limit: Nanos::from_millis(60_000) }
    }

    #[test]
    fn a_command_knows_its_target_and_what_it_says_is_told() {
        let path = &TargetAddress::from(std::path::Path::new("/some where"));
        assert_eq!(enter(&condition("test \"$NILOMETER_TARGET\" = '/some where'"), path, || false), Ok(()));
        let error = enter(&condition("echo it is broken >&2; exit 3"), path, || false).expect_err("3");
        assert!(error.contains("exit status: 3") && error.contains("it is broken"), "{error}");
    }

    #[test]
    fn what_a_command_leaves_in_the_background_is_not_waited_for() {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let load = "sleep 3600 & echo $! > \"$NILOMETER_TARGET/pid\"";
        assert_eq!(enter(&condition(load), &directory.path().into(), || false), Ok(()));
        let kill = Condition { leave: "kill $(cat \"$NILOMETER_TARGET/pid\")".into(), ..condition("") };
        assert_eq!(leave(&kill, &directory.path().into()), Ok(()), "it still ran");
    }

    /// Enters a condition that takes an hour, with this limit: what it starts, if it came so far.
    fn started_within(limit: u64) -> Option<String> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let long = "sleep 3600 & echo $! > \"$NILOMETER_TARGET/pid\"; trap '' TERM; while :; do wait; done";
        let hour = Condition { time_limit: Nanos::from_millis(limit), ..condition(long) };
        let error = enter(&hour, &directory.path().into(), || false).expect_err("it takes an hour");
        let said = format!("took longer than {} and was ended", hour.time_limit);
        assert!(error.contains(&said), "{error}");
        let pid = std::fs::read_to_string(directory.path().join("pid")).ok()?;
        pid.strip_suffix('\n').map(str::to_owned)
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
        // A busy machine may not start it within the first of these times.
        let pid = [500, 5000, 50_000].into_iter().find_map(started_within).expect("it was started");
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let runs = || state().rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with(['Z', 'X']));
        for _ in 0..1000 {
            if !runs() {
                return;
            }
            std::thread::sleep(STEP.duration());
        }
        panic!("what it started goes on: {}", state());
    }

    #[test]
    fn an_interrupt_ends_the_waiting_and_no_command() {
        let path = &TargetAddress::from(std::path::Path::new("/"));
        let hour =
            Condition { settle: Nanos::from_millis(3_600_000), ..condition("kill -INT $$; kill -INT $$") };
        assert_eq!(enter(&hour, path, || true), Ok(()));
    }
}
