//! Steps of a lane besides writing frames, in order and one at a time.

use std::collections::VecDeque;

use nilometer_storage::{Buffer, OpKind, Open, Operation, ROOT, Slot};

use super::{
    Files, Log, Placement, RawLayout,
    layout::{STREAMER, THROUGH},
};
use nilometer_recording::journal::Entry;

/// Options for opening a file a second time, through the cache.
pub(super) const OPENS: Open = Open::WRITE;

/// A step of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileStep {
    CreateJournal,
    /// A record for the journal.
    Note(Entry),
    /// Checks the room for the file or another part. If there is none, its other steps are dropped.
    Room(u64),
    Create(u64),
    /// Chooses the name of the chunk's file.
    Name(u64),
    Allocate(u64),
    /// Opens the file a second time, through the cache.
    OpenThrough(u64),
    /// Closes the second opening, once its writes are done.
    CloseThrough(u64),
    /// Lets frames go into this file.
    Ready(u64),
    /// Lets frames go into this file, in place of an older part. Waits until the records up to the last note
    /// are written, and no write to the older part is in flight.
    Overwrite(u64, Option<u64>),
    /// Sets the file's size to this many bytes, once its writes are done.
    Truncate(u64, u64),
    /// Syncs the file, once its writes are done.
    SyncFile(u64),
    /// Syncs the writes done so far; others may be in flight.
    SyncPart(u64),
    SyncNames,
    /// Closes the file and frees its slot, once its writes are done.
    Close(u64),
    /// Removes the file, once the records up to the last note are written.
    Remove(u64),
    /// Checks that the file still has its name: a file removed by another program is not recorded.
    CheckFile(u64),
    /// Checks that the journal still has its name.
    CheckJournal,
    /// Syncs the journal, once the records up to the last note are written.
    SyncJournal,
    /// Closes the journal, once all records are written.
    CloseJournal,
    /// Renames the file of a chunk to this number.
    Rename(u64, u32),
    /// Notes that the file of a chunk has its new number.
    Moved(u64),
    /// Waits until no chunk needs another name.
    Settle,
    /// Removes the empty file of a chunk after a failure.
    Discard(u64),
    /// Opens the file of frames a second time, through the cache, for its index.
    OpenIndex(u64),
    /// Prepares the bytes at the beginning of a file.
    BeginIndex(u64),
    /// Waits until the file's writes are done.
    AwaitFrames(u64),
    /// Puts written frames into the index of their file.
    FlushIndex(u64),
    /// Completes the index and the end of the file, once its writes are done.
    SealIndex(u64),
    /// Writes the changes of the index, piece by piece.
    WriteIndex(u64),
    /// Notes that readers now find the frames in the index of this file.
    Indexed(u64),
    /// Reserves space up to this byte.
    ReserveIndexed(u64, u64),
    /// Sets the file's size to that in its index.
    CutIndexed(u64),
    CloseIndex(u64),
    CreateStreamer,
    WriteStreamer,
    CloseStreamer,
}

impl FileStep {
    /// Returns true if the step is about an index and needs no operation.
    pub(super) fn is_of_index(self) -> bool {
        matches!(
            self,
            FileStep::BeginIndex(_)
                | FileStep::AwaitFrames(_)
                | FileStep::FlushIndex(_)
                | FileStep::SealIndex(_)
                | FileStep::Indexed(_)
        )
    }

    /// The file of frames that the step is about, if any.
    pub(super) fn file(self) -> Option<u64> {
        match self {
            FileStep::Room(file)
            | FileStep::Create(file)
            | FileStep::Allocate(file)
            | FileStep::OpenThrough(file)
            | FileStep::CloseThrough(file)
            | FileStep::Ready(file)
            | FileStep::Overwrite(file, _)
            | FileStep::Truncate(file, _)
            | FileStep::SyncFile(file)
            | FileStep::SyncPart(file)
            | FileStep::CheckFile(file)
            | FileStep::Close(file)
            | FileStep::Name(file)
            | FileStep::Rename(file, _)
            | FileStep::Moved(file)
            | FileStep::Discard(file)
            | FileStep::OpenIndex(file)
            | FileStep::BeginIndex(file)
            | FileStep::AwaitFrames(file)
            | FileStep::FlushIndex(file)
            | FileStep::SealIndex(file)
            | FileStep::WriteIndex(file)
            | FileStep::Indexed(file)
            | FileStep::ReserveIndexed(file, _)
            | FileStep::CutIndexed(file)
            | FileStep::CloseIndex(file)
            | FileStep::Remove(file) => Some(file),
            _ => None,
        }
    }
}

/// Names and sizes that a step needs.
#[derive(Debug)]
pub(super) struct StepSubject {
    /// Name of its file, or the text to write.
    pub(super) name: String,
    /// Size that its file gets, if it has an index.
    pub(super) size: u64,
    /// Slot through which the index is written.
    pub(super) index: Slot,
}

/// Remaining steps, and the step in progress.
#[derive(Debug, Default)]
pub(super) struct Program {
    steps: VecDeque<FileStep>,
    doing: Option<FileStep>,
    journal_is_open: bool,
    /// A file is open a second time, through the cache.
    through: bool,
    /// Records of the journal up to the last note of a file.
    notes: u64,
    /// Last file noted as durable, and the last file whose note is durable itself.
    noted: Option<u64>,
    durable: Option<u64>,
    /// Number of records whose frames survive, by the last noted checkpoint and by the last durable one.
    noted_records: u64,
    durable_records: u64,
}

impl Program {
    pub(super) fn add(&mut self, steps: impl IntoIterator<Item = FileStep>) {
        self.steps.extend(steps);
    }

    /// Adds steps before all others.
    pub(super) fn add_first(&mut self, steps: impl DoubleEndedIterator<Item = FileStep>) {
        steps.rev().for_each(|step| self.steps.push_front(step));
    }

    /// Adds steps behind the last one for this file, or else before all others.
    pub(super) fn add_behind(&mut self, file: Option<u64>, steps: impl IntoIterator<Item = FileStep>) {
        let last = self.steps.iter().rposition(|step| file.is_some() && step.file() == file);
        let behind = self.steps.split_off(last.map_or(0, |last| last + 1));
        self.steps.extend(steps.into_iter().chain(behind));
    }

    /// Replaces all remaining steps by these.
    pub(super) fn replace(&mut self, steps: impl IntoIterator<Item = FileStep>) {
        self.steps = steps.into_iter().collect();
    }

    /// Removes the next step without checking its conditions.
    pub(super) fn pop(&mut self) -> Option<FileStep> {
        self.steps.pop_front()
    }

    /// Puts back a step that could not be started.
    pub(super) fn put_back(&mut self, step: FileStep) {
        self.steps.push_front(step);
    }

    /// Drops the steps of a file that will not be made.
    pub(super) fn cancel(&mut self, file: u64) {
        self.steps.retain(|step| step.file() != Some(file));
    }

    /// The next step, if none is in progress and its conditions are met.
    pub(super) fn next(&mut self, files: &Files, log: &Log) -> Option<FileStep> {
        let may = match (self.doing, self.steps.front()?) {
            (Some(_), _) => false,
            (
                None,
                FileStep::SyncFile(file)
                | FileStep::Truncate(file, _)
                | FileStep::Close(file)
                | FileStep::AwaitFrames(file)
                | FileStep::SealIndex(file)
                | FileStep::CloseThrough(file),
            ) => files.is_quiet(*file),
            (None, FileStep::SyncJournal | FileStep::Remove(_)) => log.has_written(self.notes),
            (None, FileStep::Overwrite(_, old)) => {
                log.has_written(self.notes) && old.is_none_or(|old| files.is_quiet(old))
            }
            (None, FileStep::CloseJournal) => log.is_quiet(),
            _ => true,
        };
        if may { self.steps.pop_front() } else { None }
    }

    /// Starts a step as an operation.
    pub(super) fn start(
        &mut self,
        step: FileStep,
        layout: &RawLayout,
        placement: &dyn Placement,
        subject: StepSubject,
        buffer: Buffer,
    ) -> Operation {
        let StepSubject { name, size, index } = subject;
        self.doing = Some(step);
        let named =
            |kind, slot, name: String, buffer| Operation::named(kind, ROOT, slot, name.as_bytes(), buffer);
        let on = |kind, slot, offset, buffer| Operation { offset, ..Operation::on(kind, slot, buffer) };
        match step {
            FileStep::CreateJournal => {
                named(OpKind::Open(Open::GROW), Log::SLOT, layout.journal_name(), buffer)
            }
            FileStep::Create(file) => {
                let kind = OpKind::Open(placement.opens().direct_if(layout.direct));
                named(kind, placement.slot(file), name, buffer)
            }
            FileStep::Allocate(file) => {
                on(OpKind::Allocate, placement.slot(file), placement.reserved(file), buffer)
            }
            FileStep::OpenThrough(_) => named(OpKind::Open(Open::WRITE), THROUGH, name, buffer),
            FileStep::CloseThrough(_) => on(OpKind::Close, THROUGH, 0, buffer),
            FileStep::Truncate(file, bytes) => on(OpKind::Truncate, placement.slot(file), bytes, buffer),
            FileStep::SyncFile(file) | FileStep::SyncPart(file) => {
                on(OpKind::SyncData, placement.slot(file), 0, buffer)
            }
            FileStep::SyncNames => on(OpKind::Sync, ROOT, 0, buffer),
            FileStep::Close(file) => on(OpKind::Close, placement.slot(file), 0, buffer),
            FileStep::CheckFile(_) => named(OpKind::Stat, ROOT, name, buffer),
            FileStep::CheckJournal => named(OpKind::Stat, ROOT, layout.journal_name(), buffer),
            FileStep::Remove(_) | FileStep::Discard(_) => named(OpKind::Unlink, ROOT, name, buffer),
            FileStep::SyncJournal => on(OpKind::SyncData, Log::SLOT, 0, buffer),
            FileStep::CloseJournal => on(OpKind::Close, Log::SLOT, 0, buffer),
            FileStep::Rename(_, number) => {
                renamed(&name, &layout.head.chunk_name(&layout.name, number), buffer)
            }
            FileStep::CreateStreamer => {
                named(OpKind::Open(Open::SHARED), STREAMER, format!("{}.cfg", layout.name), buffer)
            }
            FileStep::WriteStreamer => written(&name, buffer),
            FileStep::CloseStreamer => on(OpKind::Close, STREAMER, 0, buffer),
            FileStep::OpenIndex(_) => named(OpKind::Open(OPENS), index, name, buffer),
            FileStep::ReserveIndexed(_, bytes) => on(OpKind::Allocate, index, bytes, buffer),
            FileStep::CutIndexed(_) => on(OpKind::Truncate, index, size, buffer),
            FileStep::CloseIndex(_) => on(OpKind::Close, index, 0, buffer),
            FileStep::Note(_)
            | FileStep::Room(_)
            | FileStep::Ready(_)
            | FileStep::Overwrite(..)
            | FileStep::Name(_)
            | FileStep::Moved(_)
            | FileStep::BeginIndex(_)
            | FileStep::AwaitFrames(_)
            | FileStep::FlushIndex(_)
            | FileStep::SealIndex(_)
            | FileStep::WriteIndex(_)
            | FileStep::Indexed(_)
            | FileStep::Settle => {
                unreachable!("these need no operation, see `LaneFiles::step`")
            }
        }
    }

    /// Repeats a step for another operation, which is now in flight.
    pub(super) fn do_again(&mut self, step: FileStep) {
        self.steps.push_front(step);
        self.doing = Some(step);
    }

    /// Completes the step in progress and returns it.
    pub(super) fn completed(&mut self) -> Option<FileStep> {
        let done = self.doing.take();
        match done {
            Some(FileStep::CreateJournal) => self.journal_is_open = true,
            Some(FileStep::CloseJournal) => self.journal_is_open = false,
            Some(FileStep::SyncJournal) => {
                self.durable = self.noted;
                self.durable_records = self.noted_records;
            }
            Some(FileStep::OpenThrough(_)) => self.through = true,
            _ => {}
        }
        done
    }

    /// Drops the step in progress, which failed.
    pub(super) fn failed(&mut self) {
        self.doing = None;
    }

    /// Counts a note as the last of `records` records in the journal.
    pub(super) fn noted(&mut self, entry: Entry, records: u64) {
        self.notes = records;
        match entry {
            Entry::Durable { file } => self.noted = Some(file),
            Entry::Checkpoint { records } => self.noted_records = records,
            _ => {}
        }
    }

    pub(super) fn durable(&self) -> Option<u64> {
        self.durable
    }

    /// Number of records whose frames survive a loss of power, in any file.
    pub(super) fn durable_records(&self) -> u64 {
        self.durable_records
    }

    pub(super) fn through_is_open(&self) -> bool {
        self.through
    }

    pub(super) fn journal_is_open(&self) -> bool {
        self.journal_is_open
    }

    /// Returns true if no step is in progress.
    pub(super) fn is_quiet(&self) -> bool {
        self.doing.is_none()
    }

    pub(super) fn is_done(&self) -> bool {
        self.steps.is_empty() && self.doing.is_none()
    }
}

/// Renames a file in the lane's directory.
fn renamed(from: &str, to: &str, buffer: Buffer) -> Operation {
    let mut operation = Operation::named(OpKind::Rename, ROOT, ROOT, from.as_bytes(), buffer);
    let second = &mut operation.buffer[from.len() + 1..];
    second[..to.len()].copy_from_slice(to.as_bytes());
    second[to.len()] = 0;
    operation
}

/// Writes this text into the file for `VLBIstreamer`'s reader.
fn written(text: &str, mut buffer: Buffer) -> Operation {
    buffer[..text.len()].copy_from_slice(text.as_bytes());
    Operation::write(STREAMER, 0, text.len() as u32, buffer)
}
