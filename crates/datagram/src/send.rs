//! Sends packets over UDP with as few calls as possible, and no copy except the kernel's.
//!
//! Consecutive packets of one size go as one message that the kernel, or the network card, cuts (UDP GSO). If
//! that is not possible, many messages go with one call (`sendmmsg`). The kernel gathers prefix and body of a
//! packet from their places in memory.

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

/// The options of an outlet.
#[derive(Debug, Clone)]
pub struct Sending {
    /// The socket buffer for packets that wait for the network. Only root gets more than the system's limit.
    pub room: Bytes,
    /// Routers that a packet to a multicast group may pass. The default is 1, the group's own network.
    pub hops: Option<u8>,
    /// The interface through which packets to a multicast group leave, by name; `None` leaves the choice to
    /// the system.
    pub interface: Option<String>,
    /// Let the kernel cut large messages if it can.
    pub segments: bool,
}

impl Default for Sending {
    fn default() -> Self {
        Sending { room: Bytes(8 << 20), hops: None, interface: None, segments: true }
    }
}

/// The counters of an outlet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Packets handed to the network.
    pub packets: u64,
    /// Their bytes, without the headers of the network.
    pub bytes: u64,
    /// Times that the other host reported that nobody listens there.
    pub refused: u64,
    /// Packets that the network did not take: no route, or no room.
    pub unsent: u64,
    /// Datagrams received in answer, and dropped.
    pub answers: u64,
    /// Send calls to the kernel.
    pub calls: u64,
}

impl Sent {
    /// Adds the counters of another outlet.
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

    /// Returns the rate of sent bytes over `time`.
    pub fn rate(&self, time: Nanos) -> ByteRate {
        ByteRate::of(self.bytes, time)
    }
}

/// The most packets that the kernel cuts from one message (`UDP_MAX_SEGMENTS` of Linux 4.18; later kernels
/// take 128).
const SEGMENTS_MAX: usize = 64;
/// The most bytes of a message: an IPv4 packet without its header and UDP's.
const MESSAGE_MAX: usize = 65_535 - 20 - 8;
/// Messages per call if the kernel cuts none.
const MESSAGES_MAX: usize = 64;
/// Messages per call if the kernel cuts them.
const RUNS_MAX: usize = 4;
/// Calls between two checks for answers.
const CALLS_PER_LOOK: u64 = 64;
/// The most answers dropped per check, and the most refusals tolerated for one message.
const ANSWERS_MAX: usize = 64;
const REFUSALS_MAX: u32 = 8;

/// One connected socket.
#[derive(Debug)]
pub struct UdpOutlet {
    socket: UdpSocket,
    to: SocketAddr,
    room: Bytes,
    cuts: bool,
    /// The size at which the kernel cuts a message, in bytes; 0 for no cuts.
    segment: usize,
    list: List,
    sent: Sent,
}

impl UdpOutlet {
    /// Connects to the destination. It sends nothing yet, and nobody needs to listen there.
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

    /// Returns the destination.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Returns the socket, to query it.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Returns true if the kernel seems to cut messages into packets. The route may turn out not to
    /// support it.
    pub fn cuts(&self) -> bool {
        self.cuts
    }

    /// Sends these packets in order. You may change their bytes as soon as it returns.
    ///
    /// # Errors
    /// Errors that would affect every packet. Faults of the network are counted instead.
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

    /// Returns the most packets of this size that leave with one call.
    pub fn burst(&self, packet_size: usize) -> usize {
        let of_message = (MESSAGE_MAX / packet_size.max(1)).clamp(1, SEGMENTS_MAX);
        if self.cuts { of_message * RUNS_MAX } else { MESSAGES_MAX }
    }

    /// Returns the bytes of packets that may wait for the network: the kernel's grant, including its own
    /// bookkeeping.
    pub fn room(&self) -> u64 {
        self.room.0
    }

    /// Returns the counters so far.
    pub fn totals(&self) -> Sent {
        self.sent
    }

    /// Hands over the first packets, as many as one call takes. Returns their number.
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

    /// Sets the size at which the kernel cuts, if it changes. Streams send packets of one size for hours.
    fn cut_as(&mut self, run: &[Packet<'_>]) -> io::Result<()> {
        if !is_cut_at(self.segment, run) {
            self.segment = if run.len() > 1 { size(&run[0]) } else { 0 };
            set_segment(&self.socket, self.segment)?;
        }
        Ok(())
    }

    /// Handles an error. Returns the number of packets given up, or 0 to try again.
    fn bear(&mut self, error: io::Error, packets: &[Packet<'_>], refusals: &mut u32) -> io::Result<usize> {
        let tried = if self.cuts { run(packets) } else { 1 };
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(0),
            // An earlier packet reached a port where nobody listens; this one was not sent yet.
            Some(libc::ECONNREFUSED) => {
                *refusals += 1;
                self.sent.refused += 1;
                Ok(if *refusals < REFUSALS_MAX { 0 } else { self.give_up(tried) })
            }
            // The route can't carry cut messages: packets beyond its size, or a network card without
            // checksums.
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

    /// Drops received datagrams: some receivers answer now and then.
    fn drop_answers(&mut self) {
        for _ in 0..ANSWERS_MAX {
            // SAFETY: no memory is passed: the kernel drops a datagram with all its bytes.
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

/// Returns the bytes of a packet.
fn size(packet: &Packet<'_>) -> usize {
    packet.prefix.len() + packet.body.len()
}

/// Returns how many packets can go as one message: all of the first one's size, except the last, which may be
/// shorter.
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

/// Splits packets into messages that the kernel cuts at one size, up to the first that needs another.
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

/// Returns true if a kernel that cuts at `segment` sends this run correctly.
fn is_cut_at(segment: usize, run: &[Packet<'_>]) -> bool {
    let size = size(&run[0]);
    if run.len() > 1 { segment == size } else { segment == 0 || size <= segment }
}

/// The lists through which the kernel finds the bytes. Kept only for its memory: between two calls its
/// content is unused.
#[derive(Default)]
struct List {
    pieces: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    /// The first piece of each message, and its number of packets.
    runs: Vec<(usize, usize)>,
}

// SAFETY: the addresses in it are written and used within one call of a method, by the calling thread.
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
            // SAFETY: the piece is in `packets`, which are borrowed for the call.
            unsafe { libc::send(socket, piece.iov_base, piece.iov_len, libc::MSG_NOSIGNAL) }
        } else {
            let head = self.head(0..self.pieces.len());
            // SAFETY: the pieces are in `packets`; these and the list are borrowed for the call.
            unsafe { libc::sendmsg(socket, &raw const head, libc::MSG_NOSIGNAL) }
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(packets.len()) }
    }

    /// Sends each run of packets as a message. Returns the number of packets sent.
    fn messages<'a>(
        &mut self,
        socket: RawFd,
        runs: impl Iterator<Item = &'a [Packet<'a>]>,
    ) -> io::Result<usize> {
        self.pieces.clear();
        self.messages.clear();
        self.runs.clear();
        // Pieces move while they are gathered, so the messages get their addresses afterwards.
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
        // SAFETY: the pieces are in the runs; these and the list are borrowed for the call. The kernel writes
        // one length per message.
        let sent = unsafe { libc::sendmmsg(socket, self.messages.as_mut_ptr(), count, libc::MSG_NOSIGNAL) };
        let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
        Ok(self.runs[..sent].iter().map(|(_, packets)| packets).sum())
    }

    /// Returns a message of these pieces, without address and control message.
    fn head(&mut self, pieces: Range<usize>) -> libc::msghdr {
        // SAFETY: all zeroes is a valid msghdr: no address, no pieces, no control message.
        let mut head: libc::msghdr = unsafe { zeroed() };
        // A pointer into the whole list: a reference to a part of it would invalidate the pointers of other
        // messages.
        head.msg_iov = self.pieces.as_mut_ptr().wrapping_add(pieces.start);
        head.msg_iovlen = pieces.len();
        head
    }

    /// Adds a packet's bytes. Adjacent pieces, from `from` on, become one.
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
