//! Removes the directories of a campaign on its targets, when it is over.

use std::sync::Arc;

use anyhow::Context;
use nilometer_model::Nanos;
use nilometer_storage::{Target, TargetError, within};

use crate::tell;

/// Removes the directories on all targets. Does not touch a target that was left out, not even to tidy up.
pub(crate) fn remove_targets(
    targets: Vec<Option<Arc<dyn Target>>>,
    left_out: &[bool],
    patience: Nanos,
) -> anyhow::Result<()> {
    let mut outcome = Ok(());
    for (target, left_out) in targets.into_iter().zip(left_out) {
        let Some(target) = target else { continue };
        if *left_out && !target.members().is_empty() {
            // Its members have these remains, and get the same note.
            std::mem::forget(target);
            continue;
        }
        if *left_out {
            let source = target.source().map(|source| format!(" {}", source.description().address));
            let path = target.description().address.to_string();
            let places = path.clone() + &source.unwrap_or_default();
            tell::note(format_args!(
                "{path}: files are left there: remove them with `nilometer clean {places}`"
            ));
            std::mem::forget(target);
            continue;
        }
        outcome = outcome.and(removed(patience, &target));
    }
    outcome
}

/// An interrupted phase ends within a second; until then it may make another file.
const TRIES: u32 = 40;
const STEP: Nanos = Nanos::from_millis(50);

fn remove_patiently(target: &dyn Target) -> Result<(), TargetError> {
    let mut removed = target.remove();
    for _ in 1..TRIES {
        if removed.is_ok() {
            break;
        }
        std::thread::sleep(STEP.duration());
        removed = target.remove();
    }
    removed
}

/// Removes the directory on a target, within this time.
pub(crate) fn removed(patience: Nanos, target: &Arc<dyn Target>) -> anyhow::Result<()> {
    let path = target.description().address.to_string();
    within(patience, target, remove_patiently)
        .and_then(|removed| removed)
        .with_context(|| format!("files are left on {path}: remove them with `nilometer clean {path}`"))
}
