//! Blocks of packets, and the packets that are missing in them.

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
