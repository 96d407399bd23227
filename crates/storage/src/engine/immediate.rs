//! Engines that run an operation while it is submitted, in the calling thread. They read the clock once per
//! operation: the end of one is the start of the next. An extra reading costs as much as the rest of the
//! loop.

use std::sync::Arc;

use nilometer_model::Nanos;

use super::{Engine, EngineError, Wait, Wake, pause::Pause};
use crate::{Arena, Clock, Completion, Errno, Operation};

/// Runs one operation to its end.
pub trait Execute {
    /// Returns the bytes moved, the bytes of the answer, or 0.
    fn execute(&mut self, operation: &mut Operation) -> Result<u32, Errno>;
}

/// An engine that runs each operation with an [`Execute`].
#[derive(Debug)]
pub struct Immediate<X> {
    execute: X,
    depth: usize,
    clock: Clock,
    last: Nanos,
    done: Vec<Completion>,
    pause: Pause,
}

impl<X: Execute> Immediate<X> {
    /// Creates an engine for the calling thread.
    pub fn around(execute: X, depth: usize, clock: Clock) -> Self {
        let last = clock.now();
        let done = Vec::with_capacity(depth);
        Immediate { execute, depth, clock, last, done, pause: Pause::here() }
    }
}

impl<X: Execute> Engine for Immediate<X> {
    fn depth(&self) -> usize {
        self.depth
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.last
    }

    #[inline]
    fn tick(&mut self) -> Nanos {
        self.last = self.clock.now();
        self.last
    }

    fn submit(&mut self, mut operation: Operation, due: Nanos) {
        let issued = self.last;
        let result = self.execute.execute(&mut operation);
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
