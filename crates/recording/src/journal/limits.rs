//! Limits on the numbers in a journal. A recording may come from anybody, so the reader checks each number
//! once, when it reads its record. All later code relies on that.
//!
//! | number | at least | at most |
//! |---|---|---|
//! | lanes | 1 | [`LANES_MAX`] |
//! | lane | 0 | lanes - 1 |
//! | frame size, in bytes | 1 | [`FRAME_SIZE_MAX`] |
//! | stride, in bytes | frame size | [`FRAME_SIZE_MAX`] |
//! | frames per file | 1 | [`FRAMES_PER_FILE_MAX`] |
//! | number of a frame, also in a dataset, and frames due | 0 | [`NUMBER_MAX`], and [`BYTES_MAX`] of frames |
//! | file | 0 | [`NUMBER_MAX`] |
//! | offset in a file, and where a frame ends there | 0 | [`BYTES_MAX`] |
//! | size of a frame, and of the last one | 1 | frame size |
//! | length of a frame in a file | 1; its size, if it is not encoded | [`super::Encoding::length_max`] of its size |
//! | time when a frame was due, in ns | 0 | [`TIME_MAX`] |
//! | packets of a gap | 0 | [`GAP_MAX`] |
//! | dataset that has a frame | 0 | [`DATASETS_MAX`] |
//! | records of a checkpoint | 0 | [`NUMBER_MAX`] |
//!
//! [`crate::Stream`] and [`crate::instrument::Origin`] check the content of a journal's texts.

use std::io;

use super::{Encoding, Entry, FrameExtent, Head, record::entries};
use crate::{Due, Gap};

/// Lanes of a recording.
pub const LANES_MAX: u64 = 4096;
/// Bytes of a frame or a block of packets. One write has no more.
pub const FRAME_SIZE_MAX: u64 = u32::MAX as u64;
/// Frames per file.
pub const FRAMES_PER_FILE_MAX: u64 = 1 << 40;
/// Number of a frame or a file. At a million per second it lasts nine years.
pub const NUMBER_MAX: u64 = 1 << 48;
/// Bytes of all frames together, and offset of a frame: half of the kernel's limit.
pub const BYTES_MAX: u64 = 1 << 62;
/// Nanoseconds, 292 years.
pub const TIME_MAX: u64 = u64::MAX >> 1;
/// Datasets of frames in a file.
pub const DATASETS_MAX: u64 = (1 << 15) - 1;
/// Packets in one gap.
pub const GAP_MAX: u64 = 1 << 48;

/// A number that no recorder writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: it is {least} to {most} in any journal")]
pub struct OutOfLimits {
    /// Name of the number.
    pub field: &'static str,
    /// Its value.
    pub value: u64,
    /// Least valid value.
    pub least: u64,
    /// Greatest valid value.
    pub most: u64,
}

impl From<OutOfLimits> for io::Error {
    fn from(number: OutOfLimits) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, number)
    }
}

fn within(field: &'static str, value: u64, least: u64, most: u64) -> Result<(), OutOfLimits> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(OutOfLimits { field, value, least, most }) }
}

impl Head {
    /// Checks that all numbers are within their limits.
    pub fn check(&self) -> Result<(), OutOfLimits> {
        let Head { lane, lanes, frame_size, stride, frames_per_file, .. } = *self;
        within("lanes", lanes.into(), 1, LANES_MAX)?;
        within("lane", lane.into(), 0, u64::from(lanes) - 1)?;
        within("frame size", frame_size, 1, FRAME_SIZE_MAX)?;
        within("stride", stride, frame_size, FRAME_SIZE_MAX)?;
        within("frames per file", frames_per_file, 1, FRAMES_PER_FILE_MAX)
    }

    /// Checks that the numbers of an entry are valid in the journal of this head. Check the head first.
    pub fn check_entry(&self, entry: &Entry) -> Result<(), OutOfLimits> {
        let last = NUMBER_MAX.min(BYTES_MAX / self.frame_size - 1);
        match *entry {
            Entry::Head(head) => head.check(),
            Entry::Frame { number, extent, due, .. } => {
                within("number", number, 0, last)?;
                within("due", due, 0, TIME_MAX)?;
                self.check_extent(extent)
            }
            Entry::Gap { number, gap: Gap { count, .. } } => {
                within("number", number, 0, last)?;
                within("packets of a gap", count, 0, GAP_MAX)
            }
            Entry::Placed { number, place } => {
                within("number", number, 0, last)?;
                within("index in a dataset", place.index, 0, last)?;
                within("dataset", place.dataset.into(), 0, DATASETS_MAX)
            }
            Entry::Durable { file } | Entry::Removed { file } | Entry::Chunk { file, .. } => {
                within("file", file, 0, NUMBER_MAX)
            }
            Entry::End { due: Some(Due { frames, last: length }) } => {
                within("frames due", frames, 0, last)?;
                length.map_or(Ok(()), |length| within("last length", length.into(), 1, self.frame_size))
            }
            Entry::Checkpoint { records } => within("records of a checkpoint", records, 0, NUMBER_MAX),
            Entry::End { due: None }
            | Entry::Origin(_)
            | Entry::Stream(_)
            | Entry::Contents(_)
            | Entry::Plugin(_)
            | Entry::Boot { .. } => Ok(()),
        }
    }

    /// Reads consecutive records, the first of them with sequence number `first`. Stops at the first record
    /// that is incomplete or exceeds a limit, and also returns the error in the latter case.
    pub fn entries_within_limits(&self, first: u64, records: &[u8]) -> (Vec<Entry>, io::Result<()>) {
        let mut entries = entries(first, records);
        let checked = entries.iter().map(|entry| self.check_entry(entry));
        let Some((at, wrong)) = checked.enumerate().find_map(|(at, checked)| Some((at, checked.err()?)))
        else {
            return (entries, Ok(()));
        };
        entries.truncate(at);
        let why = format!("its record {} says {wrong}", first + at as u64);
        (entries, Err(io::Error::new(io::ErrorKind::InvalidData, why)))
    }

    fn check_extent(&self, extent: FrameExtent) -> Result<(), OutOfLimits> {
        let FrameExtent { file, offset, length, encoding, size } = extent;
        within("file", file, 0, NUMBER_MAX)?;
        within("offset", offset, 0, BYTES_MAX - u64::from(length))?;
        within("size", size.into(), 1, self.frame_size)?;
        let least = if encoding == Encoding::Raw { size } else { 1 };
        within("length", length.into(), least.into(), encoding.length_max(size.into()))
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{FileNames, Format, Storing};

    use super::*;
    use crate::journal::DatasetPlace;

    fn head() -> Head {
        Head {
            recording: u64::MAX,
            lane: 4095,
            lanes: 4096,
            frame_size: 1 << 20,
            stride: 1 << 21,
            frames_per_file: 7,
            storing: Storing::Files,
            format: Format::Raw,
            names: FileNames::default(),
        }
    }

    #[test]
    fn a_head_within_all_limits_passes_and_each_number_is_held_against_its_own() {
        assert_eq!(head().check(), Ok(()));
        for (wrong, field) in [
            (Head { lanes: 0, ..head() }, "lanes"),
            (Head { lanes: u32::MAX, ..head() }, "lanes"),
            (Head { lane: 4096, ..head() }, "lane"),
            (Head { frame_size: 0, ..head() }, "frame size"),
            (Head { frame_size: 1 << 33, stride: 1 << 33, ..head() }, "frame size"),
            (Head { stride: (1 << 20) - 1, ..head() }, "stride"),
            (Head { frames_per_file: 0, ..head() }, "frames per file"),
            (Head { frames_per_file: u64::MAX, ..head() }, "frames per file"),
        ] {
            assert_eq!(wrong.check().expect_err("it can't be").field, field);
        }
    }

    #[test]
    fn an_entry_within_all_limits_passes_and_each_number_is_held_against_its_own() {
        let frame = |number, file, offset, due, size| {
            let extent = head().extent(file, offset, size);
            Entry::Frame { number, extent, due, checksum: None }
        };
        let stored = |length, encoding| {
            let extent = FrameExtent { length, encoding, ..head().extent(0, 0, 4000) };
            Entry::Frame { number: 0, extent, due: 0, checksum: None }
        };
        let longest = Encoding::Cbf.length_max(4000) as u32;
        let gap = |number, count| Entry::Gap {
            number,
            gap: Gap { at: u32::MAX, count, filled: true, sender: None },
        };
        let placed =
            |number, dataset, index| Entry::Placed { number, place: DatasetPlace { dataset, index } };
        let end = |frames, last| Entry::End { due: Some(Due { frames, last: Some(last) }) };
        let most = (1 << 42) - 1;
        for right in [
            frame(most, NUMBER_MAX, BYTES_MAX - (1 << 20), TIME_MAX, 1 << 20),
            stored(longest, Encoding::Cbf),
            gap(most, GAP_MAX),
            placed(most, DATASETS_MAX as u32, most),
            end(most, 1 << 20),
            Entry::End { due: None },
        ] {
            assert_eq!(head().check_entry(&right), Ok(()), "{right:?}");
        }
        for (wrong, field) in [
            (frame(most + 1, 0, 0, 0, 1), "number"),
            (placed(most + 1, 0, 0), "number"),
            (placed(0, 0, most + 1), "index in a dataset"),
            (placed(0, DATASETS_MAX as u32 + 1, 0), "dataset"),
            (frame(0, NUMBER_MAX + 1, 0, 0, 1), "file"),
            (frame(0, 0, BYTES_MAX, 0, 1), "offset"),
            (stored(3999, Encoding::Raw), "length"),
            (stored(4001, Encoding::Raw), "length"),
            (stored(0, Encoding::Cbf), "length"),
            (stored(longest + 1, Encoding::Cbf), "length"),
            (frame(0, 0, 0, TIME_MAX + 1, 1), "due"),
            (frame(0, 0, 0, 0, (1 << 20) + 1), "size"),
            (frame(0, 0, 0, 0, 0), "size"),
            (gap(u64::MAX, 0), "number"),
            (gap(0, GAP_MAX + 1), "packets of a gap"),
            (end(1 << 53, 1), "frames due"),
            (end(1, u32::MAX), "last length"),
            (Entry::Removed { file: u64::MAX }, "file"),
        ] {
            assert_eq!(head().check_entry(&wrong).expect_err("it can't be").field, field);
        }
    }
}
