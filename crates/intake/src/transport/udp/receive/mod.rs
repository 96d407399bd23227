//! Receives packets in batches of messages. The kernel may have joined several packets into a message (UDP
//! GRO). They are written to the places where the assembly expects them to stay.

#[cfg(test)]
mod tests;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    ops::Range,
    os::fd::AsFd,
};

use nilometer_datagram::{
    self as datagram, DatagramBatch, DatagramMessage, GroupMembership, MESSAGES_AT_ONCE,
};
use nilometer_model::{Bytes, Nanos};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{
    super::{Allowed, Received, SenderId, Transport, TransportCounts},
    senders::{HeardSenders, Senders},
};
use crate::assembly::Spot;

/// The usual size of the receive buffer. At 20 Gbit/s it holds a tenth of a second, for which other threads
/// may well keep the receiver from running.
pub const ROOM: Bytes = Bytes(256 << 20);

/// Configuration of a listening socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    /// Address and port.
    pub at: SocketAddr,
    /// The groups that the socket joins. It takes the packets of no other groups.
    pub groups: Vec<GroupMembership>,
    /// Address of the interface by which to join the groups.
    pub interface: Option<IpAddr>,
    /// Size of the receive buffer in the kernel.
    pub room: Bytes,
    /// The allowed senders.
    pub allowed: Allowed,
    /// Busy polling: microseconds for which the kernel polls the network card before the processor sleeps; 0
    /// for none.
    pub busy_poll: u32,
}

impl Listening {
    /// Listens at an address of this machine or of a group, with the usual buffer, to the first senders.
    pub fn at(at: SocketAddr) -> Self {
        let group = GroupMembership { group: at, source: None };
        let groups = if at.ip().is_multicast() { vec![group] } else { Vec::new() };
        Listening { at, groups, interface: None, room: ROOM, allowed: Allowed::First, busy_poll: 0 }
    }

    /// Listens to one group or more that share a port. One socket takes the packets of all, in their order.
    ///
    /// # Panics
    /// There is no group.
    pub fn to_groups(groups: Vec<GroupMembership>) -> Self {
        let first = groups[0].group;
        let any: IpAddr =
            if first.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let at = if groups.len() == 1 { first } else { SocketAddr::new(any, first.port()) };
        Listening { groups, ..Listening::at(at) }
    }
}

/// A listening socket.
#[derive(Debug)]
pub struct UdpInlet {
    socket: UdpSocket,
    batch: DatagramBatch,
    senders: Senders,
    /// Sender of the last message taken from an accepted sender.
    sender: Option<IpAddr>,
    /// Number of packets from each sender.
    heard: HeardSenders,
    room: u64,
    /// Packets taken at once if there are no spots.
    most: usize,
    joined: Joined,
    /// Bytes of the packets that lie aside.
    aside: Vec<u8>,
    packets: Vec<Range<usize>>,
    /// The senders of the packets of the last look.
    from: Vec<SenderId>,
    /// The kernel's drop counter at the last reading; it wraps.
    dropped: u32,
    /// Upper bound for the packets that the kernel dropped and no look has reported yet.
    unreported: u64,
    counted: TransportCounts,
}

impl UdpInlet {
    /// Opens the socket. The kernel may grant a smaller buffer than requested: see [`Transport::room`].
    pub fn open(listening: &Listening) -> io::Result<Self> {
        UdpInlet::over(UdpSocket::bind(listening.at)?, listening)
    }

    /// Uses a socket that is already bound.
    pub(super) fn over(socket: UdpSocket, listening: &Listening) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        if !listening.groups.is_empty() {
            datagram::only_own_groups(&socket, listening.at)?;
        }
        for group in &listening.groups {
            datagram::join_group(&socket, group, listening.interface)?;
        }
        let room = datagram::receive_room(&socket, listening.room.0)?;
        datagram::count_drops(&socket)?;
        datagram::join_segments(&socket);
        if listening.busy_poll > 0 {
            datagram::busy_poll(&socket, listening.busy_poll)?;
        }
        let senders = Senders::new(&listening.allowed);
        Ok(UdpInlet {
            batch: DatagramBatch::new(),
            socket,
            senders,
            sender: None,
            heard: HeardSenders::default(),
            room,
            most: MESSAGES_AT_ONCE * EACH_MOST,
            joined: Joined { each: 1, alike: ALIKE },
            aside: Vec::new(),
            packets: Vec::new(),
            from: Vec::new(),
            dropped: 0,
            unreported: 0,
            counted: TransportCounts::default(),
        })
    }

    /// Listens at `count` neighbouring ports, beginning with the given one. If that is 0, it finds free
    /// neighbouring ports.
    pub fn open_all(listening: &Listening, count: u16) -> io::Result<Vec<Self>> {
        let mut last = None;
        for _ in 0..if listening.at.port() == 0 { TRIES } else { 1 } {
            match UdpInlet::open_from(listening, count) {
                Ok(inlets) => return Ok(inlets),
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("it was tried once at least"))
    }

    fn open_from(listening: &Listening, count: u16) -> io::Result<Vec<Self>> {
        let first = UdpInlet::open(listening)?;
        let mut at = first.address()?;
        let mut inlets = vec![first];
        for _ in 1..count {
            let port = at.port().checked_add(1);
            at.set_port(port.ok_or_else(|| io::Error::other("there is no port above 65535"))?);
            let beside = Listening { at, ..listening.clone() };
            inlets.push(UdpInlet::open(&beside).map_err(|error| at_port(at, &error))?);
        }
        Ok(inlets)
    }

    /// The address at which it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The senders of accepted packets so far.
    pub(super) fn heard(&self) -> &HeardSenders {
        &self.heard
    }

    /// Takes the senders of the last look and leaves other memory in their place.
    pub(super) fn exchange_from(&mut self, from: Vec<SenderId>) -> Vec<SenderId> {
        std::mem::replace(&mut self.from, from)
    }

    /// Takes the packets that lie aside and leaves other memory in their place.
    pub(super) fn exchange_aside(
        &mut self,
        bytes: Vec<u8>,
        packets: Vec<Range<usize>>,
    ) -> (Vec<u8>, Vec<Range<usize>>) {
        (std::mem::replace(&mut self.aside, bytes), std::mem::replace(&mut self.packets, packets))
    }

    /// Counts a message. Returns its sender, or `None` if packets of that sender are not accepted.
    fn count(&mut self, message: &DatagramMessage) -> Option<SenderId> {
        let packets = message.packets() as u64;
        self.counted.packets += packets;
        self.counted.messages += 1;
        self.counted.bytes += message.length as u64;
        self.counted.joined = self.counted.joined.max(packets);
        let host = message.sender.map(|sender| sender.ip());
        if let Some(dropped) = message.dropped {
            self.count_drops(dropped);
        }
        if self.senders.hears(host) {
            return Some(self.heard.count(message.sender, packets));
        }
        self.counted.strangers += packets;
        self.counted.unnamed += if self.senders.are_named() { 0 } else { packets };
        self.counted.stranger = host.or(self.counted.stranger);
        None
    }

    /// Counts drops from the kernel's counter, which runs since the socket was opened. A message carries the
    /// value at its arrival, which may be smaller than the latest value.
    fn count_drops(&mut self, dropped: u32) {
        let more = dropped.wrapping_sub(self.dropped);
        if more.cast_signed() > 0 {
            self.counted.dropped += u64::from(more);
            self.unreported += u64::from(more) * self.counted.joined.max(1);
            self.dropped = dropped;
        }
    }

    /// Asks the kernel for its drop counter, if it has one. Drops after the last waiting message appear in no
    /// message.
    fn ask_for_drops(&mut self) {
        if let Some(dropped) = datagram::drops(&self.socket) {
            self.count_drops(dropped);
        }
    }

    /// Puts the packets of a message aside.
    fn put_aside(&mut self, number: usize, spots: &[Spot<'_>], message: &DatagramMessage) {
        let begin = self.aside.len();
        self.batch.gather(number, spots, message.length, &mut self.aside);
        let step = message.segment.max(1);
        for start in (0..message.length.max(1)).step_by(step) {
            self.packets.push(begin + start..begin + (start + step).min(message.length));
        }
    }
}

/// Number of attempts to find free neighbouring ports.
const TRIES: u32 = 100;

fn at_port(at: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("port {}: {error}", at.port()))
}

/// Number of packets that the kernel joins into a message.
///
/// If a message has fewer packets than expected, those after it lie in the wrong spots. The inlet therefore
/// takes several messages at once only if all have the same number.
#[derive(Debug, Clone, Copy)]
struct Joined {
    /// Packets of the longest of the last messages.
    each: usize,
    /// Number of consecutive messages with that many packets.
    alike: u32,
}

/// Number of consecutive messages with the same number of packets after which several are taken at once.
const ALIKE: u32 = 16;
/// Largest number of packets in a message: the kernel joins no more.
const EACH_MOST: usize = 64;

impl Joined {
    fn are_alike(self) -> bool {
        self.alike >= ALIKE
    }

    /// Learns from a message. `last`: the last of several, which the end of a burst may have cut off.
    fn learn(&mut self, packets: usize, last: bool) {
        let packets = packets.min(EACH_MOST);
        if packets == self.each {
            self.alike = self.alike.saturating_add(1);
        } else if packets > self.each || !last {
            *self = Joined { each: packets.max(if self.are_alike() { 1 } else { self.each }), alike: 0 };
        }
    }
}

/// Largest number of looks that discard packets before a recording.
const DISCARD: u32 = 100_000;

/// How many of these spots the packets of a message fill, if each packet has exactly the length of its spot.
fn fills(spots: &[Spot<'_>], message: &DatagramMessage) -> Option<usize> {
    let mut left = message.length;
    let mut count = 0;
    while left > 0 {
        let Spot { prefix, body } = spots.get(count)?;
        let packet = message.segment.min(left);
        if packet != prefix.len() + body.len() {
            return None;
        }
        left -= packet;
        count += 1;
    }
    (count > 0).then_some(count)
}

impl Transport for UdpInlet {
    fn receive(&mut self, spots: &mut [Spot<'_>]) -> io::Result<Received> {
        self.aside.clear();
        self.packets.clear();
        self.from.clear();
        self.sender = None;
        let each = self.joined.each;
        // Only whole messages fit.
        let messages = match self.senders.learns() {
            false if spots.is_empty() => (self.most / each).clamp(1, MESSAGES_AT_ONCE),
            false if self.joined.are_alike() => (spots.len() / each).clamp(1, MESSAGES_AT_ONCE),
            _ => 1,
        };
        let some = (messages * each).min(spots.len());
        let came = self.batch.receive(&self.socket, &mut spots[..some], each, messages)?;
        self.counted.calls += 1;
        let mut filled = 0;
        for number in 0..came {
            let message = self.batch.message(number);
            self.joined.learn(message.packets(), number > 0 && number + 1 == came);
            let Some(from) = self.count(&message) else { continue };
            self.sender = message.sender.map(|sender| sender.ip());
            self.from.extend(std::iter::repeat_n(from, message.packets()));
            let begin = (number * each).min(some);
            let own = &spots[begin..(begin + each).min(some)];
            match fills(own, &message) {
                Some(count) if filled == begin && self.packets.is_empty() => filled += count,
                _ => self.put_aside(number, own, &message),
            }
        }
        let more = came == messages;
        if !more {
            self.ask_for_drops();
        }
        let came = filled + self.packets.len() > 0;
        let dropped = if came { std::mem::take(&mut self.unreported) } else { 0 };
        Ok(Received { spots: filled, aside: self.packets.len(), more, dropped })
    }

    fn next_sender(&self) -> Option<SenderId> {
        self.heard.sole()
    }

    fn take_at_most(&mut self, packets: usize) {
        self.most = packets;
    }

    fn accepted(&mut self, now: Nanos, packets: u64) {
        self.senders.came(now, self.sender, packets);
    }

    fn aside(&self, number: usize) -> &[u8] {
        &self.aside[self.packets[number].clone()]
    }

    fn senders(&self) -> &[SenderId] {
        &self.from
    }

    fn sender(&self, sender: SenderId) -> Option<SocketAddr> {
        self.heard.address(sender)
    }

    fn discard(&mut self) -> io::Result<()> {
        // The loop is bounded: packets may arrive faster than they are dropped.
        for _ in 0..DISCARD {
            if !self.receive(&mut [])?.more {
                break;
            }
        }
        self.ask_for_drops();
        self.counted = self.counted.begin();
        self.unreported = 0;
        self.heard = HeardSenders::default();
        self.senders.forget();
        Ok(())
    }

    fn wait(&mut self, at_most: Nanos) -> io::Result<()> {
        wait_for_any(&[&*self], at_most)
    }

    fn room(&self) -> u64 {
        self.room
    }

    fn counted(&self) -> TransportCounts {
        TransportCounts { senders: self.heard.summary(), ..self.counted }
    }

    fn bytes(&self) -> u64 {
        self.counted.bytes
    }
}

/// Returns true for each of these at which packets wait.
pub(super) fn have_packets(inlets: &[&UdpInlet]) -> io::Result<Vec<bool>> {
    let sockets = inlets.iter().map(|inlet| inlet.socket.as_fd());
    let mut fds: Vec<_> = sockets.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)).collect();
    match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(_) => Ok(fds.iter().map(|fd| fd.revents().contains(PollFlags::IN)).collect()),
        Err(rustix::io::Errno::INTR) => Ok(vec![true; inlets.len()]),
        Err(errno) => Err(errno.into()),
    }
}

/// Waits until a packet arrives at one of these, or this time has passed.
pub(super) fn wait_for_any(inlets: &[&UdpInlet], at_most: Nanos) -> io::Result<()> {
    let timeout = Timespec {
        tv_sec: (at_most.0 / 1_000_000_000).cast_signed(),
        tv_nsec: (at_most.0 % 1_000_000_000).cast_signed(),
    };
    let sockets = inlets.iter().map(|inlet| inlet.socket.as_fd());
    let mut fds: Vec<_> = sockets.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)).collect();
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
