//! A state that the user's own commands bring a target into while it is measured, and take back: also after a failure, and
//! after a kill when the campaign is resumed, which knows from the record's events that it was entered.

use std::{path::Path, process::Command};

use nilometer_model::{Event, plan::Condition};

use crate::resolve::Resolved;

/// What is noted before a condition is entered.
pub(crate) fn entered(condition: &Condition, path: &Path) -> String {
    format!("condition `{}` on {}: entered", condition.name, path.display())
}

/// What is noted when it was left.
pub(crate) fn left(condition: &Condition, path: &Path) -> String {
    format!("condition `{}` on {}: left", condition.name, path.display())
}

/// Brings a target into a condition, and waits until it has settled.
pub(crate) fn enter(condition: &Condition, path: &Path) -> Result<(), String> {
    shell(&condition.enter, path)?;
    std::thread::sleep(condition.settle.duration());
    Ok(())
}

/// Takes it back.
pub(crate) fn leave(condition: &Condition, path: &Path) -> Result<(), String> {
    shell(&condition.leave, path)
}

/// Leaves every condition that a killed campaign left a target in; what is to be noted of each.
pub fn leave_conditions(resolved: &Resolved, events: &[Event]) -> Vec<String> {
    let mut told = Vec::new();
    let mut conditions: Vec<&Condition> =
        resolved.plan.ingests.iter().filter_map(|cell| cell.condition.as_ref()).collect();
    conditions.dedup();
    for condition in conditions {
        for target in &resolved.targets {
            let at = |what: &str| events.iter().rposition(|event| event.what == what);
            if at(&entered(condition, &target.path)) > at(&left(condition, &target.path)) {
                let done = left(condition, &target.path);
                told.push(match leave(condition, &target.path) {
                    Ok(()) => done,
                    Err(why) => format!("{done} not: {why}"),
                });
            }
        }
    }
    told
}

/// Runs a command of the user's.
fn shell(command: &str, target: &Path) -> Result<(), String> {
    let run = Command::new("sh").arg("-c").arg(command).env("NILOMETER_TARGET", target).output();
    let output = run.map_err(|error| format!("`{command}` can't be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{command}` failed ({}): {}", output.status, said.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(enter: &str) -> Condition {
        let (name, leave, settle) = ("c".into(), "true".into(), nilometer_model::Nanos(0));
        Condition { name, enter: enter.into(), leave, settle }
    }

    #[test]
    fn a_command_knows_its_target_and_what_it_says_is_told() {
        let path = Path::new("/some where");
        assert_eq!(enter(&condition("test \"$NILOMETER_TARGET\" = '/some where'"), path), Ok(()));
        let error = enter(&condition("echo it is broken >&2; exit 3"), path).expect_err("3");
        assert!(error.contains("exit status: 3") && error.contains("it is broken"), "{error}");
    }
}
