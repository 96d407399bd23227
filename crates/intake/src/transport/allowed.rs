//! The senders from which a recorder takes packets and connections: named addresses and networks, everybody,
//! or the first that send good ones.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

/// The senders from which packets and connections are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Allowed {
    /// Senders of the first packets that belong to the stream.
    #[default]
    First,
    /// Senders with these addresses.
    Named(Vec<SenderNetwork>),
    /// All senders.
    Any,
}

impl Allowed {
    /// Returns true if the user named this address. IPv4 addresses are the same in either notation
    /// (`::ffff:10.0.0.1`).
    pub fn names(&self, address: IpAddr) -> bool {
        let Allowed::Named(named) = self else { return false };
        named.iter().any(|network| network.contains(address))
    }
}

/// An address, or all addresses that begin with the same bits: `10.0.0.2`, `10.0.0.0/24`, `fd00::/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderNetwork {
    address: IpAddr,
    /// Number of leading bits that all its addresses have in common.
    prefix: u32,
}

/// Leading bits of an IPv6 address that maps an IPv4 address.
const MAPPED_PREFIX: u32 = 96;

impl SenderNetwork {
    /// The network of all addresses that share their first `prefix` bits with `address`.
    ///
    /// # Errors
    /// If `prefix` exceeds the bits of the address, or if bits behind the prefix are set: the network would
    /// be ambiguous.
    pub fn new(address: IpAddr, prefix: u32) -> Result<Self, String> {
        let written = format!("{address}/{prefix}");
        let canonical = address.to_canonical();
        let prefix = if canonical == address { Some(prefix) } else { prefix.checked_sub(MAPPED_PREFIX) };
        let bits = address_bits(canonical);
        let prefix = prefix.filter(|prefix| *prefix <= bits).ok_or_else(|| {
            format!("`{written}`: a network has an address and 0 to {bits} bits of it, such as 10.0.0.0/24")
        })?;
        let network = SenderNetwork { address: canonical, prefix };
        let begin = network.begin();
        if begin != canonical {
            return Err(format!("`{written}`: that network begins at {begin}: write {begin}/{prefix}"));
        }
        Ok(network)
    }

    /// Returns true if the network contains this address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4()
            && masked(address, self.prefix) == masked(self.address, self.prefix)
    }

    /// Returns true if the network contains all addresses of `other`.
    pub fn includes(&self, other: &SenderNetwork) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }

    /// The lowest address of the network.
    fn begin(&self) -> IpAddr {
        let bits = masked(self.address, self.prefix);
        match self.address {
            IpAddr::V4(_) => IpAddr::V4((bits as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(bits.into()),
        }
    }
}

fn address_bits(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address as a number, with the bits behind the prefix set to 0.
fn masked(address: IpAddr, prefix: u32) -> u128 {
    let number = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let behind = address_bits(address) - prefix;
    number.checked_shr(behind).and_then(|kept| kept.checked_shl(behind)).unwrap_or(0)
}

/// Reads an address. A link-local one of IPv6 may have a zone (`fe80::1%eth0`): the address at which packets arrive
/// names the interface, so the zone selects nothing here.
fn address_in(text: &str) -> Option<IpAddr> {
    let Some((address, zone)) = text.split_once('%') else { return text.parse().ok() };
    let address: Ipv6Addr = address.parse().ok()?;
    (address.is_unicast_link_local() && !zone.is_empty()).then_some(address.into())
}

impl From<IpAddr> for SenderNetwork {
    fn from(address: IpAddr) -> Self {
        let address = address.to_canonical();
        SenderNetwork { address, prefix: address_bits(address) }
    }
}

impl FromStr for SenderNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}`: write an address or a network, such as 10.0.0.2 or 10.0.0.0/24");
        let Some((address, prefix)) = text.split_once('/') else {
            return address_in(text).map(SenderNetwork::from).ok_or_else(wrong);
        };
        let address = address_in(address).ok_or_else(wrong)?;
        SenderNetwork::new(address, prefix.parse().map_err(|_| wrong())?)
    }
}

impl fmt::Display for SenderNetwork {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.prefix == address_bits(self.address) {
            return self.address.fmt(formatter);
        }
        write!(formatter, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> SenderNetwork {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_network_includes_its_parts_and_nothing_larger() {
        let includes = |one: &str, other: &str| network(one).includes(&network(other));
        assert!(includes("10.0.0.0/8", "10.0.2.21") && includes("10.0.2.21", "10.0.2.21"));
        assert!(includes("10.0.0.0/8", "10.0.2.0/24") && !includes("10.0.2.0/24", "10.0.0.0/8"));
        assert!(!includes("10.0.0.0/8", "11.0.2.21") && !includes("0.0.0.0/0", "::1"));
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_alike() {
        for (text, inside, outside) in [
            ("10.0.0.2", "10.0.0.2", "10.0.0.3"),
            ("10.0.0.0/24", "10.0.0.255", "10.0.1.0"),
            ("10.0.0.0/30", "::ffff:10.0.0.3", "10.0.0.4"),
            ("::ffff:10.0.0.0/120", "10.0.0.9", "10.0.1.9"),
            ("::ffff:10.0.0.2", "10.0.0.2", "::1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("::/0", "2001:db8::1", "203.0.113.9"),
            ("::1", "::1", "::2"),
            ("fe80::1%eth0", "fe80::1", "fe80::2"),
            ("fe80::%eth0/10", "fe80::2", "fd00::1"),
        ] {
            let network = network(text);
            assert!(network.contains(address(inside)), "{text} has {inside}");
            assert!(!network.contains(address(outside)), "{text} has not {outside}");
        }
    }

    #[test]
    fn only_those_that_the_user_names_are_named() {
        let named = Allowed::Named(vec![network("10.0.0.2"), network("10.1.0.0/16")]);
        assert!(named.names(address("10.0.0.2")) && named.names(address("10.1.9.9")));
        assert!(!named.names(address("10.0.0.3")));
        assert!(!Allowed::First.names(address("10.0.0.2")) && !Allowed::Any.names(address("10.0.0.2")));
    }

    #[test]
    fn a_network_reads_back_as_it_is_shown() {
        for text in ["10.0.0.2", "10.0.0.0/24", "fd00::/8", "::1", "0.0.0.0/0"] {
            assert_eq!(network(text).to_string(), text);
        }
    }

    #[test]
    fn what_names_no_network_is_refused_with_what_to_write() {
        for (text, said) in [
            ("10.0.0.5/24", "write 10.0.0.0/24"),
            ("10.0.0.0/33", "0 to 32 bits"),
            ("::ffff:10.0.0.0/24", "0 to 32 bits"),
            ("fd00::/129", "0 to 128 bits"),
            ("detector", "10.0.0.0/24"),
            ("fe80::1%", "10.0.0.0/24"),
            ("10.0.0.2%eth0", "10.0.0.0/24"),
            ("10.0.0.0/", "10.0.0.0/24"),
            ("10.0.0.0/-1", "10.0.0.0/24"),
            ("", "10.0.0.2"),
        ] {
            let error = text.parse::<SenderNetwork>().expect_err(text);
            assert!(error.contains(said), "{error}");
        }
    }
}
