//! `unpack` from a disk: copies a tree of files from another storage system, as `cp -r` does. It opens each
//! directory on the way, and knows the names in it: it lists none.

use std::sync::Arc;

use nilometer_model::Nanos;
use nilometer_plan::UnpackCell;
use nilometer_storage::{Buffer, OpKind, Open, Operation, SOURCE, Slot};

use super::{
    OneByOne, SourceTree, Steps, WorkerPart, WorkerPlace,
    descent::{Descent, file_name, named},
};

/// The steps of a worker that copies a tree.
#[derive(Debug)]
pub struct CopiedTree {
    tree: Arc<SourceTree>,
    /// The way through the source.
    from: Descent,
    /// The way through the copy.
    to: Descent,
    durable: bool,
    /// The file in progress.
    pass: Option<CopyPass>,
    /// The number of the next file.
    file: u32,
    /// The number of directories of the copy that are made and entered.
    entered: u32,
    /// True if the directory after them is made.
    is_made: bool,
}

/// The progress of a file.
#[derive(Debug, Clone, Copy)]
struct CopyPass {
    size: u64,
    /// The number of bytes written so far.
    offset: u64,
    /// The number of bytes that were read behind them.
    filled: u32,
    step: CopyStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyStep {
    OpenSource,
    OpenCopy,
    Read,
    Write,
    Sync,
    CloseCopy,
    CloseSource,
    Done,
}

impl CopiedTree {
    /// Copies the tree in the source's directory `root` to a new directory of this name; each file is synced if
    /// `durable`. Slots: for both trees one more than they have levels, and two for files, the run's directory
    /// apart.
    pub fn new(tree: Arc<SourceTree>, root: &str, durable: bool, mut part: WorkerPart) -> OneByOne<Self> {
        let to = Descent::new(tree.clone(), root);
        let from = Descent::beside(tree.clone(), root, SOURCE, to.slots());
        let copied = CopiedTree { from, to, tree, durable, pass: None, file: 0, entered: 0, is_made: false };
        // The buffer that was read is the next one to be written.
        part.buffers.truncate(1);
        OneByOne::new(copied, part.buffers)
    }

    /// The next operation on the way to the next file or directory, or out of both trees.
    fn between(&mut self, buffer: Buffer) -> Result<Operation, Buffer> {
        let here = self.entered.checked_sub(1);
        if let Some(here) = here.filter(|here| self.file < self.tree.files_of(*here).end) {
            let buffer = match self.from.toward(here, buffer) {
                Ok(operation) => return Ok(operation),
                Err(buffer) => buffer,
            };
            let size = self.tree.size(self.file);
            let pass = CopyPass { size, offset: 0, filled: 0, step: CopyStep::OpenSource };
            self.pass = Some(pass);
            return self.in_file(pass, buffer);
        }
        let next = self.entered;
        if next == self.tree.directories() {
            return self.to.leave_all(buffer).or_else(|buffer| self.from.leave_all(buffer));
        }
        if self.is_made || next == 0 {
            return if self.is_made { self.to.toward(next, buffer) } else { Ok(self.to.make(next, buffer)) };
        }
        let parent = self.tree.directory(next).parent;
        self.to.toward(parent, buffer).or_else(|buffer| Ok(self.to.make(next, buffer)))
    }

    /// The next operation on a file. Returns the buffer when it is done.
    fn in_file(&self, pass: CopyPass, buffer: Buffer) -> Result<Operation, Buffer> {
        let [source, copy] = [1, 2].map(|number| Slot(self.from.slots() + number));
        let name = file_name(self.file);
        let CopyPass { size, offset, filled, step } = pass;
        Ok(match step {
            CopyStep::OpenSource => named(OpKind::Open(Open::READ), self.from.here(), source, name, buffer),
            CopyStep::OpenCopy => named(OpKind::Open(Open::CREATE), self.to.here(), copy, name, buffer),
            CopyStep::Read => {
                let length = (size - offset).min(buffer.len() as u64) as u32;
                Operation::read(source, offset, length, buffer)
            }
            CopyStep::Write => Operation::write(copy, offset, filled, buffer),
            CopyStep::Sync => Operation::on(OpKind::Sync, copy, buffer),
            CopyStep::CloseCopy => Operation::on(OpKind::Close, copy, buffer),
            CopyStep::CloseSource => Operation::on(OpKind::Close, source, buffer),
            CopyStep::Done => return Err(buffer),
        })
    }
}

impl CopyPass {
    /// Records a completed operation on the file. A source that is shorter than expected ends where it does.
    fn done(&mut self, moved: u32, durable: bool) {
        self.step = match self.step {
            CopyStep::OpenSource => CopyStep::OpenCopy,
            CopyStep::OpenCopy => self.next_block(durable),
            CopyStep::Read if moved == 0 => end(durable),
            CopyStep::Read => {
                self.filled = moved;
                CopyStep::Write
            }
            CopyStep::Write => {
                self.offset += u64::from(moved);
                self.next_block(durable)
            }
            CopyStep::Sync => CopyStep::CloseCopy,
            CopyStep::CloseCopy => CopyStep::CloseSource,
            CopyStep::CloseSource | CopyStep::Done => CopyStep::Done,
        };
    }

    fn next_block(&self, durable: bool) -> CopyStep {
        if self.offset < self.size { CopyStep::Read } else { end(durable) }
    }
}

/// The step behind the last block.
const fn end(durable: bool) -> CopyStep {
    if durable { CopyStep::Sync } else { CopyStep::CloseCopy }
}

impl Steps for CopiedTree {
    fn next(&mut self, _now: Nanos, buffer: Buffer) -> Result<Operation, Buffer> {
        let Some(pass) = self.pass else { return self.between(buffer) };
        match self.in_file(pass, buffer) {
            Ok(operation) => Ok(operation),
            Err(buffer) => {
                self.pass = None;
                self.file += 1;
                self.between(buffer)
            }
        }
    }

    fn done(&mut self, kind: OpKind, moved: u32) {
        match (kind, &mut self.pass) {
            (_, Some(pass)) => pass.done(moved, self.durable),
            (OpKind::MakeDir, None) => self.is_made = true,
            // Directories of the source are opened while none of the copy is made and not entered.
            (OpKind::OpenDir, None) if self.is_made => {
                self.entered += 1;
                self.is_made = false;
            }
            _ => {}
        }
    }
}

/// The paths of the files on the source that a worker copies, relative to the run's directory there.
pub(super) fn files(cell: &UnpackCell, place: WorkerPlace) -> impl Iterator<Item = String> + use<> {
    let tree = SourceTree::of(cell.shape());
    let mut paths: Vec<String> = Vec::new();
    for number in 0..tree.directories() {
        let path = match number {
            0 => place.name(),
            _ => format!("{}/n_d{number}", paths[tree.directory(number).parent as usize]),
        };
        paths.push(path);
    }
    (0..tree.files()).map(move |file| format!("{}/n_f{file}", paths[tree.directory_of(file) as usize]))
}
