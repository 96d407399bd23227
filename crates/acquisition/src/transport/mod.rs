//! How packets come and how they leave: the two halves of a protocol stand side by side.
//!
//! ```text
//! leaving   content -> format (make) -> faults -> pace -> Outlet
//! ```

pub mod faults;
mod flow;
mod pace;
mod sender;
#[cfg(test)]
mod trial;
#[expect(unsafe_code, reason = "the kernel is handed batches of packets by their addresses")]
pub mod udp;

pub use flow::{Course, Flow};
pub use pace::{Pace, Waiting};
pub use sender::{Left, Sender, Station};

use std::{fmt, io};

use nilometer_model::{ByteRate, Nanos};

use crate::format::Packet;

/// Where packets leave. What the network does with them is counted; an error is what would befall every packet.
pub trait Outlet: fmt::Debug + Send {
    /// Sends these packets, in this order. Their bytes may be changed as soon as it returns.
    fn send(&mut self, packets: &[Packet<'_>]) -> io::Result<()>;
    /// How many packets of so many bytes leave in one go, at the most.
    fn burst(&self, packet_size: usize) -> usize;
    /// What was counted so far.
    fn totals(&self) -> Sent;
}

/// What an outlet counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Packets that were handed to the network.
    pub packets: u64,
    /// Their bytes, without the headers of the network.
    pub bytes: u64,
    /// How often the other end said that nobody listens there.
    pub refused: u64,
    /// Packets that the network did not take: no way there, or no room.
    pub unsent: u64,
    /// Datagrams that came back, and were dropped.
    pub answers: u64,
    /// Times that the kernel was called to send.
    pub calls: u64,
}

impl Sent {
    /// Two outlets together.
    #[must_use]
    pub fn and(self, other: Sent) -> Self {
        Sent {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            refused: self.refused + other.refused,
            unsent: self.unsent + other.unsent,
            answers: self.answers + other.answers,
            calls: self.calls + other.calls,
        }
    }

    /// The rate at which they left.
    pub fn rate(&self, time: Nanos) -> ByteRate {
        ByteRate::of(self.bytes, time)
    }
}
