//! The latest frames: a file of a fixed size, whose oldest part is overwritten. Its space is taken at once. The
//! lane notes a part as removed before it overwrites it.
//!
//! ```text
//! keep 2 of        | part 0 | part 1 | part 2 | part 3 |
//! being filled                                   ^ part 7, the eighth
//! next             ^ part 8 in the place of part 4, which is noted as removed
//! ```

use super::{FileStep, LastFile, Placement, Rules};
use crate::sink::raw::layout::OPEN;

/// Placement of the latest frames in a ring of parts.
#[derive(Debug)]
pub(super) struct Overwritten(pub(super) Rules);

impl Overwritten {
    /// Number of parts: those to keep, the one being filled, and the next.
    fn parts(&self) -> u64 {
        self.0.keep.unwrap_or(1).max(1).saturating_add(OPEN - 1)
    }
}

impl Placement for Overwritten {
    fn offset(&self, file: u64, issued: u64, _number: u64) -> u64 {
        (file % self.parts() * self.0.head.frames_per_file + issued) * self.0.head.stride
    }

    fn reserves_all(&self) -> bool {
        true
    }

    fn reserved(&self, _file: u64) -> u64 {
        self.0.file_size().saturating_mul(self.parts())
    }

    fn unfilled(&self, _file: u64, _filling: u64) -> u64 {
        self.parts()
    }

    fn make(&self, file: u64) -> Vec<FileStep> {
        if file == 0 {
            return self.0.make([FileStep::Room(file), FileStep::Create(file)], file);
        }
        let old = file.checked_sub(self.parts());
        let noted = old.into_iter().flat_map(|old| self.0.note_removed(old));
        noted.chain([FileStep::Overwrite(file, old)]).collect()
    }

    fn complete(&self, file: u64) -> Vec<FileStep> {
        self.0.complete_part(file)
    }

    fn end(&self, last: LastFile) -> Vec<FileStep> {
        self.0.end_of_only_file(last)
    }
}
