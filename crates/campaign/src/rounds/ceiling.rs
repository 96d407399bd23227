//! How the tool by itself is measured, on a target that keeps nothing.

use nilometer_model::Nanos;
use nilometer_plan::WorkloadRun;

/// How long the tool by itself is measured at the most in each phase that may end early: as much as on storage would take
/// long, where it is many times as fast.
const CEILING: Nanos = Nanos::from_millis(1000);

/// A workload as the tool by itself is measured in it: with the workers of all targets where several are measured at once.
pub(super) fn ceiling(run: &WorkloadRun, at_once: usize) -> WorkloadRun {
    let time_limit = run.time_limit.map_or(CEILING, |limit| limit.min(CEILING));
    let workers = run.workers.saturating_mul(at_once.max(1) as u32);
    // Settings are those of the storage.
    WorkloadRun {
        time_limit: Some(time_limit),
        workers,
        settings: Vec::new(),
        background: None,
        ..run.clone()
    }
}
