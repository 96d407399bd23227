//! The state of each sender and each thread of a recording while it runs, as an operator asks for it.

use std::net::SocketAddr;

use nilometer_intake::senders::{SenderCounts, ThreadCounts};
use nilometer_model::Nanos;
use serde::Serialize;

/// How a sender goes that numbers its packets by itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SenderStatus {
    /// Its address and port, if they are known: of several that send one stream the first.
    pub sender: Option<SocketAddr>,
    /// Packets that have their place.
    pub received_packets: u64,
    /// Bytes of them that are kept.
    pub received_bytes: u64,
    /// Packets that should be there and are not.
    pub missing_packets: u64,
    /// Times that packets were missing one after the other.
    pub gaps: u64,
    /// The most packets missing in a row.
    pub longest_gap: u64,
    /// Packets that came after one with a higher number.
    pub reordered_packets: u64,
    /// By how many others they were overtaken in all.
    pub reordering_sum: u64,
    /// Packets that were there already.
    pub duplicate_packets: u64,
    /// Packets that came when their place had been closed.
    pub late_packets: u64,
    /// Packets that found the ring full.
    pub ring_full_packets: u64,
    /// Times that its numbers began anew, or jumped.
    pub restarts: u64,
    /// For how long nothing came of it while others sent; none if it sends.
    pub silent_seconds: Option<f64>,
    /// Its threads, if the format has any.
    pub threads: Vec<ThreadStatus>,
}

/// How a thread goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ThreadStatus {
    /// The station, as a number.
    pub station: u16,
    /// The thread.
    pub thread: u16,
    /// Frames that came.
    pub came_frames: u64,
    /// Frames that should be there and are not, in blocks that are complete.
    pub missing_frames: u64,
    /// For how long nothing came of it while others of the sender came; none if it comes.
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

    /// The sender in words; nothing if it is not known.
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
