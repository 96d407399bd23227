//! One file of a tree, from its open to its close.

use nilometer_model::Seed;
use nilometer_storage::{Buffer, OpKind, Open, Operation, Slot};

use super::{descent::named, name::Name, stamp};

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileTask {
    /// It is made and filled, and perhaps synced.
    Write {
        /// Synced before it is closed.
        durable: bool,
    },
    /// It is read from its beginning to its end.
    Read,
    /// Its first and its last byte are read.
    ReadEnds,
}

/// Which file, and where it is opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct PassedFile {
    /// The directory that it is in.
    pub(super) dir: Slot,
    /// Where it is opened.
    pub(super) slot: Slot,
    /// What it is called there.
    pub(super) name: Name,
    /// Bytes that it has, or gets.
    pub(super) size: u64,
}

/// How far a file is.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilePass {
    file: PassedFile,
    task: FileTask,
    step: FileStep,
    /// Bytes that were moved of a file from its beginning.
    offset: u64,
    /// How many operations moved some.
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

/// Makes what is written: no page is like another, in this file or any other.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageStamps {
    seed: Seed,
    /// Pages so far, in bytes.
    written: u64,
}

impl PageStamps {
    /// Of a worker.
    pub(super) fn new(seed: Seed) -> Self {
        PageStamps { seed, written: 0 }
    }

    fn fill(&mut self, block: &mut [u8]) {
        stamp(block, self.seed, self.written);
        self.written += (block.len() as u64).next_multiple_of(4096);
    }
}

impl FilePass {
    /// Nothing is done yet.
    pub(super) fn new(file: PassedFile, task: FileTask) -> Self {
        FilePass { file, task, step: FileStep::Open, offset: 0, moves: 0 }
    }

    /// The next operation on the file; the buffer back when it is closed.
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

    /// The operation is done. A file that is shorter than it should be ends where it does.
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

    /// It is closed.
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

    /// Whether there is more of the file to be moved, and if not what comes behind.
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
