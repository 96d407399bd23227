//! The work that a background load did during a measured phase.

use serde::{Deserialize, Serialize};

use crate::{ByteRate, Nanos};

/// The work of a load during a measured phase, summed over its workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackgroundDone {
    /// From the begin of the phase to its end.
    pub wall: Nanos,
    /// Bytes moved.
    pub bytes: u64,
    /// Operations finished.
    pub operations: u64,
    /// The sum of the latencies of these operations. An operation with a due time counts from then.
    pub latency_sum: Nanos,
    /// Operations that failed.
    pub errors: u64,
    /// The fate of its frames if the load is an instrument; `None` for other loads.
    pub frames: Option<FramesBeside>,
}

/// The fate of the frames of all instruments in a load together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FramesBeside {
    /// Frames that came due.
    pub due: u64,
    /// Frames that found no room in the ring, or whose write failed.
    pub lost: u64,
    /// Frames acknowledged later than the allowance.
    pub late: u64,
    /// How late a frame may be.
    pub allowance: Nanos,
    /// The longest time in which frames waited and none was acknowledged. It counts from the start of the
    /// load, just before the phase.
    pub longest_stall: Nanos,
}

impl FramesBeside {
    /// The counts since an earlier moment of the same load.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        FramesBeside {
            due: self.due.saturating_sub(before.due),
            lost: self.lost.saturating_sub(before.lost),
            late: self.late.saturating_sub(before.late),
            ..self
        }
    }

    /// The sum of two phases, or of two instruments.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        FramesBeside {
            due: self.due.saturating_add(other.due),
            lost: self.lost.saturating_add(other.lost),
            late: self.late.saturating_add(other.late),
            allowance: self.allowance.max(other.allowance),
            longest_stall: self.longest_stall.max(other.longest_stall),
        }
    }
}

impl BackgroundDone {
    /// The counts since an earlier moment; `wall` of both is a time of the same clock.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        BackgroundDone {
            wall: self.wall.since(before.wall),
            bytes: self.bytes.saturating_sub(before.bytes),
            operations: self.operations.saturating_sub(before.operations),
            latency_sum: self.latency_sum.since(before.latency_sum),
            errors: self.errors.saturating_sub(before.errors),
            frames: self.frames.map(|frames| frames.since(before.frames.unwrap_or_default())),
        }
    }

    /// The sum of two phases.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        BackgroundDone {
            wall: self.wall + other.wall,
            bytes: self.bytes.saturating_add(other.bytes),
            operations: self.operations.saturating_add(other.operations),
            latency_sum: self.latency_sum + other.latency_sum,
            errors: self.errors.saturating_add(other.errors),
            frames: match (self.frames, other.frames) {
                (Some(frames), Some(more)) => Some(frames.and(more)),
                (frames, more) => frames.or(more),
            },
        }
    }

    /// The sum over several processes that worked at the same time, each for about the same time.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        BackgroundDone { wall: self.wall.max(other.wall), ..self.and(other) }
    }

    /// Bytes a second.
    pub fn rate(&self) -> ByteRate {
        ByteRate::of(self.bytes, self.wall)
    }

    /// The mean latency of its operations; `None` if there were no operations, or if the load is an
    /// instrument.
    pub fn latency(&self) -> Option<Nanos> {
        if self.frames.is_some() {
            return None;
        }
        self.latency_sum.0.checked_div(self.operations).map(Nanos)
    }
}
