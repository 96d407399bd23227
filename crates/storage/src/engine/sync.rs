//! One system call at a time, in the calling thread. One clock reading an operation: the end of one is the start of
//! the next, because an extra reading costs as much as all the rest of the loop.

use std::sync::Arc;

use nilometer_model::Nanos;

use super::{Engine, EngineError, Wait, Wake, files::Files, pause::Pause};
use crate::{Arena, Clock, Completion, Operation};

/// See the module.
#[derive(Debug)]
pub struct Sync {
    files: Files,
    clock: Clock,
    last: Nanos,
    done: Vec<Completion>,
    pause: Pause,
}

impl Sync {
    pub(super) fn new(files: Files, clock: Clock) -> Self {
        Sync { files, clock, last: clock.now(), done: Vec::with_capacity(1), pause: Pause::here() }
    }
}

impl Engine for Sync {
    fn depth(&self) -> usize {
        1
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.last
    }

    fn tick(&mut self) -> Nanos {
        self.last = self.clock.now();
        self.last
    }

    fn submit(&mut self, mut operation: Operation, due: Nanos) {
        let issued = self.last;
        let result = self.files.execute(&mut operation);
        let finished = self.tick();
        self.done.push(Completion { operation, result, due, issued, finished });
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
