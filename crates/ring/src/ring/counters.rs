//! The counters of a ring.

use nilometer_model::Nanos;

/// Counters of a ring, in slots and frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingCounters {
    /// All slots.
    pub slots: usize,
    /// The most slots in use at once.
    pub high: usize,
    /// Due frames that found no free slot.
    pub refused: u64,
    /// Waiting frames that gave their slot to a newer one.
    pub displaced: u64,
    /// Frames that no lane was left to take.
    pub stranded: u64,
}

impl RingCounters {
    /// Returns the total of due frames that are not stored.
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
    /// The number of stalls, and their total length.
    pub stalled: (u64, Nanos),
    /// The longest time in which blocks waited and none was stored, however short.
    pub longest_stall: Nanos,
    /// Times in which the thread that takes frames in did not run: their number and total length.
    pub halted: (u64, Nanos),
    /// The longest such time.
    pub longest_halt: Nanos,
}
