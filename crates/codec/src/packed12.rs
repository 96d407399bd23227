//! Samples of 12 bits. Converters send two of them in three bytes; files of HDF5 have them as numbers of 16 bits.
//!
//! ```text
//! packed    a7..a0   b3..b0 a11..a8   b11..b4
//! numbers   a7..a0   0000 a11..a8     b7..b0   0000 b11..b8
//! ```

/// Bytes of two packed samples, and of the same as numbers.
const PACKED: usize = 3;
const NUMBERS: usize = 4;
/// The largest sample.
const SAMPLE_MAX: u16 = 0xfff;

/// Returns the bytes of the numbers for this many packed bytes. An incomplete pair at the end has none.
pub const fn numbers_bytes(packed: u64) -> u64 {
    packed / PACKED as u64 * NUMBERS as u64
}

/// Returns the packed bytes of this many bytes of numbers.
pub const fn packed_bytes(numbers: u64) -> u64 {
    numbers / NUMBERS as u64 * PACKED as u64
}

/// Unpacks samples into little-endian numbers of 16 bits. Stops at the end of the shorter one.
pub fn unpack_12(packed: &[u8], numbers: &mut [u8]) {
    for (&[low, middle, high], pair) in packed.as_chunks::<PACKED>().0.iter().zip(numbers.as_chunks_mut().0) {
        *pair = [low, middle & 0x0f, middle >> 4 | high << 4, high >> 4];
    }
}

/// Packs little-endian numbers of 16 bits. Stops at the end of the shorter one. Returns false if a number has more
/// than 12 bits.
#[must_use]
pub fn pack_12(numbers: &[u8], packed: &mut [u8]) -> bool {
    let mut all = 0;
    for (&[a, a_high, b, b_high], pair) in
        numbers.as_chunks::<NUMBERS>().0.iter().zip(packed.as_chunks_mut().0)
    {
        all |= u16::from_le_bytes([a, a_high]) | u16::from_le_bytes([b, b_high]);
        *pair = [a, a_high | b << 4, b >> 4 | b_high << 4];
    }
    all <= SAMPLE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_numbers_and_back() {
        let packed = [0xbc, 0xea, 0xff, 0x01, 0x20, 0x00];
        let mut numbers = [0; 8];
        unpack_12(&packed, &mut numbers);
        let values = numbers.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
        assert_eq!(values.collect::<Vec<_>>(), [0xabc, 0xffe, 0x001, 0x002]);
        let mut again = [0; 6];
        assert!(pack_12(&numbers, &mut again));
        assert_eq!(again, packed);
        assert_eq!((numbers_bytes(6), packed_bytes(8), numbers_bytes(7)), (8, 6, 8));
    }

    #[test]
    fn a_number_of_more_bits_is_no_sample() {
        let mut packed = [0; 3];
        for (number, is_sample) in [(0x0fff, true), (0x1000, false), (0xffff, false)] {
            let [low, high] = u16::to_le_bytes(number);
            assert_eq!(pack_12(&[low, high, 0, 0], &mut packed), is_sample, "{number:x}");
            assert_eq!(pack_12(&[0, 0, low, high], &mut packed), is_sample, "{number:x}");
        }
    }
}
