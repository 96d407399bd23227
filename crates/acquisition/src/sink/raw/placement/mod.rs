//! Positions of frames in a lane's files, and the steps around them. Pure; a file for each way of storing.
//!
//! | storing | where | |
//! |---|---|---|
//! | files | [`rolled`] | files of N frames, one after the other |
//! | scattered, positions | [`chunked`] | the same, made when their first frame is there |
//! | growing, shared | [`only`] | parts of N frames of one file |
//! | ring | [`overwritten`] | parts of one file that are written again and again |
//!
//! A "file" is one of many, or a part of the only one.

mod chunked;
mod indexed;
mod only;
mod overwritten;
mod rolled;

use std::fmt::Debug;

use nilometer_model::{ChunkNumber, Format, Storing};
use nilometer_storage::{Open, Slot};

use super::{
    Durability, FileStep, RawLayout,
    layout::{FIRST, OPEN},
};
use nilometer_recording::journal::{Entry, Head};

/// Positions of frames in a lane's files, and the steps for each file.
pub(super) trait Placement: Debug + Send {
    /// Offset in bytes at which frame `number` begins, the `issued`th of `file`. It counts from the start of
    /// the file on the storage.
    fn offset(&self, file: u64, issued: u64, number: u64) -> u64;
    /// The slot of a file while it is open.
    fn slot(&self, file: u64) -> Slot {
        let _ = file;
        Slot(FIRST)
    }
    /// Options for making a file.
    fn opens(&self) -> Open {
        Open::CREATE
    }
    /// Returns true if each file has a name of its own.
    fn is_many_files(&self) -> bool {
        false
    }
    /// Returns true if files are made before their first frame is there: two of them when a lane begins.
    fn makes_ahead(&self) -> bool {
        true
    }
    /// Returns true if the lane appends, one write at a time: a write behind the end of the file can't be
    /// appended.
    fn appends(&self) -> bool {
        false
    }
    /// Returns true if the space of the whole recording is taken before the first frame.
    fn reserves_all(&self) -> bool {
        false
    }
    /// End of the reserved space in the file on the storage, once this one is made.
    fn reserved(&self, file: u64) -> u64;
    /// Number of files that need room when this one is made, while another is being filled.
    fn unfilled(&self, file: u64, filling: u64) -> u64;
    /// Steps that make a file.
    fn make(&self, file: u64) -> Vec<FileStep>;
    /// Steps for a file whose frames are all issued.
    fn complete(&self, file: u64) -> Vec<FileStep>;
    /// Steps for the end of the recording or chunk.
    fn end(&self, last: LastFile) -> Vec<FileStep>;
}

/// The file that is being filled when the recording ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LastFile {
    pub(super) file: u64,
    /// Frames in it.
    pub(super) frames: u64,
    /// End of the last frame.
    pub(super) end: u64,
    /// The file is made; `next_made` says the same of the one behind it.
    pub(super) made: bool,
    pub(super) next_made: bool,
}

/// Settings that placements share.
#[derive(Debug, Clone, Copy)]
struct Rules {
    head: Head,
    /// Files are synced when they are full.
    synced: bool,
    /// Space is reserved when a file is made.
    preallocate: bool,
    /// Full files to keep.
    keep: Option<u64>,
    /// Files are put whole: nothing lies behind the written bytes, and nothing can be cut off.
    whole_files: bool,
}

impl Rules {
    /// Bytes of a full file.
    fn file_size(&self) -> u64 {
        self.head.frames_per_file.saturating_mul(self.head.stride)
    }

    /// Steps that apply only if files are synced.
    fn if_synced<const N: usize>(&self, steps: [FileStep; N]) -> impl Iterator<Item = FileStep> {
        steps.into_iter().filter(|_| self.synced)
    }

    fn if_preallocated(&self, step: FileStep) -> Option<FileStep> {
        self.preallocate.then_some(step)
    }

    /// Cuts the file behind its last frame.
    fn cut(&self, file: u64, end: u64) -> Option<FileStep> {
        (!self.whole_files).then_some(FileStep::Truncate(file, end))
    }

    /// Number of files that need room for this one. If space is reserved, earlier files have theirs.
    fn unfilled(&self, file: u64, filling: u64) -> u64 {
        if self.preallocate { 1 } else { file + 1 - filling.min(file) }
    }

    /// Adds the steps that reserve the file's space and let frames go into it.
    fn make(&self, steps: impl IntoIterator<Item = FileStep>, file: u64) -> Vec<FileStep> {
        let allocate = self.if_preallocated(FileStep::Allocate(file));
        steps.into_iter().chain(allocate).chain([FileStep::Ready(file)]).collect()
    }

    /// Cuts the only file behind its last frame, and frees space reserved behind it.
    fn end_of_only_file(&self, last: LastFile) -> Vec<FileStep> {
        let LastFile { file, frames, end, .. } = last;
        // All parts are made with the first.
        let made = last.made || file > 0;
        let cut = self.if_preallocated(FileStep::Truncate(file, end)).filter(|_| made);
        let complete = if frames > 0 { self.complete_part(file) } else { Vec::new() };
        let close = made.then_some(FileStep::Close(file));
        cut.into_iter().chain(complete).chain(close).collect()
    }

    /// Steps for a full part of a file that stays open: it is synced, and noted as durable.
    fn complete_part(&self, file: u64) -> Vec<FileStep> {
        let noted = [FileStep::Note(Entry::Durable { file }), FileStep::SyncJournal];
        let synced = [FileStep::SyncFile(file), FileStep::CheckFile(file)];
        self.if_synced(synced).chain(self.if_synced(noted)).collect()
    }

    /// Steps for a full file, which is closed.
    fn complete_file(&self, file: u64) -> Vec<FileStep> {
        let synced = [FileStep::SyncFile(file), FileStep::CheckFile(file), FileStep::SyncNames];
        let noted = [FileStep::Note(Entry::Durable { file }), FileStep::SyncJournal];
        self.if_synced(synced).chain([FileStep::Close(file)]).chain(self.if_synced(noted)).collect()
    }

    /// Steps that note a file as removed, before it is.
    fn note_removed(&self, file: u64) -> impl Iterator<Item = FileStep> {
        let noted = [FileStep::Note(Entry::Removed { file })];
        noted.into_iter().chain(self.if_synced([FileStep::SyncJournal]))
    }

    /// The slot of one of many files.
    fn slot_of_many(file: u64) -> Slot {
        Slot(FIRST + (file % OPEN) as u32)
    }
}

/// Makes the placement of a layout.
pub(super) fn of(layout: &RawLayout) -> Box<dyn Placement> {
    let RawLayout { head, preallocate, keep, durability, whole_files, .. } = *layout;
    let rules = Rules { head, synced: durability == Durability::EachFile, preallocate, keep, whole_files };
    let plain = plain(rules);
    if layout.hdf5.is_none() {
        return plain;
    }
    let owner =
        if head.is_one_dataset() { indexed::IndexOwner::Recording } else { indexed::IndexOwner::Lane };
    Box::new(indexed::Indexed { plain, synced: rules.synced, owner })
}

fn plain(rules: Rules) -> Box<dyn Placement> {
    let head = rules.head;
    match head.storing {
        Storing::Files => Box::new(rolled::Rolled(rules)),
        Storing::Scattered => Box::new(chunked::Chunked { rules, number: ChunkNumber::InOrder }),
        Storing::Positions => Box::new(chunked::Chunked { rules, number: ChunkNumber::Position }),
        // Appended to by one write at a time, unless frames go where an index says.
        Storing::Growing => {
            Box::new(only::OnlyFile { rules, shared: false, appends: head.format != Format::Hdf5 })
        }
        Storing::Shared => Box::new(only::OnlyFile { rules, shared: true, appends: false }),
        Storing::Ring => Box::new(overwritten::Overwritten(rules)),
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{FileNames, Format};

    use super::*;

    fn layout(storing: Storing, keep: Option<u64>) -> RawLayout {
        let head = Head {
            recording: 1,
            lane: 0,
            lanes: 1,
            frame_size: 100,
            stride: 128,
            frames_per_file: 4,
            storing,
            format: Format::Raw,
            names: FileNames::default(),
        };
        let suited = RawLayout::suited("n".into(), head, true);
        RawLayout { keep, durability: Durability::EachFile, ..suited }
    }

    #[test]
    fn each_way_of_storing_has_its_place_for_a_frame() {
        // The third frame of the fifth file, number 30.
        let offset = |storing, keep| of(&layout(storing, keep)).offset(4, 2, 30);
        assert_eq!(offset(Storing::Files, None), 2 * 128);
        assert_eq!(offset(Storing::Scattered, None), 2 * 128);
        // The third frame of its position.
        assert_eq!(offset(Storing::Positions, None), (30 % 4) * 128);
        assert_eq!(offset(Storing::Growing, None), (4 * 4 + 2) * 128);
        assert_eq!(offset(Storing::Shared, None), 30 * 128);
        // The second of three parts.
        assert_eq!(offset(Storing::Ring, Some(1)), (4 + 2) * 128);
    }

    #[test]
    fn a_full_file_is_closed_and_a_part_is_not() {
        for storing in Storing::STORED {
            let placement = of(&layout(storing, Some(1)));
            let steps = placement.complete(7);
            assert_eq!(steps.contains(&FileStep::Close(7)), storing.is_many_files(), "{storing:?}");
            let position = |step| steps.iter().position(|other| *other == step);
            let (synced, noted) =
                (position(FileStep::SyncFile(7)), position(FileStep::Note(Entry::Durable { file: 7 })));
            assert!(synced.is_some() && synced < noted, "{storing:?}: {steps:?}");
            let removed = steps.contains(&FileStep::Remove(6));
            assert_eq!(removed, storing == Storing::Files, "{storing:?}");
        }
    }

    #[test]
    fn an_end_leaves_no_empty_file_and_no_space_behind_the_last_frame() {
        let last = LastFile { file: 2, frames: 0, end: 1024, made: true, next_made: true };
        let ends = |storing, last| of(&layout(storing, None)).end(last);
        let gone = [2, 3].map(|file| [FileStep::Close(file), FileStep::Remove(file)]).concat();
        assert_eq!(ends(Storing::Files, last), gone);
        let filled = LastFile { frames: 1, ..last };
        assert_eq!(ends(Storing::Files, filled)[0], FileStep::Truncate(2, 1024));
        assert_eq!(ends(Storing::Shared, last), [FileStep::Truncate(2, 1024), FileStep::Close(2)]);
        let none = LastFile { file: 0, frames: 0, end: 0, made: false, next_made: false };
        for storing in Storing::STORED {
            assert_eq!(ends(storing, none), [], "there was no room: {storing:?}");
        }
    }
}
