//! Options of a listening socket: requested values, and the values that the kernel grants.

use std::{io, net::UdpSocket};

use libc::c_int;

use crate::options::{get, get_all, set};

/// Requests a receive buffer, beyond the limit of the system if this user may. Returns the size granted. The
/// kernel includes its own bookkeeping, so it grants twice the number passed to it.
pub fn receive_room(socket: &UdpSocket, bytes: u64) -> io::Result<u64> {
    let wished = c_int::try_from(bytes / 2).unwrap_or(c_int::MAX);
    if set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, wished).is_err() {
        set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, wished)?;
    }
    get(socket, libc::SOL_SOCKET, libc::SO_RCVBUF).map(|given| u64::from(given.cast_unsigned()))
}

/// Joins packets of one sender into one message (UDP GRO). Returns true if the kernel can.
pub fn join_segments(socket: &UdpSocket) -> bool {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
}

/// Makes each message report the number of packets dropped before it.
pub fn count_drops(socket: &UdpSocket) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)
}

/// Returns the packets dropped since the socket was opened; it wraps. `None` if the kernel does not report it
/// (before Linux 4.12).
pub fn drops(socket: &UdpSocket) -> Option<u32> {
    let values: [c_int; MEMINFO] = get_all(socket, libc::SOL_SOCKET, libc::SO_MEMINFO).ok()?;
    values.last().map(|dropped| dropped.cast_unsigned())
}

/// The numbers of `SO_MEMINFO` up to that of drops.
const MEMINFO: usize = libc::SK_MEMINFO_DROPS as usize + 1;

/// Polls the network card for packets for this many microseconds before the thread sleeps.
pub fn busy_poll(socket: &UdpSocket, microseconds: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, microseconds.cast_signed())
}
