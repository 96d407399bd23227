//! The loop that joins a workload and an engine. Every byte that Nilometer writes or reads under load passes
//! through it.
//!
//! `run` needs a thread of its own. For example, three writes on an engine of depth 2, of 4 ms each:
//!
//! ```text
//! time   workload            engine                 in flight
//! 0 ms   next: Issue(a)      submit(a)              1
//!        next: Issue(b)      submit(b)              2    as many as the depth: `next` is not called
//!                            reap(ForOne) waits
//! 4 ms   completed(a), (b)   returns a and b        0
//!        next: Issue(c)      submit(c)              1
//!        next: Done          reap(ForOne) waits     1    what is in flight is awaited
//! 8 ms   completed(c)        returns c              0
//!        next: Done                                 0    the run has ended
//! ```
//!
//! `turn` takes one step. [`interleave`] steps many drives on one virtual clock, which makes a whole recorder
//! or a ten-hour campaign a test of milliseconds. For example, a source with a frame every 10 ms, and a
//! writer before it in the list that waits for news:
//!
//! ```text
//! round   turn of the writer     turn of the source                      clock
//! 1       Idle(never)            gives a frame, wakes: Idle(10 ms)       0 ms: the wake is an event of now
//! 2       issues: Progress       Idle(10 ms)                             0 ms: a drive went on
//! 3       Idle(4 ms)             Idle(10 ms)                             moves to 4 ms, the end of the write
//! 4       completed: Progress    Idle(10 ms)                             4 ms
//! 5       Idle(never)            Idle(10 ms)                             moves to 10 ms
//! ```

use std::{cell::Cell, ops::ControlFlow};

use nilometer_model::Nanos;

use crate::{
    clock::VirtualClock,
    engine::{Engine, Wait},
    operation::{Completion, Operation},
};

/// Decides the next step but executes nothing. Pure: the same history gives the same answers.
pub trait Workload {
    /// Returns the next step. The drive calls it only when the engine has room for one more operation.
    fn next(&mut self, now: Nanos) -> Step;
    /// Takes back a completed operation with its buffer.
    fn completed(&mut self, completion: Completion);
}

/// The next step of a workload.
#[derive(Debug)]
pub enum Step {
    /// Issue this operation, which should have been issued at the given time.
    Issue(Operation, Nanos),
    /// Issue nothing now; call again after this wait.
    Wait(Wait),
    /// The workload ends once the operations in flight complete.
    Done,
}

/// The outcome of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Something was issued or completed.
    Progress,
    /// There is nothing to do until this time, or until an event from elsewhere.
    Idle(Option<Nanos>),
    /// The workload is done and nothing is in flight.
    Done,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The workload was done.
    Done,
    /// The observer stopped it.
    BrokenOff,
}

/// A workload on an engine.
pub struct Drive<'a> {
    workload: &'a mut dyn Workload,
    engine: &'a mut dyn Engine,
    /// The most operations that may be in flight.
    depth: usize,
    /// Operations in flight.
    flying: usize,
    /// Completions taken from the engine. The memory is reused, because the loop must not allocate.
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
    /// Creates a drive and issues nothing yet.
    pub fn new(workload: &'a mut dyn Workload, engine: &'a mut dyn Engine) -> Self {
        let depth = engine.depth();
        assert!(depth > 0, "an engine that takes no operation can't be driven");
        Drive { workload, engine, depth, flying: 0, done: Vec::with_capacity(depth) }
    }

    /// Runs to the end. `observe` sees every completion before the workload does.
    pub fn run(self, mut observe: impl FnMut(&Completion)) {
        self.run_while(|completion| {
            observe(completion);
            ControlFlow::Continue(())
        });
    }

    /// Runs to the end, or until `observe` stops it. Then the drive issues nothing more and waits for the
    /// operations in flight.
    pub fn run_while(mut self, mut observe: impl FnMut(&Completion) -> ControlFlow<()>) -> Ended {
        let broken = Cell::new(false);
        // Several completions may arrive at once: `observe` sees all of them, even after one of them stops
        // the run.
        let mut observe = |completion: &Completion| {
            if observe(completion).is_break() {
                broken.set(true);
            }
        };
        self.engine.tick();
        loop {
            let step = if broken.get() { Step::Done } else { self.issue() };
            let wait = match step {
                Step::Done if self.flying == 0 => {
                    return if broken.get() { Ended::BrokenOff } else { Ended::Done };
                }
                Step::Wait(wait) => wait,
                // The workload is done but operations are in flight: the kernel uses their buffers until they
                // complete.
                _ => Wait::ForOne,
            };
            assert!(
                self.flying > 0 || !matches!(wait, Wait::ForOne),
                "a workload waits for a completion while nothing is in flight: it would wait for ever"
            );
            self.collect(wait, &mut observe);
        }
    }

    /// Takes one step that never blocks.
    pub fn turn(&mut self, observe: &mut impl FnMut(&Completion)) -> Turn {
        self.engine.tick();
        // Collect first: `reap` takes a wake and the workload is called after it, so no wake is lost between
        // the two.
        let collected = self.collect(Wait::Poll, observe);
        let before = self.flying;
        let step = self.issue();
        match step {
            Step::Done if self.flying == 0 => Turn::Done,
            _ if collected > 0 || self.flying > before => Turn::Progress,
            // An operation in flight may complete before the time that the workload waits for.
            Step::Wait(Wait::Until(time)) => {
                Turn::Idle(Some(self.engine.next_event().map_or(time, |e| e.min(time))))
            }
            _ => Turn::Idle(self.engine.next_event()),
        }
    }

    /// Issues operations until the depth is reached or the workload pauses. Returns the step that ended it.
    #[inline]
    fn issue(&mut self) -> Step {
        while self.flying < self.depth {
            // `now` is the time of the last completion or tick: a clock reading per operation would cost as
            // much as all the rest.
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

    /// Collects completions, waiting as `wait` says. Returns their number.
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

/// Runs several drives on one virtual clock to their ends. The time moves only when no drive can go on; a
/// wake counts as an event of the present. `observe` sees every completion with its drive's index. Stops at
/// `until`, as if the power failed there.
///
/// Panics if all drives wait and nothing can ever happen: a deadlock, found without waiting for it.
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
        // While any drive goes on, nothing later than now may happen.
        if !progress {
            // A drive may have been woken by one whose turn came later: its event is now, and the clock
            // stays.
            let events = drives.iter().filter_map(|drive| drive.engine.next_event());
            let next = events
                .chain(next)
                .min()
                .unwrap_or_else(|| panic!("deadlock in virtual time at {} ns", clock.now().0));
            clock.advance_to(next.min(until));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        rc::Rc,
        sync::{Arc, Mutex},
    };

    use super::*;
    use crate::{
        engine::Wake,
        testing::{Device, Simulated},
    };

    /// Passes a token every millisecond and wakes the taker.
    struct Giver(Arc<Mutex<u32>>, Arc<dyn Wake>, u64);
    /// Takes tokens when woken and keeps the longest wait of a token.
    struct Taker(Arc<Mutex<u32>>, u64, Rc<Cell<Nanos>>);

    const PERIOD: u64 = 1_000_000;

    impl Workload for Giver {
        fn next(&mut self, now: Nanos) -> Step {
            if now < Nanos(self.2 * PERIOD) {
                return Step::Wait(Wait::Until(Nanos(self.2 * PERIOD)));
            }
            if self.2 == 5 {
                return Step::Done;
            }
            self.2 += 1;
            *self.0.lock().expect("one thread") += 1;
            self.1.wake();
            Step::Wait(Wait::Until(Nanos(self.2 * PERIOD)))
        }
        fn completed(&mut self, _: Completion) {}
    }

    impl Workload for Taker {
        fn next(&mut self, now: Nanos) -> Step {
            let mut tokens = self.0.lock().expect("one thread");
            if std::mem::take(&mut *tokens) > 0 {
                self.2.set(self.2.get().max(now.since(Nanos(self.1 * PERIOD))));
                self.1 += 1;
            }
            if self.1 == 5 { Step::Done } else { Step::Wait(Wait::News) }
        }
        fn completed(&mut self, _: Completion) {}
    }

    #[test]
    fn a_wake_is_of_the_present_whoever_comes_first() {
        for taker_first in [true, false] {
            let clock = VirtualClock::default();
            let target = Simulated::new(Device::default(), clock.clone());
            let (mut for_giver, mut for_taker) = (target.attach(1, 1), target.attach(1, 1));
            let (tokens, longest) = (Arc::default(), Rc::default());
            let mut giver = Giver(Arc::clone(&tokens), for_taker.waker(), 0);
            let mut taker = Taker(tokens, 0, Rc::clone(&longest));
            let mut drives = [Drive::new(&mut taker, &mut for_taker), Drive::new(&mut giver, &mut for_giver)];
            if !taker_first {
                drives.reverse();
            }
            interleave(&clock, &mut drives, Nanos::MAX, &mut |_, _| {});
            assert_eq!(longest.get(), Nanos(0), "a token waited, taker first: {taker_first}");
        }
    }
}
