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
    /// The time at which the instrument delivered it.
    pub due: Nanos,
    /// The time at which it was complete.
    pub arrived: Nanos,
    /// Its slot: the frame's bytes, or bytes received in their place, and room up to the slot's size.
    pub data: Buffer,
    /// Its packets, if it was assembled from packets.
    pub packed: Option<Box<Packed>>,
    /// The bytes to write in place of its own, once it is encoded.
    pub encoded: Option<Box<Encoded>>,
    /// The encoding of the bytes in the slot, if it came encoded.
    pub came_as: Option<StoredAs>,
    /// CRC-32 (ISO-HDLC) of its bytes, if the deliverer knows it.
    pub checksum: Option<u32>,
    /// Its receiver's data, if it came as a message.
    pub message: Option<FrameMessage>,
    /// Its frames, if it is a stack that becomes one chunk of HDF5. Its number is that of the stack.
    pub stack: Option<Box<[StackedFrame]>>,
}

/// A frame that came as a message, with the sender's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameMessage {
    /// Bytes received, compressed if it came compressed.
    pub bytes: u64,
    /// MD5 of the bytes as the sender sent them, if it states one and nobody has compared it yet.
    pub hash: Option<[u8; 16]>,
    /// The damage of the bytes, if there is any. They are stored anyway, and the frame is not whole.
    pub damage: Option<MessageDamage>,
}

/// The damage of a frame that came as a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageDamage {
    /// The bytes can't be unpacked.
    Packing,
    /// The bytes are not those whose hash the sender states.
    Hash,
}

impl FrameMessage {
    /// A message with this number of bytes, and the hash of these.
    pub fn new(bytes: u64, hash: Option<[u8; 16]>) -> Self {
        FrameMessage { bytes, hash, damage: None }
    }

    /// Compares the hash, if there is one, with that of the bytes received.
    pub fn compare(&mut self, hash_of_bytes: impl FnOnce() -> [u8; 16]) {
        let differs = self.hash.take().is_some_and(|hash| hash != hash_of_bytes());
        if differs {
            self.damage.get_or_insert(MessageDamage::Hash);
        }
    }
}

/// One of several frames that are stored as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackedFrame {
    /// Counted from 0 by the instrument.
    pub number: u64,
    /// The time at which the instrument delivered it.
    pub due: Nanos,
    /// Missing packets.
    pub missing: u64,
}

impl Frame {
    /// Creates a whole frame with its own bytes in its slot.
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

    /// Returns the number of missing packets.
    pub fn missing(&self) -> u64 {
        self.packed.iter().flat_map(|packed| &packed.gaps).map(|gap| gap.count).sum()
    }

    /// Returns the damage of the bytes that it came with.
    pub fn damage(&self) -> Option<MessageDamage> {
        self.message.and_then(|message| message.damage)
    }

    /// Returns true if it came with bytes that are damaged.
    pub fn is_damaged(&self) -> bool {
        self.damage().is_some()
    }

    /// Returns the encoding of the stored bytes, if they are not the frame's own.
    pub fn stored_as(&self) -> Option<StoredAs> {
        self.encoded.as_ref().map(|encoded| encoded.stored_as).or(self.came_as)
    }
}
