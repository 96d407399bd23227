//! Workloads of programs that do one thing after the other, as tar, a compiler, and the shell do.

use std::collections::VecDeque;

use nilometer_model::Nanos;
use nilometer_storage::{Buffer, Completion, Errno, OpKind, Operation, Step, Wait, Workload};

/// What such a program does next. Nothing else is in flight when it is asked.
pub trait Steps: std::fmt::Debug {
    /// The next operation, with the buffer in it; the buffer back when there is none.
    fn next(&mut self, now: Nanos, buffer: Buffer) -> Result<Operation, Buffer>;

    /// Until when the program does nothing that the storage sees, if it does so now.
    fn thinks_until(&mut self, _now: Nanos) -> Option<Nanos> {
        None
    }

    /// The operation is done, and worked; of a write some bytes at the least.
    fn done(&mut self, kind: OpKind, moved: u32);

    /// It did not, and nothing more is asked for.
    fn failed(&mut self) {}
}

/// See the module. It ends with the first operation that fails: what was open is closed with the engine.
#[derive(Debug)]
pub struct OneByOne<S> {
    steps: S,
    /// Used by turns, so that files in a row are not made of the same bytes.
    buffers: VecDeque<Buffer>,
    flying: bool,
    failed: bool,
}

impl<S: Steps> OneByOne<S> {
    /// One buffer is enough.
    pub fn new(steps: S, buffers: Vec<Buffer>) -> Self {
        OneByOne { steps, buffers: buffers.into(), flying: false, failed: false }
    }

    /// What it came to.
    pub fn steps(&self) -> &S {
        &self.steps
    }
}

impl<S: Steps> Workload for OneByOne<S> {
    fn next(&mut self, now: Nanos) -> Step {
        if self.flying {
            return Step::Wait(Wait::ForOne);
        }
        if self.failed {
            return Step::Done;
        }
        if let Some(until) = self.steps.thinks_until(now).filter(|until| now < *until) {
            return Step::Wait(Wait::Until(until));
        }
        let Some(buffer) = self.buffers.pop_front() else { return Step::Done };
        match self.steps.next(now, buffer) {
            Ok(operation) => {
                self.flying = true;
                Step::Issue(operation, now)
            }
            Err(buffer) => {
                self.buffers.push_front(buffer);
                Step::Done
            }
        }
    }

    fn completed(&mut self, completion: Completion) {
        self.flying = false;
        let Completion { operation, result, .. } = completion;
        if let Ok(moved) = checked(&operation, result) {
            self.steps.done(operation.kind, moved);
        } else {
            self.failed = true;
            self.steps.failed();
        }
        self.buffers.push_back(operation.buffer);
    }
}

/// A write that took nothing has failed. One that took less than it was given is gone on with behind that, as programs do: the
/// next one says what is wrong, a full disk or a quota.
fn checked(operation: &Operation, result: Result<u32, Errno>) -> Result<u32, Errno> {
    match (operation.kind, result) {
        (OpKind::Write, Ok(0)) if operation.length > 0 => Err(Errno::ENOSPC),
        (_, result) => result,
    }
}
