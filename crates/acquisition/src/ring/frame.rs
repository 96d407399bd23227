//! Frames on their way through a ring.

use nilometer_model::Nanos;
use nilometer_recording::Packed;
use nilometer_storage::Buffer;

use crate::sink::Encoded;

/// A frame in its slot.
#[derive(Debug)]
pub struct Frame {
    /// Counted from 0 by the instrument.
    pub number: u64,
    /// When the instrument delivered it.
    pub due: Nanos,
    /// When all of it was there.
    pub arrived: Nanos,
    /// Its slot: the frame's bytes, and room up to the slot's size.
    pub data: Buffer,
    /// What it was put together from, if from packets.
    pub packed: Option<Box<Packed>>,
    /// What is written in place of its bytes, once it is encoded.
    pub encoded: Option<Box<Encoded>>,
}
