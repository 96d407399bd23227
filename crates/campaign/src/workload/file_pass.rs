//! One file of a tree, from its open to its close.

use nilometer_model::Seed;
use nilometer_storage::{Buffer, OpKind, Open, Operation, Slot};

use super::{descent::named, name::Name, stamp};

/// The task for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileTask {
    /// Make it, fill it, and perhaps sync it.
    Write {
        /// Sync before the close.
        durable: bool,
    },
    /// Read it from its beginning to its end.
    Read,
    /// Read its first and its last byte.
    ReadEnds,
}

/// A file, with its directory and its slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct PassedFile {
    /// The directory that it is in.
    pub(super) dir: Slot,
    /// The slot that it is opened into.
    pub(super) slot: Slot,
    /// Its name in the directory.
    pub(super) name: Name,
    /// The number of bytes that it has, or gets.
    pub(super) size: u64,
}

/// The progress of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilePass {
    file: PassedFile,
    task: FileTask,
    step: FileStep,
    /// The number of bytes read or written so far, from the beginning.
    offset: u64,
    /// The number of operations that read or wrote some.
    moves: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileStep {
    Open,
    Move,
    Sync,
    Close,
    Done,
}

/// Makes written pages unique, in this file and among all others.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageStamps {
    seed: Seed,
    /// The pages so far, in bytes.
    written: u64,
}

impl PageStamps {
    /// The stamps of one worker.
    pub(super) fn new(seed: Seed) -> Self {
        PageStamps { seed, written: 0 }
    }

    fn fill(&mut self, block: &mut [u8]) {
        stamp(block, self.seed, self.written);
        self.written += (block.len() as u64).next_multiple_of(4096);
    }
}

impl FilePass {
    /// Begins a file; no operation was issued yet.
    pub(super) fn new(file: PassedFile, task: FileTask) -> Self {
        FilePass { file, task, step: FileStep::Open, offset: 0, moves: 0 }
    }

    /// The next operation on the file. Returns the buffer when the file is closed.
    pub(super) fn next(&mut self, stamps: &mut PageStamps, buffer: Buffer) -> Result<Operation, Buffer> {
        let PassedFile { dir, slot, name, .. } = self.file;
        match self.step {
            FileStep::Open => {
                let open = if self.writes() { Open::CREATE } else { Open::READ };
                Ok(named(OpKind::Open(open), dir, slot, name, buffer))
            }
            FileStep::Move => Ok(self.move_block(stamps, buffer)),
            FileStep::Sync => Ok(Operation::on(OpKind::Sync, slot, buffer)),
            FileStep::Close => Ok(Operation::on(OpKind::Close, slot, buffer)),
            FileStep::Done => Err(buffer),
        }
    }

    /// Records a completed operation. A file that is shorter than expected ends where it does.
    pub(super) fn done(&mut self, kind: OpKind, moved: u32) {
        self.step = match kind {
            OpKind::Open(_) => self.next_move(true),
            OpKind::Read | OpKind::Write => {
                self.offset += u64::from(moved);
                self.moves += 1;
                self.next_move(moved > 0)
            }
            OpKind::Sync => FileStep::Close,
            _ => FileStep::Done,
        };
    }

    /// True if the file is closed.
    pub(super) fn is_over(&self) -> bool {
        self.step == FileStep::Done
    }

    fn writes(&self) -> bool {
        matches!(self.task, FileTask::Write { .. })
    }

    fn move_block(&self, stamps: &mut PageStamps, mut buffer: Buffer) -> Operation {
        let PassedFile { slot, size, .. } = self.file;
        if self.task == FileTask::ReadEnds {
            let offset = if self.moves == 0 { 0 } else { size - 1 };
            return Operation::read(slot, offset, 1, buffer);
        }
        let length = (size - self.offset).min(buffer.len() as u64) as u32;
        if !self.writes() {
            return Operation::read(slot, self.offset, length, buffer);
        }
        stamps.fill(&mut buffer[..length as usize]);
        Operation::write(slot, self.offset, length, buffer)
    }

    /// The next move of data in the file, or the step after the last one.
    fn next_move(&self, goes_on: bool) -> FileStep {
        let size = self.file.size;
        let left = match self.task {
            FileTask::ReadEnds => u64::from(self.moves) < size.min(2),
            FileTask::Read | FileTask::Write { .. } => self.offset < size,
        };
        match self.task {
            _ if left && goes_on => FileStep::Move,
            FileTask::Write { durable: true } => FileStep::Sync,
            _ => FileStep::Close,
        }
    }
}
