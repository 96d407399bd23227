//! Workloads of programs that do one thing after the other, like tar, a compiler, and the shell.

use std::collections::VecDeque;

use nilometer_model::Nanos;
use nilometer_storage::{Buffer, Completion, Errno, OpKind, Operation, Step, Wait, Workload};

/// The steps of such a program. No operation is in flight when `next` is called.
pub trait Steps: std::fmt::Debug {
    /// The next operation, with the buffer in it. Returns the buffer when there is none.
    fn next(&mut self, now: Nanos, buffer: Buffer) -> Result<Operation, Buffer>;

    /// The time until which the program does nothing that the storage sees, if it pauses now.
    fn thinks_until(&mut self, _now: Nanos) -> Option<Nanos> {
        None
    }

    /// Records an operation that succeeded; a write has then moved at least one byte.
    fn done(&mut self, kind: OpKind, moved: u32);

    /// Records an operation that failed. No other operation follows.
    fn failed(&mut self) {}
}

/// Runs the steps, one operation at a time. It ends with the first operation that fails; the engine then closes
/// the open files.
#[derive(Debug)]
pub struct OneByOne<S> {
    steps: S,
    /// Used in turn, so that consecutive files have different bytes.
    buffers: VecDeque<Buffer>,
    flying: bool,
    failed: bool,
}

impl<S: Steps> OneByOne<S> {
    /// Runs `steps`. One buffer is enough.
    pub fn new(steps: S, buffers: Vec<Buffer>) -> Self {
        OneByOne { steps, buffers: buffers.into(), flying: false, failed: false }
    }

    /// The steps, with their results.
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

/// Fails a write that moved nothing. A short write continues behind the bytes that were written, as programs
/// do. The next write then gives the reason: a full disk or a quota.
fn checked(operation: &Operation, result: Result<u32, Errno>) -> Result<u32, Errno> {
    match (operation.kind, result) {
        (OpKind::Write, Ok(0)) if operation.length > 0 => Err(Errno::ENOSPC),
        (_, result) => result,
    }
}
