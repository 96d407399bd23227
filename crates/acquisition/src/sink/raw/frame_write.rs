//! What a write in flight carries, until it is known what became of it.

use nilometer_model::Nanos;
use nilometer_recording::Packed;
use nilometer_ring::{Frame, FrameMessage, StackedFrame, StoredAs};
use nilometer_storage::Buffer;

use super::FileOffset;

/// A write of frames in flight.
#[derive(Debug)]
pub(super) struct FrameWrite {
    /// Of the first frame.
    pub(super) begin: FileOffset,
    pub(super) frames: Carried,
}

/// What a write carries.
#[derive(Debug)]
pub(super) enum Carried {
    /// A frame.
    One {
        number: u64,
        due: Nanos,
        arrived: Nanos,
        packed: Option<Box<Packed>>,
        /// What is in its slot, if it came encoded.
        came_as: Option<StoredAs>,
        checksum: Option<u32>,
        message: Option<FrameMessage>,
        stack: Option<Box<[StackedFrame]>>,
        /// Its slot, where something else is written in its place.
        slot: Option<EncodedSlot>,
    },
    /// Consecutive frames.
    Group(Vec<Frame>),
}

/// The slot of a frame in whose place something else is written.
#[derive(Debug)]
pub(super) struct EncodedSlot {
    pub(super) data: Buffer,
    /// What that is, and how many bytes of it are of the frame.
    pub(super) stored_as: StoredAs,
    /// When it was encoded.
    pub(super) finished: Nanos,
}
