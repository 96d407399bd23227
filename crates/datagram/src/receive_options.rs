//! What is asked of a socket that listens, and what the kernel really gave.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    ptr,
};

use libc::c_int;

use crate::{
    batch::address_at,
    options::{get, get_all, set},
};

/// Asks for room for packets that wait, beyond the limit of the system where this user may; what the kernel gave. It
/// counts its own bookkeeping in, so it grants twice what is asked.
pub fn receive_room(socket: &UdpSocket, bytes: u64) -> io::Result<u64> {
    let wished = c_int::try_from(bytes / 2).unwrap_or(c_int::MAX);
    if set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, wished).is_err() {
        set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, wished)?;
    }
    get(socket, libc::SOL_SOCKET, libc::SO_RCVBUF).map(|given| u64::from(given.cast_unsigned()))
}

/// Packets of one sender come joined to one message (UDP GRO), where the kernel can.
pub fn join_segments(socket: &UdpSocket) -> bool {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
}

/// Each message says how many were dropped before it.
pub fn count_drops(socket: &UdpSocket) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)
}

/// How many were dropped since the socket was opened; it wraps. None where the kernel does not say (before Linux 4.12).
pub fn drops(socket: &UdpSocket) -> Option<u32> {
    let values: [c_int; MEMINFO] = get_all(socket, libc::SOL_SOCKET, libc::SO_MEMINFO).ok()?;
    values.last().map(|dropped| dropped.cast_unsigned())
}

/// The numbers of `SO_MEMINFO` up to that of drops.
const MEMINFO: usize = libc::SK_MEMINFO_DROPS as usize + 1;

/// Asks the network card itself for packets for so many microseconds before it sleeps.
pub fn busy_poll(socket: &UdpSocket, microseconds: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, microseconds.cast_signed())
}

/// Joins the group that an address means, if it is one, by the interface that has this address of either family; by the
/// system's choice if none is named.
pub fn join_group(socket: &UdpSocket, at: SocketAddr, interface: Option<IpAddr>) -> io::Result<()> {
    let group = at.ip();
    if !group.is_multicast() {
        return Ok(());
    }
    let index = interface.map_or(Ok(0), interface_with)?;
    match group {
        IpAddr::V4(group) => {
            let address = |address: Ipv4Addr| libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) };
            let imr_multiaddr = address(group);
            let imr_address = address(Ipv4Addr::UNSPECIFIED);
            let request = libc::ip_mreqn { imr_multiaddr, imr_address, imr_ifindex: index.cast_signed() };
            set(socket, libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, request)
        }
        IpAddr::V6(group) => socket.join_multicast_v6(&group, index),
    }
}

/// The number of the interface that has this address.
fn interface_with(address: IpAddr) -> io::Result<u32> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: the list that is made is only read, and given back below.
    if unsafe { libc::getifaddrs(&raw mut first) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut next, mut index) = (first, 0);
    while !next.is_null() && index == 0 {
        // SAFETY: a member of the list, which is there until it is given back.
        let member = unsafe { &*next };
        // SAFETY: an address of the list is null, or one of its family.
        if unsafe { address_at(member.ifa_addr) } == Some(address.to_canonical()) {
            // SAFETY: names in the list end with a NUL.
            index = unsafe { libc::if_nametoindex(member.ifa_name) };
        }
        next = member.ifa_next;
    }
    // SAFETY: it was made above, and nothing points to it any more.
    unsafe { libc::freeifaddrs(first) };
    let missing = || io::Error::other(format!("no interface of this machine has the address {address}"));
    if index == 0 { Err(missing()) } else { Ok(index) }
}
