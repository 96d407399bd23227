//! Opens random files of a tree. Each is looked up by its path; its first and last bytes are read.

use std::sync::Arc;

use nilometer_model::{Nanos, RandomStream};
use nilometer_storage::{Buffer, OpKind, Operation, Slot};

use super::{
    OneByOne, SourceTree, Steps, WorkerPart,
    descent::{Descent, file_name},
    file_pass::{FilePass, FileTask, PageStamps, PassedFile},
};

/// The steps of a worker that opens random files.
#[derive(Debug)]
pub struct OpenFiles {
    tree: Arc<SourceTree>,
    descent: Descent,
    choice: RandomStream,
    /// Unused, since nothing is written.
    stamps: PageStamps,
    stop_at: Nanos,
    /// The number of files that are still to be drawn.
    left: u64,
    /// The file to look up.
    wanted: Option<u32>,
    pass: Option<FilePass>,
}

impl OpenFiles {
    /// Opens `operations` files of the tree in the directory named `root`. Slots as in [`super::Unpack::new`].
    pub fn new(tree: Arc<SourceTree>, root: &str, operations: u64, part: WorkerPart) -> OneByOne<Self> {
        let opened = OpenFiles {
            descent: Descent::new(tree.clone(), root),
            tree,
            choice: part.seed_for("files").stream(),
            stamps: PageStamps::new(part.seed_for("content")),
            stop_at: part.stop_at,
            left: operations,
            wanted: None,
            pass: None,
        };
        OneByOne::new(opened, part.buffers)
    }

    /// The next operation on the way to the next file, or out of the tree.
    fn look(&mut self, now: Nanos, buffer: Buffer) -> Result<Operation, Buffer> {
        if self.wanted.is_none() && self.left > 0 && now < self.stop_at {
            self.left -= 1;
            self.wanted = Some(self.choice.below(self.tree.files().into()) as u32);
        }
        let Some(file) = self.wanted else { return self.descent.leave_all(buffer) };
        match self.descent.toward(self.tree.directory_of(file), buffer) {
            Ok(operation) => Ok(operation),
            Err(buffer) => {
                let found = PassedFile {
                    dir: self.descent.here(),
                    slot: Slot(self.descent.slots() + 1),
                    name: file_name(file),
                    size: self.tree.size(file),
                };
                let pass = self.pass.insert(FilePass::new(found, FileTask::ReadEnds));
                pass.next(&mut self.stamps, buffer)
            }
        }
    }
}

impl Steps for OpenFiles {
    fn next(&mut self, now: Nanos, buffer: Buffer) -> Result<Operation, Buffer> {
        let Some(pass) = &mut self.pass else { return self.look(now, buffer) };
        match pass.next(&mut self.stamps, buffer) {
            Ok(operation) => Ok(operation),
            Err(buffer) => {
                self.pass = None;
                self.wanted = None;
                self.look(now, buffer)
            }
        }
    }

    fn done(&mut self, kind: OpKind, moved: u32) {
        if let Some(pass) = &mut self.pass {
            pass.done(kind, moved);
        }
    }
}
