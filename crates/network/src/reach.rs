//! The addresses of a machine, and the choice of one of them.

use std::{
    io,
    net::{IpAddr, Ipv6Addr},
};

use nix::{
    ifaddrs::getifaddrs,
    net::if_::InterfaceFlags,
    sys::socket::{SockaddrIn6, SockaddrStorage},
};

use nilometer_model::Subnet;

/// The addresses of this machine's interfaces that are up, without loopback and link-local ones.
pub(crate) fn addresses() -> io::Result<Vec<IpAddr>> {
    let mut found = Vec::new();
    for interface in getifaddrs()? {
        // Interfaces without a carrier are bridges without ports, with the same address on each machine.
        let is_up = interface.flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING);
        let is_loopback = interface.flags.contains(InterfaceFlags::IFF_LOOPBACK);
        let address = interface.address.as_ref().and_then(address_of);
        found.extend(address.filter(|_| is_up && !is_loopback));
    }
    Ok(found)
}

fn address_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let of_four = address.as_sockaddr_in().filter(|address| !address.ip().is_link_local());
    let of_four = of_four.map(|address| IpAddr::V4(address.ip()));
    let of_six = || address.as_sockaddr_in6().map(SockaddrIn6::ip).filter(|address| !is_of_link(address));
    of_four.or_else(|| of_six().map(IpAddr::V6))
}

/// A link-local address means nothing without an interface.
fn is_of_link(address: &Ipv6Addr) -> bool {
    address.is_unicast_link_local()
}

/// The first of a machine's addresses in the network; without a network, the first of all.
pub(crate) fn chosen(addresses: &[IpAddr], network: Option<Subnet>) -> Option<IpAddr> {
    addresses.iter().copied().find(|address| network.is_none_or(|network| network.holds(*address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_that_is_named_decides() {
        let all: Vec<IpAddr> =
            ["192.168.1.5", "10.1.0.5"].map(|text| text.parse().expect("an address")).into();
        let in_network = |text: &str| chosen(&all, Some(text.parse().expect("a network")));
        assert_eq!(chosen(&all, None), Some(all[0]));
        assert_eq!(in_network("10.0.0.0/8"), Some(all[1]));
        assert_eq!(in_network("172.16.0.0/12"), None);
    }
}
