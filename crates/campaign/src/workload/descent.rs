//! The way from the run's directory to a directory of a tree: each level that is open has a slot of its own, and going on to
//! another directory closes what is not above it. That is what looking up a path is to the storage, one operation a part.

use std::sync::Arc;

use nilometer_storage::{Buffer, OpKind, Operation, ROOT, Slot};

use super::{SourceTree, name::Name};

/// The directories of a tree that are open, from the first downwards.
#[derive(Debug)]
pub(super) struct Descent {
    tree: Arc<SourceTree>,
    root: Name,
    /// Their numbers; the slot of each is its level and one.
    open: Vec<u32>,
}

/// The operation that leads on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Enter(u32),
    Leave,
}

impl Descent {
    /// Nothing is open. The first directory of the tree is called so.
    pub(super) fn new(tree: Arc<SourceTree>, root: &str) -> Self {
        Descent { tree, root: Name::of(root), open: Vec::new() }
    }

    /// Slots that directories may have: 1 up to this.
    pub(super) fn slots(&self) -> u32 {
        self.tree.levels() + 1
    }

    /// The slot of the deepest directory that is open.
    pub(super) fn here(&self) -> Slot {
        Slot(self.open.len() as u32)
    }

    /// The next operation on the way to a directory; the buffer back where it is the deepest that is open.
    pub(super) fn toward(&mut self, directory: u32, buffer: Buffer) -> Result<Operation, Buffer> {
        match self.way(directory) {
            None => Err(buffer),
            Some(Way::Leave) => Ok(self.leave(buffer)),
            Some(Way::Enter(next)) => {
                let parent = self.parent_of(next);
                self.open.push(next);
                let operation = self.on_directory(OpKind::OpenDir, next, parent, buffer);
                Ok(Operation { file: self.here(), ..operation })
            }
        }
    }

    fn way(&self, directory: u32) -> Option<Way> {
        let wanted = self.tree.directory(directory).level;
        let Some(&deepest) = self.open.last() else {
            return Some(Way::Enter(0));
        };
        let level = self.tree.directory(deepest).level;
        if level > wanted || self.tree.ancestor(directory, level) != deepest {
            return Some(Way::Leave);
        }
        (level < wanted).then(|| Way::Enter(self.tree.ancestor(directory, level + 1)))
    }

    /// Closes the deepest directory. One is open.
    pub(super) fn leave(&mut self, buffer: Buffer) -> Operation {
        let slot = self.here();
        self.open.pop();
        Operation::on(OpKind::Close, slot, buffer)
    }

    /// Closes everything, one directory after the other; the buffer back when all are.
    pub(super) fn leave_all(&mut self, buffer: Buffer) -> Result<Operation, Buffer> {
        if self.open.is_empty() { Err(buffer) } else { Ok(self.leave(buffer)) }
    }

    /// Makes the directory. The one that it is in is the deepest that is open.
    pub(super) fn make(&self, directory: u32, buffer: Buffer) -> Operation {
        self.on_directory(OpKind::MakeDir, directory, self.parent_of(directory), buffer)
    }

    /// Opens the directory into another slot. The one that it is in is the deepest that is open.
    pub(super) fn open_into(&self, directory: u32, slot: Slot, buffer: Buffer) -> Operation {
        let operation = self.on_directory(OpKind::OpenDir, directory, self.parent_of(directory), buffer);
        Operation { file: slot, ..operation }
    }

    /// Where a directory is looked up: its parent's slot, or for the first the run's directory.
    fn parent_of(&self, directory: u32) -> Slot {
        if directory == 0 { ROOT } else { Slot(self.tree.directory(directory).level) }
    }

    fn on_directory(&self, kind: OpKind, directory: u32, parent: Slot, buffer: Buffer) -> Operation {
        let name = if directory == 0 { self.root } else { Name::numbered("n_d", directory) };
        named(kind, parent, ROOT, name, buffer)
    }
}

/// An operation on a name that is counted.
pub(super) fn named(kind: OpKind, dir: Slot, file: Slot, name: Name, mut buffer: Buffer) -> Operation {
    let length = name.put(&mut buffer);
    Operation { kind, file, dir, length, offset: 0, tag: 0, buffer }
}

/// The name of a file of a tree.
pub(super) fn file_name(file: u32) -> Name {
    Name::numbered("n_f", file)
}
