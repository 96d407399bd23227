//! One file, which grows or which all lanes share; it is synced by parts of N frames.

use nilometer_storage::Open;

use super::{FileStep, LastFile, Placement, Rules};

/// A file of the lane's own, to which it appends.
#[derive(Debug)]
pub(super) struct Growing(pub(super) Rules);

/// A file of all lanes: each frame at its number, whoever writes it.
#[derive(Debug)]
pub(super) struct Shared(pub(super) Rules);

impl Placement for Growing {
    fn offset(&self, file: u64, issued: u64, _number: u64) -> u64 {
        (file * self.0.head.frames_per_file + issued) * self.0.head.stride
    }

    fn appends(&self) -> bool {
        true
    }

    fn reserved(&self, file: u64) -> u64 {
        reserved(&self.0, file)
    }

    fn unfilled(&self, file: u64, filling: u64) -> u64 {
        unfilled(&self.0, file, filling)
    }

    fn make(&self, file: u64) -> Vec<FileStep> {
        make(&self.0, file)
    }

    fn complete(&self, file: u64) -> Vec<FileStep> {
        self.0.complete_part(file)
    }

    fn end(&self, last: LastFile) -> Vec<FileStep> {
        end(&self.0, last)
    }
}

impl Placement for Shared {
    fn offset(&self, _file: u64, _issued: u64, number: u64) -> u64 {
        number * self.0.head.stride
    }

    fn opens(&self) -> Open {
        Open::SHARED
    }

    fn reserved(&self, file: u64) -> u64 {
        reserved(&self.0, file)
    }

    fn unfilled(&self, file: u64, filling: u64) -> u64 {
        unfilled(&self.0, file, filling)
    }

    fn make(&self, file: u64) -> Vec<FileStep> {
        make(&self.0, file)
    }

    fn complete(&self, file: u64) -> Vec<FileStep> {
        self.0.complete_part(file)
    }

    fn end(&self, last: LastFile) -> Vec<FileStep> {
        end(&self.0, last)
    }
}

/// Part by part, as they are made.
fn reserved(rules: &Rules, file: u64) -> u64 {
    rules.file_size().saturating_mul(file.saturating_add(1))
}

fn unfilled(rules: &Rules, file: u64, filling: u64) -> u64 {
    if rules.preallocate { 1 } else { file + 1 - filling.min(file) }
}

/// The file is made with its first part.
fn make(rules: &Rules, file: u64) -> Vec<FileStep> {
    let create = (file == 0).then_some(FileStep::Create(file));
    let allocate = rules.if_preallocated(FileStep::Allocate(file));
    let made = [FileStep::Room(file)].into_iter().chain(create).chain(allocate);
    made.chain([FileStep::Ready(file)]).collect()
}

/// The file is as long as what is in it; space that was reserved behind that is free again.
pub(super) fn end(rules: &Rules, last: LastFile) -> Vec<FileStep> {
    let LastFile { file, frames, end, .. } = last;
    // All parts are made with the first.
    let made = last.made || file > 0;
    let cut = rules.if_preallocated(FileStep::Truncate(file, end)).filter(|_| made);
    let complete = if frames > 0 { rules.complete_part(file) } else { Vec::new() };
    let close = made.then_some(FileStep::Close(file));
    cut.into_iter().chain(complete).chain(close).collect()
}
