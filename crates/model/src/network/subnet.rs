//! A network by its addresses, such as `10.1.0.0/16`. It selects one of a machine's networks.

use std::{fmt, net::IpAddr, str::FromStr};

use serde::{Deserialize, Serialize};

/// An address, and the number of leading bits that all addresses of the network share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subnet {
    address: IpAddr,
    bits: u8,
}

/// A text that is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network: write an address and how many bits of it count, as 10.1.0.0/16 or fd00::/8")]
pub struct SubnetError(String);

impl Subnet {
    /// Returns true if it contains the address.
    pub fn holds(self, address: IpAddr) -> bool {
        let (ours, all) = value(self.address);
        let (theirs, width) = value(address);
        let kept = u32::from(self.bits);
        all == width && (kept == 0 || (ours ^ theirs) >> (all - kept) == 0)
    }
}

/// An address as a number, with its number of bits.
fn value(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), u32::BITS),
        IpAddr::V6(address) => (address.to_bits(), u128::BITS),
    }
}

impl FromStr for Subnet {
    type Err = SubnetError;

    fn from_str(text: &str) -> Result<Self, SubnetError> {
        let wrong = || SubnetError(text.into());
        let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits: u8 = bits.parse().map_err(|_| wrong())?;
        if u32::from(bits) > value(address).1 { Err(wrong()) } else { Ok(Subnet { address, bits }) }
    }
}

impl TryFrom<String> for Subnet {
    type Error = SubnetError;

    fn try_from(text: String) -> Result<Self, SubnetError> {
        text.parse()
    }
}

impl From<Subnet> for String {
    fn from(subnet: Subnet) -> String {
        subnet.to_string()
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_lies_in_a_network_by_its_first_bits() {
        let holds = |network: &str, address: &str| {
            network.parse::<Subnet>().expect("a network").holds(address.parse().expect("an address"))
        };
        assert!(holds("10.1.0.0/16", "10.1.255.3") && !holds("10.1.0.0/16", "10.2.0.1"));
        assert!(holds("10.1.2.3/32", "10.1.2.3") && !holds("10.1.2.3/32", "10.1.2.2"));
        assert!(holds("0.0.0.0/0", "8.8.8.8") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("fd00::/8", "fd12::1") && !holds("fd00::/8", "fe80::1"));
        for wrong in ["10.1.0.0", "10.1.0.0/33", "fd00::/129", "here/8", "10.1.0.0/x"] {
            assert!(wrong.parse::<Subnet>().is_err(), "{wrong}");
        }
    }
}
