//! The header of a VDIF frame (VDIF specification 1.1.1): eight little-endian words of 32 bits, or four in
//! legacy frames.

use crate::time::{epoch_elapsed, utc};

/// A header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VdifHeader {
    /// True if the samples are invalid.
    pub invalid: bool,
    /// Half-years from 2000 to the reference epoch, below 64.
    pub epoch: u8,
    /// Seconds since the reference epoch, below 2^30.
    pub second: u32,
    /// The frame's number in its second, below 2^24.
    pub frame: u32,
    /// Version of the format, below 8.
    pub version: u8,
    /// Logarithm to the base 2 of the number of channels, below 32.
    pub channels_log2: u8,
    /// Bytes of the frame with its header: a multiple of 8, below 2^27.
    pub length: usize,
    /// True if each sample is a pair.
    pub complex: bool,
    /// Bits of a sample, or of each value of a pair: 1 to 32.
    pub bits: u8,
    /// Number of the thread, below 1024.
    pub thread: u16,
    /// Two ASCII characters, the first in the high byte, or a number.
    pub station: u16,
    /// Words 4 to 7. `None` for a legacy header.
    pub extended: Option<[u32; 4]>,
}

impl VdifHeader {
    /// Bytes of a header.
    pub const SIZE: usize = 32;
    /// Bytes of a legacy header.
    pub const LEGACY_SIZE: usize = 16;

    /// Reads the first bytes of a frame. `None` if they are too few.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let words = bytes.first_chunk::<{ VdifHeader::LEGACY_SIZE }>()?.as_chunks().0;
        let [time, frame, length, source] = [0, 1, 2, 3].map(|at| u32::from_le_bytes(words[at]));
        let extended = match time >> 30 & 1 {
            0 => Some(extended(bytes)?),
            _ => None,
        };
        Some(VdifHeader {
            invalid: time >> 31 == 1,
            epoch: (frame >> 24 & 0x3f) as u8,
            second: time & 0x3fff_ffff,
            frame: frame & 0xff_ffff,
            version: (length >> 29) as u8,
            channels_log2: (length >> 24 & 0x1f) as u8,
            length: (length & 0xff_ffff) as usize * 8,
            complex: source >> 31 == 1,
            bits: (source >> 26 & 0x1f) as u8 + 1,
            thread: (source >> 16 & 0x3ff) as u16,
            station: source as u16,
            extended,
        })
    }

    /// Bytes of this header.
    pub const fn size(&self) -> usize {
        if self.extended.is_some() { Self::SIZE } else { Self::LEGACY_SIZE }
    }

    /// Returns the extended data version. `None` for a legacy header.
    pub fn edv(&self) -> Option<u8> {
        self.extended.map(|words| (words[0] >> 24) as u8)
    }

    /// Writes the header to the first bytes of a frame, at least [`VdifHeader::size`]. Numbers that are too
    /// large lose their highest bits.
    pub fn write(&self, bytes: &mut [u8]) {
        let legacy = u32::from(self.extended.is_none());
        let words = [
            u32::from(self.invalid) << 31 | legacy << 30 | self.second & 0x3fff_ffff,
            u32::from(self.epoch & 0x3f) << 24 | self.frame & 0xff_ffff,
            u32::from(self.version) << 29
                | u32::from(self.channels_log2 & 0x1f) << 24
                | (self.length / 8) as u32 & 0xff_ffff,
            u32::from(self.complex) << 31
                | (u32::from(self.bits).wrapping_sub(1) & 0x1f) << 26
                | u32::from(self.thread & 0x3ff) << 16
                | u32::from(self.station),
        ];
        let words = words.into_iter().chain(self.extended.into_iter().flatten());
        for (word, to) in words.zip(bytes.as_chunks_mut().0) {
            *to = word.to_le_bytes();
        }
    }

    /// Returns the seconds elapsed since 2000-01-01 00:00 UTC, including leap seconds.
    pub fn elapsed(&self) -> u64 {
        epoch_elapsed(self.epoch) + u64::from(self.second)
    }

    /// Returns the seconds since 2000-01-01 00:00 UTC without leap seconds, as in Unix time.
    pub fn since_2000(&self) -> u64 {
        utc(self.elapsed())
    }

    /// Returns the frames per second that headers with EDV 1 and 3 state, as the rate of complex samples or
    /// half that of real ones.
    pub fn frames_per_second(&self) -> Option<u64> {
        let [rate, ..] = self.extended.filter(|_| matches!(self.edv(), Some(1 | 3)))?;
        let hertz = u64::from(rate & 0x7f_ffff) * if rate >> 23 & 1 == 1 { 1_000_000 } else { 1000 };
        let parts = if self.complex { 2 } else { 1 };
        // Values do not cross words.
        let values =
            (self.length.checked_sub(self.size())? / 4) as u64 * (32 / (u64::from(self.bits) * parts));
        let samples = values >> self.channels_log2;
        let all = hertz * (3 - parts);
        let rate = (samples > 0 && all.is_multiple_of(samples)).then(|| all / samples);
        // The frame's number has no room for higher rates.
        rate.filter(|rate| (1..=1 << 24).contains(rate))
    }
}

fn extended(bytes: &[u8]) -> Option<[u32; 4]> {
    let words = bytes.get(VdifHeader::LEGACY_SIZE..VdifHeader::SIZE)?.as_chunks().0;
    Some([0, 1, 2, 3].map(|at| u32::from_le_bytes(words[at])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first header of a recording of the EVN and the VLBA, with EDV 3.
    const SAMPLE: [u32; 8] = [
        0x00db_2c77,
        0x1c00_0000,
        0x2000_0275,
        0x0401_fffc,
        0x0380_0010,
        0xacab_feed,
        0x3340_0000,
        0xf203_1583,
    ];

    fn bytes_of(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_header_of_a_recording_is_read_and_written() {
        let bytes = bytes_of(&SAMPLE);
        let header = VdifHeader::parse(&bytes).expect("it is whole");
        let expected = VdifHeader {
            invalid: false,
            epoch: 28,
            second: 14_363_767,
            frame: 0,
            version: 1,
            channels_log2: 0,
            length: 5032,
            complex: false,
            bits: 2,
            thread: 1,
            station: 65_532,
            extended: Some([0x0380_0010, 0xacab_feed, 0x3340_0000, 0xf203_1583]),
        };
        assert_eq!(header, expected);
        assert_eq!((header.edv(), header.frames_per_second(), header.size()), (Some(3), Some(1600), 32));
        // 2014-06-16 05:56:07, from `date -u`, less 2000-01-01.
        assert_eq!(header.since_2000(), 1_402_898_167 - 946_684_800);
        let mut again = vec![0; 32];
        header.write(&mut again);
        assert_eq!(again, bytes);
    }

    #[test]
    fn a_legacy_header_has_half_the_words() {
        let mut words = SAMPLE;
        words[0] |= 1 << 30;
        let bytes = bytes_of(&words);
        let header = VdifHeader::parse(&bytes[..16]).expect("it is whole");
        assert_eq!((header.size(), header.edv(), header.frames_per_second()), (16, None, None));
        let mut again = vec![0; 16];
        header.write(&mut again);
        assert_eq!(again, bytes[..16]);
        assert_eq!(VdifHeader::parse(&bytes[..15]), None);
        assert_eq!(VdifHeader::parse(&bytes_of(&SAMPLE)[..31]), None);
    }

    #[test]
    fn rates_are_read_in_both_units() {
        let sample = VdifHeader::parse(&bytes_of(&SAMPLE)).expect("it is whole");
        let told = |word, header: VdifHeader| {
            VdifHeader { extended: Some([word, 0, 0, 0]), ..header }.frames_per_second()
        };
        assert_eq!(told((1 << 24) + 16_000, sample), Some(1600), "16 000 kHz, EDV 1");
        assert_eq!(told(3 << 24 | 1 << 23 | 16, VdifHeader { complex: true, ..sample }), Some(1600));
        assert_eq!(told(3 << 24 | 1 << 23 | 16, VdifHeader { channels_log2: 2, ..sample }), Some(6400));
        assert_eq!(told((3 << 24) + 25, sample), None, "two and a half a second");
        let short = VdifHeader { length: 40, ..sample };
        assert_eq!(told(3 << 24 | 0xff_ffff, short), None, "more than frame numbers");
        assert_eq!(told(1 << 23 | 16, sample), None, "EDV 0 tells none");
        assert_eq!(
            told(3 << 24 | 1 << 23 | 16, VdifHeader { bits: 32, complex: true, ..sample }),
            None,
            "no sample fits"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_borne(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let Some(header) = VdifHeader::parse(&bytes) else {
                prop_assert!(bytes.len() < 32);
                return Ok(());
            };
            header.frames_per_second();
            let mut again = vec![0; header.size()];
            header.write(&mut again);
            let mut known = bytes[..header.size()].to_vec();
            // Two bits have no meaning.
            known[7] &= 0x3f;
            prop_assert_eq!(again, known);
        }
    }
}
