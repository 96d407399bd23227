//! How packets come and how they leave: the two halves of a protocol stand side by side.
//!
//! ```text
//! coming    Transport -> spots of the assembly -> ring
//! leaving   content -> format (make) -> faults -> pace -> Outlet
//! ```

mod allowed;
pub mod faults;
mod flow;
mod memory;
mod pace;
mod sender;
mod simulation;
mod tcp;
#[cfg(test)]
pub(crate) mod trial;
pub mod udp;
pub mod zeromq;

pub use allowed::{Allowed, SenderNetwork};
pub use flow::{Flow, Made, StreamCourse};
pub use memory::MemoryTransport;
pub use pace::{InStep, SendPace, Waiting};
pub use sender::{Left, Sender, SendingStation};
pub use simulation::{Shape, Simulation, SimulationError};
pub use tcp::TcpOutlet;

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
};

use nilometer_model::Nanos;

use crate::assembly::Spot;
pub use nilometer_datagram::Sent;
use nilometer_wire::Packet;

/// One of the senders at a port, in the order in which they were heard first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SenderId(pub u16);

/// How packets arrive. What the network does wrong is counted; an error is one that no packet can come after.
pub trait Transport: fmt::Debug + Send {
    /// Takes what has come, without waiting, in the order in which it came: each packet goes into the next spot that is
    /// exactly as long. From the first one on that does not fit, they lie aside; all of them, if they are received
    /// elsewhere.
    fn receive(&mut self, spots: &mut [Spot<'_>]) -> io::Result<Received>;
    /// From now on, where there are no spots, it takes about so many packets at once and no more.
    fn take_at_most(&mut self, _packets: usize) {}
    /// Of the packets that came with the last look, so many are of the stream: who sent them may be its sender.
    fn accepted(&mut self, _now: Nanos, _packets: u64) {}
    /// A packet that lies aside, by its number in the order in which they came; until the next call of `receive`.
    fn aside(&self, number: usize) -> &[u8];
    /// The sender of each packet of the last look: first those in spots, then those that lie aside. Empty if nobody knows.
    fn senders(&self) -> &[SenderId] {
        &[]
    }
    /// The address of a sender.
    fn sender(&self, _sender: SenderId) -> Option<SocketAddr> {
        None
    }
    /// Drops what has come so far, and counts it as early: it is none of the recording that begins now. Called before the
    /// first look.
    fn discard(&mut self) -> io::Result<()>;
    /// Waits until a packet comes, or so long.
    fn wait(&mut self, at_most: Nanos) -> io::Result<()>;
    /// How many bytes of packets may wait before some are dropped: what the kernel gave.
    fn room(&self) -> u64;
    /// What was counted so far.
    fn counted(&self) -> TransportCounts;
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
    /// Packets that the kernel dropped before these and behind those of the look before, at the most.
    pub dropped: u64,
}

impl Received {
    /// Packets in all.
    pub fn packets(&self) -> usize {
        self.spots + self.aside
    }

    /// Two looks together.
    #[must_use]
    pub fn and(self, other: Received) -> Self {
        Received {
            spots: self.spots + other.spots,
            aside: self.aside + other.aside,
            more: self.more || other.more,
            dropped: self.dropped + other.dropped,
        }
    }
}

/// What a transport counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransportCounts {
    /// Packets that came.
    pub packets: u64,
    /// Their bytes, without the headers of the network.
    pub bytes: u64,
    /// Messages for which the kernel had no room: of one packet each, or of several that it had joined.
    pub dropped: u64,
    /// The most packets that came joined in a message.
    pub joined: u64,
    /// Packets of other senders than those of the stream.
    pub strangers: u64,
    /// Of these, packets that were refused though the user named no senders.
    pub unnamed: u64,
    /// Packets that came, or that the kernel dropped, before the recording began.
    pub early: u64,
    /// One of these senders, if it is known.
    pub stranger: Option<IpAddr>,
    /// Times that the kernel was called to receive.
    pub calls: u64,
    /// Who sent to the port that most senders sent to.
    pub senders: PortSenders,
}

/// Who sent to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortSenders {
    /// Senders of more than a few packets, by address and port.
    pub count: u32,
    /// The two of these that sent most.
    pub most: [Option<SocketAddr>; 2],
}

impl PortSenders {
    /// Those of two sockets at one port: the kernel gives all packets of a sender to the same socket.
    #[must_use]
    pub fn at_one_port(self, other: PortSenders) -> Self {
        let mut most = self.most.into_iter().chain(other.most).flatten();
        PortSenders { count: self.count + other.count, most: [most.next(), most.next()] }
    }
}

impl TransportCounts {
    /// From now on, what came before is early.
    #[must_use]
    pub fn begin(&self) -> Self {
        TransportCounts { early: self.early + self.packets + self.dropped, ..TransportCounts::default() }
    }

    /// Two transports together.
    #[must_use]
    pub fn and(self, other: TransportCounts) -> Self {
        TransportCounts {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            dropped: self.dropped + other.dropped,
            joined: self.joined.max(other.joined),
            strangers: self.strangers + other.strangers,
            unnamed: self.unnamed + other.unnamed,
            early: self.early + other.early,
            stranger: self.stranger.or(other.stranger),
            calls: self.calls + other.calls,
            senders: if other.senders.count > self.senders.count { other.senders } else { self.senders },
        }
    }
}

/// Where packets leave. What the network does with them is counted; an error is what would befall every packet.
pub trait Outlet: fmt::Debug + Send {
    /// Sends these packets, in this order. Their bytes may be changed as soon as it returns.
    fn send(&mut self, packets: &[Packet<'_>]) -> io::Result<()>;
    /// How many packets of so many bytes leave in one go, at the most.
    fn burst(&self, packet_size: usize) -> usize;
    /// How many bytes of packets may wait for the network: what the kernel gave.
    fn room(&self) -> u64;
    /// What was counted so far.
    fn totals(&self) -> Sent;
}
