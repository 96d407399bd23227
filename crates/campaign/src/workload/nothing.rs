//! The workload of a worker that has no part in a phase.

use nilometer_model::Nanos;
use nilometer_storage::{Completion, Step, Workload};

/// A workload without operations.
#[derive(Debug)]
pub(super) struct Nothing;

impl Workload for Nothing {
    fn next(&mut self, _now: Nanos) -> Step {
        Step::Done
    }

    fn completed(&mut self, _completion: Completion) {}
}
