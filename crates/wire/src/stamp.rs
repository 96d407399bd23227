//! Time and thread of a recorded frame, from the header that readers of the recording see.

use nilometer_model::{Format, Moment, Nanos};

use super::{
    filler, mark5b,
    time::{DAY, EPOCH, day_near, elapsed, utc},
    vdif,
};

const SECOND: u64 = 1_000_000_000;

/// Time stamp in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Seconds elapsed since 2000-01-01 00:00 UTC, including leap seconds.
    pub second: u64,
    /// The frame's number in its second.
    pub frame: u64,
    /// Station of the frame, 0 if the format has none.
    pub station: u16,
    /// Thread of the frame, 0 if the format has none.
    pub thread: u16,
    /// True if the header marks the samples as invalid.
    pub invalid: bool,
}

impl Stamp {
    /// Returns station and thread of the frame.
    pub fn lane(&self) -> (u16, u16) {
        (self.station, self.thread)
    }

    /// Returns the time of the frame, to the second if the rate is unknown.
    pub fn moment(&self, frames_per_second: Option<u64>) -> Moment {
        let nanos = frames_per_second.map_or(0, |rate| self.frame.min(rate - 1) * SECOND / rate);
        Moment(Nanos((EPOCH + utc(self.second)) * SECOND + nanos))
    }

    /// Returns the number of frames since 2000, at this rate.
    pub fn count(&self, frames_per_second: u64) -> u64 {
        self.second * frames_per_second + self.frame
    }
}

/// The format of a recording's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamps {
    /// VDIF.
    Vdif,
    /// Mark5B, with a time less than 500 days from all frames.
    Mark5b {
        /// Seconds since 2000.
        near: u64,
    },
}

impl Stamps {
    /// Bytes at the beginning of a frame that a reader needs.
    pub const BYTES: usize = 64;

    /// Returns the headers of this format, if its frames have times.
    pub fn of(format: Format, near: u64) -> Option<Self> {
        match format {
            Format::Vdif => Some(Stamps::Vdif),
            Format::Mark5b => Some(Stamps::Mark5b { near }),
            Format::Raw | Format::Cbf | Format::Hdf5 => None,
        }
    }

    /// Reads the header from the first bytes of a frame of `length` bytes. `None` if they are no header of such
    /// a frame.
    pub fn read(self, bytes: &[u8], length: u64) -> Option<Stamp> {
        match self {
            Stamps::Vdif => {
                let header =
                    vdif::VdifHeader::parse(bytes).filter(|header| header.length as u64 == length)?;
                let second = header.elapsed();
                let frame = u64::from(header.frame);
                let vdif::VdifHeader { station, thread, invalid, .. } = header;
                Some(Stamp { second, frame, station, thread, invalid })
            }
            Stamps::Mark5b { near } => {
                let samples = bytes.get(mark5b::Mark5bHeader::SIZE..)?;
                let header = mark5b::Mark5bHeader::parse(bytes).ok()?;
                let day = day_near(near, header.day)?;
                let second = elapsed(day * DAY + u64::from(header.second));
                let invalid = filler::is_filled(samples);
                Some(Stamp { second, frame: u64::from(header.frame), station: 0, thread: 0, invalid })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Near, tests::format};

    const TELESCOPE: &str = "shape = [40_000]\npixel = \"uint2\"\nframe_rate = \"100 Hz\"\n";

    #[test]
    fn what_was_made_and_what_was_filled_say_when_they_are() {
        let begins = 800_000_000;
        let cases = [
            (
                "format.vdif = { payload = \"2000 B\", threads = [3], stations = [\"Mc\"] }",
                Format::Vdif,
                500,
                3,
                0x4d63,
            ),
            ("format.mark5b = { frame = \"whole\" }", Format::Mark5b, 100, 0, 0),
        ];
        for (packets, stored, rate, thread, station) in cases {
            let format = format(TELESCOPE, packets, begins, 0);
            let mut bytes = vec![0x55; format.geometry().frame_size()];
            format.make(rate + 7, 0, &mut vec![0; format.geometry().prefix], &mut bytes);
            let stamps = Stamps::of(stored, begins + 100 * DAY).expect("it has times");
            let read = |bytes: &[u8]| stamps.read(&bytes[..Stamps::BYTES], bytes.len() as u64);
            let expected = Stamp { second: elapsed(begins) + 1, frame: 7, station, thread, invalid: false };
            assert_eq!(read(&bytes), Some(expected));
            let mut missing = vec![0; bytes.len()];
            format.fill(Some(Near { bytes: &bytes, ahead: -8 }), 0, &mut missing);
            assert_eq!(
                read(&missing),
                Some(Stamp { second: elapsed(begins), frame: rate - 1, invalid: true, ..expected })
            );
            bytes[..16].fill(0);
            assert_eq!(read(&bytes), None);
        }
        assert_eq!(Stamps::of(Format::Raw, 0), None);
    }
}
