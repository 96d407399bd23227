//! The status of the recorder's memory: the ring, and the account of all parts.

use nilometer_ring::{MemoryAccount, MemoryOfPart, RingSnapshot};
use nilometer_storage::process::resident_memory;
use schemars::JsonSchema;
use serde::Serialize;

/// The ring between the network and the storage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct RingStatus {
    /// Number of slots.
    pub slots: usize,
    /// Slots in use now.
    pub in_use: usize,
    /// Most slots in use at once.
    pub high_water: usize,
    /// Number of stalls: periods in which blocks waited and none was stored.
    pub stalls: u64,
    /// Total length of the stalls.
    pub stalled_seconds: f64,
    /// Longest stall.
    pub longest_stall_seconds: f64,
    /// Number of halts: periods in which the recorder itself did not run, because it was stopped or had no
    /// processor.
    pub halts: u64,
    /// Total length of the halts.
    pub halted_seconds: f64,
    /// Longest halt.
    pub longest_halt_seconds: f64,
}

/// The memory of the recorder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryStatus {
    /// Most bytes that all parts take together; 0 if they did not state a bound.
    pub bound_bytes: u64,
    /// Resident bytes of the process as the kernel counts them; 0 if it does not report them. Packets in socket
    /// buffers are not included, pages of the program's file are.
    pub resident_bytes: u64,
    /// The account of each part.
    pub parts: Vec<MemoryOfPart>,
}

impl MemoryStatus {
    pub(super) fn of(account: &MemoryAccount) -> Self {
        let parts = account.parts();
        let bound_bytes = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.bound_bytes));
        MemoryStatus { bound_bytes, resident_bytes: resident_memory().0, parts }
    }
}

impl RingStatus {
    pub(super) fn of(glance: &RingSnapshot) -> Self {
        RingStatus {
            slots: glance.books.slots,
            in_use: glance.in_use,
            high_water: glance.books.high,
            stalls: glance.stalled.0,
            stalled_seconds: glance.stalled.1.seconds(),
            longest_stall_seconds: glance.longest_stall.seconds(),
            halts: glance.halted.0,
            halted_seconds: glance.halted.1.seconds(),
            longest_halt_seconds: glance.longest_halt.seconds(),
        }
    }
}
