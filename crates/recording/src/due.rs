//! The length of a recording.

/// The length of a recording that ended in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// Number of frames due, received or missing.
    pub frames: u64,
    /// Bytes of the last frame, if it is a block of packets.
    pub last: Option<u32>,
}
