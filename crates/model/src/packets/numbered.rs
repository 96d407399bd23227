//! Packets that carry a number in a header: samples of a telescope, or of an experiment with a network of its own.

use std::collections::BTreeMap;

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

/// The most packets of a frame.
const PACKETS_MAX: u64 = 1 << 16;
/// The most bytes of a frame.
const FRAME_MAX: u64 = 1 << 30;
/// The most streams of a port.
const STREAMS_MAX: usize = 1024;
/// The most bits of a stream's number.
const STREAM_BITS_MAX: u32 = 16;
/// The least numbers before they begin again. With fewer, a late packet could belong to two places.
const NUMBERS_LEAST: u128 = 1024;
/// The recorder remembers this many bytes of a frame to make the header of a missing one.
const NEAR_HEADER: u64 = 64;
/// Names of the columns that every table of headers has.
const COLUMNS: [&str; 7] = ["frame", "packet", "came", "count", "upper", "number", "stream"];

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

    pub(super) fn check(&self) -> Result<(), String> {
        self.check_sizes()?;
        let header = self.header.0;
        let fields = self.all_bits();
        fields.iter().try_for_each(|(name, field)| field.check(name, header))?;
        self.check_names()?;
        let mut taken = BTreeMap::new();
        for (name, field) in &fields {
            let other = field.positions().find_map(|position| taken.insert(position, name));
            if let Some(other) = other {
                return Err(format!("{name} and {other} stand in the same bits: write one of them"));
            }
            self.check_side(name, field)?;
        }
        self.check_values()?;
        self.check_number()?;
        self.check_packets()?;
        self.check_stream()
    }

    /// All bits that it describes, with their names in messages.
    fn all_bits(&self) -> Vec<(String, BitField)> {
        let mut all = vec![("number.at".to_owned(), self.number.at)];
        all.extend(self.upper.map(|upper| ("upper.at".to_owned(), upper.at)));
        all.extend(self.packet.map(|packet| ("packet.at".to_owned(), packet.at)));
        all.extend(self.stream.as_ref().map(|stream| ("stream.at".to_owned(), stream.at)));
        all.extend((1..).zip(&self.magic).map(|(number, magic)| (format!("magic {number}"), magic.at)));
        all.extend(self.fields.iter().map(|field| (format!("field {}", field.name), field.at)));
        all
    }

    fn check_sizes(&self) -> Result<(), String> {
        let NumberedPackets { header, payload, keep, packets, .. } = self;
        let last = self.last_payload();
        if header.0 == 0 || payload.0 == 0 {
            return Err("header and payload: write at least 1 B for each".into());
        }
        if last.0 == 0 || last > *payload {
            return Err(format!("last = \"{} B\": write 1 B to {} B, the payload", last.0, payload.0));
        }
        if !(1..=PACKETS_MAX).contains(packets) {
            return Err(format!("packets = {packets}: write 1 to {PACKETS_MAX}"));
        }
        let frame = self.frame_size().0;
        if frame > FRAME_MAX {
            return Err(format!(
                "packets = {packets}: they make a frame of {frame} B, write at most {FRAME_MAX} B"
            ));
        }
        if self.last.is_some() && *packets == 1 {
            return Err("last: a frame of one packet has one size, leave it out".into());
        }
        match keep {
            KeptHeader::From(from) if from >= header => Err(format!(
                "keep = {{ from = \"{} B\" }}: write less than the {} B of the header, or keep = \"nothing\"",
                from.0, header.0
            )),
            _ => Ok(()),
        }
    }

    /// Refuses a field of which a part is dropped and a part is kept.
    fn check_side(&self, name: &str, field: &BitField) -> Result<(), String> {
        let border = self.dropped().0;
        if field.offset < border && border < field.end() {
            return Err(format!(
                "keep begins at byte {border}, in the middle of {name}: keep from byte {} or {} on",
                field.offset,
                field.end()
            ));
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), String> {
        for (at, NamedBits { name, .. }) in self.fields.iter().enumerate() {
            let is_word = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            if name.is_empty() || !is_word {
                return Err(format!("field `{name}`: name it with letters, digits and _"));
            }
            let is_taken =
                COLUMNS.contains(&name.as_str()) || self.fields[..at].iter().any(|other| other.name == *name);
            if is_taken {
                return Err(format!("field {name}: there is one with this name, choose another"));
            }
        }
        Ok(())
    }

    fn check_values(&self) -> Result<(), String> {
        for (number, FixedBits { at, value }) in (1..).zip(&self.magic) {
            at.check_value(&format!("magic {number}"), *value)?;
        }
        self.fields.iter().try_for_each(|NamedBits { name, at, value, .. }| at.check_value(name, *value))
    }

    fn check_number(&self) -> Result<(), String> {
        let PacketNumber { at, step, wrap } = self.number;
        if step == 0 {
            return Err("number.step = 0: write at least 1".into());
        }
        if let Some(wrap) = wrap
            && (wrap == 0 || wrap - 1 > at.greatest())
        {
            return Err(format!(
                "number.wrap = {wrap}: write 1 to {}, as its {} bits count",
                at.greatest().saturating_add(1),
                at.width()
            ));
        }
        if let Some(upper) = self.upper {
            let UpperNumber { numbers, .. } = upper;
            if wrap.is_some() {
                return Err("number.wrap: upper says where it begins again, leave it out".into());
            }
            if upper.ratio().is_none() {
                return Err(format!(
                    "upper.numbers = {numbers}: write a number of at least 1, whole or with a half, a quarter and so on"
                ));
            }
            if self.modulus() > 1 << 64 {
                return Err(format!(
                    "upper.numbers = {numbers}: upper and number together have over 64 bits"
                ));
            }
            // Rounding makes one value of the upper part longer than another.
            if numbers.ceil() - 1.0 > at.greatest() as f64 {
                return Err(format!(
                    "upper.numbers = {numbers}: the {} bits of number count less",
                    at.width()
                ));
            }
        }
        let frames = self.modulus() / u128::from(step);
        if frames < NUMBERS_LEAST {
            return Err(format!(
                "number: it begins again after {frames} frames, and late packets need at least {NUMBERS_LEAST}: write a \
                 smaller step, or a number with more bits"
            ));
        }
        Ok(())
    }

    fn check_packets(&self) -> Result<(), String> {
        match self.packet {
            None if self.packets > 1 => {
                Err("packet: say where its number stands, since a frame has several packets".into())
            }
            Some(_) if self.packets == 1 => {
                Err("packet: write packets, the number of packets of a frame, or leave it out".into())
            }
            Some(PacketInFrame { step: 0, .. } | PacketInFrame { second: Some(0), .. }) => {
                Err("packet: step or second is 0, write at least 1".into())
            }
            Some(packet) if packet.number(self.packets - 1) > packet.at.greatest() => Err(format!(
                "packet.at: {} bits do not count {} packets in steps of {}",
                packet.at.width(),
                self.packets,
                packet.step
            )),
            _ => Ok(()),
        }
    }

    fn check_stream(&self) -> Result<(), String> {
        let Some(StreamField { at, ids }) = &self.stream else { return Ok(()) };
        if at.width() > STREAM_BITS_MAX {
            return Err(format!("stream.at.bits = {}: write 1 to {STREAM_BITS_MAX}", at.width()));
        }
        if ids.is_empty() || ids.len() > STREAMS_MAX {
            return Err(format!("stream.ids has {}: name 1 to {STREAMS_MAX} streams", ids.len()));
        }
        if let Some(id) = ids.iter().find(|id| u64::from(**id) > at.greatest()) {
            return Err(format!("stream.ids has {id}: write 0 to {}", at.greatest()));
        }
        if let Some((_, id)) = ids.iter().enumerate().find(|(at, id)| ids[..*at].contains(id)) {
            return Err(format!("stream.ids has {id} twice: write each once"));
        }
        let border = self.dropped().0;
        let needed = [Some(*at), Some(self.number.at), self.upper.map(|upper| upper.at)];
        let is_kept = |field: &BitField| field.offset >= border && field.end() <= border + NEAR_HEADER;
        if needed.iter().flatten().all(is_kept) {
            return Ok(());
        }
        Err(format!(
            "stream: keep the part of the header with the numbers of stream and packet, in the first {NEAR_HEADER} B kept; \
             the recording tells streams apart by it: write keep = \"all\" or keep = {{ from = ... }}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Instrument;

    const PACKETS: &str = r#"
name = "t"
title = "a test"
source = "a test"
shape = [7168]
pixel = "uint8"
frame_rate = "30 kHz"
[packets.format.numbered]
header = "32 B"
payload = "7168 B"
keep = "all"
number = { at = { offset = 8, bytes = 8 }, step = 2048 }
stream = { at = { offset = 0, bytes = 8, shift = 26, bits = 8 }, ids = [4, 0] }
magic = [{ at = { offset = 0, bytes = 8, bits = 6 }, value = 3 }]
fields = [{ name = "crate", at = { offset = 0, bytes = 8, shift = 12, bits = 10 }, value = 5 }]
"#;

    fn parse(from: &str, to: &str) -> Result<NumberedPackets, String> {
        assert!(PACKETS.contains(from), "{from}");
        let read =
            Instrument::parse(&PACKETS.replacen(from, to, 1), "t.toml").map_err(|error| error.to_string())?;
        let text = serde_json::to_string(&read).expect("it can be written");
        assert_eq!(
            serde_json::from_str::<Instrument>(&text).expect("it was written"),
            read,
            "as records keep it"
        );
        match read.packets.expect("it has some").format {
            super::super::PacketFormat::Numbered(packets) => Ok(packets),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_description_says_sizes_and_numbers() {
        let packets = parse("keep", "keep").expect("valid");
        assert_eq!((packets.frame_size(), packets.dropped(), packets.streams()), (Bytes(7200), Bytes(0), 2));
        assert_eq!(packets.modulus(), 1 << 64);
        let part = parse(
            "keep = \"all\"",
            "keep = { from = \"8 B\" }\nlast = \"100 B\"\npackets = 3\npacket = { at = { offset = 16, bytes = 2 } }",
        );
        assert!(part.expect_err("the stream's number is dropped").contains("stream: keep the part"));
        let number = "number = { at = { offset = 12, bytes = 4 } }\nupper = { at = { offset = 8, bytes = 4 }, numbers = 195312.5 }";
        let lofar = parse("number = { at = { offset = 8, bytes = 8 }, step = 2048 }", number).expect("valid");
        assert_eq!(lofar.upper.and_then(|upper| upper.ratio()), Some((390_625, 2)));
        assert_eq!(lofar.modulus(), 390_625 << 31);
    }

    const NUMBER: &str = "number = { at = { offset = 8, bytes = 8 }, step = 2048 }";

    /// A part of the description, another in its place, and a part of the message.
    const NONSENSE: &[[&str; 3]] = &[
        ["header = \"32 B\"", "header = \"0 B\"", "at least 1 B"],
        [
            "header = \"32 B\"",
            "header = \"12 B\"",
            "number.at: 8 B from byte 8 on do not lie in the header of 12 B",
        ],
        ["payload = \"7168 B\"", "payload = \"80 kB\"", "at most 65507 B"],
        ["keep = \"all\"", "keep = \"some\"", "`nothing`, `all`, `from`"],
        ["keep = \"all\"", "keep = { from = \"32 B\" }", "write less than the 32 B"],
        [
            "keep = \"all\"",
            "keep = { from = \"12 B\" }",
            "in the middle of number.at: keep from byte 8 or 16 on",
        ],
        ["keep = \"all\"", "keep = \"nothing\"", "the recording tells streams apart by it"],
        ["offset = 8, bytes = 8", "offset = 8, bytes = 9", "number.at.bytes = 9: write 1 to 8"],
        ["offset = 8, bytes = 8", "offset = 8, bytes = 8, shift = 64", "number.at.shift = 64: write 0 to 63"],
        [
            "offset = 8, bytes = 8",
            "offset = 8, bytes = 8, shift = 4, bits = 61",
            "number.at.bits = 61: write 1 to 60",
        ],
        ["offset = 8, bytes = 8", "offset = 0, bytes = 4", "stream.at and number.at stand in the same bits"],
        ["step = 2048", "step = 0", "number.step = 0"],
        ["step = 2048", "wrap = 0", "number.wrap = 0"],
        [
            "offset = 8, bytes = 8 }, step = 2048",
            "offset = 8, bytes = 2 }, step = 2048",
            "begins again after 32 frames",
        ],
        ["shift = 26, bits = 8", "shift = 22, bits = 17", "stream.at.bits = 17: write 1 to 16"],
        ["ids = [4, 0]", "ids = []", "name 1 to 1024 streams"],
        ["ids = [4, 0]", "ids = [4, 256]", "stream.ids has 256: write 0 to 255"],
        ["ids = [4, 0]", "ids = [4, 4]", "stream.ids has 4 twice"],
        ["value = 3", "value = 64", "magic 1: 64 does not fit into 6 bits"],
        ["value = 5", "value = 1024", "crate: 1024 does not fit into 10 bits"],
        ["\"crate\"", "\"cr ate\"", "letters, digits and _"],
        ["\"crate\"", "\"number\"", "choose another"],
        ["keep = ", "packets = 2\nkeep = ", "packet: say where its number stands"],
        ["keep = ", "packets = 0\nkeep = ", "packets = 0: write 1 to 65536"],
        ["keep = ", "packet = { at = { offset = 16, bytes = 1 } }\nkeep = ", "packet: write packets"],
        [
            "keep = ",
            "packets = 9\npacket = { at = { offset = 16, bytes = 2 }, step = 8192 }\nkeep = ",
            "16 bits do not count 9 packets in steps of 8192",
        ],
        ["keep = ", "last = \"8 B\"\nkeep = ", "last: a frame of one packet"],
        [
            "keep = ",
            "upper = { at = { offset = 16, bytes = 4 }, numbers = 0.3 }\nkeep = ",
            "upper.numbers = 0.3",
        ],
        [
            "keep = ",
            "upper = { at = { offset = 16, bytes = 4 }, numbers = 1e18 }\nkeep = ",
            "upper.numbers = 1000000000000000000",
        ],
        [
            NUMBER,
            "number = { at = { offset = 8, bytes = 2 } }\nupper = { at = { offset = 16, bytes = 4 }, numbers = 65537 }",
            "the 16 bits of number count less",
        ],
        [
            "[packets.format.numbered]",
            "[packets]\nserial = \"none\"\n[packets.format.numbered]",
            "leave them out",
        ],
        ["step = 2048", "steps = 2048", "`step`"],
    ];

    #[test]
    fn nonsense_is_refused_with_its_key_and_the_choices() {
        for [from, to, part] in NONSENSE {
            let error = parse(from, to).expect_err(to);
            assert!(error.contains(part) && error.contains("t.toml"), "{to}: {error}");
        }
    }
}
