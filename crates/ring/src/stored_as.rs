//! Bytes that are written in place of a frame's own, and who makes them.

use std::fmt::Debug;

use nilometer_model::Nanos;
use nilometer_recording::journal::Encoding;
use nilometer_storage::Buffer;

/// Bytes that stand for a frame and are not its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredAs {
    /// What they are.
    pub encoding: Encoding,
    /// How many.
    pub length: u32,
}

/// What is written in place of a frame's own bytes.
#[derive(Debug)]
pub struct Encoded {
    /// The first bytes of it are written.
    pub bytes: Buffer,
    /// What they are, and how many.
    pub stored_as: StoredAs,
    /// When they were there, as far as the lane saw it.
    pub finished: Nanos,
}

/// Makes other bytes of a frame. Pure: any number of threads may ask one.
pub trait FrameEncoder: Debug + Send + Sync {
    /// The most bytes that come out of a frame.
    fn length_max(&self) -> usize;
    /// Encodes the frame of this number, which is in the first bytes of a slot; what came out: not encoded, its own bytes, if
    /// that can't be done. `scratch` is for what it has to keep meanwhile.
    fn encode(&self, number: u64, slot: &[u8], scratch: &mut Vec<u8>, into: &mut [u8]) -> StoredAs;
    /// Whether the bytes of a frame that came encoded can be no frame. It costs much less than to decode them.
    fn is_damaged(&self, came_as: StoredAs, bytes: &[u8]) -> bool {
        let _ = (came_as, bytes);
        false
    }
}
