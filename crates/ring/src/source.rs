//! The instrument's end of the ring: frames when they are due, whether or not there is room.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nilometer_model::{Histogram, Nanos, Schedule};
use nilometer_storage::{Buffer, Completion, Step, Wait, Workload};

use crate::{Frame, FrameTurn, Ring, WhenFull};

/// When frames come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// When they are due, whether or not there is a free slot.
    Due(Schedule),
    /// As soon as there is a free slot: the limit of what comes behind.
    AsTaken,
}

/// What comes, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// When.
    pub pace: Pace,
    /// How long: frames that are due in this time from the first one on.
    pub duration: Nanos,
    /// How many at the most, of the whole instrument.
    pub frames: u64,
    /// Which of the instrument's frames.
    pub turn: FrameTurn,
    /// What happens to a frame that finds no free slot.
    pub when_full: WhenFull,
}

impl Delivery {
    /// At a pace for a time; what finds no slot is lost.
    pub const fn lasting(pace: Pace, duration: Nanos) -> Self {
        let turn = FrameTurn::ALL;
        Delivery { pace, duration, frames: u64::MAX, turn, when_full: WhenFull::DropNewest }
    }
}

/// Makes the instrument's frame of a number in its slot.
pub type FillFrame = Box<dyn FnMut(u64, &mut [u8])>;

/// A workload that issues nothing: it fills slots. Needs an engine only for its clock and its waker.
pub struct Source {
    ring: Arc<Ring>,
    delivery: Delivery,
    start: Option<Nanos>,
    /// When the first frame that was due was met.
    began: Option<Nanos>,
    number: u64,
    /// A frame found no free slot, and that ends it.
    stopped: bool,
    lateness: Histogram,
    /// Free slots, claimed ahead.
    /// When it asked to be called again.
    awaited: Option<Nanos>,
    spares: Vec<Buffer>,
    /// Full slots, not put in yet.
    filled: Vec<Frame>,
    fill: FillFrame,
    stop: Arc<AtomicBool>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("delivery", &self.delivery)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// Frames from the first call on, until `stop` at the latest. `fill` makes frame `number` in its slot.
    pub fn new(ring: Arc<Ring>, delivery: Delivery, stop: Arc<AtomicBool>, fill: FillFrame) -> Self {
        let spares = Vec::with_capacity(ring.batch());
        let filled = Vec::with_capacity(ring.batch());
        let lateness = Histogram::default();
        Source {
            ring,
            delivery,
            start: None,
            began: None,
            number: 0,
            stopped: false,
            lateness,
            awaited: None,
            spares,
            filled,
            fill,
            stop,
        }
    }

    /// The first frame is due then, and not at the first call.
    #[must_use]
    pub fn starting_at(self, start: Nanos) -> Self {
        Source { start: Some(start), ..self }
    }

    /// When the first frame that was due was taken in or lost, if one was.
    pub fn began(&self) -> Option<Nanos> {
        self.began
    }

    /// The instrument's number of the next frame.
    fn next_number(&self) -> u64 {
        self.delivery.turn.of_instrument(self.number)
    }

    /// How many frames were due so far.
    pub fn due(&self) -> u64 {
        self.number
    }

    /// From when frames were due until they were taken in: the recorder's own lateness.
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }

    /// A frame found no free slot, and the recording was to end then.
    pub fn has_stopped(&self) -> bool {
        self.stopped
    }

    /// When the next frame is due: with the pace, or now.
    fn next_due(&self, start: Nanos, now: Nanos) -> Nanos {
        match self.delivery.pace {
            Pace::Due(schedule) => start + schedule.due(self.next_number()),
            Pace::AsTaken => now.max(start),
        }
    }

    /// Puts in what is filled, and claims free slots.
    fn put(&mut self, now: Nanos) {
        self.ring.put(now, &mut self.filled, &mut self.spares, self.delivery.pace == Pace::AsTaken);
    }

    /// A slot for the next frame, if there is one or one can be had.
    fn slot(&mut self, now: Nanos) -> Option<Buffer> {
        if self.spares.is_empty() {
            self.put(now);
        }
        let paced = self.delivery.pace != Pace::AsTaken;
        let displaces = paced && self.delivery.when_full == WhenFull::DropOldest;
        self.spares.pop().or_else(|| if displaces { self.ring.displace(now) } else { None })
    }

    fn deliver(&mut self, now: Nanos, due: Nanos, mut slot: Buffer) {
        self.lateness.add(now.since(due).0);
        let of_instrument = self.next_number();
        (self.fill)(of_instrument, &mut slot);
        let number = self.number;
        self.filled.push(Frame::new(number, due, now, slot));
        self.number += 1;
    }

    /// The frame that is due finds no slot.
    fn lose(&mut self, now: Nanos) {
        self.ring.lose(now, self.number);
        self.number += 1;
        self.stopped = self.delivery.when_full == WhenFull::Stop;
    }

    fn is_over(&self, due: Nanos, start: Nanos) -> bool {
        due.since(start) >= self.delivery.duration
            || self.next_number() >= self.delivery.frames
            || self.stopped
            || self.stop.load(Ordering::Relaxed)
            || self.ring.is_abandoned()
    }

    /// Fills slots for the frames that are due, at most a batch; what to wait for.
    fn fill_due(&mut self, start: Nanos, now: Nanos) -> Step {
        loop {
            let due = self.next_due(start, now);
            if self.is_over(due, start) {
                return Step::Done;
            }
            if due > now {
                return Step::Wait(Wait::Until(due));
            }
            self.began.get_or_insert(now);
            match self.slot(now) {
                Some(slot) => self.deliver(now, due, slot),
                None if self.delivery.pace == Pace::AsTaken => return Step::Wait(Wait::News),
                None => self.lose(now),
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
        // It is late by what it did not run.
        self.ring.halted(now.since(self.awaited.take().unwrap_or(now)));
        let step = self.fill_due(start, now);
        if !self.filled.is_empty() {
            self.put(now);
        }
        if matches!(step, Step::Done) {
            self.ring.close(self.number);
        }
        if let Step::Wait(Wait::Until(due)) = step {
            self.awaited = Some(due);
        }
        step
    }

    fn completed(&mut self, _completion: Completion) {
        unreachable!("a source issues nothing");
    }
}
