//! Frames on their way through a ring.

use nilometer_model::Nanos;
use nilometer_storage::Buffer;

use crate::sink::Encoded;

/// A frame in its slot.
#[derive(Debug)]
pub struct Frame {
    /// Counted from 0 by the instrument.
    pub number: u64,
    /// When the instrument delivered it.
    pub due: Nanos,
    /// Its slot: the frame's bytes, and room up to the slot's size.
    pub data: Buffer,
    /// What it was put together from, if from packets.
    pub packed: Option<Box<Packed>>,
    /// What is written in place of its bytes, once it is encoded.
    pub encoded: Option<Box<Encoded>>,
}

/// A block of packets in a frame's slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Bytes of it: as many as all others have, but for the last of a recording.
    pub length: u32,
    /// Packets in it that came.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Packets that did not come, in order.
    pub gaps: Vec<Gap>,
}

/// Packets in a row that did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Which packet of the block is the first of them or, if they are left out, the first behind them.
    pub at: u32,
    /// How many.
    pub count: u64,
    /// Something that is marked as invalid stands in their place; otherwise they are left out.
    pub filled: bool,
}
