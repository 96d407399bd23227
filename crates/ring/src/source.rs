//! The instrument's end of the ring: it delivers frames when they are due, even if there is no room.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nilometer_model::{Histogram, Nanos, Schedule};
use nilometer_storage::{Buffer, Completion, Step, Wait, Workload};

use crate::{Frame, FrameTurn, Ring, WhenFull};

/// The times at which frames come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// When they are due, even if no slot is free.
    Due(Schedule),
    /// When they are due, if the recorder takes an instrument's frames in turn, and numbers them from 0 as if
    /// there were no others.
    DueInTurn(Schedule, FrameTurn),
    /// Whenever a slot is free: this measures the limit of the stages behind the ring.
    AsTaken,
}

/// The frames of a source, and their duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Their pace.
    pub pace: Pace,
    /// Deliver frames that are due within this time of the first one.
    pub duration: Nanos,
    /// The most frames, of the whole instrument.
    pub frames: u64,
    /// The recorder's share of the instrument's frames.
    pub turn: FrameTurn,
    /// The treatment of a frame that finds no free slot.
    pub when_full: WhenFull,
}

impl Delivery {
    /// Delivers at a pace for a time; a frame without a slot is lost.
    pub const fn lasting(pace: Pace, duration: Nanos) -> Self {
        let turn = FrameTurn::ALL;
        Delivery { pace, duration, frames: u64::MAX, turn, when_full: WhenFull::DropNewest }
    }
}

/// Makes the instrument's frame of a number in its slot.
pub type FillFrame = Box<dyn FnMut(u64, &mut [u8])>;

/// A workload that issues no operations and fills slots instead. It needs an engine only for its clock and
/// its waker.
pub struct Source {
    ring: Arc<Ring>,
    delivery: Delivery,
    start: Option<Nanos>,
    /// The time at which it met the first due frame.
    began: Option<Nanos>,
    number: u64,
    /// A frame found no free slot, which ended the source.
    stopped: bool,
    lateness: Histogram,
    /// The time at which it asked to be called again.
    awaited: Option<Nanos>,
    /// Free slots, claimed ahead.
    spares: Vec<Buffer>,
    /// Full slots that are not in the ring yet.
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
    /// Creates a source that delivers frames from the first call on, until `stop` at the latest. `fill` makes
    /// frame `number` in its slot.
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

    /// Sets the due time of the first frame, which is otherwise the first call.
    #[must_use]
    pub fn starting_at(self, start: Nanos) -> Self {
        Source { start: Some(start), ..self }
    }

    /// Returns when the first due frame was taken in or lost, if one was.
    pub fn began(&self) -> Option<Nanos> {
        self.began
    }

    /// Returns the instrument's number of the next frame.
    fn next_number(&self) -> u64 {
        self.delivery.turn.of_instrument(self.number)
    }

    /// Returns the number of frames due so far.
    pub fn due(&self) -> u64 {
        self.number
    }

    /// Returns the delay from a frame's due time until the ring took it in: the recorder's own lateness.
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }

    /// Returns true if a frame found no free slot and the recording was to end then.
    pub fn has_stopped(&self) -> bool {
        self.stopped
    }

    /// Returns when the next frame is due: by the pace, or now.
    fn next_due(&self, start: Nanos, now: Nanos) -> Nanos {
        match self.delivery.pace {
            Pace::Due(schedule) => start + schedule.due(self.next_number()),
            Pace::DueInTurn(schedule, turn) => start + schedule.due(turn.of_instrument(self.number)),
            Pace::AsTaken => now.max(start),
        }
    }

    /// Puts filled slots into the ring and claims free ones.
    fn put(&mut self, now: Nanos) {
        self.ring.put(now, &mut self.filled, &mut self.spares, self.delivery.pace == Pace::AsTaken);
    }

    /// Returns a slot for the next frame, if one is free or can be freed.
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

    /// Loses the due frame, which finds no slot.
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

    /// Fills slots for due frames, at most a batch, and returns the next step.
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
                // Return between batches to let the clock be read; this is no real wait.
                return Step::Wait(Wait::Until(now + Nanos(1)));
            }
        }
    }
}

impl Workload for Source {
    fn next(&mut self, now: Nanos) -> Step {
        let start = *self.start.get_or_insert(now);
        // The source is late by the time it did not run.
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
