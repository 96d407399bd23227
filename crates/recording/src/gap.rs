//! Blocks of packets, and gaps in them.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
};

/// A block of packets in a frame's slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Bytes of the block. All blocks have the same length except the last of a recording.
    pub length: u32,
    /// Packets received.
    pub packets: u64,
    /// Bytes of the packets received.
    pub bytes: u64,
    /// Missing packets, in order.
    pub gaps: Vec<Gap>,
}

/// A run of missing packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Index in the block of the first missing packet or, if they are left out, of the first packet after them.
    pub at: u32,
    /// Number of missing packets.
    pub count: u64,
    /// True if data marked as invalid replace the packets, false if the recording leaves them out.
    pub filled: bool,
    /// The sender whose packets are missing. `None` if all packets of the recording share one numbering.
    pub sender: Option<GapSender>,
}

/// One of several senders to a port, each of which numbers its packets by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GapSender {
    /// Number of the sender, from 1, in the order in which the recorder first received from them.
    pub number: u16,
    /// Its IPv4 address. `None` for other addresses, for which a record has no room.
    pub address: Option<SocketAddrV4>,
}

/// Bit that marks a record with an address.
const HAS_ADDRESS: u64 = 1 << 32;

impl GapSender {
    /// Creates the sender with this number and address.
    pub fn new(number: u16, address: Option<SocketAddr>) -> Self {
        let address = match address {
            Some(SocketAddr::V4(address)) => Some(address),
            Some(SocketAddr::V6(address)) => {
                address.ip().to_ipv4_mapped().map(|ip| SocketAddrV4::new(ip, address.port()))
            }
            None => None,
        };
        GapSender { number, address }
    }

    /// Returns the two numbers of a journal record: number and port, and the address.
    pub(crate) fn numbers(sender: Option<GapSender>) -> [u64; 2] {
        let Some(GapSender { number, address }) = sender else { return [0, 0] };
        let (port, ip) = address
            .map_or((0, 0), |address| (address.port(), u64::from(u32::from(*address.ip())) | HAS_ADDRESS));
        [u64::from(number) | u64::from(port) << 16, ip]
    }

    /// Reads the sender from the numbers of a record. `None` if they name no sender.
    pub(crate) fn of_numbers([number, ip]: [u64; 2]) -> Option<Self> {
        let port = (number >> 16) as u16;
        let address = (ip & HAS_ADDRESS != 0).then(|| SocketAddrV4::new(Ipv4Addr::from(ip as u32), port));
        let number = number as u16;
        (number > 0).then_some(GapSender { number, address })
    }
}

impl fmt::Display for GapSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "{address}"),
            None => write!(f, "sender {}", self.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_read_as_it_was_written() {
        let of = |text: &str| GapSender::new(3, Some(text.parse().expect("an address")));
        for (sender, said) in [
            (of("10.0.0.7:46227"), "10.0.0.7:46227"),
            (of("0.0.0.0:0"), "0.0.0.0:0"),
            (of("[::ffff:10.0.0.7]:9"), "10.0.0.7:9"),
            (of("[fe80::1]:9"), "sender 3"),
            (GapSender::new(u16::MAX, None), "sender 65535"),
        ] {
            assert_eq!(GapSender::of_numbers(GapSender::numbers(Some(sender))), Some(sender));
            assert_eq!(sender.to_string(), said);
        }
        assert_eq!(GapSender::of_numbers(GapSender::numbers(None)), None);
    }
}
