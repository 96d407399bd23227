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
    spare: Option<Buffer>,
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
        Source { ring, pace, start: None, duration, number: 0, spare: None, fill, stop }
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

    fn deliver(&mut self, due: Nanos, mut slot: Buffer) {
        (self.fill)(self.number, &mut slot);
        self.spare = self.ring.put(Frame { number: self.number, due, data: slot });
        self.number += 1;
    }
}

impl Workload for Source {
    fn next(&mut self, now: Nanos) -> Step {
        let start = *self.start.get_or_insert(now);
        loop {
            let due = self.next_due(start, now);
            let over = due.since(start) >= self.duration || self.stop.load(Ordering::Relaxed);
            if over || self.ring.is_abandoned() {
                self.ring.close();
                return Step::Done;
            }
            if due > now {
                return Step::Wait(Wait::Until(due));
            }
            let waits = self.pace == Pace::AsTaken;
            match self.spare.take().or_else(|| self.ring.claim(waits)) {
                Some(slot) => self.deliver(due, slot),
                None if waits => return Step::Wait(Wait::News),
                None => {
                    self.ring.lose(self.number);
                    self.number += 1;
                }
            }
            if waits {
                // The clock is read between frames that do not wait for it.
                return Step::Wait(Wait::Until(now + Nanos(1)));
            }
        }
    }

    fn completed(&mut self, _completion: Completion) {
        unreachable!("a source issues nothing");
    }
}
