//! What a lane does beside writing frames, in order and one at a time.

use std::collections::VecDeque;

use nilometer_model::Storing;
use nilometer_storage::{Buffer, OpKind, Open, Operation, ROOT};

use super::{Files, Log, RawLayout, layout::THROUGH};
use crate::journal::Entry;

/// A step of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chore {
    CreateJournal,
    /// A record for the journal.
    Note(Entry),
    /// Whether there is room for the file, or for another part: if not, nothing is done with it.
    Room(u64),
    Create(u64),
    Allocate(u64),
    /// The file once more, through the cache.
    OpenThrough(u64),
    /// Once its writes are done.
    CloseThrough(u64),
    /// Frames may go into this file from now on.
    Ready(u64),
    /// The file's size becomes this many bytes, once its writes are done.
    Truncate(u64, u64),
    /// Once its writes are done.
    SyncFile(u64),
    SyncNames,
    /// Once its writes are done: the slot is used again.
    Close(u64),
    /// Once the records up to the last note are written.
    Remove(u64),
    /// Once the records up to the last note are written.
    SyncJournal,
    /// Once all records are written.
    CloseJournal,
}

impl Chore {
    /// Which file it is about, if one of frames.
    fn file(self) -> Option<u64> {
        match self {
            Chore::Room(file)
            | Chore::Create(file)
            | Chore::Allocate(file)
            | Chore::OpenThrough(file)
            | Chore::CloseThrough(file)
            | Chore::Ready(file)
            | Chore::Truncate(file, _)
            | Chore::SyncFile(file)
            | Chore::Close(file)
            | Chore::Remove(file) => Some(file),
            _ => None,
        }
    }
}

/// The chores to come, and whether one is being done.
#[derive(Debug, Default)]
pub(super) struct Program {
    chores: VecDeque<Chore>,
    doing: Option<Chore>,
    journal_is_open: bool,
    /// A file is open once more, through the cache.
    through: bool,
    /// Records of the journal up to the last note of a file.
    notes: u64,
    /// The last file noted as durable, and the last for which that note is durable itself.
    noted: Option<u64>,
    durable: Option<u64>,
}

impl Program {
    pub(super) fn add(&mut self, chores: impl IntoIterator<Item = Chore>) {
        self.chores.extend(chores);
    }

    /// It could not be started after all.
    pub(super) fn put_back(&mut self, chore: Chore) {
        self.chores.push_front(chore);
    }

    /// A file will not be made: what was to be done with it is dropped.
    pub(super) fn cancel(&mut self, file: u64) {
        self.chores.retain(|chore| chore.file() != Some(file));
    }

    /// The next chore, if none is being done and it may be done now.
    pub(super) fn next(&mut self, files: &Files, log: &Log) -> Option<Chore> {
        let may = match (self.doing, self.chores.front()?) {
            (Some(_), _) => false,
            (
                None,
                Chore::SyncFile(file)
                | Chore::Truncate(file, _)
                | Chore::Close(file)
                | Chore::CloseThrough(file),
            ) => files.is_quiet(*file),
            (None, Chore::SyncJournal | Chore::Remove(_)) => log.has_written(self.notes),
            (None, Chore::CloseJournal) => log.is_quiet(),
            _ => true,
        };
        if may { self.chores.pop_front() } else { None }
    }

    /// The operation that does a chore.
    pub(super) fn start(&mut self, chore: Chore, layout: &RawLayout, buffer: Buffer) -> Operation {
        self.doing = Some(chore);
        let named =
            |kind, slot, name: String, buffer| Operation::named(kind, ROOT, slot, name.as_bytes(), buffer);
        let new = if layout.head.storing == Storing::Shared { Open::SHARED } else { Open::CREATE };
        let on = |kind, slot, offset, buffer| Operation { offset, ..Operation::on(kind, slot, buffer) };
        match chore {
            Chore::CreateJournal => {
                named(OpKind::Open(Open::CREATE), Log::SLOT, layout.journal_name(), buffer)
            }
            Chore::Create(file) => {
                let kind = OpKind::Open(new.direct_if(layout.direct));
                named(kind, layout.slot(file), layout.file_name(file), buffer)
            }
            Chore::Allocate(file) => on(OpKind::Allocate, layout.slot(file), layout.file_size(), buffer),
            Chore::OpenThrough(file) => {
                named(OpKind::Open(Open::WRITE), THROUGH, layout.file_name(file), buffer)
            }
            Chore::CloseThrough(_) => on(OpKind::Close, THROUGH, 0, buffer),
            Chore::Truncate(file, bytes) => on(OpKind::Truncate, layout.slot(file), bytes, buffer),
            Chore::SyncFile(file) => on(OpKind::SyncData, layout.slot(file), 0, buffer),
            Chore::SyncNames => on(OpKind::Sync, ROOT, 0, buffer),
            Chore::Close(file) => on(OpKind::Close, layout.slot(file), 0, buffer),
            Chore::Remove(file) => named(OpKind::Unlink, ROOT, layout.file_name(file), buffer),
            Chore::SyncJournal => on(OpKind::SyncData, Log::SLOT, 0, buffer),
            Chore::CloseJournal => on(OpKind::Close, Log::SLOT, 0, buffer),
            Chore::Note(_) | Chore::Room(_) | Chore::Ready(_) => {
                unreachable!("these need no operation, see `RawFiles::chore`")
            }
        }
    }

    /// The chore being done is done.
    pub(super) fn completed(&mut self) {
        match self.doing.take() {
            Some(Chore::CreateJournal) => self.journal_is_open = true,
            Some(Chore::CloseJournal) => self.journal_is_open = false,
            Some(Chore::SyncJournal) => self.durable = self.noted,
            Some(Chore::OpenThrough(_)) => self.through = true,
            _ => {}
        }
    }

    /// A note is the last of so many records of the journal.
    pub(super) fn noted(&mut self, entry: Entry, records: u64) {
        self.notes = records;
        if let Entry::Durable { file } = entry {
            self.noted = Some(file);
        }
    }

    pub(super) fn durable(&self) -> Option<u64> {
        self.durable
    }

    pub(super) fn through_is_open(&self) -> bool {
        self.through
    }

    pub(super) fn journal_is_open(&self) -> bool {
        self.journal_is_open
    }

    pub(super) fn is_done(&self) -> bool {
        self.chores.is_empty() && self.doing.is_none()
    }
}
