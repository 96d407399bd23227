//! Sinks turn frames into operations. A sink has the shape of a workload, one level up: it takes frames and
//! gives operations, then takes completions and gives acknowledged frames. Every byte of a recorder therefore
//! passes an engine, and tests can run every sink on the virtual clock.
//!
//! [`LaneFiles`] is the sink of every lane. Ways of storing differ in its placement, its index and its encode
//! stage.

mod cbf;
mod encode;
mod lane;
mod raw;

pub use encode::EncodeStage;
pub use lane::{LaneOptions, LaneSetup, encode_stage, lanes_memory, lanes_of};
pub use raw::{Durability, FILE_SLOTS, Gauge, LaneFiles, Numbering, RawLayout, Spacing, Streamer};

use nilometer_ring::{Frame, FrameCount};
use nilometer_storage::buffer::Alignment;

/// Frames acknowledged and frames made durable by a completion.
#[derive(Debug, Default)]
pub struct Stored {
    /// Frames that survive the death of the process.
    pub acknowledged: Vec<Frame>,
    /// Frames that survive a loss of power from now on.
    pub durable: Vec<FrameCount>,
}

/// Requirements of a sink for the ring that feeds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingNeeds {
    /// Bytes of a slot.
    pub slot: usize,
    /// Alignment of slots in memory.
    pub alignment: Alignment,
    /// Most frames that one writer gets in a row. `None` unless each writer writes chunks of the recording.
    pub chunk: Option<u64>,
}

impl RingNeeds {
    /// Combines the needs of two lanes of one recording.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let page = [self.alignment, other.alignment].contains(&Alignment::Page);
        RingNeeds {
            slot: self.slot.max(other.slot),
            alignment: if page { Alignment::Page } else { Alignment::CacheLine },
            chunk: self.chunk.or(other.chunk),
        }
    }
}
