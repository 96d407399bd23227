//! How long a recording is.

/// The length of a recording that was ended in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// How many frames were due in all.
    pub frames: u64,
    /// Bytes of the last one, if it is a block of packets.
    pub last: Option<u32>,
}
