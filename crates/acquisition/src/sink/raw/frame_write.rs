//! The frames of a write in flight, kept until it completes.

use nilometer_model::Nanos;
use nilometer_recording::Packed;
use nilometer_ring::{Frame, FrameMessage, StackedFrame, StoredAs};
use nilometer_storage::Buffer;

use super::FileOffset;

/// A write of frames in flight.
#[derive(Debug)]
pub(super) struct FrameWrite {
    /// Position of the first frame.
    pub(super) begin: FileOffset,
    pub(super) frames: Carried,
}

/// The frames of a write.
#[derive(Debug)]
pub(super) enum Carried {
    /// A frame.
    One {
        number: u64,
        due: Nanos,
        arrived: Nanos,
        packed: Option<Box<Packed>>,
        /// Encoding of the bytes in its slot, if it arrived encoded.
        came_as: Option<StoredAs>,
        checksum: Option<u32>,
        message: Option<FrameMessage>,
        stack: Option<Box<[StackedFrame]>>,
        /// Its slot, if other bytes are written in place of it.
        slot: Option<EncodedSlot>,
    },
    /// Consecutive frames.
    Group(Vec<Frame>),
}

/// The slot of a frame that is written encoded.
#[derive(Debug)]
pub(super) struct EncodedSlot {
    pub(super) data: Buffer,
    /// Encoding of the written bytes, and the number of them that belong to the frame.
    pub(super) stored_as: StoredAs,
    /// Time at which the frame was encoded.
    pub(super) finished: Nanos,
}
