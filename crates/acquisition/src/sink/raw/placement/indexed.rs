//! Files with an index inside, for any way of storing. The steps of the index come between those of the plain
//! placement.

use nilometer_storage::{Open, Slot};

use super::{FileStep, LastFile, Placement};

/// Adds an index to the placement of plain files.
#[derive(Debug)]
pub(super) struct Indexed {
    pub(super) plain: Box<dyn Placement>,
    /// Files are synced.
    pub(super) synced: bool,
    pub(super) owner: IndexOwner,
}

/// The writer of a file's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexOwner {
    /// The lane, whose file it is.
    Lane,
    /// The recording, once all lanes have written their frames into the file.
    Recording,
}

impl Indexed {
    fn with_index(&self, steps: &[FileStep]) -> Vec<FileStep> {
        match self.owner {
            IndexOwner::Lane => with_index(steps, self.synced),
            IndexOwner::Recording => without_index(steps),
        }
    }
}

/// Adds only the steps that let written frames have their records, before the file is synced or closed. The
/// lane ends at no byte that it knows, so it cuts nothing.
fn without_index(steps: &[FileStep]) -> Vec<FileStep> {
    let mut all = Vec::new();
    for &step in steps {
        match step {
            FileStep::Truncate(..) | FileStep::Allocate(_) => {}
            FileStep::SyncFile(file) => {
                all.extend(flushed(file));
                all.push(step);
            }
            FileStep::Close(file) => {
                if !steps.contains(&FileStep::SyncFile(file)) {
                    all.extend(flushed(file));
                }
                all.push(step);
            }
            step => all.push(step),
        }
    }
    all
}

/// Adds the steps of the index. It exists before the first frame, is complete before a file is synced or
/// closed, and determines the end of the file.
fn with_index(steps: &[FileStep], synced: bool) -> Vec<FileStep> {
    let closes = |of: u64| steps.contains(&FileStep::Close(of));
    let mut all = Vec::new();
    for &step in steps {
        match step {
            FileStep::Create(file) => {
                all.extend([
                    step,
                    FileStep::OpenIndex(file),
                    FileStep::BeginIndex(file),
                    FileStep::WriteIndex(file),
                ]);
            }
            // The index may lie behind the last frame.
            FileStep::Truncate(..) | FileStep::Allocate(_) => {}
            FileStep::SyncFile(file) if !closes(file) => {
                all.extend(flushed(file));
                all.push(step);
            }
            // A first sync lets the index state when its frames became durable.
            FileStep::SyncFile(file) => {
                all.extend(flushed(file));
                all.push(step);
                all.extend(sealed(file));
                all.push(step);
            }
            FileStep::Close(file) => {
                if !steps.contains(&FileStep::SyncFile(file)) {
                    all.extend(flushed(file));
                    all.extend(sealed(file));
                    // A file that is removed next need not be synced.
                    let stays = synced && !steps.contains(&FileStep::Remove(file));
                    all.extend(stays.then_some(FileStep::SyncFile(file)));
                }
                all.extend([FileStep::CloseIndex(file), step]);
            }
            step => all.push(step),
        }
    }
    all
}

fn flushed(file: u64) -> [FileStep; 4] {
    [
        FileStep::AwaitFrames(file),
        FileStep::FlushIndex(file),
        FileStep::WriteIndex(file),
        FileStep::Indexed(file),
    ]
}

fn sealed(file: u64) -> [FileStep; 4] {
    [
        FileStep::SealIndex(file),
        FileStep::WriteIndex(file),
        FileStep::Indexed(file),
        FileStep::CutIndexed(file),
    ]
}

impl Placement for Indexed {
    /// Fallback only: frames go to the position that the index allocates.
    fn offset(&self, file: u64, issued: u64, number: u64) -> u64 {
        self.plain.offset(file, issued, number)
    }

    fn slot(&self, file: u64) -> Slot {
        self.plain.slot(file)
    }

    fn opens(&self) -> Open {
        self.plain.opens()
    }

    fn is_many_files(&self) -> bool {
        self.plain.is_many_files()
    }

    fn makes_ahead(&self) -> bool {
        self.plain.makes_ahead()
    }

    fn reserves_all(&self) -> bool {
        self.plain.reserves_all()
    }

    fn reserved(&self, file: u64) -> u64 {
        self.plain.reserved(file)
    }

    fn unfilled(&self, file: u64, filling: u64) -> u64 {
        self.plain.unfilled(file, filling)
    }

    fn make(&self, file: u64) -> Vec<FileStep> {
        self.with_index(&self.plain.make(file))
    }

    fn complete(&self, file: u64) -> Vec<FileStep> {
        self.with_index(&self.plain.complete(file))
    }

    fn end(&self, last: LastFile) -> Vec<FileStep> {
        self.with_index(&self.plain.end(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_whole_before_its_file_is_synced_and_closed() {
        let steps = with_index(&[FileStep::Truncate(3, 9), FileStep::SyncFile(3), FileStep::Close(3)], true);
        let at = |step| steps.iter().rposition(|other| *other == step).expect("it is done");
        assert!(at(FileStep::Indexed(3)) < at(FileStep::CutIndexed(3)));
        assert!(at(FileStep::SealIndex(3)) < at(FileStep::CutIndexed(3)));
        assert!(at(FileStep::CutIndexed(3)) < at(FileStep::SyncFile(3)));
        assert!(at(FileStep::CloseIndex(3)) < at(FileStep::Close(3)));
        assert!(!steps.contains(&FileStep::Truncate(3, 9)));
        let part = with_index(&[FileStep::SyncFile(3)], true);
        assert_eq!(part[..2], [FileStep::AwaitFrames(3), FileStep::FlushIndex(3)]);
    }

    #[test]
    fn a_lane_cuts_nothing_from_a_file_that_others_write_too() {
        let steps = without_index(&[FileStep::Truncate(3, 9), FileStep::SyncFile(3), FileStep::Close(3)]);
        let recorded = [FileStep::AwaitFrames(3), FileStep::FlushIndex(3), FileStep::WriteIndex(3)];
        let rest = [FileStep::Indexed(3), FileStep::SyncFile(3), FileStep::Close(3)];
        assert_eq!(steps, [&recorded[..], &rest].concat());
        let unsynced = without_index(&[FileStep::Create(0), FileStep::Allocate(0), FileStep::Close(0)]);
        assert_eq!(unsynced[..2], [FileStep::Create(0), FileStep::AwaitFrames(0)]);
    }
}
