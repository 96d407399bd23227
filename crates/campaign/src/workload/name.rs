//! Names that are counted up in place: letters, then a decimal number. Formatting a name for each item would
//! cost as much as all other work for it.

/// The most bytes of a name with its NUL. A name is copied as this many bytes, whatever its length.
const SPAN: usize = 32;

/// The smallest buffer that holds two names, as a rename needs.
pub(super) const BUFFER_MIN: usize = 2 * SPAN;

/// The name of an item or of a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    /// The name with a NUL behind it.
    bytes: [u8; SPAN],
    /// The position of the number.
    digits: usize,
    length: usize,
    number: u32,
}

impl Name {
    /// The first name, with the number 0. The letters leave room for ten digits and a NUL.
    pub(super) fn first(letters: &str) -> Self {
        let digits = letters.len();
        assert!(digits + 11 <= SPAN, "a worker's number has at most ten digits");
        let mut bytes = [0; SPAN];
        bytes[..digits].copy_from_slice(letters.as_bytes());
        bytes[digits] = b'0';
        Name { bytes, digits, length: digits + 1, number: 0 }
    }

    /// The name with this number.
    pub(super) fn numbered(letters: &str, number: u32) -> Self {
        let mut name = Name::first(letters);
        name.length = name.digits + 1 + number.checked_ilog10().unwrap_or(0) as usize;
        name.number = number;
        let mut left = number;
        for digit in name.bytes[name.digits..name.length].iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
        name
    }

    /// A name that is not counted up: any number is part of `letters`.
    pub(super) fn of(letters: &str) -> Self {
        let first = Name::first(letters);
        let mut bytes = first.bytes;
        bytes[first.digits] = 0;
        Name { bytes, length: first.digits, ..first }
    }

    /// The number of names before it.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Moves on to the next name.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.number += 1;
        for digit in self.bytes[self.digits..self.length].iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
        self.grow();
    }

    /// Adds a digit: all digits were nines and are zeroes now.
    #[cold]
    fn grow(&mut self) {
        self.bytes[self.length] = b'0';
        self.bytes[self.digits] = b'1';
        self.length += 1;
    }

    /// Writes the name with its NUL. Returns its length without the NUL.
    #[inline]
    pub(super) fn put(&self, buffer: &mut [u8]) -> u32 {
        buffer[..SPAN].copy_from_slice(&self.bytes);
        self.length as u32
    }

    /// Writes the name, and behind its NUL the same name with another letter at `place`. Returns the length of
    /// one.
    #[inline]
    pub(super) fn put_twice(&self, buffer: &mut [u8], place: usize, letter: u8) -> u32 {
        let second = self.length + 1;
        buffer[..SPAN].copy_from_slice(&self.bytes);
        buffer[second..second + SPAN].copy_from_slice(&self.bytes);
        buffer[second + place] = letter;
        self.length as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_in_decimal_and_end_with_a_nul() {
        let mut name = Name::first("n_f7_");
        for number in 0..=10_010 {
            for same in [name, Name::numbered("n_f7_", number)] {
                let mut buffer = [b'x'; BUFFER_MIN];
                let length = same.put(&mut buffer) as usize;
                assert_eq!(&buffer[..=length], format!("n_f7_{number}\0").as_bytes());
                assert_eq!(same.number(), number);
            }
            name.advance();
        }
    }

    #[test]
    fn the_largest_numbers_fit_twice() {
        let name = Name::numbered(&format!("n_f{}_", u32::MAX), u32::MAX);
        let mut buffer = [b'x'; BUFFER_MIN];
        let length = name.put_twice(&mut buffer, 2, b'r') as usize;
        let both = b"n_f4294967295_4294967295\0n_r4294967295_4294967295\0";
        assert_eq!((&buffer[..both.len()], length), (&both[..], 24));
    }
}
