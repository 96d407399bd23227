//! Receiving and sending packets: the two halves of a protocol stand side by side.
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
pub use pace::{CatchUp, InStep, SendPace, Waiting};
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

/// One of the senders at a port, numbered in the order in which their first packets arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SenderId(pub u16);

/// A source of packets.
///
/// It counts the faults of the network. It returns an error only if no packet can arrive any more.
pub trait Transport: fmt::Debug + Send {
    /// Takes the packets that have arrived, without waiting, in their order of arrival.
    ///
    /// Each packet goes into the next spot of exactly its length. Starting with the first packet that does
    /// not fit, all further packets lie aside. A transport that receives elsewhere puts all packets aside.
    fn receive(&mut self, spots: &mut [Spot<'_>]) -> io::Result<Received>;
    /// The likely sender of the packets of the next look. `None` if several may come.
    fn next_sender(&self) -> Option<SenderId> {
        None
    }
    /// Limits a look without spots to about this many packets from now on.
    fn take_at_most(&mut self, _packets: usize) {}
    /// Reports how many packets of the last look belong to the stream. Their senders may be the stream's
    /// senders.
    fn accepted(&mut self, _now: Nanos, _packets: u64) {}
    /// Returns a packet that lies aside, by its number in the order of arrival. It is valid until the next
    /// `receive`.
    fn aside(&self, number: usize) -> &[u8];
    /// The sender of each packet of the last look: first those in spots, then those that lie aside. Empty if
    /// unknown.
    fn senders(&self) -> &[SenderId] {
        &[]
    }
    /// The address of a sender.
    fn sender(&self, _sender: SenderId) -> Option<SocketAddr> {
        None
    }
    /// Drops the packets that have arrived so far and counts them as early: they are not part of the
    /// recording that begins now. The recorder calls this before the first look.
    fn discard(&mut self) -> io::Result<()>;
    /// Waits until a packet arrives or this time has passed.
    fn wait(&mut self, at_most: Nanos) -> io::Result<()>;
    /// Size of the receive buffer that the kernel granted, in bytes of packets. When it is full, packets are
    /// dropped.
    fn room(&self) -> u64;
    /// The counts so far.
    fn counted(&self) -> TransportCounts;
    /// The bytes among the counts, which the receiver needs after each look.
    fn bytes(&self) -> u64 {
        self.counted().bytes
    }
    /// Number of sockets that take turns. Each has its own buffer in the kernel.
    fn sockets(&self) -> u64 {
        1
    }
}

/// The result of one look at a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Packets in spots. They fill the first spots.
    pub spots: usize,
    /// Packets after these that lie aside.
    pub aside: usize,
    /// True if more packets may be available at once.
    pub more: bool,
    /// Upper bound for the packets that the kernel, or a full queue, dropped after the previous look and before these
    /// packets.
    pub dropped: u64,
}

impl Received {
    /// Number of packets, in spots and aside.
    pub fn packets(&self) -> usize {
        self.spots + self.aside
    }

    /// Adds up two looks.
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

/// The counters of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransportCounts {
    /// Packets received.
    pub packets: u64,
    /// Bytes received, without the headers of the network.
    pub bytes: u64,
    /// Messages dropped for lack of buffer space in the kernel. A message is one packet, or several that the
    /// kernel joined.
    pub dropped: u64,
    /// Packets that found the queue of their recording full, if several share sockets.
    pub queue_full: u64,
    /// Messages received.
    pub messages: u64,
    /// The largest number of packets joined in one message.
    pub joined: u64,
    /// Packets from senders other than those of the stream.
    pub strangers: u64,
    /// Strangers' packets that were refused although the user named no senders.
    pub unnamed: u64,
    /// Packets received, or dropped by the kernel, before the recording began.
    pub early: u64,
    /// The address of one sender of such packets, if known.
    pub stranger: Option<IpAddr>,
    /// Number of receive calls to the kernel.
    pub calls: u64,
    /// The senders at one port: of several ports, the one with the most senders.
    pub senders: PortSenders,
}

/// The senders at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortSenders {
    /// Number of senders, by address and port, that sent more than a few packets.
    pub count: u32,
    /// The two of these that sent most.
    pub most: [Option<SocketAddr>; 2],
}

impl PortSenders {
    /// Combines the senders of two sockets at one port. The kernel gives all packets of a sender to the same
    /// socket, so the counts add up.
    #[must_use]
    pub fn at_one_port(self, other: PortSenders) -> Self {
        let mut most = self.most.into_iter().chain(other.most).flatten();
        PortSenders { count: self.count + other.count, most: [most.next(), most.next()] }
    }
}

impl TransportCounts {
    /// Starts counting anew: all packets so far become early ones.
    #[must_use]
    pub fn begin(&self) -> Self {
        TransportCounts { early: self.early + self.packets + self.dropped, ..TransportCounts::default() }
    }

    /// The mean number of packets that the kernel joined into a message. `None` if it counted no messages.
    pub fn packets_per_message(&self) -> Option<f64> {
        (self.messages > 0).then(|| self.packets as f64 / self.messages as f64)
    }

    /// Adds up the counters of two transports.
    #[must_use]
    pub fn and(self, other: TransportCounts) -> Self {
        TransportCounts {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            dropped: self.dropped + other.dropped,
            queue_full: self.queue_full + other.queue_full,
            messages: self.messages + other.messages,
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

/// A way out for packets. It counts the network's faults, and returns an error only if that error would hit
/// every packet.
pub trait Outlet: fmt::Debug + Send {
    /// Sends these packets, in this order. Their bytes may be changed as soon as it returns.
    fn send(&mut self, packets: &[Packet<'_>]) -> io::Result<()>;
    /// The largest number of packets of `packet_size` bytes that leave in one go.
    fn burst(&self, packet_size: usize) -> usize;
    /// Size of the send buffer that the kernel granted, in bytes of packets.
    fn room(&self) -> u64;
    /// The counts so far.
    fn totals(&self) -> Sent;
}
