//! A condition: a state into which the user's own commands bring a target while it is measured. The campaign
//! takes it back in any case: after a failure, and after a kill when the campaign is resumed. The record's
//! events show that the condition was entered.

use nilometer_model::{Nanos, TargetAddress};
use nilometer_plan::{Condition, Event, PlannedCampaign};

use crate::{
    setting::undo_left,
    supervise::GLANCE,
    user_command::{UserCommand, output_of},
};

/// The note before a condition is entered.
pub(crate) fn entered(condition: &Condition, at: &TargetAddress) -> String {
    format!("condition `{}` on {}: entered", condition.name, at)
}

/// The note when it was left.
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

/// Takes a condition back.
pub(crate) fn leave(condition: &Condition, at: &TargetAddress) -> Result<(), String> {
    shell(&condition.leave, at, condition.time_limit)
}

/// Leaves every condition in which a killed campaign left a target, and takes its settings back. Returns the
/// targets with the notes to make; a note is an error if a condition could not be left.
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
    output_of(UserCommand { command, target, time_limit, variable: None, is_read: false, holds: None })
        .map(drop)
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

    /// Enters a condition that takes an hour, with this limit. Returns the started process, if it came to that.
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
        // A busy machine may not start the command within the first of these times.
        let pid = [500, 5000, 50_000].into_iter().find_map(started_within).expect("it was started");
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let runs = || state().rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with(['Z', 'X']));
        for _ in 0..1000 {
            if !runs() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
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
