//! Measures the tool by itself, on a target that discards all data.

use nilometer_model::Nanos;
use nilometer_plan::WorkloadRun;

/// The longest time that the tool by itself is measured in each phase that may end early. The tool can be many
/// times as fast as storage, and a volume that suits storage would then take long.
const CEILING: Nanos = Nanos::from_millis(1000);

/// Returns the workload that measures the tool by itself. If several targets are measured at once it has the
/// workers of all.
pub(super) fn ceiling(run: &WorkloadRun, at_once: usize) -> WorkloadRun {
    let time_limit = run.time_limit.map_or(CEILING, |limit| limit.min(CEILING));
    let workers = run.workers.saturating_mul(at_once.max(1) as u32);
    // Settings change the storage, so none apply here.
    WorkloadRun {
        time_limit: Some(time_limit),
        workers,
        settings: Vec::new(),
        background: None,
        ..run.clone()
    }
}
