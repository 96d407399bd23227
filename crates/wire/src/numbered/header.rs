//! The fields of a described header, each as one load, one shift and one mask.

use nilometer_model::packets::{BitField, Endian};

use crate::Packet;

/// The half of a packet in which a field lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    /// The dropped part of the header.
    Prefix,
    /// The kept part.
    Body,
}

/// A field, ready to be read from every packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeaderBits {
    half: Half,
    /// The field in its half.
    field: BitField,
    /// Where the load begins in its half.
    at: usize,
    swap: bool,
    shift: u32,
    mask: u64,
}

impl HeaderBits {
    /// Prepares a checked field of a header whose first `dropped` bytes are not kept.
    pub(super) fn new(field: BitField, dropped: u64) -> Self {
        let half = if field.offset < dropped { Half::Prefix } else { Half::Body };
        let begin = if half == Half::Body { dropped } else { 0 };
        let field = BitField { offset: field.offset - begin, ..field };
        // Eight bytes are loaded. Those of a big-endian number come first, and so are the highest.
        let swap = field.endian == Endian::Big;
        let above = if swap { 64 - field.bytes as u32 * 8 } else { 0 };
        HeaderBits {
            half,
            field,
            at: field.offset as usize,
            swap,
            shift: above + field.shift,
            mask: field.greatest(),
        }
    }

    #[inline]
    pub(super) fn read(&self, packet: Packet<'_>) -> u64 {
        match self.half {
            Half::Prefix => self.of(packet.prefix),
            Half::Body => self.of(packet.body),
        }
    }

    /// Reads the field from the first bytes of a recorded frame. `None` if it is not kept, or not among them.
    pub(super) fn read_kept(&self, frame: &[u8]) -> Option<u64> {
        let is_there = self.half == Half::Body && self.field.end() <= frame.len() as u64;
        is_there.then(|| self.of(frame))
    }

    #[inline]
    fn of(&self, half: &[u8]) -> u64 {
        let word = word(&half[self.at..]);
        let word = if self.swap { word.swap_bytes() } else { word };
        word >> self.shift & self.mask
    }

    /// Writes the field, if it lies in these bytes.
    pub(super) fn write(&self, value: u64, prefix: &mut [u8], body: &mut [u8]) {
        let half = if self.half == Half::Prefix { prefix } else { body };
        if self.field.end() <= half.len() as u64 {
            self.field.write(value, half);
        }
    }
}

/// The first eight bytes, with zeroes behind the last one.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    if let Some(word) = bytes.first_chunk() {
        return u64::from_le_bytes(*word);
    }
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_load_reads_the_field_of_the_description(
            offset in 0..14_u64, bytes in 1..=8_u64, big: bool, shift in 0..64_u32, bits in 1..=64_u32,
            keep in 0..=16_usize, header: [u8; 16],
        ) {
            let endian = if big { Endian::Big } else { Endian::Little };
            let bytes = bytes.min(16 - offset);
            let all = bytes as u32 * 8;
            let shift = shift % all;
            let field = BitField { offset, bytes, endian, shift, bits: Some((bits - 1) % (all - shift) + 1) };
            let (begin, end) = (offset as usize, (offset + bytes) as usize);
            prop_assume!(keep <= begin || keep >= end);
            let (prefix, body) = header.split_at(keep);
            let read = HeaderBits::new(field, keep as u64);
            prop_assert_eq!(read.read(Packet { prefix, body }), field.read(&header));
            prop_assert_eq!(read.read_kept(body), (keep <= begin).then(|| field.read(&header)));
            let (mut prefix, mut body) = (vec![0; keep], vec![0; 16 - keep]);
            read.write(field.read(&header), &mut prefix, &mut body);
            prop_assert_eq!(field.read(&[prefix, body].concat()), field.read(&header));
        }
    }
}
