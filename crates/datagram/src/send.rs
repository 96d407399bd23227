//! How packets leave over UDP: as few calls as there can be, and no copy but the kernel's.
//!
//! Packets of one size that follow each other go as one message that the kernel, or the network card, cuts (UDP GSO);
//! where that can't be, as many messages go with one call (`sendmmsg`). The prefix and the body of a packet are gathered
//! from where they lie.

use std::{
    io,
    mem::zeroed,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    ops::Range,
    os::fd::{AsRawFd, RawFd},
    ptr,
};

use nilometer_model::{ByteRate, Bytes, Nanos};

use crate::options::{cuts_segments, interface_index, send_room, set_hops, set_interface, set_segment};
use nilometer_wire::Packet;

/// How packets are to leave.
#[derive(Debug, Clone)]
pub struct Sending {
    /// Room in the kernel for packets that wait for the network. More than the system's limit is given to root only.
    pub room: Bytes,
    /// Routers that a packet to a multicast group may pass. 1 if it is not said: the group's own network.
    pub hops: Option<u8>,
    /// The interface by which packets to a multicast group leave, by its name; the system's choice if none.
    pub interface: Option<String>,
    /// Let the kernel cut large messages where it can.
    pub segments: bool,
}

impl Default for Sending {
    fn default() -> Self {
        Sending { room: Bytes(8 << 20), hops: None, interface: None, segments: true }
    }
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

/// Packets that the kernel cuts from one message at the most (`UDP_MAX_SEGMENTS` of Linux 4.18; later ones take 128).
const SEGMENTS_MAX: usize = 64;
/// Bytes of a message at the most: what an IPv4 packet holds behind its header and UDP's.
const MESSAGE_MAX: usize = 65_535 - 20 - 8;
/// Messages that go with one call where the kernel cuts none.
const MESSAGES_MAX: usize = 64;
/// Messages that go with one call where the kernel cuts them.
const RUNS_MAX: usize = 4;
/// After so many calls it is looked whether something came back.
const CALLS_PER_LOOK: u64 = 64;
/// Answers that are dropped at one look, and refusals that are borne for one message.
const ANSWERS_MAX: usize = 64;
const REFUSALS_MAX: u32 = 8;

/// One connected socket.
#[derive(Debug)]
pub struct UdpOutlet {
    socket: UdpSocket,
    to: SocketAddr,
    room: Bytes,
    cuts: bool,
    /// Where the kernel cuts a message, in bytes; 0 nowhere.
    segment: usize,
    list: List,
    sent: Sent,
}

impl UdpOutlet {
    /// Connects to where packets go. Nothing is sent yet, and nobody needs to listen there.
    pub fn connect(to: SocketAddr, sending: &Sending) -> io::Result<Self> {
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        if let Some(hops) = sending.hops {
            set_hops(&socket, to, hops)?;
        }
        if let Some(name) = &sending.interface {
            let named = |error| io::Error::other(format!("interface {name}: {error}"));
            set_interface(&socket, to, interface_index(name).map_err(named)?)?;
        }
        socket.connect(to)?;
        let room = Bytes(send_room(&socket, sending.room.0)?);
        let cuts = sending.segments && cuts_segments(&socket);
        Ok(UdpOutlet { socket, to, room, cuts, segment: 0, list: List::default(), sent: Sent::default() })
    }

    /// Where packets go.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// The socket, to ask it things.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Whether the kernel cuts messages into packets, as far as it is known: it may turn out that the way there can't.
    pub fn cuts(&self) -> bool {
        self.cuts
    }

    /// Sends these packets, in this order. Their bytes may be changed as soon as it returns.
    ///
    /// # Errors
    /// What would befall every packet. What the network does wrong is counted.
    pub fn send(&mut self, packets: &[Packet<'_>]) -> io::Result<()> {
        let (mut rest, mut refusals) = (packets, 0);
        while !rest.is_empty() {
            let done = match self.hand_over(rest) {
                Ok(count) => {
                    refusals = 0;
                    self.sent.packets += count as u64;
                    self.sent.bytes += rest[..count].iter().map(|packet| size(packet) as u64).sum::<u64>();
                    count
                }
                Err(error) => self.bear(error, rest, &mut refusals)?,
            };
            rest = &rest[done..];
            if self.sent.calls.is_multiple_of(CALLS_PER_LOOK) {
                self.drop_answers();
            }
        }
        Ok(())
    }

    /// How many packets of so many bytes leave with one call, at the most.
    pub fn burst(&self, packet_size: usize) -> usize {
        let of_message = (MESSAGE_MAX / packet_size.max(1)).clamp(1, SEGMENTS_MAX);
        if self.cuts { of_message * RUNS_MAX } else { MESSAGES_MAX }
    }

    /// How many bytes of packets may wait for the network: what the kernel gave, its own bookkeeping counted in.
    pub fn room(&self) -> u64 {
        self.room.0
    }

    /// What was counted so far.
    pub fn totals(&self) -> Sent {
        self.sent
    }

    /// Hands over the first of these packets, as many as one call takes: how many those were.
    fn hand_over(&mut self, packets: &[Packet<'_>]) -> io::Result<usize> {
        self.sent.calls += 1;
        let socket = self.socket.as_raw_fd();
        if self.cuts {
            let first = run(packets);
            self.cut_as(&packets[..first])?;
            if first == packets.len() {
                return self.list.message(socket, packets);
            }
            let runs = Runs { rest: packets, segment: self.segment }.take(RUNS_MAX);
            self.list.messages(socket, runs)
        } else {
            self.list.messages(socket, packets.chunks(1).take(MESSAGES_MAX))
        }
    }

    /// Tells the kernel where to cut, if it cuts elsewhere now. Streams send packets of one size for hours.
    fn cut_as(&mut self, run: &[Packet<'_>]) -> io::Result<()> {
        if !is_cut_at(self.segment, run) {
            self.segment = if run.len() > 1 { size(&run[0]) } else { 0 };
            set_segment(&self.socket, self.segment)?;
        }
        Ok(())
    }

    /// What an error means: how many of the packets are given up, 0 to try again.
    fn bear(&mut self, error: io::Error, packets: &[Packet<'_>], refusals: &mut u32) -> io::Result<usize> {
        let tried = if self.cuts { run(packets) } else { 1 };
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(0),
            // An earlier packet came to a port where nobody listens; this one was not sent yet.
            Some(libc::ECONNREFUSED) => {
                *refusals += 1;
                self.sent.refused += 1;
                Ok(if *refusals < REFUSALS_MAX { 0 } else { self.give_up(tried) })
            }
            // The way there cuts no messages: packets beyond its size, or a network card without checksums.
            Some(libc::EINVAL | libc::EIO) if tried > 1 => {
                (self.cuts, self.segment) = (false, 0);
                set_segment(&self.socket, 0)?;
                Ok(0)
            }
            Some(
                libc::ENETDOWN
                | libc::ENETUNREACH
                | libc::EHOSTDOWN
                | libc::EHOSTUNREACH
                | libc::ENOBUFS
                | libc::EPERM,
            ) => Ok(self.give_up(tried)),
            _ => Err(error),
        }
    }

    fn give_up(&mut self, packets: usize) -> usize {
        self.sent.unsent += packets as u64;
        packets
    }

    /// Drops what came back: some receivers answer now and then.
    fn drop_answers(&mut self) {
        for _ in 0..ANSWERS_MAX {
            // SAFETY: no memory is handed over: a datagram is dropped with all its bytes.
            let came = unsafe { libc::recv(self.socket.as_raw_fd(), ptr::null_mut(), 0, libc::MSG_DONTWAIT) };
            match came {
                0.. => self.sent.answers += 1,
                _ if io::Error::last_os_error().raw_os_error() == Some(libc::ECONNREFUSED) => {
                    self.sent.refused += 1;
                }
                _ => break,
            }
        }
    }
}

/// Bytes of a packet.
fn size(packet: &Packet<'_>) -> usize {
    packet.prefix.len() + packet.body.len()
}

/// How many packets can go as one message: all of the first one's size, but for the last, which may be shorter.
fn run(packets: &[Packet<'_>]) -> usize {
    let first = size(&packets[0]);
    if first == 0 {
        return 1;
    }
    let most = (MESSAGE_MAX / first).clamp(1, SEGMENTS_MAX).min(packets.len());
    let alike = packets[..most].iter().take_while(|packet| size(packet) == first).count();
    let shorter = packets[..most].get(alike).is_some_and(|packet| (1..first).contains(&size(packet)));
    alike + usize::from(shorter)
}

/// Packets as messages that the kernel cuts at one place: up to the first that needs another.
struct Runs<'a> {
    rest: &'a [Packet<'a>],
    segment: usize,
}

impl<'a> Iterator for Runs<'a> {
    type Item = &'a [Packet<'a>];

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (run, rest) = self.rest.split_at(run(self.rest));
        self.rest = rest;
        is_cut_at(self.segment, run).then_some(run)
    }
}

/// Whether a kernel that cuts here sends this run as it should.
fn is_cut_at(segment: usize, run: &[Packet<'_>]) -> bool {
    let size = size(&run[0]);
    if run.len() > 1 { segment == size } else { segment == 0 || size <= segment }
}

/// What the kernel reads to find the bytes. Kept for its memory: between two calls nothing in it is used.
#[derive(Default)]
struct List {
    pieces: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    /// Where a message's pieces begin, and how many packets it has.
    runs: Vec<(usize, usize)>,
}

// SAFETY: the addresses in it are written and used within one call of a method, by the thread that makes it.
unsafe impl Send for List {}

impl std::fmt::Debug for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("List").finish_non_exhaustive()
    }
}

impl List {
    /// Sends all packets as one message.
    fn message(&mut self, socket: RawFd, packets: &[Packet<'_>]) -> io::Result<usize> {
        self.pieces.clear();
        for packet in packets {
            self.gather(packet, 0);
        }
        let sent = if let [piece] = self.pieces[..] {
            // SAFETY: the piece lies in `packets`, which are borrowed for the call.
            unsafe { libc::send(socket, piece.iov_base, piece.iov_len, libc::MSG_NOSIGNAL) }
        } else {
            let head = self.head(0..self.pieces.len());
            // SAFETY: the pieces lie in `packets`, and these and the list are borrowed for the call.
            unsafe { libc::sendmsg(socket, &raw const head, libc::MSG_NOSIGNAL) }
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(packets.len()) }
    }

    /// Sends each run of packets as a message: how many packets were sent.
    fn messages<'a>(
        &mut self,
        socket: RawFd,
        runs: impl Iterator<Item = &'a [Packet<'a>]>,
    ) -> io::Result<usize> {
        self.pieces.clear();
        self.messages.clear();
        self.runs.clear();
        // Pieces move while they are gathered: the messages get their addresses afterwards.
        for run in runs {
            let from = self.pieces.len();
            for packet in run {
                self.gather(packet, from);
            }
            self.runs.push((from, run.len()));
        }
        for index in 0..self.runs.len() {
            let (from, _) = self.runs[index];
            let to = self.runs.get(index + 1).map_or(self.pieces.len(), |(next, _)| *next);
            let msg_hdr = self.head(from..to);
            self.messages.push(libc::mmsghdr { msg_hdr, msg_len: 0 });
        }
        let count = self.messages.len() as libc::c_uint;
        // SAFETY: the pieces lie in the runs, and these and the list are borrowed for the call; the kernel writes lengths
        // into as many messages as there are.
        let sent = unsafe { libc::sendmmsg(socket, self.messages.as_mut_ptr(), count, libc::MSG_NOSIGNAL) };
        let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
        Ok(self.runs[..sent].iter().map(|(_, packets)| packets).sum())
    }

    /// A message of these pieces, without address and control message.
    fn head(&mut self, pieces: Range<usize>) -> libc::msghdr {
        // SAFETY: all zeroes is a valid msghdr: no address, no pieces, no control message.
        let mut head: libc::msghdr = unsafe { zeroed() };
        // Of the whole list: a reference to a part of it would end what the pointers of other messages may be used for.
        head.msg_iov = self.pieces.as_mut_ptr().wrapping_add(pieces.start);
        head.msg_iovlen = pieces.len();
        head
    }

    /// Adds a packet's bytes; pieces that touch, from `from` on, become one.
    fn gather(&mut self, packet: &Packet<'_>, from: usize) {
        for bytes in [packet.prefix, packet.body] {
            match self.pieces[from..].last_mut() {
                Some(last) if last.iov_base.addr() + last.iov_len == bytes.as_ptr().addr() => {
                    last.iov_len += bytes.len();
                }
                _ if bytes.is_empty() => {}
                _ => {
                    let iov_base = bytes.as_ptr().cast_mut().cast();
                    self.pieces.push(libc::iovec { iov_base, iov_len: bytes.len() });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
