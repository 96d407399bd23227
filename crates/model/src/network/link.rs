//! A link of a machine to others, as its kernel describes it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ByteRate, Bytes};

/// An interface that is up, without the loopback; the members of a bond are a part of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkLink {
    /// Its name on the machine.
    pub name: String,
    /// True for a card or a bond of cards. The speed of other interfaces is arbitrary.
    pub is_card: bool,
    /// Its capacity; `None` if the driver does not report it.
    pub speed: Option<ByteRate>,
    /// The longest packet.
    pub mtu: Option<Bytes>,
    /// Its members, if it is a bond.
    pub bond: Option<LinkBond>,
    /// The offloads that are on: work of the card or the kernel for whole groups of packets (`ethtool -k`).
    /// `None` if unknown.
    pub offloads: Option<Vec<String>>,
}

/// Links that act as one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkBond {
    /// The mode in the kernel's word: `802.3ad`, `active-backup`, ...
    pub mode: String,
    /// The members, in the order of their names.
    pub members: Vec<BondMember>,
}

/// A link of a bond.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BondMember {
    /// Its name.
    pub name: String,
    /// True if it has a carrier.
    pub is_up: bool,
    /// Its capacity.
    pub speed: Option<ByteRate>,
}

impl fmt::Display for NetworkLink {
    /// `10 Gbit/s, MTU 9000, bond 802.3ad of eth0 and eth1 (DOWN), offloads tso, gro`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let speed = self.speed.map_or_else(|| "of unknown speed".into(), ByteRate::bits);
        let kind = if self.is_card { "" } else { ", no card of its own" };
        write!(f, "{speed}{kind}")?;
        self.mtu.map_or(Ok(()), |mtu| write!(f, ", MTU {}", mtu.0))?;
        self.bond.as_ref().map_or(Ok(()), |bond| write!(f, ", {bond}"))?;
        match self.offloads.as_deref() {
            None => Ok(()),
            Some([]) => f.write_str(", no offloads"),
            Some(offloads) => write!(f, ", offloads {}", offloads.join(", ")),
        }
    }
}

impl fmt::Display for LinkBond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let member =
            |member: &BondMember| format!("{}{}", member.name, if member.is_up { "" } else { " (DOWN)" });
        let members: Vec<String> = self.members.iter().map(member).collect();
        write!(f, "bond {} of {}", self.mode, members.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_told_with_the_member_that_is_down() {
        let member = |name: &str, is_up| BondMember { name: name.into(), is_up, speed: None };
        let members = vec![member("eth0", true), member("eth1", false)];
        let bond = NetworkLink {
            name: "bond0".into(),
            is_card: true,
            speed: Some(ByteRate(1.25e9)),
            mtu: Some(Bytes(9000)),
            bond: Some(LinkBond { mode: "802.3ad".into(), members }),
            offloads: Some(vec!["tso".into()]),
        };
        let words = "10 Gbit/s, MTU 9000, bond 802.3ad of eth0 and eth1 (DOWN), offloads tso";
        assert_eq!(bond.to_string(), words);
        let veth = NetworkLink { name: "veth0".into(), ..NetworkLink::default() };
        assert_eq!(veth.to_string(), "of unknown speed, no card of its own");
    }
}
