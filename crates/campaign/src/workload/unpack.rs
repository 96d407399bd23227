//! The storage operations of `tar -x`: makes and fills directories and files of a tree in the order of an
//! archive. The worker's buffers stand for the archive: nothing is read or uncompressed.

use std::sync::Arc;

use nilometer_model::Nanos;
use nilometer_storage::{Buffer, OpKind, Operation, Slot};

use super::{
    OneByOne, SourceTree, Steps, WorkerPart,
    descent::{Descent, file_name},
    file_pass::{FilePass, FileTask, PageStamps, PassedFile},
};

/// The steps of a worker that unpacks a tree.
#[derive(Debug)]
pub struct Unpack {
    tree: Arc<SourceTree>,
    descent: Descent,
    stamps: PageStamps,
    task: FileTask,
    /// The file in progress.
    pass: Option<FilePass>,
    /// The number of the next file.
    file: u32,
    /// The number of directories that are made and entered; files up to those of the last one are to be made.
    entered: u32,
    /// True if the directory after them is made.
    is_made: bool,
}

impl Unpack {
    /// Makes the tree in a new directory named `root`; each file is synced if `durable`. Slots: two more than
    /// the tree has levels, the run's directory apart.
    pub fn new(tree: Arc<SourceTree>, root: &str, durable: bool, part: WorkerPart) -> OneByOne<Self> {
        let unpack = Unpack {
            descent: Descent::new(tree.clone(), root),
            tree,
            stamps: PageStamps::new(part.seed_for("content")),
            task: FileTask::Write { durable },
            pass: None,
            file: 0,
            entered: 0,
            is_made: false,
        };
        OneByOne::new(unpack, part.buffers)
    }

    /// The next file of the directory that was entered last; else the next directory; else the way out.
    fn between(&mut self, buffer: Buffer) -> Result<Operation, Buffer> {
        let here = self.entered.checked_sub(1);
        if here.is_some_and(|here| self.file < self.tree.files_of(here).end) {
            let pass = self.pass.insert(FilePass::new(self.next_file(), self.task));
            return pass.next(&mut self.stamps, buffer);
        }
        let next = self.entered;
        if next == self.tree.directories() {
            return self.descent.leave_all(buffer);
        }
        if self.is_made {
            return self.descent.toward(next, buffer);
        }
        let buffer = if next == 0 {
            buffer
        } else {
            match self.descent.toward(self.tree.directory(next).parent, buffer) {
                Ok(operation) => return Ok(operation),
                Err(buffer) => buffer,
            }
        };
        Ok(self.descent.make(next, buffer))
    }

    fn next_file(&self) -> PassedFile {
        PassedFile {
            dir: self.descent.here(),
            slot: Slot(self.descent.slots() + 1),
            name: file_name(self.file),
            size: self.tree.size(self.file),
        }
    }
}

impl Steps for Unpack {
    fn next(&mut self, _now: Nanos, buffer: Buffer) -> Result<Operation, Buffer> {
        let Some(pass) = &mut self.pass else { return self.between(buffer) };
        match pass.next(&mut self.stamps, buffer) {
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
            (_, Some(pass)) => pass.done(kind, moved),
            (OpKind::MakeDir, None) => self.is_made = true,
            (OpKind::OpenDir, None) => {
                self.entered += 1;
                self.is_made = false;
            }
            _ => {}
        }
    }
}
