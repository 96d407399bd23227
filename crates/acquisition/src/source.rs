//! The instrument's end of the ring: frames when they are due, whether or not there is room.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nilometer_model::Nanos;
use nilometer_storage::{Buffer, Completion, Step, Wait, Workload};

use crate::{Frame, Ring};

/// When frames come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// One every so often. A frame that finds no free slot is lost.
    Every(Nanos),
    /// As soon as there is a free slot: the limit of what comes behind.
    AsTaken,
}

/// Makes the frame of a number in its slot.
pub type Fill = Box<dyn FnMut(u64, &mut [u8])>;

/// A workload that issues nothing: it fills slots. Needs an engine only for its clock and its waker.
pub struct Source {
    ring: Arc<Ring>,
    pace: Pace,
    start: Option<Nanos>,
    duration: Nanos,
    number: u64,
    /// Free slots, claimed ahead.
    spares: Vec<Buffer>,
    /// Full slots, not put in yet.
    filled: Vec<Frame>,
    fill: Fill,
    stop: Arc<AtomicBool>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("pace", &self.pace)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// Frames for `duration` from the first call on, or until `stop`. `fill` makes frame `number` in its slot.
    pub fn new(ring: Arc<Ring>, pace: Pace, duration: Nanos, stop: Arc<AtomicBool>, fill: Fill) -> Self {
        let (spares, filled) = (Vec::with_capacity(ring.batch()), Vec::with_capacity(ring.batch()));
        Source { ring, pace, start: None, duration, number: 0, spares, filled, fill, stop }
    }

    /// How many frames were due so far.
    pub fn due(&self) -> u64 {
        self.number
    }

    /// When the next frame is due: with the pace, or now.
    fn next_due(&self, start: Nanos, now: Nanos) -> Nanos {
        match self.pace {
            Pace::Every(period) => Nanos(start.0 + self.number * period.0),
            Pace::AsTaken => now,
        }
    }

    /// Puts in what is filled, and claims free slots.
    fn put(&mut self) {
        self.ring.put(&mut self.filled, &mut self.spares, self.pace == Pace::AsTaken);
    }

    /// A slot for the next frame, if there is one.
    fn slot(&mut self) -> Option<Buffer> {
        if self.spares.is_empty() {
            self.put();
        }
        self.spares.pop()
    }

    fn deliver(&mut self, due: Nanos, mut slot: Buffer) {
        (self.fill)(self.number, &mut slot);
        self.filled.push(Frame { number: self.number, due, data: slot });
        self.number += 1;
    }

    /// Fills slots for the frames that are due, at most a batch; what to wait for.
    fn fill_due(&mut self, start: Nanos, now: Nanos) -> Step {
        loop {
            let due = self.next_due(start, now);
            let over = due.since(start) >= self.duration || self.stop.load(Ordering::Relaxed);
            if over || self.ring.is_abandoned() {
                return Step::Done;
            }
            if due > now {
                return Step::Wait(Wait::Until(due));
            }
            match self.slot() {
                Some(slot) => self.deliver(due, slot),
                None if self.pace == Pace::AsTaken => return Step::Wait(Wait::News),
                None => {
                    self.ring.lose(self.number);
                    self.number += 1;
                }
            }
            if self.filled.len() >= self.ring.batch() {
                // The clock is read between batches that do not wait for it.
                return Step::Wait(Wait::Until(now + Nanos(1)));
            }
        }
    }
}

impl Workload for Source {
    fn next(&mut self, now: Nanos) -> Step {
        let start = *self.start.get_or_insert(now);
        let step = self.fill_due(start, now);
        if !self.filled.is_empty() {
            self.put();
        }
        if matches!(step, Step::Done) {
            self.ring.close();
        }
        step
    }

    fn completed(&mut self, _completion: Completion) {
        unreachable!("a source issues nothing");
    }
}
