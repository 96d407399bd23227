//! `wait`: a worker waits until given times. At each it issues an operation that asks nothing of the storage.
//! Its lateness is how late the worker woke; its latency is the cost of an engine.

use nilometer_model::Nanos;
use nilometer_plan::WaitCell;
use nilometer_storage::{Buffer, Completion, OpKind, Operation, ROOT, Step, Wait, Workload};

use super::WorkerPart;

/// A worker that waits.
#[derive(Debug)]
pub struct TimedWaits {
    duration: Nanos,
    /// The number of times that are still to come.
    left: u64,
    /// The next of them; `None` until the first call of `next`.
    next: Option<Nanos>,
    stop_at: Nanos,
}

impl TimedWaits {
    /// The part of a worker in the phase of a cell. It needs no memory.
    pub fn new(cell: &WaitCell, part: &WorkerPart) -> Self {
        TimedWaits { duration: cell.duration, left: cell.operations, next: None, stop_at: part.stop_at }
    }
}

impl Workload for TimedWaits {
    fn next(&mut self, now: Nanos) -> Step {
        if self.left == 0 || now >= self.stop_at {
            self.left = 0;
            return Step::Done;
        }
        // Times follow from the first, no matter when the worker woke for those before: lateness does not add
        // up.
        let next = *self.next.get_or_insert(now + self.duration);
        if now < next {
            return Step::Wait(Wait::Until(next.min(self.stop_at)));
        }
        self.left -= 1;
        self.next = Some(next + self.duration);
        Step::Issue(Operation::on(OpKind::Nop, ROOT, Buffer::empty()), next)
    }

    fn completed(&mut self, completion: Completion) {
        if completion.result.is_err() {
            self.left = 0;
        }
    }
}
