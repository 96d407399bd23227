//! Small files and directories on a target, one operation after the other, by one of its engines. Callers
//! must be able to wait.

use std::cell::{Cell, RefCell};

use nilometer_storage::{
    Buffer, Completion, Engine, Errno, OpKind, Open, Operation, PATIENCE, ROOT, Slot, Wait,
    listing::{self, Stat},
};

use nilometer_model::Nanos;

/// The time limit for removing many files, one by one.
pub(crate) const CLEANED_WITHIN: Nanos = Nanos::from_millis(600_000);

/// Files in a target's own directory, through an engine with [`SLOTS`] slots.
pub(crate) struct TargetFiles {
    engine: RefCell<Box<dyn Engine>>,
    /// True after an operation without an answer. The answer may still come, so this sends no further
    /// operation.
    is_hung: Cell<bool>,
}

/// The slots that the engine needs: the directory, one to walk into, and a file.
pub(crate) const SLOTS: u32 = 3;
const DIR: Slot = Slot(1);
const FILE: Slot = Slot(2);
/// Bytes of a buffer for names, listings and small files.
const ROOM: usize = 1 << 16;

impl std::fmt::Debug for TargetFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TargetFiles")
    }
}

impl TargetFiles {
    /// Uses an engine with [`SLOTS`].
    pub(crate) fn new(engine: Box<dyn Engine>) -> Self {
        TargetFiles { engine: RefCell::new(engine), is_hung: Cell::new(false) }
    }

    /// Does one operation within [`PATIENCE`]. A listing of many names takes many requests, and has the time
    /// of a cleaning.
    fn run(&self, operation: Operation) -> Result<Answer, Errno> {
        if self.is_hung.get() {
            return Err(Errno::ETIMEDOUT);
        }
        let mut engine = self.engine.borrow_mut();
        let mut done = Vec::new();
        let now = engine.tick();
        let patience = if operation.kind == OpKind::List { CLEANED_WITHIN } else { PATIENCE };
        let limit = now + patience;
        engine.submit(operation, now);
        while done.is_empty() {
            engine.reap(Wait::Until(limit), &mut done);
            if done.is_empty() && engine.tick() >= limit {
                self.is_hung.set(true);
                return Err(Errno::ETIMEDOUT);
            }
        }
        let Completion { operation, result, .. } = done.remove(0);
        result.map(|length| Answer { length: length as usize, buffer: operation.buffer })
    }

    fn named(&self, kind: OpKind, place: Place<'_>, file: Slot) -> Result<Answer, Errno> {
        self.enter(place.directory)?;
        self.run(Operation::named(kind, place.slot(), file, place.name.as_bytes(), Buffer::alone(ROOM)))
    }

    /// Opens the directory of this name; the root is open already.
    fn enter(&self, directory: Option<&str>) -> Result<(), Errno> {
        let Some(name) = directory else { return Ok(()) };
        self.run(Operation::named(OpKind::OpenDir, ROOT, DIR, name.as_bytes(), Buffer::alone(ROOM))).map(drop)
    }

    pub(crate) fn make_dir(&self, place: Place<'_>) -> Result<(), Errno> {
        self.named(OpKind::MakeDir, place, ROOT).map(drop)
    }

    pub(crate) fn remove_dir(&self, place: Place<'_>) -> Result<(), Errno> {
        self.named(OpKind::RemoveDir, place, ROOT).map(drop)
    }

    pub(crate) fn unlink(&self, place: Place<'_>) -> Result<(), Errno> {
        self.named(OpKind::Unlink, place, ROOT).map(drop)
    }

    /// Gives a file of the root another name there.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        let mut buffer = Buffer::alone(ROOM);
        let second = from.len() + 1;
        buffer[second..second + to.len()].copy_from_slice(to.as_bytes());
        self.run(Operation::named(OpKind::Rename, ROOT, ROOT, from.as_bytes(), buffer)).map(drop)
    }

    pub(crate) fn stat(&self, place: Place<'_>) -> Result<Stat, Errno> {
        self.named(OpKind::Stat, place, ROOT).map(|answer| Stat::take(&answer.buffer))
    }

    /// Writes a new file, at most [`ROOM`] bytes a write, and syncs it so that it survives the loss of power.
    pub(crate) fn write_new(&self, place: Place<'_>, bytes: &[u8]) -> Result<(), Errno> {
        self.named(OpKind::Open(Open::CREATE), place, FILE)?;
        let mut offset = 0;
        let mut written = Ok(());
        for part in bytes.chunks(ROOM) {
            let mut buffer = Buffer::alone(ROOM);
            buffer[..part.len()].copy_from_slice(part);
            let write = Operation::write(FILE, offset, part.len() as u32, buffer);
            written = self
                .run(write)
                .and_then(|answer| if answer.length == part.len() { Ok(()) } else { Err(Errno::ENOSPC) });
            offset += part.len() as u64;
            if written.is_err() {
                break;
            }
        }
        let synced = written.and_then(|()| self.run(Operation::on(OpKind::Sync, FILE, Buffer::alone(1))));
        let closed = self.run(Operation::on(OpKind::Close, FILE, Buffer::alone(1)));
        synced.and(closed).map(drop)
    }

    /// Reads the beginning of a file.
    pub(crate) fn read(&self, place: Place<'_>) -> Result<Vec<u8>, Errno> {
        self.named(OpKind::Open(Open::READ), place, FILE)?;
        let read = self.run(Operation::read(FILE, 0, ROOM as u32, Buffer::alone(ROOM)));
        // The bytes are the answer, even if the close fails.
        drop(self.run(Operation::on(OpKind::Close, FILE, Buffer::alone(1))));
        read.map(|answer| answer.buffer[..answer.length].to_vec())
    }

    /// All names in the root, or in a directory in it.
    pub(crate) fn names(&self, directory: Option<&str>) -> Result<Vec<(String, u8)>, Errno> {
        // The root's own slot lists only once.
        self.enter(Some(directory.unwrap_or(".")))?;
        let mut names = Vec::new();
        loop {
            let answer = self.run(Operation::on(OpKind::List, DIR, Buffer::alone(ROOM)))?;
            if answer.length == 0 {
                return Ok(names);
            }
            let listed = listing::entries(&answer.buffer[..answer.length]);
            names.extend(listed.map(|(name, kind)| (String::from_utf8_lossy(name).into_owned(), kind)));
        }
    }
}

/// The result of an operation.
struct Answer {
    length: usize,
    buffer: Buffer,
}

/// A name in the engine's directory, or in a directory there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    directory: Option<&'a str>,
    name: &'a str,
}

impl<'a> Place<'a> {
    /// In the root.
    pub(crate) fn root(name: &'a str) -> Self {
        Place { directory: None, name }
    }

    /// In a directory of the root.
    pub(crate) fn within(directory: &'a str, name: &'a str) -> Self {
        Place { directory: Some(directory), name }
    }

    fn slot(self) -> Slot {
        if self.directory.is_some() { DIR } else { ROOT }
    }
}
