//! The loop that joins a workload and an engine. Everything that Nilometer writes or reads under load passes here.
//!
//! `run` is for a thread of its own; `turn` takes one step in company, and [`interleave`] steps many drives on one
//! virtual clock, so that a whole recorder or a ten-hour campaign is a test of milliseconds.

use nilometer_model::Nanos;

use crate::{
    clock::VirtualClock,
    engine::{Engine, Wait},
    operation::{Completion, Operation},
};

/// Decides what to do next; does nothing. Pure: the same history gives the same answers.
pub trait Workload {
    /// The next step. Called only when the engine has room for one more operation.
    fn next(&mut self, now: Nanos) -> Step;
    /// An operation is done; its buffer comes back to the workload.
    fn completed(&mut self, completion: Completion);
}

/// What a workload wants.
#[derive(Debug)]
pub enum Step {
    /// Do this; it should have been issued at the time given.
    Issue(Operation, Nanos),
    /// Nothing now.
    Wait(Wait),
    /// Nothing more, once what is in flight is done.
    Done,
}

/// What one turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Something was issued or completed.
    Progress,
    /// Nothing until this time, or until something comes from elsewhere.
    Idle(Option<Nanos>),
    /// The workload is done and nothing is in flight.
    Done,
}

/// A workload on an engine.
pub struct Drive<'a> {
    workload: &'a mut dyn Workload,
    engine: &'a mut dyn Engine,
    depth: usize,
    flying: usize,
    done: Vec<Completion>,
}

impl std::fmt::Debug for Drive<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive")
            .field("depth", &self.depth)
            .field("flying", &self.flying)
            .finish_non_exhaustive()
    }
}

impl<'a> Drive<'a> {
    /// Nothing is issued yet.
    pub fn new(workload: &'a mut dyn Workload, engine: &'a mut dyn Engine) -> Self {
        let depth = engine.depth();
        assert!(depth > 0, "an engine that takes no operation can't be driven");
        Drive { workload, engine, depth, flying: 0, done: Vec::with_capacity(depth) }
    }

    /// Runs to the end. `observe` sees every completion before the workload does.
    pub fn run(mut self, mut observe: impl FnMut(&Completion)) {
        self.engine.tick();
        loop {
            let wait = match self.issue() {
                Step::Done if self.flying == 0 => return,
                Step::Wait(wait) => wait,
                _ => Wait::ForOne,
            };
            assert!(
                self.flying > 0 || !matches!(wait, Wait::ForOne),
                "a workload waits for a completion while nothing is in flight: it would wait for ever"
            );
            self.collect(wait, &mut observe);
        }
    }

    /// One step that never blocks.
    pub fn turn(&mut self, observe: &mut impl FnMut(&Completion)) -> Turn {
        self.engine.tick();
        let collected = self.collect(Wait::Poll, observe);
        let before = self.flying;
        let step = self.issue();
        match step {
            Step::Done if self.flying == 0 => Turn::Done,
            _ if collected > 0 || self.flying > before => Turn::Progress,
            Step::Wait(Wait::Until(time)) => {
                Turn::Idle(Some(self.engine.next_event().map_or(time, |e| e.min(time))))
            }
            _ => Turn::Idle(self.engine.next_event()),
        }
    }

    /// Issues all that may be issued; the step that ended it.
    #[inline]
    fn issue(&mut self) -> Step {
        while self.flying < self.depth {
            match self.workload.next(self.engine.now()) {
                Step::Issue(operation, due) => {
                    self.flying += 1;
                    self.engine.submit(operation, due);
                }
                paused => return paused,
            }
        }
        Step::Wait(Wait::ForOne)
    }

    #[inline]
    fn collect(&mut self, wait: Wait, observe: &mut impl FnMut(&Completion)) -> usize {
        self.engine.reap(wait, &mut self.done);
        let count = self.done.len();
        self.flying -= count;
        for completion in self.done.drain(..) {
            observe(&completion);
            self.workload.completed(completion);
        }
        count
    }
}

/// Runs several drives on one virtual clock to their ends; the time moves only when none can go on, and a wake counts
/// as an event of the present. `observe` sees every completion with its drive's index. Stops at `until`, as if the
/// power went off there.
///
/// Panics if all wait and nothing can ever happen: that is a deadlock, found without waiting for it.
pub fn interleave(
    clock: &VirtualClock,
    drives: &mut [Drive<'_>],
    until: Nanos,
    observe: &mut dyn FnMut(usize, &Completion),
) {
    loop {
        let (mut progress, mut open, mut next) = (false, false, None::<Nanos>);
        for (index, drive) in drives.iter_mut().enumerate() {
            match drive.turn(&mut |completion| observe(index, completion)) {
                Turn::Progress => (progress, open) = (true, true),
                Turn::Idle(time) => {
                    open = true;
                    next = [next, time].into_iter().flatten().min();
                }
                Turn::Done => {}
            }
        }
        if !open || clock.now() >= until {
            return;
        }
        if !progress {
            let next = next.unwrap_or_else(|| panic!("deadlock in virtual time at {} ns", clock.now().0));
            clock.advance_to(next.min(until));
        }
    }
}
