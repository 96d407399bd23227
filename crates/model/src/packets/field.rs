//! A whole number at a position in a packet.

use serde::{Deserialize, Serialize};

/// The position and encoding of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Bytes in front of the number.
    pub offset: u64,
    /// Bytes that the number takes, 1 to 8.
    pub bytes: u64,
    /// The order of its bytes.
    #[serde(default)]
    pub endian: Endian,
    /// Number of lowest bits that make up the number. `None` means all.
    #[serde(default)]
    pub bits: Option<u32>,
}

/// The order of a number's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endian {
    /// The lowest first.
    #[default]
    Little,
    /// The highest first.
    Big,
}

impl Field {
    /// All bits of a little-endian number.
    pub const fn new(offset: u64, bytes: u64) -> Self {
        Field { offset, bytes, endian: Endian::Little, bits: None }
    }

    /// Refuses a field that makes no sense. Messages call it `name`; it must lie within the first `room`
    /// bytes.
    pub(super) fn check(&self, name: &str, room: u64) -> Result<(), String> {
        let Field { offset, bytes, .. } = *self;
        if !(1..=8).contains(&bytes) {
            return Err(format!("{name}.bytes = {bytes}: write 1 to 8"));
        }
        if self.end() > room {
            return Err(format!(
                "{name}: {bytes} B from byte {offset} on do not lie in the {room} B in front"
            ));
        }
        match self.bits {
            Some(bits) if bits == 0 || u64::from(bits) > bytes * 8 => {
                Err(format!("{name}.bits = {bits}: write 1 to {}", bytes * 8))
            }
            _ => Ok(()),
        }
    }

    /// Bytes up to its end.
    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }

    /// How many bits the number has.
    pub fn width(&self) -> u32 {
        self.bits.unwrap_or(self.bytes as u32 * 8)
    }

    /// The highest number that fits.
    pub fn greatest(&self) -> u64 {
        u64::MAX >> (64 - self.width())
    }

    /// Reads all its bits, including those beside the number. It must lie in `bytes`.
    #[inline]
    pub fn read_all(&self, bytes: &[u8]) -> u64 {
        let there = &bytes[self.offset as usize..][..self.bytes as usize];
        let mut word = [0; 8];
        match self.endian {
            Endian::Little => word[..there.len()].copy_from_slice(there),
            Endian::Big => there.iter().rev().zip(&mut word).for_each(|(byte, to)| *to = *byte),
        }
        u64::from_le_bytes(word)
    }

    /// Reads the number. It must lie in `bytes`.
    #[inline]
    pub fn read(&self, bytes: &[u8]) -> u64 {
        self.read_all(bytes) & self.greatest()
    }

    /// Writes all its bits, and drops higher ones. It must lie in `bytes`.
    #[inline]
    pub fn write(&self, value: u64, bytes: &mut [u8]) {
        let there = &mut bytes[self.offset as usize..][..self.bytes as usize];
        there.copy_from_slice(&value.to_le_bytes()[..there.len()]);
        if self.endian == Endian::Big {
            there.reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_stand_in_the_order_that_is_said() {
        let mut bytes = [9; 6];
        Field { endian: Endian::Big, ..Field::new(1, 4) }.write(0x0102_0304, &mut bytes);
        assert_eq!(bytes, [9, 1, 2, 3, 4, 9]);
        Field::new(1, 4).write(0x0102_0304, &mut bytes);
        assert_eq!(bytes, [9, 4, 3, 2, 1, 9]);
        let low = Field { bits: Some(30), ..Field::new(1, 4) };
        low.write(3 << 30 | 5, &mut bytes);
        assert_eq!((low.read(&bytes), low.read_all(&bytes)), (5, 3 << 30 | 5));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(offset in 0..9_u64, bytes in 1..=8_u64, big: bool, value: u64) {
            let endian = if big { Endian::Big } else { Endian::Little };
            let field = Field { endian, ..Field::new(offset, bytes) };
            let mut packet = [0xa5; 16];
            field.write(value, &mut packet);
            prop_assert_eq!(field.read(&packet), value & field.greatest());
            let outside = packet.iter().enumerate().filter(|(at, _)| !(offset..offset + bytes).contains(&(*at as u64)));
            prop_assert!(outside.into_iter().all(|(_, byte)| *byte == 0xa5));
        }
    }
}
