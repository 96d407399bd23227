//! Bits at any position of a packet's header that make a whole number.

use serde::{Deserialize, Serialize};

use super::{Endian, Field};

/// The position of a number in a header: some bytes, and bits among these.
///
/// For example, bits 12 to 21 of a little-endian word of 64 bits at byte 0 are
/// `{ offset = 0, bytes = 8, shift = 12, bits = 10 }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BitField {
    /// Bytes in front of the bytes that hold the number.
    pub offset: u64,
    /// Number of bytes that hold the number, 1 to 8.
    pub bytes: u64,
    /// The order of these bytes.
    #[serde(default)]
    pub endian: Endian,
    /// Number of bits below the number's lowest bit.
    #[serde(default)]
    pub shift: u32,
    /// Number of bits that make up the number. `None` means all bits above `shift`.
    #[serde(default)]
    pub bits: Option<u32>,
}

impl BitField {
    /// All bits of a little-endian number.
    pub const fn new(offset: u64, bytes: u64) -> Self {
        BitField { offset, bytes, endian: Endian::Little, shift: 0, bits: None }
    }

    /// Refuses bits that make no sense. Messages call them `name`; they must lie in a header of this size.
    pub(super) fn check(&self, name: &str, header: u64) -> Result<(), String> {
        let BitField { offset, bytes, shift, bits, .. } = *self;
        if !(1..=8).contains(&bytes) {
            return Err(format!("{name}.bytes = {bytes}: write 1 to 8"));
        }
        if self.end() > header {
            return Err(format!(
                "{name}: {bytes} B from byte {offset} on do not lie in the header of {header} B"
            ));
        }
        let all = bytes as u32 * 8;
        if shift >= all {
            return Err(format!("{name}.shift = {shift}: write 0 to {}", all - 1));
        }
        match bits {
            Some(bits) if bits == 0 || bits > all - shift => {
                Err(format!("{name}.bits = {bits}: write 1 to {}", all - shift))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a value that does not fit.
    pub(super) fn check_value(&self, name: &str, value: u64) -> Result<(), String> {
        if value <= self.greatest() {
            return Ok(());
        }
        Err(format!("{name}: {value} does not fit into {} bits", self.width()))
    }

    /// Bytes up to its end.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }

    /// How many bits the number has.
    pub fn width(&self) -> u32 {
        self.bits.unwrap_or(self.bytes as u32 * 8 - self.shift)
    }

    /// The highest number that fits.
    pub fn greatest(&self) -> u64 {
        u64::MAX >> (64 - self.width())
    }

    fn word(&self) -> Field {
        Field { offset: self.offset, bytes: self.bytes, endian: self.endian, bits: None }
    }

    /// Reads the number. Its bytes must lie in `header`.
    pub fn read(&self, header: &[u8]) -> u64 {
        self.word().read(header) >> self.shift & self.greatest()
    }

    /// Writes the number, and leaves the bits beside it. It drops the bits of `value` that do not fit. The bytes must
    /// lie in `header`.
    pub fn write(&self, value: u64, header: &mut [u8]) {
        let word = self.word();
        let beside = word.read(header) & !(self.greatest() << self.shift);
        word.write(beside | (value & self.greatest()) << self.shift, header);
    }

    /// The positions of its bits in the header: 8 for each byte, the lowest bit of a byte first.
    pub(super) fn positions(&self) -> impl Iterator<Item = u64> {
        let BitField { offset, bytes, endian, shift, .. } = *self;
        (shift..shift + self.width()).map(move |bit| {
            let byte = u64::from(bit / 8);
            let byte = if endian == Endian::Big { bytes - 1 - byte } else { byte };
            (offset + byte) * 8 + u64::from(bit % 8)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bits_are_those_of_the_structure_of_a_c_program() {
        // DAQEthHeader of DUNE-DAQ's detdataformats: version 6, det_id 6, crate_id 10, slot_id 4 bits.
        let header = (3_u64 | 10 << 6 | 5 << 12 | 7 << 22).to_le_bytes();
        let of = |shift, bits| BitField { shift, bits: Some(bits), ..BitField::new(0, 8) };
        let numbers = [of(0, 6), of(6, 6), of(12, 10), of(22, 4)].map(|field| field.read(&header));
        assert_eq!(numbers, [3, 10, 5, 7]);
        let big = BitField { endian: Endian::Big, shift: 4, bits: Some(8), ..BitField::new(0, 2) };
        assert_eq!(big.read(&[0x0a, 0xbc]), 0xab);
        assert_eq!(big.positions().collect::<Vec<_>>(), [12, 13, 14, 15, 0, 1, 2, 3]);
    }

    proptest! {
        #[test]
        fn a_written_number_is_read_and_no_other_bit_changes(
            offset in 0..9_u64, bytes in 1..=8_u64, big: bool, shift in 0..64_u32, bits in 1..=64_u32, value: u64, fill: u8,
        ) {
            let endian = if big { Endian::Big } else { Endian::Little };
            let all = bytes as u32 * 8;
            let shift = shift % all;
            let bits = (bits - 1) % (all - shift) + 1;
            let field = BitField { offset, bytes, endian, shift, bits: Some(bits) };
            prop_assert_eq!(field.check("number", 17), Ok(()));
            let mut header = [fill; 17];
            field.write(value, &mut header);
            prop_assert_eq!(field.read(&header), value & field.greatest());
            let own: Vec<u64> = field.positions().collect();
            for position in (0..17 * 8).filter(|position| !own.contains(position)) {
                let bit = |byte: u8| byte >> (position % 8) & 1;
                prop_assert_eq!(bit(header[position as usize / 8]), bit(fill), "bit {}", position);
            }
        }
    }
}
