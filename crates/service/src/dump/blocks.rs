//! Reads the blocks of a dump, compares them with the checksums of the journal, and counts them in its report.

use std::ops::Range;

use nilometer_recording::{
    reader::{Checksums, Recording},
    view::{BlockReading, RecordingView},
};

use super::{
    progress::DumpProgress,
    report::{BlockCheck, DumpedRange},
};

/// A reader of a dump's blocks.
#[derive(Debug)]
pub(super) struct DumpReader<'a> {
    view: &'a RecordingView,
    progress: DumpProgress,
    checksums: Checksums,
}

impl<'a> DumpReader<'a> {
    pub(super) fn new(view: &'a RecordingView, progress: DumpProgress) -> Self {
        DumpReader { view, progress, checksums: view.recording(Recording::checksums) }
    }

    /// Reads whole blocks into the buffer, as far as they fit and lie in the range. Returns the bytes read.
    pub(super) fn read(&mut self, range: Range<u64>, buffer: &mut [u8]) -> usize {
        let block = (self.view.frames_of_block() * self.view.frame_size()) as usize;
        let mut filled = 0;
        let mut at = range.start;
        while at < range.end && filled + block <= buffer.len() {
            let room = block.min((range.end - at).try_into().unwrap_or(block));
            let (length, reading) = self.view.read_in_block(at, &mut buffer[filled..filled + room]);
            let check = self.check(at, reading, &buffer[filled..filled + length]);
            self.count(at..at + length as u64, reading, check);
            filled += length;
            at += length as u64;
        }
        filled
    }

    /// Compares a stored block with its checksum.
    fn check(&mut self, at: u64, reading: BlockReading, bytes: &[u8]) -> BlockCheck {
        if reading != BlockReading::Stored {
            return BlockCheck::None;
        }
        match self.view.is_damaged(at, bytes, &mut self.checksums) {
            None => BlockCheck::None,
            Some(false) => BlockCheck::Right,
            Some(true) => BlockCheck::Damaged,
        }
    }

    fn count(&self, range: Range<u64>, reading: BlockReading, check: BlockCheck) {
        let size = self.view.frame_size();
        let first = range.start / size;
        let counted =
            DumpedRange { first: self.view.shown_frames().start + first, frames: range.end / size - first };
        self.progress.change(|report| {
            report.count(reading, counted, range.end - range.start);
            report.count_check(check, counted);
        });
    }
}
