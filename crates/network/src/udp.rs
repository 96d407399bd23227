//! The two ends of a flow of UDP: packets at a rate, numbered.

use std::{
    io::{self, ErrorKind},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    thread,
    time::Duration,
};

use nilometer_model::{DatagramCounts, FlowEnd, Nanos};
use nix::sys::socket::{getsockopt, sockopt::IpMtu};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};

use crate::{part::Span, tcp::is_for_later};

/// A packet begins with what it belongs to and its number.
const HEADER: usize = 16;
/// Bytes of the headers of IP, version 4, and UDP.
const HEADERS: usize = 28;
/// A packet over version 6, of which the kernel is not asked how long it may be: what an Ethernet without jumbo frames takes.
const PACKET_SIX: usize = 1500 - 48;
/// Packets are no longer than fit jumbo frames, as detectors and VLBI send them; the loopback could do more.
const PACKET_MAX: usize = 8972;
/// Room for packets that wait for the receiver, as the recorder asks for.
const ROOM: usize = 32 << 20;
/// Who is ahead by more sleeps; by less, it waits awake.
const AHEAD: Nanos = Nanos(200_000);
/// A flow is over when nothing came for so long behind the end of the span.
const QUIET: Nanos = Nanos::from_millis(300);
const LOOK: Duration = Duration::from_millis(20);

/// Where packets come.
pub(crate) fn inlet(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(at)?;
    // More than the system's limit is given to root only.
    set_socket_recv_buffer_size_force(&socket, ROOM)
        .or_else(|_| set_socket_recv_buffer_size(&socket, ROOM))?;
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

/// Where they leave.
pub(crate) fn outlet(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    Ok(socket)
}

/// The longest packet that the way there takes whole.
fn packet_size(socket: &UdpSocket) -> io::Result<usize> {
    if socket.local_addr()?.is_ipv6() {
        return Ok(PACKET_SIX);
    }
    let mtu = usize::try_from(getsockopt(socket, IpMtu)?).unwrap_or(0);
    Ok(mtu.saturating_sub(HEADERS).clamp(HEADER, PACKET_MAX))
}

/// Sends at so many bytes a second until the end of the span.
pub(crate) fn send(socket: &UdpSocket, flow: usize, trial: u64, rate: u64, span: Span) -> FlowEnd {
    let mut end = FlowEnd { flow, ..FlowEnd::default() };
    end.failed =
        push(socket, &mut end, trial, rate, span).err().map(|error| format!("sending failed: {error}"));
    end
}

fn push(socket: &UdpSocket, end: &mut FlowEnd, trial: u64, rate: u64, span: Span) -> io::Result<()> {
    let mut packet = vec![0x5a; packet_size(socket)?];
    packet[..8].copy_from_slice(&trial.to_be_bytes());
    let mut sent: u64 = 0;
    span.wait();
    loop {
        let due = span.from + due(sent * packet.len() as u64, rate);
        if due >= span.until {
            break;
        }
        await_due(span, due);
        let now = span.clock.now();
        if now >= span.until {
            break;
        }
        packet[8..HEADER].copy_from_slice(&sent.to_be_bytes());
        match socket.send(&packet) {
            Ok(bytes) => end.bytes += bytes as u64,
            // What is not taken is lost; nobody listens any more where the other end has failed.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
        sent += 1;
        end.last = now.since(span.from);
        end.packets = Some(DatagramCounts { packets: sent, reordered: 0 });
    }
    Ok(())
}

/// When so many bytes have left.
fn due(bytes: u64, rate: u64) -> Nanos {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
    Nanos(nanos.min(u128::from(u64::MAX / 2)) as u64)
}

fn await_due(span: Span, due: Nanos) {
    loop {
        let left = due.since(span.clock.now());
        match left {
            Nanos(0) => return,
            left if left > AHEAD => thread::sleep(left.since(AHEAD).duration()),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Receives until nothing comes any more.
pub(crate) fn receive(socket: &UdpSocket, flow: usize, trial: u64, span: Span) -> FlowEnd {
    let mut end = FlowEnd { flow, packets: Some(DatagramCounts::default()), ..FlowEnd::default() };
    end.failed = pull(socket, &mut end, trial, span).err().map(|error| format!("receiving failed: {error}"));
    end
}

fn pull(socket: &UdpSocket, end: &mut FlowEnd, trial: u64, span: Span) -> io::Result<()> {
    let mut packet = vec![0; PACKET_MAX + 1];
    let mut next = 0;
    let mut counts = DatagramCounts::default();
    loop {
        let number = match socket.recv(&mut packet) {
            Ok(length) => number(&packet[..length], trial).map(|number| (number, length)),
            Err(error) if is_for_later(&error) => None,
            Err(error) => return Err(error),
        };
        let now = span.clock.now();
        let Some((number, length)) = number else {
            let quiet_since = span.until.max(span.from + end.last);
            match now.since(quiet_since) >= QUIET {
                true if counts.packets == 0 => {
                    return Err(io::Error::new(ErrorKind::TimedOut, "no packet came"));
                }
                true => return Ok(()),
                false => continue,
            }
        };
        counts.packets += 1;
        counts.reordered += u64::from(number < next);
        next = next.max(number.saturating_add(1));
        end.bytes += length as u64;
        end.last = now.since(span.from);
        end.packets = Some(counts);
    }
}

/// The number of a packet; none of a stranger's.
fn number(packet: &[u8], trial: u64) -> Option<u64> {
    let of_trial: [u8; 8] = packet.get(..8)?.try_into().ok()?;
    let number: [u8; 8] = packet.get(8..HEADER)?.try_into().ok()?;
    (u64::from_be_bytes(of_trial) == trial).then(|| u64::from_be_bytes(number))
}
