//! Ends a phase for all workers when the first has done its part, like the stonewall of IOR and mdtest.
//! Stragglers then do not stretch the time over which a rate is taken.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nilometer_model::Nanos;
use nilometer_storage::{Completion, Step, Workload};

/// Wraps the workload of each worker; all share one wall. The first worker that is done raises it. From then on
/// the others see a time past any limit, and end as at a time limit: they still sync and close.
pub struct Stonewall {
    inner: Box<dyn Workload>,
    wall: Arc<AtomicBool>,
    /// True if the worker had something to do: one without a part does not end those of others.
    begun: bool,
}

impl std::fmt::Debug for Stonewall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stonewall").field("wall", &self.wall).finish_non_exhaustive()
    }
}

impl Stonewall {
    /// Ends `inner` when `wall` is raised, and raises it when `inner` is done.
    pub fn new(inner: Box<dyn Workload>, wall: Arc<AtomicBool>) -> Self {
        Stonewall { inner, wall, begun: false }
    }
}

impl Workload for Stonewall {
    #[inline]
    fn next(&mut self, now: Nanos) -> Step {
        let raised = self.wall.load(Ordering::Relaxed);
        let step = self.inner.next(if raised { Nanos::MAX } else { now });
        self.begun |= matches!(step, Step::Issue(..));
        match step {
            // Without the wall the operation would be due later; it is due now.
            Step::Issue(operation, due) if raised => Step::Issue(operation, due.min(now)),
            Step::Done => {
                self.wall.fetch_or(self.begun, Ordering::Relaxed);
                Step::Done
            }
            step => step,
        }
    }

    #[inline]
    fn completed(&mut self, completion: Completion) {
        self.inner.completed(completion);
    }
}
