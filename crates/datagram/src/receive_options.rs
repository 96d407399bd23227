//! Options of a listening socket: requested values, and the values that the kernel grants.

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

/// Joins the multicast group at an address, if it is one, through the interface that has `interface` as an
/// address of either family. `None` means the zone of an IPv6 group, or else leaves the choice to the system.
pub fn join_group(socket: &UdpSocket, at: SocketAddr, interface: Option<IpAddr>) -> io::Result<()> {
    let group = at.ip();
    if !group.is_multicast() {
        return Ok(());
    }
    let zone = if let SocketAddr::V6(at) = at { at.scope_id() } else { 0 };
    let index = interface.map_or(Ok(zone), interface_with)?;
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

/// Returns the number of the interface that has this address.
fn interface_with(address: IpAddr) -> io::Result<u32> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: the new list is only read, and freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut next, mut index) = (first, 0);
    while !next.is_null() && index == 0 {
        // SAFETY: a member of the list, which lives until it is freed.
        let member = unsafe { &*next };
        // SAFETY: an address of the list is null, or one of its family.
        if unsafe { address_at(member.ifa_addr) } == Some(address.to_canonical()) {
            // SAFETY: names in the list end with a NUL.
            index = unsafe { libc::if_nametoindex(member.ifa_name) };
        }
        next = member.ifa_next;
    }
    // SAFETY: it was allocated above, and nothing points to it any more.
    unsafe { libc::freeifaddrs(first) };
    let missing = || io::Error::other(format!("no interface of this machine has the address {address}"));
    if index == 0 { Err(missing()) } else { Ok(index) }
}
