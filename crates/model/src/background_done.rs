//! What a load did beside a measured phase.

use serde::{Deserialize, Serialize};

use crate::{ByteRate, Nanos};

/// What a load did while a phase was measured, of all its workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackgroundDone {
    /// From the begin of the phase to its end.
    pub wall: Nanos,
    /// Bytes moved.
    pub bytes: u64,
    /// Operations finished.
    pub operations: u64,
    /// The latencies of these operations, added up; where they were due at a time, from then.
    pub latency_sum: Nanos,
    /// Operations that failed.
    pub errors: u64,
}

impl BackgroundDone {
    /// What came since an earlier moment; `wall` of both is a time of the same clock.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        BackgroundDone {
            wall: self.wall.since(before.wall),
            bytes: self.bytes.saturating_sub(before.bytes),
            operations: self.operations.saturating_sub(before.operations),
            latency_sum: self.latency_sum.since(before.latency_sum),
            errors: self.errors.saturating_sub(before.errors),
        }
    }

    /// Of two phases, together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        BackgroundDone {
            wall: self.wall + other.wall,
            bytes: self.bytes.saturating_add(other.bytes),
            operations: self.operations.saturating_add(other.operations),
            latency_sum: self.latency_sum + other.latency_sum,
            errors: self.errors.saturating_add(other.errors),
        }
    }

    /// Bytes a second.
    pub fn rate(&self) -> ByteRate {
        ByteRate::of(self.bytes, self.wall)
    }

    /// The mean latency of its operations; none of none.
    pub fn latency(&self) -> Option<Nanos> {
        self.latency_sum.0.checked_div(self.operations).map(Nanos)
    }
}
