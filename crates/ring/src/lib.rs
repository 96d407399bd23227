//! Memory between the sources of frames and their writers: the slots and their holders, and the account of
//! all memory of a recorder.
//!
//! ```text
//! instrument -> Source, or an intake -> Ring -> writers, one a lane
//! ```

#![forbid(unsafe_code)]

mod chronicle;
mod file_index;
mod memory_account;
mod ring;
mod source;
mod stored_as;
mod stored_counts;
mod turn;
mod watermark;

pub use chronicle::Chronicle;
pub use file_index::{FileIndex, FileOffset, IndexReservation, WrittenFrame};
pub use memory_account::{HeldMemory, MemoryAccount, MemoryOfPart, MemoryPart, MemoryPlan};
pub use ring::{
    Frame, FrameMessage, MessageDamage, Ring, RingCounters, RingSnapshot, StackedFrame, Taken, WhenFull,
};
pub use source::{Delivery, FillFrame, Pace, Source};
pub use stored_as::{Encoded, FrameEncoder, StoredAs};
pub use stored_counts::{FrameCount, LaneCount, LaneCounts, PacketCount, StoredCounts, StoredTotals};
pub use turn::FrameTurn;
pub use watermark::{Settled, Watermark};
