//! What a lane does beside writing frames, in order and one at a time.

use std::collections::VecDeque;

use nilometer_storage::{Buffer, OpKind, Open, Operation, ROOT, Slot};

use super::{
    Files, Log, Placement, RawLayout,
    layout::{STREAMER, THROUGH},
};
use nilometer_recording::journal::Entry;

/// How files are opened once more, through the cache.
pub(super) const OPENS: Open = Open::WRITE;

/// A step of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileStep {
    CreateJournal,
    /// A record for the journal.
    Note(Entry),
    /// Whether there is room for the file, or for another part: if not, nothing is done with it.
    Room(u64),
    Create(u64),
    /// The chunk is to have a name.
    Name(u64),
    Allocate(u64),
    /// The file once more, through the cache.
    OpenThrough(u64),
    /// Once its writes are done.
    CloseThrough(u64),
    /// Frames may go into this file from now on.
    Ready(u64),
    /// The same, once the records up to the last note are written, and nothing is in flight to what is overwritten by it.
    Overwrite(u64, Option<u64>),
    /// The file's size becomes this many bytes, once its writes are done.
    Truncate(u64, u64),
    /// Once its writes are done.
    SyncFile(u64),
    /// Whatever is in flight to it: what was written before is synced.
    SyncPart(u64),
    SyncNames,
    /// Once its writes are done: the slot is used again.
    Close(u64),
    /// Once the records up to the last note are written.
    Remove(u64),
    /// The file still has its name: what was removed under the recorder is not recorded, whatever was written.
    CheckFile(u64),
    /// The same of the journal.
    CheckJournal,
    /// Once the records up to the last note are written.
    SyncJournal,
    /// Once all records are written.
    CloseJournal,
    /// The file of a chunk gets this number.
    Rename(u64, u32),
    /// It has it now.
    Moved(u64),
    /// Once no chunk is to be renamed any more.
    Settle,
    /// The file of a chunk in which nothing is, after a failure.
    Discard(u64),
    /// The file of frames once more, through the cache, for its index.
    OpenIndex(u64),
    /// What a file begins with is to be written.
    BeginIndex(u64),
    /// Once its writes are done.
    AwaitFrames(u64),
    /// Frames that are written are put into the index of their file.
    FlushIndex(u64),
    /// The same, once its writes are done, and what the file ends with.
    SealIndex(u64),
    /// What changed of the index is written, piece by piece.
    WriteIndex(u64),
    /// Frames that are in the index of this file can be found by readers now.
    Indexed(u64),
    /// Space is reserved up to here.
    ReserveIndexed(u64, u64),
    /// The file ends where its index says.
    CutIndexed(u64),
    CloseIndex(u64),
    CreateStreamer,
    WriteStreamer,
    CloseStreamer,
}

impl FileStep {
    /// It is about an index, and costs no operation.
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

    /// Which file it is about, if one of frames.
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

/// What a step is about.
#[derive(Debug)]
pub(super) struct StepSubject {
    /// The name of its file, or the text to be written.
    pub(super) name: String,
    /// Bytes that its file is to have, where it has an index.
    pub(super) size: u64,
    /// The slot by which that is written.
    pub(super) index: Slot,
}

/// The steps to come, and whether one is being done.
#[derive(Debug, Default)]
pub(super) struct Program {
    steps: VecDeque<FileStep>,
    doing: Option<FileStep>,
    journal_is_open: bool,
    /// A file is open once more, through the cache.
    through: bool,
    /// Records of the journal up to the last note of a file.
    notes: u64,
    /// The last file noted as durable, and the last for which that note is durable itself.
    noted: Option<u64>,
    durable: Option<u64>,
    /// Up to which record frames survive, by the last checkpoint that is noted, and by the last that is durable itself.
    noted_records: u64,
    durable_records: u64,
}

impl Program {
    pub(super) fn add(&mut self, steps: impl IntoIterator<Item = FileStep>) {
        self.steps.extend(steps);
    }

    /// Before all others.
    pub(super) fn add_first(&mut self, steps: impl DoubleEndedIterator<Item = FileStep>) {
        steps.rev().for_each(|step| self.steps.push_front(step));
    }

    /// Before all others that don't have to do with this file.
    pub(super) fn add_behind(&mut self, file: Option<u64>, steps: impl IntoIterator<Item = FileStep>) {
        let last = self.steps.iter().rposition(|step| file.is_some() && step.file() == file);
        let behind = self.steps.split_off(last.map_or(0, |last| last + 1));
        self.steps.extend(steps.into_iter().chain(behind));
    }

    /// These are done in the place of all others, whatever they would wait for.
    pub(super) fn replace(&mut self, steps: impl IntoIterator<Item = FileStep>) {
        self.steps = steps.into_iter().collect();
    }

    /// The next one, if one is left.
    pub(super) fn pop(&mut self) -> Option<FileStep> {
        self.steps.pop_front()
    }

    /// It could not be started after all.
    pub(super) fn put_back(&mut self, step: FileStep) {
        self.steps.push_front(step);
    }

    /// A file will not be made: what was to be done with it is dropped.
    pub(super) fn cancel(&mut self, file: u64) {
        self.steps.retain(|step| step.file() != Some(file));
    }

    /// The next step, if none is being done and it may be done now.
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

    /// The operation that does a step.
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

    /// A step that an operation is now done for, and that is not done with it.
    pub(super) fn do_again(&mut self, step: FileStep) {
        self.steps.push_front(step);
        self.doing = Some(step);
    }

    /// The step being done is done: which.
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

    /// The step being done failed.
    pub(super) fn failed(&mut self) {
        self.doing = None;
    }

    /// A note is the last of so many records of the journal.
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

    /// Frames in the first so many records survive the loss of power, in whichever files.
    pub(super) fn durable_records(&self) -> u64 {
        self.durable_records
    }

    pub(super) fn through_is_open(&self) -> bool {
        self.through
    }

    pub(super) fn journal_is_open(&self) -> bool {
        self.journal_is_open
    }

    /// Nothing is being done.
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

/// Writes this text into the file for another reader.
fn written(text: &str, mut buffer: Buffer) -> Operation {
    buffer[..text.len()].copy_from_slice(text.as_bytes());
    Operation::write(STREAMER, 0, text.len() as u32, buffer)
}
