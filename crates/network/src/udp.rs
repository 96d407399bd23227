//! The two ends of a UDP flow: numbered packets at a fixed rate, many with one call at both ends.

use std::{
    io::{self, ErrorKind},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::fd::AsFd,
    thread,
    time::Duration,
};

use nilometer_datagram::{DatagramBatch, MESSAGES_AT_ONCE, Sending, UdpOutlet, join_segments, receive_room};
use nilometer_model::{Bytes, DatagramCounts, FlowEnd, Nanos};
use nilometer_wire::Packet;
use nix::sys::socket::{getsockopt, sockopt::IpMtu};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::sockopt::{socket_recv_buffer_size, socket_send_buffer_size},
};

use crate::span::Span;

/// Length of a packet's header: the number of its trial, and its own.
const HEADER: usize = 16;
/// Bytes of the headers of IP, version 4, and UDP.
const HEADERS: usize = 28;
/// Length of a packet over version 6, for which it does not ask the kernel: it fits an Ethernet without jumbo
/// frames.
const PACKET_SIX: usize = 1500 - 48;
/// Maximum packet length, which fits jumbo frames, as detectors and VLBI send them. The loopback could do
/// more.
const PACKET_MAX: usize = 8972;
/// Size of the receive buffer, including the kernel's own bookkeeping.
const ROOM: u64 = 64 << 20;
/// Packets of this time leave together: the pace is kept in steps of it.
const STEP: Nanos = Nanos(100_000);
/// A sender that is further ahead than this sleeps, and wakes some ten microseconds late. Packets due by then
/// leave at once. If it is ahead by less, it waits awake.
const AHEAD: Nanos = Nanos(10_000);
/// A flow is over after this much silence behind the end of the span.
const QUIET: Nanos = Nanos::from_millis(300);
const LOOK: Duration = Duration::from_millis(20);
/// While packets arrive, a receiver that has taken all looks again after at most this time, and not at each
/// batch. It looks earlier if packets may fill this part of the kernel's buffer, which is small without
/// privileges.
const NAP: Nanos = Nanos(200_000);
const NAP_SHARE: u64 = 16;
/// Messages of a call if the kernel joins packets to long ones: memory that is written repeatedly stays in
/// the cache.
const LONG_AT_ONCE: usize = 4;

/// Opens a socket that receives packets.
pub(crate) fn inlet(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(at)?;
    receive_room(&socket, ROOM)?;
    // If the kernel does not join packets, they arrive one by one.
    join_segments(&socket);
    Ok(socket)
}

/// Opens a sender with the default buffer size of the system. A sender that is too fast for a link waits for
/// it, as other programs do.
pub(crate) fn outlet(to: SocketAddr) -> io::Result<UdpOutlet> {
    let any = SocketAddr::new(
        if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() },
        0,
    );
    let room = socket_send_buffer_size(UdpSocket::bind(any)?)?;
    UdpOutlet::connect(to, &Sending { room: Bytes(room as u64), ..Sending::default() })
}

/// The longest packet that the path takes without fragmentation.
fn packet_size(socket: &UdpSocket) -> io::Result<usize> {
    if socket.local_addr()?.is_ipv6() {
        return Ok(PACKET_SIX);
    }
    let mtu = usize::try_from(getsockopt(socket, IpMtu)?).unwrap_or(0);
    Ok(mtu.saturating_sub(HEADERS).clamp(HEADER, PACKET_MAX))
}

/// Sends `rate` bytes a second until the end of the span.
pub(crate) fn send(outlet: UdpOutlet, flow: usize, trial: u64, rate: u64, span: Span) -> FlowEnd {
    let mut end = FlowEnd { flow, ..FlowEnd::default() };
    let outcome = packet_size(outlet.socket()).and_then(|size| {
        let most = outlet.burst(size);
        push(outlet, &mut end, &mut PacketRow::new(trial, size, most), PacketPace { rate, span })
    });
    end.failed = outcome.err().map(|error| format!("sending failed: {error}"));
    end
}

/// The times at which packets are due: `rate` bytes a second from the beginning of the span to its end.
#[derive(Debug, Clone, Copy)]
struct PacketPace {
    rate: u64,
    span: Span,
}

impl PacketPace {
    fn due(self, bytes: u64) -> Nanos {
        self.span.from + due(bytes, self.rate)
    }

    /// Number of packets of this size that may leave together after `sent` ones: those of a step that are due
    /// within the span.
    fn together(self, sent: u64, size: usize, most: usize) -> usize {
        let size = size as u64;
        let in_step = due_bytes(STEP, self.rate) / size;
        let left = self.span.until.since(self.due(sent * size));
        let in_span = due_bytes(left, self.rate).div_ceil(size);
        in_step.max(1).min(in_span.max(1)).min(most as u64) as usize
    }
}

/// Packets next to each other in memory, numbered anew for each call.
struct PacketRow {
    bytes: Vec<u8>,
    size: usize,
}

impl PacketRow {
    fn new(trial: u64, size: usize, most: usize) -> Self {
        let mut bytes = vec![0x5a; size * most];
        for packet in bytes.chunks_exact_mut(size) {
            packet[..8].copy_from_slice(&trial.to_be_bytes());
        }
        PacketRow { bytes, size }
    }

    fn most(&self) -> usize {
        self.bytes.len() / self.size
    }

    /// Returns `count` packets, numbered from `first` on.
    fn numbered(&mut self, first: u64, count: usize) -> Vec<Packet<'_>> {
        let packets = self.bytes.chunks_exact_mut(self.size).take(count);
        for (number, packet) in (first..).zip(packets) {
            packet[8..HEADER].copy_from_slice(&number.to_be_bytes());
        }
        let packets = self.bytes.chunks_exact(self.size).take(count);
        packets.map(|body| Packet { prefix: &[], body }).collect()
    }
}

fn push(mut outlet: UdpOutlet, end: &mut FlowEnd, row: &mut PacketRow, pace: PacketPace) -> io::Result<()> {
    let PacketPace { span, .. } = pace;
    let mut sent: u64 = 0;
    span.wait();
    loop {
        let due = pace.due(sent * row.size as u64);
        if due >= span.until {
            return Ok(());
        }
        await_due(span, due);
        let now = span.clock.now();
        if now >= span.until {
            return Ok(());
        }
        let count = pace.together(sent, row.size, row.most());
        // Packets that are not taken are lost. After a failure at the other end, none are taken any more.
        outlet.send(&row.numbered(sent, count))?;
        sent += count as u64;
        let last = pace.due((sent - 1) * row.size as u64);
        end.bytes = outlet.totals().bytes;
        end.last = now.max(last).since(span.from);
        end.packets = Some(DatagramCounts { packets: sent, reordered: 0 });
    }
}

/// Number of bytes due in a time.
fn due_bytes(time: Nanos, rate: u64) -> u64 {
    let bytes = u128::from(time.0) * u128::from(rate) / 1_000_000_000;
    bytes.min(u128::from(u64::MAX / 2)) as u64
}

/// The time after which this many bytes have left.
fn due(bytes: u64, rate: u64) -> Nanos {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
    Nanos(nanos.min(u128::from(u64::MAX / 2)) as u64)
}

fn await_due(span: Span, due: Nanos) {
    loop {
        let left = due.since(span.clock.now());
        match left {
            Nanos(0) => return,
            left if left > AHEAD => thread::sleep(left.duration()),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Receives until no more packets arrive.
pub(crate) fn receive(socket: &UdpSocket, flow: usize, trial: u64, span: Span) -> FlowEnd {
    let mut end = FlowEnd { flow, packets: Some(DatagramCounts::default()), ..FlowEnd::default() };
    end.failed = pull(socket, &mut end, trial, span).err().map(|error| format!("receiving failed: {error}"));
    end
}

fn pull(socket: &UdpSocket, end: &mut FlowEnd, trial: u64, span: Span) -> io::Result<()> {
    let mut batch = DatagramBatch::new();
    let mut came = Arrived::default();
    let mut at_once = MESSAGES_AT_ONCE;
    let room = socket_recv_buffer_size(socket)? as u64;
    loop {
        let asked = at_once;
        let messages = batch.receive(socket, &mut [], 0, asked)?;
        let now = span.clock.now();
        let before = came.counts.packets;
        for packet in (0..messages).flat_map(|message| batch.packets(message)) {
            came.take(packet, trial);
        }
        let is_joined = (0..messages).any(|message| batch.message(message).packets() > 1);
        at_once = if is_joined { LONG_AT_ONCE } else { MESSAGES_AT_ONCE };
        if came.counts.packets > before {
            end.bytes = came.bytes;
            end.last = now.since(span.from);
            end.packets = Some(came.counts);
            if messages < asked {
                thread::sleep(nap(room, came.bytes, now.since(span.from)));
            }
            continue;
        }
        if now.since(span.until.max(span.from + end.last)) >= QUIET {
            return came.is_something();
        }
        if messages == 0 {
            wait(socket)?;
        }
    }
}

/// How long packets may stay in the kernel's buffer of this size, at their mean rate.
fn nap(room: u64, bytes: u64, time: Nanos) -> Duration {
    let share = u128::from(room / NAP_SHARE) * u128::from(time.0) / u128::from(bytes.max(1));
    Nanos(u64::try_from(share).unwrap_or(u64::MAX)).min(NAP).duration()
}

/// Counts of the packets of a trial.
#[derive(Debug, Default)]
struct Arrived {
    counts: DatagramCounts,
    bytes: u64,
    /// The number after the highest one received.
    next: u64,
}

impl Arrived {
    /// Counts a packet, unless it belongs to another trial or sender.
    fn take(&mut self, packet: &[u8], trial: u64) {
        let Some(number) = number(packet, trial) else { return };
        self.counts.packets += 1;
        self.counts.reordered += u64::from(number < self.next);
        self.next = self.next.max(number.saturating_add(1));
        self.bytes += packet.len() as u64;
    }

    fn is_something(&self) -> io::Result<()> {
        if self.counts.packets > 0 {
            Ok(())
        } else {
            Err(io::Error::new(ErrorKind::TimedOut, "no packet came"))
        }
    }
}

/// Waits until a packet arrives, or until it is time to look at the clock.
fn wait(socket: &UdpSocket) -> io::Result<()> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as i64 };
    let mut sockets = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
    match poll(&mut sockets, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The number of a packet. `None` if it belongs to another trial or sender.
fn number(packet: &[u8], trial: u64) -> Option<u64> {
    let of_trial: [u8; 8] = packet.get(..8)?.try_into().ok()?;
    let number: [u8; 8] = packet.get(8..HEADER)?.try_into().ok()?;
    (u64::from_be_bytes(of_trial) == trial).then(|| u64::from_be_bytes(number))
}

#[cfg(test)]
mod tests {
    use nilometer_storage::Clock;

    use super::*;

    const TRIAL: u64 = 7;

    fn span(millis: u64) -> Span {
        let clock = Clock::start();
        let from = clock.now() + Nanos::from_millis(20);
        Span { clock, from, until: from + Nanos::from_millis(millis) }
    }

    fn way() -> (UdpSocket, UdpOutlet) {
        let socket = inlet((Ipv4Addr::LOCALHOST, 0).into()).expect("a port is free");
        let outlet = outlet(socket.local_addr().expect("it is bound")).expect("it listens");
        (socket, outlet)
    }

    #[test]
    fn packets_wait_no_longer_than_the_kernel_has_room_for_them() {
        // The buffer has 400 KiB; a sixteenth of it is filled in 20 us at 1.28 GB/s.
        assert_eq!(nap(409_600, 1_280_000, Nanos(1_000_000)), Duration::from_micros(20));
        assert_eq!(nap(64 << 20, 1_280_000, Nanos(1_000_000)), NAP.duration(), "there is room for more");
        assert_eq!(nap(409_600, 0, Nanos(0)), Duration::ZERO);
    }

    #[test]
    fn packets_leave_in_steps_and_none_behind_the_end() {
        let span = span(10);
        let together = |rate, sent| PacketPace { rate, span }.together(sent, 1000, 176);
        // 1 GB/s: a packet each microsecond, 100 in a step, 10 000 in all.
        assert_eq!([0, 9_899, 9_950, 9_999].map(|sent| together(1_000_000_000, sent)), [100, 100, 50, 1]);
        assert_eq!(together(1_000, 0), 1, "the first of a slow flow is due at once");
        assert_eq!(together(i64::MAX as u64, 1_000_000), 176, "as many as one call takes");
    }

    #[test]
    fn all_packets_of_a_flow_come_in_their_order_and_are_counted_at_both_ends() {
        for rate in [2_000_000, 200_000_000] {
            let (socket, outlet) = way();
            let span = span(1000);
            let (sent, received) = thread::scope(|scope| {
                let receiver = scope.spawn(|| receive(&socket, 3, TRIAL, span));
                (send(outlet, 3, TRIAL, rate, span), receiver.join().expect("it does not panic"))
            });
            assert_eq!((&sent.failed, &received.failed), (&None, &None));
            let [sent_count, came] = [&sent, &received].map(|end| end.packets.expect("they are counted"));
            // A receiver without a processor, and without the privilege for a larger buffer, loses some of
            // the fast packets.
            assert!(came.reordered == 0 && (1..=sent_count.packets).contains(&came.packets), "{came:?}");
            assert!(rate > 2_000_000 || came.packets == sent_count.packets, "{came:?} of {sent_count:?}");
            assert_eq!(received.bytes * sent_count.packets, sent.bytes * came.packets, "all are as long");
            assert_eq!((sent.flow, received.flow), (3, 3));
            // A sender without a processor may send less, and never more.
            assert!(
                sent.bytes > 0 && sent.bytes <= due_bytes(Nanos::from_millis(1000), rate) + 8972,
                "{sent:?}"
            );
        }
    }

    #[test]
    fn what_is_lost_or_overtaken_or_of_others_is_known_by_its_number() {
        let (socket, mut outlet) = way();
        let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let to = socket.local_addr().expect("it is bound");
        let mut row = PacketRow::new(TRIAL, 100, 8);
        // The receiver is still there if this thread gets no processor for some time.
        let span = span(2000);
        thread::scope(|scope| {
            let receiver = scope.spawn(|| receive(&socket, 0, TRIAL, span));
            // Numbers 8 to 15 after 16 to 23, and nothing between 24 and 99.
            for first in [0, 16, 8, 100] {
                outlet.send(&row.numbered(first, 8)).expect("it listens");
            }
            stranger.send_to(&[1; 100], to).expect("sent");
            stranger.send_to(&[], to).expect("sent");
            outlet.send(&PacketRow::new(TRIAL + 1, 100, 2).numbered(200, 2)).expect("it listens");
            let end = receiver.join().expect("it does not panic");
            assert_eq!(end.packets, Some(DatagramCounts { packets: 32, reordered: 8 }), "{end:?}");
            assert_eq!((end.bytes, end.failed), (3200, None));
        });
    }

    #[test]
    fn a_flow_of_which_nothing_comes_has_failed() {
        let (socket, _outlet) = way();
        let end = receive(&socket, 0, TRIAL, span(0));
        assert_eq!(end.failed.as_deref(), Some("receiving failed: no packet came"));
    }
}
