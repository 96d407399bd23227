//! The report on a dump, in the answers of the service and in the summary beside the file.

use std::path::PathBuf;

use nilometer_recording::view::BlockReading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The end of the name of the summary beside a complete file: `FILE.dump.json`.
pub const DUMP_SUMMARY_SUFFIX: &str = ".dump.json";

/// The state of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DumpState {
    /// It reads and writes, or waits; `waits_for` gives the reason.
    #[default]
    Running,
    /// The file is complete, and durable.
    Complete,
    /// It failed; `error` says why. No file is left.
    Failed,
    /// A client ended it, or the service ended. No file is left.
    Cancelled,
}

/// The reason why a dump waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DumpWait {
    /// The next frames are not on storage yet.
    Frames,
    /// The recorder's buffer is too full: the recording goes first.
    Buffer,
}

/// The result of comparing a block with its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockCheck {
    /// There was nothing to compare.
    None,
    /// They agree.
    Right,
    /// They differ.
    Damaged,
}

/// Frames one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DumpedRange {
    /// The number of the first one in the recording, from 0.
    pub first: u64,
    /// Their number.
    pub frames: u64,
}

/// A dump: its request, its progress and its result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DumpReport {
    /// The number of the dump, from 1.
    pub id: u64,
    /// The progress so far, or the end.
    pub state: DumpState,
    /// The name of the recording.
    pub recording: String,
    /// The begin as the client wrote it.
    pub begin: Option<String>,
    /// The end as the client wrote it.
    pub end: Option<String>,
    /// The file. It has this name once it is complete. The suffix is unknown until the dump has opened the recording.
    pub path: PathBuf,
    /// The reason why it waits; `null` while it copies, and at the end.
    pub waits_for: Option<DumpWait>,
    /// The number in the recording of the file's first frame, or `null` until the dump reads it.
    pub first_frame: Option<u64>,
    /// The number of frames in the file so far, with those that stand in for absent ones.
    pub frames: u64,
    /// The number of frames that the file will have, or `null` until the dump has found its last frame.
    pub part_frames: Option<u64>,
    /// The size of the file so far.
    pub bytes: u64,
    /// True if the recorder had overwritten the frames at the begin already. The file begins with the oldest frame
    /// that was left.
    pub begins_late: bool,
    /// True if the recording ended before the end of the part.
    pub ends_early: bool,
    /// The number of frames that the recorder overwrote before the dump had read them. Frames marked as invalid
    /// stand in for them.
    pub overtaken_frames: u64,
    /// The first 100 ranges of those frames.
    pub overtaken: Vec<DumpedRange>,
    /// The number of frames that the recording never had.
    pub missing_frames: u64,
    /// The number of frames that the storage failed to give back.
    pub unreadable_frames: u64,
    /// The number of frames in blocks that agree with the checksums of the journal. A recording has checksums with
    /// `checksums`.
    pub verified_frames: u64,
    /// The number of frames in blocks that differ from their checksums. The file has them as the storage returned them.
    pub damaged_frames: u64,
    /// The first 100 ranges of those frames.
    pub damaged: Vec<DumpedRange>,
    /// The mean rate since the dump began to copy, with its pauses.
    pub bytes_per_second: f64,
    /// The share of full speed that the fill of the recorder's buffer allows at the moment, from 0 to 1.
    pub speed_share: f64,
    /// The reason of a failure, or of a missing summary.
    pub error: Option<String>,
}

/// The dumps that a request began: one, or one for each data stream.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum BegunDumps {
    /// The only dump.
    One(Box<DumpReport>),
    /// A dump for each data stream.
    Many(DumpList),
}

impl BegunDumps {
    pub(crate) fn of(mut dumps: Vec<DumpReport>) -> Self {
        match dumps.len() {
            1 => BegunDumps::One(Box::new(dumps.remove(0))),
            _ => BegunDumps::Many(DumpList { dumps }),
        }
    }
}

/// Dumps, the oldest first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DumpList {
    pub(crate) dumps: Vec<DumpReport>,
}

/// The most ranges in a report.
const RANGES_MAX: usize = 100;

impl DumpReport {
    /// Counts frames from one block, with the number of their first one in the recording.
    pub(super) fn count(&mut self, reading: BlockReading, range: DumpedRange, bytes: u64) {
        self.frames += range.frames;
        self.bytes += bytes;
        match reading {
            BlockReading::Stored => {}
            BlockReading::Missing => self.missing_frames += range.frames,
            BlockReading::Unreadable => self.unreadable_frames += range.frames,
            BlockReading::Overwritten => self.overtake(range),
        }
    }

    /// Counts the result of comparing the block of these frames with its checksum.
    pub(super) fn count_check(&mut self, check: BlockCheck, range: DumpedRange) {
        match check {
            BlockCheck::None => {}
            BlockCheck::Right => self.verified_frames += range.frames,
            BlockCheck::Damaged => {
                self.damaged_frames += range.frames;
                add_range(&mut self.damaged, range);
            }
        }
    }

    fn overtake(&mut self, range: DumpedRange) {
        self.overtaken_frames += range.frames;
        add_range(&mut self.overtaken, range);
    }
}

/// Adds a range to a list with a limit, and joins it with the last one if it follows that.
fn add_range(ranges: &mut Vec<DumpedRange>, range: DumpedRange) {
    let has_room = ranges.len() < RANGES_MAX;
    match ranges.last_mut() {
        Some(last) if last.first + last.frames == range.first => last.frames += range.frames,
        _ if has_room => ranges.push(range),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overtaken_frames_are_counted_and_named() {
        let mut report = DumpReport::default();
        let range = |first| DumpedRange { first, frames: 10 };
        report.count(BlockReading::Stored, range(0), 100);
        report.count(BlockReading::Overwritten, range(10), 100);
        report.count(BlockReading::Overwritten, range(20), 100);
        report.count(BlockReading::Missing, range(30), 100);
        report.count(BlockReading::Unreadable, range(40), 100);
        report.count(BlockReading::Overwritten, range(50), 100);
        assert_eq!((report.frames, report.bytes), (60, 600));
        assert_eq!((report.overtaken_frames, report.missing_frames, report.unreadable_frames), (30, 10, 10));
        assert_eq!(report.overtaken, [DumpedRange { first: 10, frames: 20 }, range(50)]);
    }

    #[test]
    fn frames_with_and_without_a_right_checksum_are_counted() {
        let mut report = DumpReport::default();
        let range = |first| DumpedRange { first, frames: 10 };
        for (check, first) in [
            (BlockCheck::Right, 0),
            (BlockCheck::Damaged, 10),
            (BlockCheck::Damaged, 20),
            (BlockCheck::None, 30),
        ] {
            report.count_check(check, range(first));
        }
        assert_eq!((report.verified_frames, report.damaged_frames), (10, 20));
        assert_eq!(report.damaged, [DumpedRange { first: 10, frames: 20 }]);
    }

    #[test]
    fn a_report_names_a_limited_number_of_ranges() {
        let mut report = DumpReport::default();
        for number in 0..1000 {
            report.count(BlockReading::Overwritten, DumpedRange { first: 2 * number, frames: 1 }, 1);
        }
        assert_eq!((report.overtaken.len(), report.overtaken_frames), (RANGES_MAX, 1000));
    }
}
