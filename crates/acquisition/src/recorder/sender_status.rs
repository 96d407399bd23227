//! The state of each sender and each thread of a recording while it runs, for an operator.

use std::net::SocketAddr;

use nilometer_intake::senders::{SenderCounts, ThreadCounts};
use nilometer_model::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

/// State of a sender that numbers its own packets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SenderStatus {
    /// Its address and port, or those of the first if several send one stream. `None` if unknown.
    pub sender: Option<SocketAddr>,
    /// Packets that have their position in the recording.
    pub received_packets: u64,
    /// Bytes kept of them.
    pub received_bytes: u64,
    /// Missing packets.
    pub missing_packets: u64,
    /// Gaps: runs of missing packets.
    pub gaps: u64,
    /// Longest run of missing packets.
    pub longest_gap: u64,
    /// Packets that arrived after one with a higher number.
    pub reordered_packets: u64,
    /// Sum of the packets that overtook each reordered packet.
    pub reordering_sum: u64,
    /// Packets that had already arrived.
    pub duplicate_packets: u64,
    /// Packets that arrived after their position had been closed.
    pub late_packets: u64,
    /// Packets that found the ring full.
    pub ring_full_packets: u64,
    /// Times that the sender's numbers restarted or jumped.
    pub restarts: u64,
    /// Seconds without a packet of this sender while others sent. `None` if it sends.
    pub silent_seconds: Option<f64>,
    /// Its threads, if the format has any.
    pub threads: Vec<ThreadStatus>,
}

/// State of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct ThreadStatus {
    /// The station, as a number. `None` if the format has no stations.
    pub station: Option<u16>,
    /// The thread, or the stream of packets with a described header.
    pub thread: u16,
    /// Frames received.
    pub came_frames: u64,
    /// Missing frames in complete blocks.
    pub missing_frames: u64,
    /// Seconds without a frame of this thread while others of the sender arrived. `None` if it sends.
    pub silent_seconds: Option<f64>,
}

impl SenderStatus {
    pub(super) fn of(counts: &SenderCounts) -> Self {
        SenderStatus {
            sender: counts.sender,
            received_packets: counts.placed,
            received_bytes: counts.bytes,
            missing_packets: counts.missing,
            gaps: counts.losses,
            longest_gap: counts.longest_loss,
            reordered_packets: counts.reordered,
            reordering_sum: counts.overtaken,
            duplicate_packets: counts.duplicates,
            late_packets: counts.late,
            ring_full_packets: counts.refused,
            restarts: counts.restarts,
            silent_seconds: counts.silent.map(Nanos::seconds),
            threads: counts.threads.iter().map(ThreadStatus::of).collect(),
        }
    }

    /// The sender's address as text; empty if unknown.
    pub fn name(&self) -> String {
        self.sender.map_or_else(String::new, |sender| sender.to_string())
    }
}

impl ThreadStatus {
    fn of(counts: &ThreadCounts) -> Self {
        ThreadStatus {
            station: counts.station,
            thread: counts.thread,
            came_frames: counts.came,
            missing_frames: counts.missing,
            silent_seconds: counts.silent.map(Nanos::seconds),
        }
    }
}
