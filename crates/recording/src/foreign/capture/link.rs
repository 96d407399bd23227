//! The UDP payload in a captured packet: behind Ethernet, Linux "cooked" or no link header, IPv4 or IPv6.
//!
//! Link types are those of tcpdump.org (`linktypes.html`). VLAN tags are passed. Fragments of IP packets are no
//! UDP packets: only the first has the header, and none the whole payload.

/// The UDP payload of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UdpPayload {
    /// Offset in the packet.
    pub(super) offset: usize,
    /// Bytes by the header of UDP; the capture may have fewer.
    pub(super) length: usize,
    /// The port that it was sent to.
    pub(super) port: u16,
}

impl UdpPayload {
    /// Offset in the packet after its last byte.
    pub(super) fn end(&self) -> u64 {
        (self.offset + self.length) as u64
    }
}

/// Why a packet has no UDP payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotUdp {
    /// A part of an IP packet.
    Fragment,
    /// Another protocol, or too few bytes.
    Other,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// VLAN tags, four bytes each.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const UDP: u8 = 17;

/// Finds the UDP payload in the first bytes of a packet.
pub(super) fn udp_payload(link: u32, head: &[u8]) -> Result<UdpPayload, NotUdp> {
    let (kind, offset) = network(link, head).ok_or(NotUdp::Other)?;
    let packet = head.get(offset..).ok_or(NotUdp::Other)?;
    let (begin, protocol) = match kind {
        IPV4 => ipv4(packet)?,
        IPV6 => ipv6(packet)?,
        _ => return Err(NotUdp::Other),
    };
    if protocol != UDP {
        return Err(NotUdp::Other);
    }
    let udp = packet.get(begin..).ok_or(NotUdp::Other)?;
    let port = half(udp, 2).ok_or(NotUdp::Other)?;
    let length = half(udp, 4).and_then(|length| length.checked_sub(8)).ok_or(NotUdp::Other)?;
    Ok(UdpPayload { offset: offset + begin + 8, length: length.into(), port })
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// Returns the protocol above the link, as Ethernet numbers it, and the offset of its packet.
fn network(link: u32, head: &[u8]) -> Option<(u16, usize)> {
    match link {
        1 => tagged(head, 12),
        // Linux "cooked", of both versions.
        113 => tagged(head, 14),
        // The protocol is in front of the addresses, and VLAN tags are behind them.
        276 => match half(head, 0)? {
            kind if VLAN.contains(&kind) => tagged(head, 22),
            kind => Some((kind, 20)),
        },
        // A number of the protocol family, in the byte order of the machine.
        0 | 108 => of_version(head, 4),
        12 | 14 | 101 | 228 | 229 => of_version(head, 0),
        _ => None,
    }
}

/// Passes VLAN tags from the protocol at an offset on.
fn tagged(head: &[u8], mut at: usize) -> Option<(u16, usize)> {
    loop {
        let kind = half(head, at)?;
        if !VLAN.contains(&kind) {
            return Some((kind, at + 2));
        }
        at += 4;
    }
}

fn of_version(head: &[u8], at: usize) -> Option<(u16, usize)> {
    match head.get(at)? >> 4 {
        4 => Some((IPV4, at)),
        6 => Some((IPV6, at)),
        _ => None,
    }
}

/// Returns the offset of the content and its protocol.
fn ipv4(packet: &[u8]) -> Result<(usize, u8), NotUdp> {
    let fragment = half(packet, 6).ok_or(NotUdp::Other)?;
    let protocol = *packet.get(9).ok_or(NotUdp::Other)?;
    // More fragments, or an offset.
    if fragment & 0x3fff != 0 {
        return Err(if protocol == UDP { NotUdp::Fragment } else { NotUdp::Other });
    }
    Ok((usize::from(packet[0] & 0xf) * 4, protocol))
}

fn ipv6(packet: &[u8]) -> Result<(usize, u8), NotUdp> {
    let mut next = *packet.get(6).ok_or(NotUdp::Other)?;
    let mut at = 40;
    loop {
        match next {
            // Hop by hop, routing, destination: their length is in 8 bytes, without the first 8.
            0 | 43 | 60 => {
                let [following, length] =
                    *packet.get(at..).and_then(|bytes| bytes.first_chunk()).ok_or(NotUdp::Other)?;
                next = following;
                at += 8 + 8 * usize::from(length);
            }
            44 => {
                let of = packet.get(at).copied().ok_or(NotUdp::Other)?;
                return Err(if of == UDP { NotUdp::Fragment } else { NotUdp::Other });
            }
            _ => return Ok((at, next)),
        }
    }
}
