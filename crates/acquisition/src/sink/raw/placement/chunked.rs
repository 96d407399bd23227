//! Chunks of consecutive frames. A file is made when its first frame is there, because its name depends on that
//! frame.

use nilometer_model::ChunkNumber;
use nilometer_storage::Slot;

use super::{FileStep, LastFile, Placement, Rules};

/// Placement in chunks of consecutive frames.
#[derive(Debug)]
pub(super) struct Chunked {
    pub(super) rules: Rules,
    /// Numbering in the names of its files.
    pub(super) number: ChunkNumber,
}

impl Placement for Chunked {
    fn offset(&self, _file: u64, issued: u64, number: u64) -> u64 {
        let frames = match self.number {
            // A stream has nothing between its frames.
            ChunkNumber::InOrder => issued,
            // A missing frame leaves its place empty.
            ChunkNumber::Position => number % self.rules.head.frames_per_file,
        };
        frames * self.rules.head.stride
    }

    fn slot(&self, file: u64) -> Slot {
        Rules::slot_of_many(file)
    }

    fn is_many_files(&self) -> bool {
        true
    }

    fn makes_ahead(&self) -> bool {
        false
    }

    fn reserved(&self, _file: u64) -> u64 {
        self.rules.file_size()
    }

    fn unfilled(&self, file: u64, filling: u64) -> u64 {
        self.rules.unfilled(file, filling)
    }

    fn make(&self, file: u64) -> Vec<FileStep> {
        self.rules.make([FileStep::Name(file), FileStep::Create(file)], file)
    }

    fn complete(&self, file: u64) -> Vec<FileStep> {
        self.rules.complete_file(file)
    }

    /// Ends the file with the chunk.
    fn end(&self, last: LastFile) -> Vec<FileStep> {
        let LastFile { file, frames, end, .. } = last;
        if frames == 0 {
            return Vec::new();
        }
        let cut = self.rules.cut(file, end);
        cut.into_iter().chain(self.complete(file)).collect()
    }
}
