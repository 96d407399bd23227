//! The addresses of a machine with their links, and the choice of one of them.

use std::{
    io,
    net::{IpAddr, Ipv6Addr},
};

use nix::{
    ifaddrs::getifaddrs,
    net::if_::InterfaceFlags,
    sys::socket::{SockaddrIn6, SockaddrStorage},
};

use nilometer_cluster::LinkAddress;
use nilometer_model::{ByteRate, NetworkLink, Subnet};
use nilometer_storage::network::links::links_by_kernel;

/// The addresses of this machine's interfaces that are up, without loopback and link-local ones.
pub(crate) fn addresses() -> io::Result<Vec<LinkAddress>> {
    let links = links_by_kernel();
    let mut found = Vec::new();
    for interface in getifaddrs()? {
        // Interfaces without a carrier are bridges without ports, with the same address on each machine.
        let is_up = interface.flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING);
        let is_loopback = interface.flags.contains(InterfaceFlags::IFF_LOOPBACK);
        let address = interface.address.as_ref().and_then(address_of);
        let speed = card_speed(&links, &interface.interface_name);
        let address = address.filter(|_| is_up && !is_loopback);
        found.extend(address.map(|address| LinkAddress { address, speed }));
    }
    Ok(found)
}

/// The speed of a card or a bond of cards. `None` for other interfaces, whose speed is
/// arbitrary, and if the driver does not report it.
fn card_speed(links: &[NetworkLink], name: &str) -> Option<ByteRate> {
    let link = links.iter().find(|link| link.name == name && link.is_card)?;
    link.speed
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
pub(crate) fn chosen(addresses: &[LinkAddress], network: Option<Subnet>) -> Option<LinkAddress> {
    addresses.iter().copied().find(|of| network.is_none_or(|network| network.holds(of.address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_that_is_named_decides() {
        let all = ["192.168.1.5", "10.1.0.5"]
            .map(|text| LinkAddress { address: text.parse().expect("an address"), speed: None });
        let in_network = |text: &str| chosen(&all, Some(text.parse().expect("a network")));
        assert_eq!(chosen(&all, None), Some(all[0]));
        assert_eq!(in_network("10.0.0.0/8"), Some(all[1]));
        assert_eq!(in_network("172.16.0.0/12"), None);
    }

    #[test]
    fn only_cards_have_a_speed_that_counts() {
        let link = |name: &str, is_card, speed| NetworkLink {
            name: name.into(),
            is_card,
            speed,
            ..NetworkLink::default()
        };
        let speed = Some(ByteRate(1.25e9));
        let links = [link("eth0", true, speed), link("veth0", false, speed), link("eth1", true, None)];
        let found = ["eth0", "veth0", "eth1", "eth2"].map(|name| card_speed(&links, name));
        assert_eq!(found, [speed, None, None, None]);
    }
}
