//! Does nothing at once: what the loop itself costs, the ceiling of the harness. Also the engine of workloads that
//! issue nothing, such as a simulated instrument.

use std::sync::Arc;

use nilometer_model::Nanos;

use super::{Engine, EngineError, Wait, Wake, pause::Pause};
use crate::{Arena, Clock, Completion, Operation};

/// See the module.
#[derive(Debug)]
pub struct Null {
    depth: usize,
    clock: Clock,
    last: Nanos,
    done: Vec<Completion>,
    pause: Pause,
}

impl Null {
    /// For the calling thread.
    pub fn new(depth: usize, clock: Clock) -> Self {
        Null { depth, clock, last: clock.now(), done: Vec::with_capacity(depth), pause: Pause::here() }
    }
}

impl Engine for Null {
    fn depth(&self) -> usize {
        self.depth
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.last
    }

    fn tick(&mut self) -> Nanos {
        self.last = self.clock.now();
        self.last
    }

    fn submit(&mut self, operation: Operation, due: Nanos) {
        let issued = self.last;
        let finished = self.tick();
        let moved = if operation.kind.is_data() { operation.length } else { 0 };
        self.done.push(Completion { operation, result: Ok(moved), due, issued, finished });
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        if self.done.is_empty() && wait != Wait::Poll {
            self.last = self.pause.wait(wait, &self.clock);
        }
        if done.is_empty() {
            std::mem::swap(&mut self.done, done);
        } else {
            done.append(&mut self.done);
        }
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.pause.waker()
    }

    fn register(&mut self, _arena: &Arc<Arena>) -> Result<(), EngineError> {
        Ok(())
    }
}
