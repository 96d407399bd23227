//! The header of a Mark5B frame (Mark 5B user's manual, "Mark 5B data format"): four little-endian words of 32 bits.

use crate::time::{DAY, MJD_2000};

/// The first word.
const SYNC: u32 = 0xabad_deed;
/// Bits of the frame's number.
const FRAME: u32 = 0x7fff;
/// The bits of a checksum in headers that have none.
const NO_CHECKSUM: u32 = 0;

/// A header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark5bHeader {
    /// Bits 31 to 15 of the second word: years since 2000, the user's bits, and the mark of a test vector.
    pub user: u32,
    /// The frame's number in its second, below 2^15.
    pub frame: u32,
    /// The modified Julian day, modulo 1000.
    pub day: u32,
    /// Second of the day.
    pub second: u32,
    /// Tenths of a millisecond in the second, truncated. Some devices leave it 0.
    pub fraction: u32,
    /// True if the header has a checksum. Some devices leave it 0, and readers such as mark5access and
    /// baseband do not check it.
    pub checked: bool,
}

/// The reason why a header is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The bytes do not begin with the sync word.
    NoSync,
    /// The time is invalid, or there is a checksum and the time does not match it.
    Corrupt,
}

impl Mark5bHeader {
    /// Bytes of a header.
    pub const SIZE: usize = 16;

    /// Reads the first bytes of a frame, at least [`Mark5bHeader::SIZE`].
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let word =
            |at: usize| u32::from_le_bytes(*bytes[4 * at..].first_chunk().expect("a header has four words"));
        Self::from_words([word(0), word(1), word(2), word(3)])
    }

    /// Reads four words.
    pub fn from_words(words: [u32; 4]) -> Result<Self, Fault> {
        let [sync, numbers, time, end] = words;
        if sync != SYNC {
            return Err(Fault::NoSync);
        }
        let checked = crc(time, end >> 16) == end & 0xffff;
        if !checked && end & 0xffff != NO_CHECKSUM {
            return Err(Fault::Corrupt);
        }
        let decimal = |digits| decimal(digits).ok_or(Fault::Corrupt);
        let day = decimal(time >> 20)?;
        let second = decimal(time & 0xf_ffff)?;
        let fraction = decimal(end >> 16)?;
        if u64::from(second) >= DAY {
            return Err(Fault::Corrupt);
        }
        Ok(Mark5bHeader { user: numbers & !FRAME, frame: numbers & FRAME, day, second, fraction, checked })
    }

    /// Returns the header of a frame at `second` since 2000, with this number of frames per second.
    pub fn at(user: u32, second: u64, frame: u64, frames_per_second: u64) -> Self {
        Mark5bHeader {
            user: user & !FRAME,
            frame: frame as u32 & FRAME,
            day: ((MJD_2000 + second / DAY) % 1000) as u32,
            second: (second % DAY) as u32,
            fraction: (frame * 10_000 / frames_per_second.max(1) % 10_000) as u32,
            checked: true,
        }
    }

    /// Returns four words, with the checksum if the header has one.
    pub fn words(&self) -> [u32; 4] {
        let time = digits(self.day) << 20 | digits(self.second);
        let fraction = digits(self.fraction);
        let checksum = if self.checked { crc(time, fraction) } else { NO_CHECKSUM };
        [SYNC, self.user | self.frame, time, fraction << 16 | checksum]
    }

    /// Writes the header to the first bytes of a frame.
    pub fn write(&self, bytes: &mut [u8]) {
        for (word, to) in self.words().into_iter().zip(bytes.as_chunks_mut().0) {
            *to = word.to_le_bytes();
        }
    }
}

/// Returns the number with these decimal digits of four bits each.
fn decimal(digits: u32) -> Option<u32> {
    (0..8).rev().try_fold(0, |number, at| match digits >> (4 * at) & 0xf {
        digit @ 0..=9 => Some(number * 10 + digit),
        _ => None,
    })
}

/// Returns the decimal digits of a number, at most eight.
fn digits(number: u32) -> u32 {
    (0..8).fold((number, 0), |(rest, digits), at| (rest / 10, digits | ((rest % 10) << (4 * at)))).1
}

/// CRC-16 of 48 bits, the highest first: x^16 + x^15 + x^2 + 1, from 0.
fn crc(time: u32, fraction: u32) -> u32 {
    const TABLE: [u16; 256] = table();
    let bits = u64::from(time) << 16 | u64::from(fraction & 0xffff);
    let bytes = bits.to_be_bytes();
    let crc =
        bytes[2..].iter().fold(0_u16, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)]);
    u32::from(crc)
}

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x8005 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first header of a recording of the EVN.
    const SAMPLE: [u8; 16] =
        [0xed, 0xde, 0xad, 0xab, 0, 0, 0xad, 0xbe, 0x01, 0x98, 0x11, 0x82, 0x5d, 0x97, 0, 0];

    #[test]
    fn a_header_of_a_recording_is_read_and_written() {
        let header = Mark5bHeader::parse(&SAMPLE).expect("it was recorded");
        assert_eq!(
            header,
            Mark5bHeader {
                user: 0xbead_0000,
                frame: 0,
                day: 821,
                second: 19_801,
                fraction: 0,
                checked: true
            }
        );
        let mut bytes = [0; 16];
        header.write(&mut bytes);
        assert_eq!(bytes, SAMPLE);
    }

    #[test]
    fn a_flipped_bit_of_time_or_checksum_is_found() {
        for bit in 64..128 {
            let mut bytes = SAMPLE;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Mark5bHeader::parse(&bytes), Err(Fault::Corrupt), "bit {bit}");
        }
        let mut bytes = SAMPLE;
        bytes[3] ^= 1;
        assert_eq!(Mark5bHeader::parse(&bytes), Err(Fault::NoSync));
    }

    #[test]
    fn a_header_without_a_checksum_has_a_time() {
        let mut bytes = SAMPLE;
        bytes[12..14].fill(0);
        let header = Mark5bHeader::parse(&bytes).expect("its digits are decimal");
        assert_eq!((header.day, header.second, header.checked), (821, 19_801, false));
        let mut again = [0; 16];
        header.write(&mut again);
        assert_eq!(again, bytes);
        bytes[8] = 0x0a;
        assert_eq!(Mark5bHeader::parse(&bytes), Err(Fault::Corrupt), "a digit above 9");
    }

    #[test]
    fn times_that_are_none_are_refused_with_a_right_checksum() {
        let header = Mark5bHeader::parse(&SAMPLE).expect("it was recorded");
        for (time, fraction) in [(0x8218_6400, 0), (0x821a_0000, 0), (0x8210_0000, 0xa000)] {
            let mut words = header.words();
            (words[2], words[3]) = (time, fraction << 16 | crc(time, fraction));
            assert_eq!(Mark5bHeader::from_words(words), Err(Fault::Corrupt), "{time:x} {fraction:x}");
        }
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        // 2014-06-13, MJD 56821, 05:30:01; frame 2 of 6400 begins after 0.3125 ms.
        let header = Mark5bHeader::at(0, (56_821 - MJD_2000) * DAY + 19_801, 2, 6400);
        assert_eq!(
            header,
            Mark5bHeader { user: 0, frame: 2, day: 821, second: 19_801, fraction: 3, checked: true }
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            user: u32, frame in 0..0x8000_u32, day in 0..1000_u32, second in 0..86_400_u32, fraction in 0..10_000_u32,
        ) {
            let header = Mark5bHeader { user: user & !FRAME, frame, day, second, fraction, checked: true };
            prop_assert_eq!(Mark5bHeader::from_words(header.words()), Ok(header));
            let unchecked = Mark5bHeader { checked: false, ..header };
            // One checksum in 65536 is 0.
            let checked = header.words() == unchecked.words();
            prop_assert_eq!(Mark5bHeader::from_words(unchecked.words()), Ok(Mark5bHeader { checked, ..header }));
        }

        #[test]
        fn any_bytes_are_borne(bytes: [u8; 16]) {
            let mut bytes = bytes;
            bytes[..4].copy_from_slice(&SYNC.to_le_bytes());
            if let Ok(header) = Mark5bHeader::parse(&bytes) {
                let mut again = [0; 16];
                header.write(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
