//! `udp://HOST:PORT`, as it is written on the command line.

use std::{
    fmt,
    net::{Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs},
    str::FromStr,
};

use nilometer_datagram::interface_index;

/// An address that packets go to or come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    /// The port, above 0.
    pub port: u16,
}

/// A text that is no address, or an address that no host has.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The text has another form.
    #[error("`{0}`: write udp://HOST:PORT, such as udp://127.0.0.1:46227 or udp://[::1]:46227")]
    Form(String),
    /// The resolver does not know the host.
    #[error("{address}: this machine does not know the host: write another name or an address")]
    Unknown {
        /// The unknown address.
        address: Address,
        /// The resolver's error.
        source: std::io::Error,
    },
    /// A zone that is no interface of this machine.
    #[error("{address}: write the name or the number of an interface of this machine after `%`")]
    Zone {
        /// The address with that zone.
        address: Address,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// A link-local address, which each interface may have, without its zone.
    #[error("{0}: write the interface of this link-local address, as in udp://[fe80::1%eth0]:46227")]
    LinkLocal(Address),
}

/// The beginning of every address.
const SCHEME: &str = "udp://";

impl Address {
    /// Returns true if a text looks like an address and not like a directory.
    pub fn is_meant_by(text: &str) -> bool {
        text.contains("://")
    }

    /// The same host, another port.
    #[must_use]
    pub fn with_port(&self, port: u16) -> Self {
        Address { host: self.host.clone(), port }
    }

    /// Looks the host up and returns the first of its addresses, with its zone if it has one.
    pub fn resolve(&self) -> Result<SocketAddr, AddressError> {
        if let Some((ip, zone)) = self.zone() {
            return Ok(SocketAddr::V6(SocketAddrV6::new(ip, self.port, 0, self.interface(zone)?)));
        }
        let found = self.looked_up()?;
        match found {
            SocketAddr::V6(at) if at.ip().is_unicast_link_local() && at.scope_id() == 0 => {
                Err(AddressError::LinkLocal(self.clone()))
            }
            _ => Ok(found),
        }
    }

    /// The IPv6 address and its zone (RFC 4007, section 11), such as `fe80::1%eth0`. `None` if it has no zone.
    fn zone(&self) -> Option<(Ipv6Addr, &str)> {
        let (ip, zone) = self.host.split_once('%')?;
        Some((ip.parse().ok()?, zone))
    }

    /// The number of the interface that a zone names or numbers.
    fn interface(&self, zone: &str) -> Result<u32, AddressError> {
        if let Some(number) = zone.parse().ok().filter(|number| *number > 0) {
            return Ok(number);
        }
        interface_index(zone).map_err(|source| AddressError::Zone { address: self.clone(), source })
    }

    fn looked_up(&self) -> Result<SocketAddr, AddressError> {
        let nobody = || std::io::Error::other("it has no address");
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let first = found.and_then(|mut addresses| addresses.next().ok_or_else(nobody));
        first.map_err(|source| AddressError::Unknown { address: self.clone(), source })
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError::Form(text.into());
        let (host, port) =
            text.strip_prefix(SCHEME).and_then(|rest| rest.rsplit_once(':')).ok_or_else(wrong)?;
        let port = port.parse().ok().filter(|&port| port > 0).ok_or_else(wrong)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bracketed.unwrap_or(host);
        let plain = !host.is_empty() && !host.contains(['/', '[', ']', '@']);
        if !plain || host.contains(':') != bracketed.is_some() {
            return Err(wrong());
        }
        Ok(Address { host: host.into(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { host, port } = self;
        if host.contains(':') {
            write!(f, "{SCHEME}[{host}]:{port}")
        } else {
            write!(f, "{SCHEME}{host}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_as_they_are_written() {
        for text in ["udp://127.0.0.1:46227", "udp://[::1]:1", "udp://recorder.example:65535"] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), text);
        }
        let address: Address = "udp://127.0.0.1:46227".parse().expect("valid");
        assert_eq!(address.resolve().expect("a number").to_string(), "127.0.0.1:46227");
        assert_eq!(address.with_port(5).to_string(), "udp://127.0.0.1:5");
        let six: Address = "udp://[::1]:9".parse().expect("valid");
        assert_eq!(six.resolve().expect("a number").to_string(), "[::1]:9");
    }

    #[test]
    fn zones_are_interfaces_by_name_or_number() {
        let resolved = |text: &str| text.parse::<Address>().expect(text).resolve();
        let index = interface_index("lo").expect("loopback is there");
        for host in ["fe80::1%lo", "ff15::46%lo", "ff02::1%lo", "fd00::2%lo"] {
            let text = format!("udp://[{host}]:9");
            let SocketAddr::V6(at) = resolved(&text).expect(&text) else { panic!("{text} is IPv6") };
            assert_eq!((at.scope_id(), at.port()), (index, 9), "{text}");
            assert_eq!(text.parse::<Address>().expect("valid").to_string(), text);
        }
        let numbered = resolved("udp://[fe80::1%7]:9").expect("a number");
        assert_eq!(numbered.to_string(), "[fe80::1%7]:9");
        for wrong in ["udp://[fe80::1%no-such-one]:9", "udp://[fe80::1%]:9", "udp://[fe80::1%0]:9"] {
            let error = resolved(wrong).expect_err(wrong).to_string();
            assert!(error.contains(wrong) && error.contains("an interface of this machine"), "{error}");
        }
        let error = resolved("udp://[fe80::1]:9").expect_err("no zone").to_string();
        assert!(error.contains("as in udp://[fe80::1%eth0]"), "{error}");
    }

    #[test]
    fn what_is_no_address_is_told_how_to_write_one() {
        for wrong in [
            "udp://127.0.0.1",
            "udp://:5",
            "udp://h:0",
            "udp://h:65536",
            "udp://h:",
            "tcp://h:5",
            "h:5",
            "udp://::1:5",
            "udp://[h]:5",
            "udp://a/b:5",
            "udp://[::1:5",
            "",
        ] {
            let error = wrong.parse::<Address>().expect_err(wrong).to_string();
            assert!(error.contains(&format!("`{wrong}`")) && error.contains("udp://HOST:PORT"), "{error}");
        }
        let nobody: Address = "udp://no.such.host.invalid:5".parse().expect("the form is right");
        let error = nobody.resolve().expect_err("the name is reserved for nobody").to_string();
        assert!(error.contains("udp://no.such.host.invalid:5"), "{error}");
    }

    #[test]
    fn an_address_is_told_from_a_directory() {
        assert!(Address::is_meant_by("udp://h:5") && Address::is_meant_by("tcp://h"));
        assert!(!Address::is_meant_by("/data") && !Address::is_meant_by("udp"));
    }
}
