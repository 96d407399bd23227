//! The operations of `ls -lR`, `du` and recursive grep: list every directory, and look at every entry or read
//! every file. The next operation depends on the entries found; a pure workload can be a dependent one.
//!
//! Directories in the walk lie on a stack, deepest last, and the deepest that has work goes first. At depth 1
//! that is a depth-first walk with one open directory a level; at greater depths siblings overlap.
//!
//! The names of a directory lie in one arena, so an entry needs no allocation. Entries are taken in the order
//! of the listing.

mod search;

pub use search::NEEDLE;

use nilometer_model::Nanos;
use nilometer_plan::WalkCommand;
use nilometer_storage::{
    Buffer, Completion, OpKind, Open, Operation, ROOT, Slot, Step, Wait, Workload,
    listing::{self, Stat},
};

use search::FileSearch;

/// The operations of a walk on its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkTask {
    /// Looks at every entry, in this order.
    Look(WalkCommand),
    /// Reads and searches every file whose type a listing gives. Symlinks are not followed.
    Search,
}

/// The workload of a worker that walks a tree.
#[derive(Debug)]
pub struct Walk {
    root: String,
    task: WalkTask,
    stop_at: Nanos,
    buffers: Vec<Buffer>,
    free_slots: Vec<Slot>,
    open: Vec<Directory>,
    /// For each slot, the index of its directory in `open`.
    place: Vec<usize>,
    to_close: Vec<Slot>,
    /// The next operations of open files.
    ready: Vec<Operation>,
    search: FileSearch,
    spare: Vec<NameArena>,
    flying: u32,
    begun: bool,
    found: FoundEntries,
}

/// The counts of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoundEntries {
    /// Entries that are not directories.
    pub files: u64,
    /// Directories that were listed.
    pub directories: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Directories or entries that could not be read.
    pub errors: u64,
    /// Occurrences of the string that a search looks for.
    pub matches: u64,
}

/// Memory for the names in a directory.
#[derive(Debug, Default)]
struct NameArena {
    names: Vec<u8>,
    left: Vec<Entry>,
    below: Vec<Entry>,
}

#[derive(Debug)]
struct Directory {
    slot: Slot,
    names: Vec<u8>,
    /// The entries to handle next, the last first.
    left: Vec<Entry>,
    /// The directories to enter when nothing else is left.
    below: Vec<Entry>,
    /// Operations in flight on it, and directories open below it.
    pending: u32,
    parent: Option<Slot>,
    listed: Listed,
    /// True if the open succeeded, so that the slot must be closed.
    is_open: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    length: u16,
    kind: EntryKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    /// Look at it.
    Unseen,
    /// Enter it.
    Directory,
    /// Read it.
    File,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    Opening,
    Partly,
    Asked,
    Whole,
}

impl Walk {
    /// Walks the named directory with at most `slots` - 1 directories open. Each buffer takes a listing.
    pub fn new(root: &str, task: WalkTask, slots: u32, stop_at: Nanos, buffers: Vec<Buffer>) -> Self {
        Walk {
            root: root.into(),
            task,
            ready: Vec::with_capacity(buffers.len()),
            search: FileSearch::new(slots.max(2)),
            stop_at,
            buffers,
            free_slots: (1..slots.max(2)).rev().map(Slot).collect(),
            open: Vec::new(),
            place: vec![usize::MAX; slots.max(2) as usize],
            to_close: Vec::new(),
            spare: Vec::new(),
            flying: 0,
            begun: false,
            found: FoundEntries::default(),
        }
    }

    /// The counts so far.
    pub fn found(&self) -> FoundEntries {
        self.found
    }

    fn enter(&mut self, slot: Slot, parent: Option<Slot>) {
        let NameArena { names, left, below } = self.spare.pop().unwrap_or_default();
        self.place[slot.0 as usize] = self.open.len();
        self.open.push(Directory {
            slot,
            names,
            left,
            below,
            pending: 1,
            parent,
            listed: Listed::Opening,
            is_open: false,
        });
        self.flying += 1;
    }

    fn at(&mut self, slot: Slot) -> &mut Directory {
        &mut self.open[self.place[slot.0 as usize]]
    }

    /// The next operation on the directory at `index`, if it has one; the buffer back if not.
    #[inline]
    fn step(&mut self, index: usize, buffer: Buffer) -> Result<Operation, Buffer> {
        let directory = &mut self.open[index];
        let slot = directory.slot;
        let Some(&entry) = directory.left.last() else { return self.step_on(index, buffer) };
        match entry.kind {
            EntryKind::Directory => return self.step_into(index, entry, buffer),
            EntryKind::File => return self.open_file(index, entry, buffer),
            EntryKind::Unseen => {}
        }
        directory.left.pop();
        directory.pending += 1;
        self.flying += 1;
        Ok(Operation {
            tag: u64::from(entry.start),
            ..Operation::named(OpKind::Stat, slot, slot, name(&directory.names, entry), buffer)
        })
    }

    /// Continues when no listed entry is left: reads more of the listing, or enters the directories kept for
    /// the end.
    fn step_on(&mut self, index: usize, buffer: Buffer) -> Result<Operation, Buffer> {
        let directory = &mut self.open[index];
        match (directory.listed, directory.below.last()) {
            (Listed::Whole, Some(&entry)) => return self.step_into(index, entry, buffer),
            (Listed::Partly, _) => {}
            _ => return Err(buffer),
        }
        if directory.pending == 0 && directory.below.is_empty() {
            directory.names.clear();
        }
        directory.listed = Listed::Asked;
        directory.pending += 1;
        self.flying += 1;
        Ok(Operation::on(OpKind::List, directory.slot, buffer))
    }

    fn open_file(&mut self, index: usize, entry: Entry, buffer: Buffer) -> Result<Operation, Buffer> {
        let Some(file) = self.free_slots.pop() else { return Err(buffer) };
        let directory = &mut self.open[index];
        directory.left.pop();
        directory.pending += 1;
        self.flying += 1;
        let open = OpKind::Open(Open::READ);
        Ok(Operation::named(open, directory.slot, file, name(&directory.names, entry), buffer))
    }

    fn step_into(&mut self, index: usize, entry: Entry, buffer: Buffer) -> Result<Operation, Buffer> {
        let Some(child) = self.free_slots.pop() else { return Err(buffer) };
        let directory = &mut self.open[index];
        if directory.left.pop().is_none() {
            directory.below.pop();
        }
        directory.pending += 1;
        let parent = directory.slot;
        let operation =
            Operation::named(OpKind::OpenDir, parent, child, name(&directory.names, entry), buffer);
        self.enter(child, Some(parent));
        Ok(operation)
    }

    /// Takes a directory off the stack when nothing is left of it; then perhaps its parent.
    fn leave_if_done(&mut self, slot: Slot) {
        let index = self.place[slot.0 as usize];
        let directory = &self.open[index];
        let is_empty = directory.left.is_empty() && directory.below.is_empty();
        if directory.listed != Listed::Whole || !is_empty || directory.pending > 0 {
            return;
        }
        let Directory { names, left, below, parent, is_open, .. } = self.open.remove(index);
        for later in &self.open[index..] {
            self.place[later.slot.0 as usize] -= 1;
        }
        self.spare.push(NameArena { names, left, below });
        if is_open { &mut self.to_close } else { &mut self.free_slots }.push(slot);
        if let Some(parent) = parent {
            self.at(parent).pending -= 1;
            self.leave_if_done(parent);
        }
    }

    fn listed(&mut self, slot: Slot, bytes: &[u8]) {
        let task = self.task;
        let directory = self.at(slot);
        directory.pending -= 1;
        directory.listed = if bytes.is_empty() { Listed::Whole } else { Listed::Partly };
        let first = directory.left.len();
        for (name, kind) in listing::entries(bytes) {
            let Some(kind) = task.of_type(kind) else { continue };
            let start = directory.names.len() as u32;
            let length = name.len() as u16;
            directory.names.extend_from_slice(name);
            directory.left.push(Entry { start, length, kind });
        }
        directory.left[first..].reverse();
        self.leave_if_done(slot);
    }

    fn opened(&mut self, slot: Slot, worked: bool) {
        self.found.directories += u64::from(worked);
        let directory = self.at(slot);
        directory.pending -= 1;
        directory.is_open = worked;
        directory.listed = if worked { Listed::Partly } else { Listed::Whole };
        self.leave_if_done(slot);
    }

    #[inline]
    fn looked_at(&mut self, operation: &Operation, worked: bool) {
        let slot = operation.dir;
        let directory = &mut self.open[self.place[slot.0 as usize]];
        directory.pending -= 1;
        if worked {
            let seen = Stat::take(&operation.buffer);
            let start = operation.tag as u32;
            let length = operation.length as u16;
            let entry = |kind| Entry { start, length, kind };
            match (seen.directory, self.task) {
                (true, WalkTask::Look(WalkCommand::Ls)) => directory.below.push(entry(EntryKind::Directory)),
                (true, _) => directory.left.push(entry(EntryKind::Directory)),
                (false, WalkTask::Search) => directory.left.push(entry(EntryKind::File)),
                (false, WalkTask::Look(_)) => {
                    self.found.files += 1;
                    self.found.bytes += seen.size;
                }
            }
        }
        if directory.left.is_empty() {
            self.leave_if_done(slot);
        }
    }

    /// Records that a file is open, or can't be opened: it needs its directory no more.
    fn file_opened(&mut self, operation: Operation, worked: bool) {
        let directory = operation.dir;
        self.at(directory).pending -= 1;
        self.leave_if_done(directory);
        if worked {
            self.found.files += 1;
            self.ready.push(self.search.begin(operation.file, operation.buffer));
        } else {
            self.free_slots.push(operation.file);
            self.buffers.push(operation.buffer);
        }
    }

    fn file_read(&mut self, operation: Operation, moved: Option<u32>) {
        let read = moved.map_or(0, |moved| moved as usize);
        self.found.bytes += read as u64;
        self.found.matches += self.search.look(operation.file, &operation.buffer[..read]);
        self.ready.push(self.search.go_on(operation, read));
    }

    /// Gives up the deepest directory that waits to be entered, if all slots are in use with nothing in flight.
    fn give_up_one(&mut self) -> bool {
        let is_stuck = |directory: &Directory| !(directory.left.is_empty() && directory.below.is_empty());
        let Some(index) = self.open.iter().rposition(is_stuck) else { return false };
        let directory = &mut self.open[index];
        if directory.left.pop().is_none() {
            directory.below.pop();
        }
        self.found.errors += 1;
        let slot = self.open[index].slot;
        self.leave_if_done(slot);
        true
    }

    fn stop(&mut self) {
        for directory in &mut self.open {
            directory.left.clear();
            directory.below.clear();
            directory.listed = Listed::Whole;
        }
        for index in (0..self.open.len()).rev() {
            if let Some(slot) = self.open.get(index).map(|directory| directory.slot) {
                self.leave_if_done(slot);
            }
        }
    }

    fn begin(&mut self, buffer: Buffer) -> Operation {
        self.begun = true;
        let slot = self.free_slots.pop().expect("at least one slot, see `new`");
        self.enter(slot, None);
        Operation::named(OpKind::OpenDir, ROOT, slot, self.root.as_bytes(), buffer)
    }

    fn anywhere(&mut self, mut buffer: Buffer) -> Result<Operation, Buffer> {
        for index in (0..self.open.len()).rev() {
            match self.step(index, buffer) {
                Ok(operation) => return Ok(operation),
                Err(back) => buffer = back,
            }
        }
        Err(buffer)
    }
}

#[inline]
fn name(names: &[u8], entry: Entry) -> &[u8] {
    &names[entry.start as usize..][..usize::from(entry.length)]
}

impl WalkTask {
    /// The handling of an entry of the type that a listing gives; `None` if the walk skips it.
    fn of_type(self, kind: u8) -> Option<EntryKind> {
        match (self, kind) {
            (WalkTask::Look(_), _) | (WalkTask::Search, listing::UNKNOWN) => Some(EntryKind::Unseen),
            (WalkTask::Search, listing::DIRECTORY) => Some(EntryKind::Directory),
            (WalkTask::Search, listing::FILE) => Some(EntryKind::File),
            (WalkTask::Search, _) => None,
        }
    }
}

impl Workload for Walk {
    fn next(&mut self, now: Nanos) -> Step {
        if let Some(operation) = self.ready.pop() {
            self.flying += 1;
            return Step::Issue(operation, now);
        }
        if now >= self.stop_at && !self.open.is_empty() {
            self.stop();
        }
        let Some(mut buffer) = self.buffers.pop() else { return Step::Wait(Wait::ForOne) };
        if !self.begun {
            return Step::Issue(self.begin(buffer), now);
        }
        loop {
            if let Some(slot) = self.to_close.pop() {
                self.flying += 1;
                return Step::Issue(Operation::on(OpKind::Close, slot, buffer), now);
            }
            match self.anywhere(buffer) {
                Ok(operation) => return Step::Issue(operation, now),
                Err(back) => buffer = back,
            }
            if self.flying > 0 || !self.give_up_one() {
                self.buffers.push(buffer);
                return if self.flying > 0 { Step::Wait(Wait::ForOne) } else { Step::Done };
            }
        }
    }

    fn completed(&mut self, completion: Completion) {
        self.flying -= 1;
        let operation = completion.operation;
        let worked = completion.result.is_ok();
        self.found.errors += u64::from(!worked);
        match operation.kind {
            OpKind::Stat => self.looked_at(&operation, worked),
            OpKind::List => {
                let filled = completion.result.map_or(0, |bytes| bytes as usize);
                self.listed(operation.file, &operation.buffer[..filled]);
            }
            OpKind::OpenDir => self.opened(operation.file, worked),
            OpKind::Open(_) => return self.file_opened(operation, worked),
            OpKind::Read => return self.file_read(operation, completion.result.ok()),
            _ => self.free_slots.push(operation.file),
        }
        self.buffers.push(operation.buffer);
    }
}
