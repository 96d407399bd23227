//! The way from the run's directory to a directory of a tree. Each open level has a slot of its own; moving on
//! to another directory closes those that are not above it. The storage sees the same when a path is looked up:
//! one operation for each part.

use std::sync::Arc;

use nilometer_storage::{Buffer, OpKind, Open, Operation, ROOT, SOURCE, Slot};

use super::{SourceTree, name::Name};

/// The directories of a tree that are open, from the first downwards.
#[derive(Debug)]
pub(super) struct Descent {
    tree: Arc<SourceTree>,
    root: Name,
    /// The directory that the first one is in.
    top: Slot,
    /// The highest slot that is not for these directories.
    below: u32,
    /// Their numbers. The slot of each is its level plus one, behind `below`.
    open: Vec<u32>,
}

/// The operation that leads to the next directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Enter(u32),
    Leave,
}

impl Descent {
    /// Begins with nothing open; `root` is the name of the tree's first directory.
    pub(super) fn new(tree: Arc<SourceTree>, root: &str) -> Self {
        Descent::beside(tree, root, ROOT, 0)
    }

    /// The same for a tree in the directory `top`, with slots above those up to `below`.
    pub(super) fn beside(tree: Arc<SourceTree>, root: &str, top: Slot, below: u32) -> Self {
        Descent { tree, root: Name::of(root), top, below, open: Vec::new() }
    }

    /// The highest slot that directories may have.
    pub(super) fn slots(&self) -> u32 {
        self.below + self.tree.levels() + 1
    }

    /// The slot of the deepest directory that is open.
    pub(super) fn here(&self) -> Slot {
        Slot(self.below + self.open.len() as u32)
    }

    /// The next operation on the way to a directory. Returns the buffer if that directory is the deepest open
    /// one.
    pub(super) fn toward(&mut self, directory: u32, buffer: Buffer) -> Result<Operation, Buffer> {
        match self.way(directory) {
            None => Err(buffer),
            Some(Way::Leave) => Ok(self.leave(buffer)),
            Some(Way::Enter(next)) => {
                let parent = self.parent_of(next);
                self.open.push(next);
                let operation = self.on_directory(self.way_into(next), next, parent, buffer);
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

    /// Closes the deepest directory. At least one must be open.
    pub(super) fn leave(&mut self, buffer: Buffer) -> Operation {
        let slot = self.here();
        self.open.pop();
        Operation::on(OpKind::Close, slot, buffer)
    }

    /// Closes all directories, one after the other. Returns the buffer when none is open.
    pub(super) fn leave_all(&mut self, buffer: Buffer) -> Result<Operation, Buffer> {
        if self.open.is_empty() { Err(buffer) } else { Ok(self.leave(buffer)) }
    }

    /// Makes the directory. Its parent must be the deepest open one.
    pub(super) fn make(&self, directory: u32, buffer: Buffer) -> Operation {
        self.on_directory(OpKind::MakeDir, directory, self.parent_of(directory), buffer)
    }

    /// Opens the directory into another slot. Its parent must be the deepest open one.
    pub(super) fn open_into(&self, directory: u32, slot: Slot, buffer: Buffer) -> Operation {
        let operation = self.on_directory(OpKind::OpenDir, directory, self.parent_of(directory), buffer);
        Operation { file: slot, ..operation }
    }

    /// The slot that a directory is opened from: its parent's, or for the first the directory above the tree.
    fn parent_of(&self, directory: u32) -> Slot {
        if directory == 0 { self.top } else { Slot(self.below + self.tree.directory(directory).level) }
    }

    /// Engines open entries of the source as they open files to read them.
    fn way_into(&self, directory: u32) -> OpKind {
        if directory == 0 && self.top == SOURCE { OpKind::Open(Open::READ) } else { OpKind::OpenDir }
    }

    fn on_directory(&self, kind: OpKind, directory: u32, parent: Slot, buffer: Buffer) -> Operation {
        let name = if directory == 0 { self.root } else { Name::numbered("n_d", directory) };
        named(kind, parent, ROOT, name, buffer)
    }
}

/// An operation on a name that counts.
pub(super) fn named(kind: OpKind, dir: Slot, file: Slot, name: Name, mut buffer: Buffer) -> Operation {
    let length = name.put(&mut buffer);
    Operation { kind, file, dir, length, offset: 0, tag: 0, buffer }
}

/// The name of a file of a tree.
pub(super) fn file_name(file: u32) -> Name {
    Name::numbered("n_f", file)
}
