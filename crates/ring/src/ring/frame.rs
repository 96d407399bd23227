//! Frames on their way through a ring.

use nilometer_model::Nanos;
use nilometer_recording::Packed;
use nilometer_storage::Buffer;

use crate::{Encoded, StoredAs};

/// A frame in its slot.
#[derive(Debug)]
pub struct Frame {
    /// Counted from 0 by the instrument.
    pub number: u64,
    /// When the instrument delivered it.
    pub due: Nanos,
    /// When all of it was there.
    pub arrived: Nanos,
    /// Its slot: the frame's bytes, or those that came in their place, and room up to the slot's size.
    pub data: Buffer,
    /// What it was put together from, if from packets.
    pub packed: Option<Box<Packed>>,
    /// What is written in place of its bytes, once it is encoded.
    pub encoded: Option<Box<Encoded>>,
    /// What is in the slot, if it came encoded.
    pub came_as: Option<StoredAs>,
    /// CRC-32 (ISO-HDLC) of its bytes, where whoever delivered it knows that.
    pub checksum: Option<u32>,
    /// What its receiver knows of it, if it came as a message.
    pub message: Option<FrameMessage>,
    /// The frames that it has, if it is several: what is to be one chunk of HDF5. Its number is that of the stack.
    pub stack: Option<Box<[StackedFrame]>>,
}

/// A frame that came as a message, with the bytes that its sender made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameMessage {
    /// Bytes as they came, compressed if it came compressed.
    pub bytes: u64,
    /// These can't be unpacked. They are stored all the same, and the frame is not whole.
    pub is_damaged: bool,
}

/// A frame of several that are stored as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackedFrame {
    /// Counted from 0 by the instrument.
    pub number: u64,
    /// When the instrument delivered it.
    pub due: Nanos,
    /// Packets of it that never came.
    pub missing: u64,
}

impl Frame {
    /// One that is whole, with its own bytes in its slot.
    pub fn new(number: u64, due: Nanos, arrived: Nanos, data: Buffer) -> Self {
        Frame {
            number,
            due,
            arrived,
            data,
            packed: None,
            encoded: None,
            came_as: None,
            checksum: None,
            message: None,
            stack: None,
        }
    }

    /// Packets of it that never came.
    pub fn missing(&self) -> u64 {
        self.packed.iter().flat_map(|packed| &packed.gaps).map(|gap| gap.count).sum()
    }

    /// Whether it came with bytes that can't be unpacked.
    pub fn is_damaged(&self) -> bool {
        self.message.is_some_and(|message| message.is_damaged)
    }

    /// What is stored of it, if not its own bytes.
    pub fn stored_as(&self) -> Option<StoredAs> {
        self.encoded.as_ref().map(|encoded| encoded.stored_as).or(self.came_as)
    }
}
