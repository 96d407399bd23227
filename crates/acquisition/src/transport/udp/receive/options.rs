//! What is asked of a socket that listens, and what the kernel really gave.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
};

use libc::c_int;

use super::super::options::{get, get_all, set};

/// Asks for room for packets that wait, beyond the limit of the system where this user may; what the kernel gave. It
/// counts its own bookkeeping in, so it grants twice what is asked.
pub(super) fn receive_room(socket: &UdpSocket, bytes: u64) -> io::Result<u64> {
    let wished = c_int::try_from(bytes / 2).unwrap_or(c_int::MAX);
    if set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, wished).is_err() {
        set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, wished)?;
    }
    get(socket, libc::SOL_SOCKET, libc::SO_RCVBUF).map(|given| u64::from(given.cast_unsigned()))
}

/// Packets of one sender come joined to one message (UDP GRO), where the kernel can.
pub(super) fn join_segments(socket: &UdpSocket) -> bool {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
}

/// Each message says how many were dropped before it.
pub(super) fn count_drops(socket: &UdpSocket) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)
}

/// How many were dropped since the socket was opened; it wraps. None where the kernel does not say (before Linux 4.12).
pub(super) fn drops(socket: &UdpSocket) -> Option<u32> {
    let values: [c_int; MEMINFO] = get_all(socket, libc::SOL_SOCKET, libc::SO_MEMINFO).ok()?;
    values.last().map(|dropped| dropped.cast_unsigned())
}

/// The numbers of `SO_MEMINFO` up to that of drops.
const MEMINFO: usize = libc::SK_MEMINFO_DROPS as usize + 1;

/// Asks the network card itself for packets for so many microseconds before it sleeps.
pub(super) fn busy_poll(socket: &UdpSocket, microseconds: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, microseconds.cast_signed())
}

/// Joins the group that an address means, if it is one.
pub(super) fn join_group(socket: &UdpSocket, at: SocketAddr, interface: Option<IpAddr>) -> io::Result<()> {
    match at.ip() {
        IpAddr::V4(group) if group.is_multicast() => {
            let interface = match interface {
                Some(IpAddr::V4(interface)) => interface,
                _ => Ipv4Addr::UNSPECIFIED,
            };
            socket.join_multicast_v4(&group, &interface)
        }
        IpAddr::V6(group) if group.is_multicast() => socket.join_multicast_v6(&group, 0),
        _ => Ok(()),
    }
}
