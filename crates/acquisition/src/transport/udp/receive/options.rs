//! What is asked of a socket that listens, and what the kernel really gave.

use std::{
    io,
    mem::size_of_val,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    os::fd::AsRawFd,
};

use libc::c_int;

/// Sets an option whose value is plain memory.
fn set<T: Copy>(socket: &UdpSocket, level: c_int, name: c_int, value: T) -> io::Result<()> {
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value`, which is alive for the whole call.
    let returned =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads an option that is a number.
fn get(socket: &UdpSocket, level: c_int, name: c_int) -> io::Result<c_int> {
    let mut value: c_int = 0;
    let mut length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `value`, and the length back.
    let returned = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length)
    };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

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
