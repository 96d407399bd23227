//! The operations of mdtest: make directories and files, look at them, read, rename and remove them, in the
//! directories of a tree.
//!
//! A phase is one walk through the tree. It opens each directory once, relative to its parent, and handles items
//! relative to their directory. By contrast, mdtest gives every call a path from the top.
//!
//! Directories in use lie on a stack, deepest last, and the deepest that has work goes first. At depth 1 one
//! directory of each level is open. At greater depths items overlap, and so do siblings if a directory has too
//! few items.

mod task;

use nilometer_model::{Nanos, Phase, Seed};
use nilometer_plan::TreeCell;
use nilometer_storage::{Buffer, Completion, OpKind, Operation, ROOT, Slot, Step, Wait, Workload};

use super::{
    WorkerPart, decided,
    name::{BUFFER_MIN, Name},
    stamp,
};
use task::{Around, Item, LETTER, RENAMED, Task};

/// The workload of a worker in a tree.
#[derive(Debug)]
pub struct Tree {
    task: Task,
    stage: Stage,
    stop_at: Nanos,
    content: Seed,
    buffers: Vec<Buffer>,
    /// The next operations of open files.
    ready: Vec<Operation>,
    /// The directories, by slot less one.
    directories: Vec<Directory>,
    /// Slots of the directories that are open or being opened, deepest last.
    stack: Vec<Slot>,
    free_directories: Vec<Slot>,
    free_files: Vec<Slot>,
    /// The first slot for a file.
    files: u32,
    /// The number of files begun so far.
    begun: u64,
    flying: u32,
    /// True if nothing more is begun: an operation failed, or the time is over.
    over: bool,
}

/// The state of the first directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Make,
    Enter,
    Inside,
    Remove,
    Done,
}

#[derive(Debug, Clone, Copy)]
struct Directory {
    parent: Slot,
    level: u32,
    state: State,
    /// The next item; its number is that of the items begun.
    item: Name,
    /// The next directory to enter.
    child: Name,
    /// The number of operations in flight in it.
    flying: u32,
    /// The number of its children on the stack.
    below: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Opening,
    Open,
    Closing,
}

impl Tree {
    /// A worker's part of a phase of the cell, with `slots` slots, the run's directory included. It needs at
    /// least one for each level, the first directory and a file. One buffer is enough; each takes a file's
    /// bytes and two names.
    pub fn new(cell: &TreeCell, phase: Phase, slots: u32, part: WorkerPart) -> Self {
        let content = part.seed_for("content");
        let WorkerPart { place, buffers, .. } = part;
        assert!(buffers.iter().all(|buffer| buffer.len() >= BUFFER_MIN), "see `workload::buffer_size`");
        let task = Task::of(cell, phase, place);
        let at_once = (buffers.len() as u32).min(slots.saturating_sub(2 + cell.entered_levels()));
        let files = slots - at_once.max(1);
        Tree {
            stage: Stage::first(&task),
            stop_at: part.stop_at,
            content,
            ready: Vec::with_capacity(buffers.len()),
            buffers,
            directories: vec![Directory::opening(&task, ROOT, 0); files as usize],
            stack: Vec::with_capacity(files as usize),
            free_directories: (1..files).rev().map(Slot).collect(),
            free_files: (files..slots).rev().map(Slot).collect(),
            files,
            begun: 0,
            flying: 0,
            over: false,
            task,
        }
    }

    /// The next operation before or after the walk, with nothing else in flight.
    fn outside(&mut self, mut buffer: Buffer) -> Result<Operation, Buffer> {
        if self.flying > 0 || self.over {
            return Err(buffer);
        }
        let kind = match self.stage {
            Stage::Make => OpKind::MakeDir,
            Stage::Remove => OpKind::RemoveDir,
            Stage::Enter => OpKind::OpenDir,
            Stage::Inside | Stage::Done => return Err(buffer),
        };
        let slot = if kind == OpKind::OpenDir { self.enter(ROOT, 0) } else { ROOT };
        let length = self.task.root.put(&mut buffer);
        Ok(Operation { kind, file: slot, dir: ROOT, length, offset: 0, tag: 0, buffer })
    }

    #[inline]
    fn inside(&mut self, mut buffer: Buffer) -> Result<Operation, Buffer> {
        for index in (0..self.stack.len()).rev() {
            match self.step(self.stack[index], buffer) {
                Ok(operation) => return Ok(operation),
                Err(back) => buffer = back,
            }
        }
        Err(buffer)
    }

    /// The next operation in a directory, if it has one now.
    #[inline]
    fn step(&mut self, slot: Slot, buffer: Buffer) -> Result<Operation, Buffer> {
        let directory = &self.directories[slot.0 as usize];
        if directory.state != State::Open {
            return Err(buffer);
        }
        let items = directory.item.number() < self.task.items && !self.over;
        if items && (self.task.around != Around::Removed || self.is_entered(directory)) {
            return self.item(slot, buffer);
        }
        self.child_or_close(slot, items, buffer)
    }

    /// True if all its children were entered and left.
    fn is_entered(&self, directory: &Directory) -> bool {
        directory.below == 0 && self.children(directory) == 0
    }

    /// The number of its children that are still to be entered.
    fn children(&self, directory: &Directory) -> u32 {
        let lowest = self.task.levels.is_none_or(|levels| directory.level >= levels);
        if lowest || self.over { 0 } else { self.task.branching - directory.child.number() }
    }

    #[inline]
    fn item(&mut self, slot: Slot, mut buffer: Buffer) -> Result<Operation, Buffer> {
        let directory = &mut self.directories[slot.0 as usize];
        let (kind, file, length) = match self.task.item {
            Item::Named(kind) => (kind, slot, directory.item.put(&mut buffer)),
            Item::Renamed => (OpKind::Rename, slot, directory.item.put_twice(&mut buffer, LETTER, RENAMED)),
            Item::File(open, _) => {
                let Some(file) = self.free_files.pop() else { return Err(buffer) };
                (OpKind::Open(open), file, directory.item.put(&mut buffer))
            }
        };
        directory.item.advance();
        directory.flying += 1;
        Ok(Operation { kind, file, dir: slot, length, offset: 0, tag: 0, buffer })
    }

    /// Enters the next directory below this one, or leaves this one if nothing is left in it.
    fn child_or_close(&mut self, slot: Slot, items: bool, mut buffer: Buffer) -> Result<Operation, Buffer> {
        let directory = &self.directories[slot.0 as usize];
        let unmade = self.task.around == Around::Made && (items || directory.flying > 0);
        if self.children(directory) > 0 {
            let level = directory.level + 1;
            // Keep enough slots for the levels below, or two directories could each wait for the other's.
            let deepest = self.task.levels.unwrap_or(0);
            if unmade || self.free_directories.len() as u32 <= deepest - level {
                return Err(buffer);
            }
            let length = directory.child.put(&mut buffer);
            let file = self.enter(slot, level);
            return Ok(Operation {
                kind: OpKind::OpenDir,
                file,
                dir: slot,
                length,
                offset: 0,
                tag: 0,
                buffer,
            });
        }
        if items || directory.flying > 0 || directory.below > 0 {
            return Err(buffer);
        }
        self.directories[slot.0 as usize].state = State::Closing;
        Ok(Operation::on(OpKind::Close, slot, buffer))
    }

    /// Puts a directory on the stack. There must be a free slot.
    fn enter(&mut self, parent: Slot, level: u32) -> Slot {
        let slot = self.free_directories.pop().expect("one for each level, see `new`");
        self.directories[slot.0 as usize] = Directory::opening(&self.task, parent, level);
        self.stack.push(slot);
        if parent == ROOT {
            self.stage = Stage::Inside;
        } else {
            let parent = &mut self.directories[parent.0 as usize];
            parent.child.advance();
            parent.below += 1;
        }
        slot
    }

    /// Takes a directory off the stack, because it is closed or could not be opened.
    fn leave(&mut self, slot: Slot) {
        self.stack.retain(|&open| open != slot);
        self.free_directories.push(slot);
        let parent = self.directories[slot.0 as usize].parent;
        if parent == ROOT {
            self.stage = Stage::after(&self.task);
        } else {
            self.directories[parent.0 as usize].below -= 1;
        }
    }

    /// Records that an item needs its directory no more: its only operation is done, or its file is open.
    #[inline]
    fn named(&mut self, directory: Slot) {
        if directory == ROOT {
            let made = self.stage == Stage::Make;
            self.stage = if made { Stage::inside(&self.task) } else { Stage::Done };
        } else {
            self.directories[directory.0 as usize].flying -= 1;
        }
    }

    /// Plans the next operation of an open file.
    fn opened(&mut self, operation: Operation) {
        let Item::File(open, length) = self.task.item else { unreachable!("only files are opened") };
        let Operation { file, mut buffer, .. } = operation;
        if length == 0 {
            return self.ready.push(Operation::on(OpKind::Close, file, buffer));
        }
        self.ready.push(if open.creates() {
            stamp(&mut buffer[..length as usize], self.content, self.begun);
            self.begun += u64::from(length.next_multiple_of(4096));
            Operation::write(file, 0, length, buffer)
        } else {
            Operation::read(file, 0, length, buffer)
        });
    }

    fn closed(&mut self, slot: Slot) {
        if slot.0 < self.files { self.leave(slot) } else { self.free_files.push(slot) }
    }
}

impl Stage {
    fn first(task: &Task) -> Self {
        if task.around == Around::Made { Stage::Make } else { Stage::inside(task) }
    }

    /// The stage once the first directory is there.
    fn inside(task: &Task) -> Self {
        if task.levels.is_some() { Stage::Enter } else { Stage::after(task) }
    }

    /// The stage once all work in the first directory is done.
    fn after(task: &Task) -> Self {
        if task.around == Around::Removed { Stage::Remove } else { Stage::Done }
    }
}

impl Directory {
    fn opening(task: &Task, parent: Slot, level: u32) -> Self {
        let (item, child) = (task.first, task.first_child);
        Directory { parent, level, state: State::Opening, item, child, flying: 0, below: 0 }
    }
}

impl Workload for Tree {
    #[inline]
    fn next(&mut self, now: Nanos) -> Step {
        if let Some(operation) = self.ready.pop() {
            self.flying += 1;
            return Step::Issue(operation, now);
        }
        let Some(buffer) = self.buffers.pop() else { return Step::Wait(Wait::ForOne) };
        self.over |= now >= self.stop_at;
        let operation = if self.stage == Stage::Inside { self.inside(buffer) } else { self.outside(buffer) };
        decided(operation, &mut self.buffers, &mut self.flying, now)
    }

    #[inline]
    fn completed(&mut self, completion: Completion) {
        self.flying -= 1;
        let Completion { operation, result, .. } = completion;
        self.over |= result.is_err();
        match operation.kind {
            OpKind::Open(_) => {
                self.named(operation.dir);
                if result.is_ok() {
                    return self.opened(operation);
                }
                self.free_files.push(operation.file);
            }
            OpKind::Read | OpKind::Write => {
                self.over |= result != Ok(operation.length);
                let Operation { file, buffer, .. } = operation;
                return self.ready.push(Operation::on(OpKind::Close, file, buffer));
            }
            OpKind::OpenDir if result.is_ok() => {
                self.directories[operation.file.0 as usize].state = State::Open;
            }
            OpKind::OpenDir => self.leave(operation.file),
            OpKind::Close => self.closed(operation.file),
            _ => self.named(operation.dir),
        }
        self.buffers.push(operation.buffer);
    }
}
