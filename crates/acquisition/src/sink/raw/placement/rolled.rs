//! Files of N frames, one after the other: the next one is made before it is needed, old ones may be removed.

use nilometer_storage::Slot;

use super::{FileStep, LastFile, Placement, Rules};

/// Placement in files of N frames, one after the other.
#[derive(Debug)]
pub(super) struct Rolled(pub(super) Rules);

impl Placement for Rolled {
    fn offset(&self, _file: u64, issued: u64, _number: u64) -> u64 {
        issued * self.0.head.stride
    }

    fn slot(&self, file: u64) -> Slot {
        Rules::slot_of_many(file)
    }

    fn is_many_files(&self) -> bool {
        true
    }

    fn reserved(&self, _file: u64) -> u64 {
        self.0.file_size()
    }

    fn unfilled(&self, file: u64, filling: u64) -> u64 {
        self.0.unfilled(file, filling)
    }

    fn make(&self, file: u64) -> Vec<FileStep> {
        self.0.make([FileStep::Room(file), FileStep::Create(file)], file)
    }

    fn complete(&self, file: u64) -> Vec<FileStep> {
        let mut steps = self.0.complete_file(file);
        if let Some(old) = self.0.keep.and_then(|keep| file.checked_sub(keep.max(1))) {
            steps.extend(self.0.note_removed(old).chain([FileStep::Remove(old)]));
        }
        steps
    }

    fn end(&self, last: LastFile) -> Vec<FileStep> {
        let LastFile { file, frames, end, made, next_made } = last;
        let unused = |file, made: bool| {
            [FileStep::Close(file), FileStep::Remove(file)].into_iter().filter(move |_| made)
        };
        let mut steps = Vec::new();
        if frames > 0 {
            steps.extend(self.0.cut(file, end));
            steps.extend(self.complete(file));
        } else {
            steps.extend(unused(file, made));
        }
        steps.extend(unused(file + 1, next_made));
        steps
    }
}
