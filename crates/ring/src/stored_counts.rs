//! Counters of stored data by lane, readable from other threads.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use nilometer_model::Nanos;

use crate::Frame;

/// The counts of a frame, kept after its slot has another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameCount {
    /// Its due time, on the recording's clock.
    pub due: Nanos,
    /// Packets received for it; 1 for a frame without packets.
    pub packets: u64,
    /// Its bytes: of its packets, of the message it came as, or of the frame.
    pub bytes: u64,
    /// Bytes of its block in the recording, with the places of missing packets; 0 for a frame without packets.
    pub block_bytes: u64,
}

impl FrameCount {
    /// Counts a frame; one without packets or message has `size` bytes.
    pub fn of(frame: &Frame, size: u64) -> Self {
        let alone = (1, frame.message.map_or(size, |message| message.bytes));
        let (packets, bytes) = frame.packed.as_ref().map_or(alone, |packed| (packed.packets, packed.bytes));
        let block_bytes = frame.packed.as_ref().map_or(0, |packed| packed.length.into());
        FrameCount { due: frame.due, packets, bytes, block_bytes }
    }
}

/// The counters of a lane's stored data, readable from other threads.
#[derive(Debug, Default)]
pub struct StoredCounts {
    /// Data that survive the death of the process.
    pub acknowledged: PacketCount,
    /// Data that survive a power loss.
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
    block_bytes: AtomicU64,
}

impl PacketCount {
    /// Counts a frame. A reader that sees it sees everything that this thread counted before.
    pub fn add(&self, frame: FrameCount) {
        self.block_bytes.fetch_add(frame.block_bytes, Ordering::Release);
        self.packets.fetch_add(frame.packets, Ordering::Release);
        self.bytes.fetch_add(frame.bytes, Ordering::Release);
    }

    /// Returns packets and bytes so far.
    pub fn get(&self) -> (u64, u64) {
        (self.packets.load(Ordering::Acquire), self.bytes.load(Ordering::Acquire))
    }
}

/// The packets and bytes that all lanes have stored, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredTotals {
    /// Packets and bytes that survive the death of the process.
    pub acknowledged: (u64, u64),
    /// Packets and bytes that survive a power loss: never more than are acknowledged.
    pub durable: (u64, u64),
    /// Bytes of the acknowledged blocks of packets, with the places of missing packets.
    pub acknowledged_block_bytes: u64,
    /// The same of the durable blocks.
    pub durable_block_bytes: u64,
    /// Acknowledged frames that came damaged.
    pub damaged: u64,
}

/// The counters of all lanes of a recording.
#[derive(Debug, Clone, Default)]
pub struct LaneCounts(Vec<LaneCount>);

/// The counters of a lane.
#[derive(Debug, Clone)]
pub struct LaneCount {
    /// The counters of its writer.
    pub counts: Arc<StoredCounts>,
    /// Its directory is in memory and loses its data without power: nothing there is durable, even if synced.
    pub is_memory: bool,
}

impl LaneCounts {
    /// Creates the counters of these lanes.
    pub fn new(lanes: impl IntoIterator<Item = LaneCount>) -> Self {
        LaneCounts(lanes.into_iter().collect())
    }

    /// Returns the totals now.
    ///
    /// A lane counts a frame as acknowledged before it counts it as durable, so the function reads them in
    /// the opposite order. For the same reason, read the count of received packets last if you compare it
    /// with these.
    pub fn get(&self) -> StoredTotals {
        let add = |sum: (u64, u64), one: (u64, u64)| (sum.0 + one.0, sum.1 + one.1);
        let lasting = self.0.iter().filter(|lane| !lane.is_memory);
        let blocks = |count: &PacketCount| count.block_bytes.load(Ordering::Acquire);
        let durable_block_bytes = lasting.clone().map(|lane| blocks(&lane.counts.durable)).sum();
        let durable = lasting.map(|lane| lane.counts.durable.get()).fold((0, 0), add);
        let acknowledged_block_bytes = self.0.iter().map(|lane| blocks(&lane.counts.acknowledged)).sum();
        let acknowledged = self.0.iter().map(|lane| lane.counts.acknowledged.get()).fold((0, 0), add);
        let damaged = self.0.iter().map(|lane| lane.counts.damaged.load(Ordering::Acquire)).sum();
        StoredTotals { acknowledged, durable, acknowledged_block_bytes, durable_block_bytes, damaged }
    }
}
