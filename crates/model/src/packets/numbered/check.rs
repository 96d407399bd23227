//! Checks of a description of numbered packets. Each message names the key and its valid values.

use std::collections::BTreeMap;

use super::{
    FixedBits, KeptHeader, NamedBits, NumberedPackets, PacketInFrame, PacketNumber, StreamField, UpperNumber,
};
use crate::packets::BitField;

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

impl NumberedPackets {
    pub(in crate::packets) fn check(&self) -> Result<(), String> {
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
