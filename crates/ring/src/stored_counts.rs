//! What lanes have stored so far, for those who look at it from other threads.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use nilometer_model::Nanos;

use crate::Frame;

/// What a frame counts for once its slot has another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameCount {
    /// When it was due, on the clock of the recording.
    pub due: Nanos,
    /// Packets in it that came; 1 for a frame that was not made of packets.
    pub packets: u64,
    /// Bytes of it: of its packets, of the message that it came as, or of the frame.
    pub bytes: u64,
}

impl FrameCount {
    /// Of a frame; one that is not made of packets has so many bytes.
    pub fn of(frame: &Frame, size: u64) -> Self {
        let alone = (1, frame.message.map_or(size, |message| message.bytes));
        let (packets, bytes) = frame.packed.as_ref().map_or(alone, |packed| (packed.packets, packed.bytes));
        FrameCount { due: frame.due, packets, bytes }
    }
}

/// What a lane has stored so far, for those who look at it from other threads.
#[derive(Debug, Default)]
pub struct StoredCounts {
    /// Survives the death of the process.
    pub acknowledged: PacketCount,
    /// Survives the loss of power.
    pub durable: PacketCount,
    /// Acknowledged frames that came damaged.
    damaged: AtomicU64,
}

impl StoredCounts {
    /// Counts acknowledged frames that came damaged.
    pub fn add_damaged(&self, frames: u64) {
        self.damaged.fetch_add(frames, Ordering::Release);
    }
}

/// Packets, or frames that are not made of packets, and their bytes.
#[derive(Debug, Default)]
pub struct PacketCount {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl PacketCount {
    /// Counts a frame. Whoever sees it counted here sees all that this thread counted before.
    pub fn add(&self, frame: FrameCount) {
        self.packets.fetch_add(frame.packets, Ordering::Release);
        self.bytes.fetch_add(frame.bytes, Ordering::Release);
    }

    /// Packets and bytes until now.
    pub fn get(&self) -> (u64, u64) {
        (self.packets.load(Ordering::Acquire), self.bytes.load(Ordering::Acquire))
    }
}

/// Packets and bytes that all lanes have stored, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredTotals {
    /// Packets and bytes that survive the death of the process.
    pub acknowledged: (u64, u64),
    /// Packets and bytes that survive the loss of power: never more than are acknowledged.
    pub durable: (u64, u64),
    /// Frames that are acknowledged and came damaged.
    pub damaged: u64,
}

/// The counters of all lanes of a recording.
#[derive(Debug, Clone, Default)]
pub struct LaneCounts(Vec<LaneCount>);

/// The counters of a lane.
#[derive(Debug, Clone)]
pub struct LaneCount {
    /// Where its writer counts.
    pub counts: Arc<StoredCounts>,
    /// Its directory is memory, which forgets without power: nothing there is durable, whatever is synced.
    pub is_memory: bool,
}

impl LaneCounts {
    /// Of these lanes.
    pub fn new(lanes: impl IntoIterator<Item = LaneCount>) -> Self {
        LaneCounts(lanes.into_iter().collect())
    }

    /// The totals now.
    ///
    /// A lane counts a frame as acknowledged before it counts it as durable, so they are read the other way
    /// round. For the same reason whoever compares them with the packets that came reads those last.
    pub fn get(&self) -> StoredTotals {
        let add = |sum: (u64, u64), one: (u64, u64)| (sum.0 + one.0, sum.1 + one.1);
        let lasting = self.0.iter().filter(|lane| !lane.is_memory);
        let durable = lasting.map(|lane| lane.counts.durable.get()).fold((0, 0), add);
        let acknowledged = self.0.iter().map(|lane| lane.counts.acknowledged.get()).fold((0, 0), add);
        let damaged = self.0.iter().map(|lane| lane.counts.damaged.load(Ordering::Acquire)).sum();
        StoredTotals { acknowledged, durable, damaged }
    }
}
