//! Bytes written in place of a frame's own, and the encoders that make them.

use std::fmt::Debug;

use nilometer_model::Nanos;
use nilometer_recording::journal::Encoding;
use nilometer_storage::Buffer;

/// Bytes that stand for a frame and are not its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredAs {
    /// Their encoding.
    pub encoding: Encoding,
    /// Their number.
    pub length: u32,
}

/// Bytes written in place of a frame's own.
#[derive(Debug)]
pub struct Encoded {
    /// The buffer; its first bytes are written.
    pub bytes: Buffer,
    /// Their encoding and number.
    pub stored_as: StoredAs,
    /// The time at which the lane found them ready.
    pub finished: Nanos,
}

/// Encodes frames. Pure: any number of threads may use one.
pub trait FrameEncoder: Debug + Send + Sync {
    /// Returns the most bytes of an encoded frame.
    fn length_max(&self) -> usize;
    /// Encodes the frame of this number, which is in the first bytes of a slot. If that fails, the result is
    /// the frame's own bytes, not encoded. `scratch` holds temporary data.
    fn encode(&self, number: u64, slot: &[u8], scratch: &mut Vec<u8>, into: &mut [u8]) -> StoredAs;
    /// Returns true if the bytes of a frame that came encoded can be no frame. It costs much less than
    /// decoding them.
    fn is_damaged(&self, came_as: StoredAs, bytes: &[u8]) -> bool {
        let _ = (came_as, bytes);
        false
    }
}
