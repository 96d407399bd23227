//! Files that are put whole: their frames are held until the storage has the file, which is not before it is
//! over. A file is over when it is full, after a while if frames arrive slowly, or when no more arrive.

use nilometer_model::Nanos;

use super::LaneFiles;

/// The file that is being filled.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldFile {
    file: u64,
    /// Time at which the file is put, full or not.
    until: Nanos,
}

impl LaneFiles {
    /// Ends the file being filled, if its frames have waited too long.
    pub(super) fn put_in_time(&mut self, now: Nanos) {
        let (file, frames) = self.files.last();
        if frames == 0 || self.finishing {
            self.checkpoint = None;
            return;
        }
        let begun = || HeldFile { file, until: now + self.layout.checkpoint };
        let HeldFile { until, .. } = self.held.filter(|held| held.file == file).unwrap_or_else(begun);
        self.held = Some(HeldFile { file, until });
        self.checkpoint = (until < Nanos::MAX).then_some(until);
        if now >= until && self.program.is_done() {
            self.end_file();
        }
    }

    /// Ends the file: the next frame goes into another file, or into another chunk of the same lease.
    pub(super) fn end_file(&mut self) {
        let (file, frames) = self.files.last();
        if frames == 0 {
            return;
        }
        if self.chunks.is_some() {
            self.end_chunk();
            match self.waiting.as_ref().map(|frame| frame.number) {
                Some(first) => self.begin_chunk(first),
                None => self.lease_goes_on = true,
            }
            return;
        }
        self.complete_group();
        self.files.end();
        self.add_complete(file);
        self.add_make(file + 2);
    }
}
