//! What a ring counts.

use nilometer_model::Nanos;

/// Counters of a ring, in slots and frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingCounters {
    /// Slots in all.
    pub slots: usize,
    /// The most slots that were in use at once.
    pub high: usize,
    /// Frames that were due and found no free slot.
    pub refused: u64,
    /// Frames that waited for a lane and gave their slot to a newer one.
    pub displaced: u64,
    /// Frames that no lane was left to take.
    pub stranded: u64,
}

impl RingCounters {
    /// Frames that were due and are not stored, in all.
    pub const fn lost(&self) -> u64 {
        self.refused + self.displaced + self.stranded
    }
}

/// The counters, use and stalls of a ring at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingSnapshot {
    /// The counters so far.
    pub books: RingCounters,
    /// Slots in use.
    pub in_use: usize,
    /// Stalls, and how long all of them were together.
    pub stalled: (u64, Nanos),
    /// The longest time in which blocks waited and none was stored, however short.
    pub longest_stall: Nanos,
    /// Times in which the thread that takes frames in did not run, and how long all of them were together.
    pub halted: (u64, Nanos),
    /// The longest of them.
    pub longest_halt: Nanos,
}
