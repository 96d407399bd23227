//! One file, which grows or which all lanes share; it is synced by parts of N frames.

use nilometer_storage::Open;

use super::{FileStep, LastFile, Placement, Rules};

/// Placement in one file, by parts of N frames.
#[derive(Debug)]
pub(super) struct OnlyFile {
    pub(super) rules: Rules,
    /// All lanes share the file, with each frame at its number. Otherwise the lane appends to a file of its
    /// own.
    pub(super) shared: bool,
    /// Writes go to the end of the file, one at a time.
    pub(super) appends: bool,
}

impl Placement for OnlyFile {
    fn offset(&self, file: u64, issued: u64, number: u64) -> u64 {
        let frames = if self.shared { number } else { file * self.rules.head.frames_per_file + issued };
        frames * self.rules.head.stride
    }

    fn opens(&self) -> Open {
        if self.shared { Open::SHARED } else { Open::CREATE }
    }

    fn appends(&self) -> bool {
        self.appends
    }

    /// Reserves part by part, as the parts are made.
    fn reserved(&self, file: u64) -> u64 {
        self.rules.file_size().saturating_mul(file.saturating_add(1))
    }

    fn unfilled(&self, file: u64, filling: u64) -> u64 {
        self.rules.unfilled(file, filling)
    }

    /// The file is made with its first part.
    fn make(&self, file: u64) -> Vec<FileStep> {
        let create = (file == 0).then_some(FileStep::Create(file));
        self.rules.make([FileStep::Room(file)].into_iter().chain(create), file)
    }

    fn complete(&self, file: u64) -> Vec<FileStep> {
        self.rules.complete_part(file)
    }

    fn end(&self, last: LastFile) -> Vec<FileStep> {
        self.rules.end_of_only_file(last)
    }
}
