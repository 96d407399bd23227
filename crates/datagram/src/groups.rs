//! Multicast groups that a socket joins, each from any source or from a single one.

use std::{
    io,
    mem::zeroed,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    ptr,
};

use libc::{c_int, sockaddr_storage};

use crate::{batch::address_at, options::set};

/// A multicast group to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupMembership {
    /// The group. The port does not matter; an IPv6 zone names the interface.
    pub group: SocketAddr,
    /// The only source of packets that the socket takes (RFC 4607); `None` for any source.
    pub source: Option<IpAddr>,
}

/// The request of `MCAST_JOIN_SOURCE_GROUP` (RFC 3678, section 5.1): one layout for IPv4 and IPv6.
#[repr(C)]
#[derive(Clone, Copy)]
struct SourceRequest {
    interface: u32,
    group: sockaddr_storage,
    source: sockaddr_storage,
}

/// Joins a multicast group through the interface that has `interface` as an address of either family. `None`
/// means the zone of an IPv6 group, or else leaves the choice to the system.
///
/// # Errors
/// No interface has the address, the source is of another family, or the kernel refuses.
pub fn join_group(
    socket: &UdpSocket,
    membership: &GroupMembership,
    interface: Option<IpAddr>,
) -> io::Result<()> {
    let GroupMembership { group: at, source } = *membership;
    let zone = if let SocketAddr::V6(at) = at { at.scope_id() } else { 0 };
    let index = interface.map_or(Ok(zone), interface_with)?;
    if let Some(source) = source {
        return join_source(socket, at, source, index);
    }
    match at.ip() {
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

fn join_source(socket: &UdpSocket, group: SocketAddr, source: IpAddr, index: u32) -> io::Result<()> {
    if group.is_ipv4() != source.is_ipv4() {
        return Err(io::Error::other(format!("{source} is of another family than the group {}", group.ip())));
    }
    let request =
        SourceRequest { interface: index, group: stored(group), source: stored(SocketAddr::new(source, 0)) };
    set(socket, level(group), libc::MCAST_JOIN_SOURCE_GROUP, request)
}

/// Makes a socket take packets of the groups that it joined itself only. By default Linux also gives it those
/// of groups that any other socket of this machine joined.
///
/// # Errors
/// The kernel has no such option.
pub fn only_own_groups(socket: &UdpSocket, at: SocketAddr) -> io::Result<()> {
    let option = if at.is_ipv4() { libc::IP_MULTICAST_ALL } else { libc::IPV6_MULTICAST_ALL };
    set::<c_int>(socket, level(at), option, 0)
}

fn level(at: SocketAddr) -> c_int {
    if at.is_ipv4() { libc::IPPROTO_IP } else { libc::IPPROTO_IPV6 }
}

/// An address in the layout of the kernel.
fn stored(at: SocketAddr) -> sockaddr_storage {
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut storage: sockaddr_storage = unsafe { zeroed() };
    let place = &raw mut storage;
    match at {
        SocketAddr::V4(at) => {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: at.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(at.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage is as large and as aligned as an address of any family.
            unsafe { place.cast::<libc::sockaddr_in>().write(address) };
        }
        SocketAddr::V6(at) => {
            let address = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: at.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: at.ip().octets() },
                sin6_scope_id: at.scope_id(),
            };
            // SAFETY: the storage is as large and as aligned as an address of any family.
            unsafe { place.cast::<libc::sockaddr_in6>().write(address) };
        }
    }
    storage
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A socket for groups at a free port, which joins these through loopback.
    fn joined(of: &[(&str, Option<&str>)]) -> UdpSocket {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
        let at = socket.local_addr().expect("it is bound");
        only_own_groups(&socket, at).expect("Linux has the option");
        for (group, source) in of {
            let group = SocketAddr::new(group.parse().expect("an address"), 0);
            let source = source.map(|source| source.parse().expect("an address"));
            let home = Some(Ipv4Addr::LOCALHOST.into());
            join_group(&socket, &GroupMembership { group, source }, home).expect("loopback takes part");
        }
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("above zero");
        socket
    }

    /// Sends a byte to a group from an address of loopback, by the loopback interface.
    fn send(from: [u8; 4], group: &str, port: u16, byte: u8) {
        let socket = UdpSocket::bind((Ipv4Addr::from(from), 0)).expect("an address of loopback");
        let address = libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) };
        set(&socket, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, address).expect("loopback is there");
        socket.send_to(&[byte], (group, port)).expect("loopback takes it");
    }

    fn next(socket: &UdpSocket) -> u8 {
        let mut byte = [0];
        socket.recv(&mut byte).expect("a packet within five seconds");
        byte[0]
    }

    #[test]
    fn a_socket_takes_the_groups_it_joined_and_no_others() {
        let several = joined(&[("239.255.77.11", None), ("239.255.77.12", None)]);
        let other = joined(&[("239.255.77.13", None)]);
        let port = several.local_addr().expect("it is bound").port();
        for (group, byte) in [("239.255.77.13", 3), ("239.255.77.11", 1), ("239.255.77.12", 2)] {
            send([127, 0, 0, 1], group, port, byte);
        }
        // Loopback keeps the order: the packet to the third group would be the first.
        assert_eq!([next(&several), next(&several)], [1, 2]);
        send([127, 0, 0, 1], "239.255.77.13", other.local_addr().expect("it is bound").port(), 4);
        assert_eq!(next(&other), 4);
    }

    #[test]
    fn of_a_group_with_a_source_only_its_packets_come() {
        let socket = joined(&[("232.1.77.1", Some("127.0.0.2"))]);
        let port = socket.local_addr().expect("it is bound").port();
        send([127, 0, 0, 1], "232.1.77.1", port, 1);
        send([127, 0, 0, 2], "232.1.77.1", port, 2);
        assert_eq!(next(&socket), 2);
        let group = "232.1.77.1:0".parse().expect("an address");
        let wrong = GroupMembership { group, source: Some("::1".parse().expect("an address")) };
        let error = join_group(&socket, &wrong, None).expect_err("two families").to_string();
        assert!(error.contains("another family"), "{error}");
    }
}
