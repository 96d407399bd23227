//! Packets that carry a number in a header: samples of a telescope, or of an experiment with a network of its own.

mod check;

use serde::{Deserialize, Serialize};

use super::BitField;
use crate::Bytes;

/// Packets with a header and a number, of one stream or of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberedPackets {
    /// Bytes of the header, which is the beginning of each packet.
    pub header: Bytes,
    /// Bytes behind the header.
    pub payload: Bytes,
    /// The part of the header that the recorder stores in front of the payload.
    #[serde(default)]
    pub keep: KeptHeader,
    /// The number of the frame. Without `packets` each packet is a frame.
    pub number: PacketNumber,
    /// A second number that counts further when the first one begins again, such as seconds.
    #[serde(default)]
    pub upper: Option<UpperNumber>,
    /// The number of the packet in its frame, from 0. Only for frames of several packets.
    #[serde(default)]
    pub packet: Option<PacketInFrame>,
    /// Packets of a frame.
    #[serde(default = "one")]
    pub packets: u64,
    /// Bytes behind the header of a frame's last packet, if fewer.
    #[serde(default)]
    pub last: Option<Bytes>,
    /// The number of the stream, if several streams share a port.
    #[serde(default)]
    pub stream: Option<StreamField>,
    /// Bits that are the same in each packet. The recorder drops other packets as foreign.
    #[serde(default)]
    pub magic: Vec<FixedBits>,
    /// Further numbers in the header, for `nilometer export --headers` and for the simulator.
    #[serde(default)]
    pub fields: Vec<NamedBits>,
}

/// The part of the header that the recorder stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptHeader {
    /// Only the payload.
    #[default]
    Nothing,
    /// The whole header.
    All,
    /// The header from this byte on, up to the payload.
    From(Bytes),
}

/// The number of a frame, and how it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketNumber {
    /// Its position in the header.
    pub at: BitField,
    /// The difference of this number from a frame to the next one.
    #[serde(default = "one")]
    pub step: u64,
    /// The number after which it begins again at 0, plus 1. `None` means that it uses all of its bits.
    #[serde(default)]
    pub wrap: Option<u64>,
}

/// The upper part of a number that stands in two places.
///
/// The recorder counts `upper x numbers + number`, with the product rounded to the nearest whole number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpperNumber {
    /// Its position in the header.
    pub at: BitField,
    /// Numbers between two values of the upper part. A half, a quarter and so on are possible.
    pub numbers: f64,
    /// Where a simulator begins.
    #[serde(default)]
    pub clock: UpperClock,
}

/// The beginning of the upper part in simulated packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpperClock {
    /// It begins at 0.
    #[default]
    None,
    /// It is the time, in seconds since 1970-01-01 00:00 UTC.
    Unix,
}

/// The number of a packet in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketInFrame {
    /// Its position in the header.
    pub at: BitField,
    /// The difference of this number from a packet to the next one. For an offset in bytes, it is `payload`.
    #[serde(default = "one")]
    pub step: u64,
    /// The number of the second packet. `None` means `step`. It differs if the first packet's header is longer.
    #[serde(default)]
    pub second: Option<u64>,
}

impl PacketInFrame {
    /// The number in this packet of a frame.
    pub fn number(&self, part: u64) -> u64 {
        match part {
            0 => 0,
            _ => (part - 1).saturating_mul(self.step).saturating_add(self.second()),
        }
    }

    /// The packet of a frame that has this number. `None` if none has.
    pub fn part(&self, number: u64) -> Option<u64> {
        if number == 0 {
            return Some(0);
        }
        let behind = number.checked_sub(self.second())?;
        behind.is_multiple_of(self.step).then(|| behind / self.step + 1)
    }

    fn second(&self) -> u64 {
        self.second.unwrap_or(self.step)
    }
}

/// The number of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamField {
    /// Its position in the header: at most 16 bits, in the part that the recorder stores.
    pub at: BitField,
    /// The numbers of the streams, in the order of their packets. The recorder drops other packets as foreign.
    pub ids: Vec<u16>,
}

/// Bits with a fixed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedBits {
    /// Their position in the header.
    pub at: BitField,
    /// Their value.
    pub value: u64,
}

/// A number in the header with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedBits {
    /// Its name: letters, digits and `_`.
    pub name: String,
    /// Its position in the header.
    pub at: BitField,
    /// The value that a simulator writes into the first frame.
    #[serde(default)]
    pub value: u64,
    /// The difference of this value from a simulated frame to the next one of the stream.
    #[serde(default)]
    pub step: u64,
}

fn one() -> u64 {
    1
}

impl UpperNumber {
    /// Its `numbers` as a fraction with a power of two below; `None` if that is not exact.
    pub fn ratio(&self) -> Option<(u64, u64)> {
        let denominators = (0..=20).map(|power| 1_u64 << power);
        denominators.into_iter().find_map(|below| {
            let above = self.numbers * below as f64;
            #[expect(clippy::cast_sign_loss, reason = "it is above zero")]
            (above.fract() == 0.0 && (1.0..=2_f64.powi(53)).contains(&above)).then_some((above as u64, below))
        })
    }
}

impl NumberedPackets {
    /// Bytes of the header that the recorder drops.
    pub fn dropped(&self) -> Bytes {
        match self.keep {
            KeptHeader::Nothing => self.header,
            KeptHeader::All => Bytes(0),
            KeptHeader::From(from) => from,
        }
    }

    /// Bytes of the header that the recorder stores.
    pub fn kept_header(&self) -> Bytes {
        Bytes(self.header.0.saturating_sub(self.dropped().0))
    }

    /// Bytes behind the header of a frame's last packet.
    pub fn last_payload(&self) -> Bytes {
        self.last.unwrap_or(self.payload)
    }

    /// Bytes of the payloads of a frame.
    pub fn payloads(&self) -> Bytes {
        Bytes((self.packets - 1).saturating_mul(self.payload.0).saturating_add(self.last_payload().0))
    }

    /// Bytes of a stored frame.
    pub fn frame_size(&self) -> Bytes {
        Bytes(self.kept_header().0.saturating_mul(self.packets).saturating_add(self.payloads().0))
    }

    /// Streams of a port.
    pub fn streams(&self) -> u64 {
        self.stream.as_ref().map_or(1, |stream| stream.ids.len() as u64)
    }

    /// All numbers that the counted number may have: it begins again after this many. At most 2^64.
    pub fn modulus(&self) -> u128 {
        let PacketNumber { at, wrap, .. } = self.number;
        let own = wrap.map_or(1 << at.width(), u128::from);
        match self.upper.and_then(|upper| Some((upper.at.width(), upper.ratio()?))) {
            Some((width, (above, below))) => (u128::from(above) << width) / u128::from(below),
            None => own,
        }
    }
}

#[cfg(test)]
mod tests;
