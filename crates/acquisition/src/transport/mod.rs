//! How packets come and how they leave: the two halves of a protocol stand side by side.
//!
//! ```text
//! coming    Transport -> spots of the assembly -> ring
//! ```

mod memory;
#[expect(unsafe_code, reason = "the kernel is handed batches of packets by their addresses")]
pub mod udp;

pub use memory::Memory;

use std::{fmt, io};

use nilometer_model::Nanos;

use crate::assembly::Spot;

/// How packets arrive. What the network does wrong is counted; an error is one that no packet can come after.
pub trait Transport: fmt::Debug + Send {
    /// Takes what has come, without waiting, in the order in which it came: each packet goes into the next spot that is
    /// exactly as long. From the first one on that does not fit, they lie aside.
    fn receive(&mut self, spots: &mut [Spot<'_>]) -> io::Result<Received>;
    /// A packet that lies aside, by its number in the order in which they came; until the next call of `receive`.
    fn aside(&self, number: usize) -> &[u8];
    /// Waits until a packet comes, or so long.
    fn wait(&mut self, at_most: Nanos) -> io::Result<()>;
    /// How many bytes of packets may wait before some are dropped: what the kernel gave.
    fn room(&self) -> u64;
    /// What was counted so far.
    fn counted(&self) -> Counted;
}

/// What one look brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Packets that lie in the first so many spots.
    pub spots: usize,
    /// Packets behind these that lie aside.
    pub aside: usize,
    /// There may be more at once.
    pub more: bool,
}

impl Received {
    /// Packets in all.
    pub fn packets(&self) -> usize {
        self.spots + self.aside
    }
}

/// What a transport counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Packets that came.
    pub packets: u64,
    /// Their bytes, without the headers of the network.
    pub bytes: u64,
    /// Packets for which the kernel had no room.
    pub dropped: u64,
    /// Packets of senders that are not allowed.
    pub strangers: u64,
    /// Times that the kernel was called to receive.
    pub calls: u64,
}
