//! Makes a tree of directories and empty files, one operation at a time: what `walk` then walks.

use nilometer_model::{Nanos, plan::WalkCell};
use nilometer_storage::{Buffer, Completion, OpKind, Open, Operation, ROOT, Slot, Step, Wait, Workload};

/// See the module.
#[derive(Debug)]
pub struct MakeTree {
    shape: WalkCell,
    root: String,
    buffers: Vec<Buffer>,
    /// The directories from the first to the one being filled; its level is its index, its slot the level plus 1.
    path: Vec<Level>,
    state: State,
    failed: bool,
    flying: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Level {
    files: u32,
    children: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing made yet.
    Begin,
    /// A directory was made and is to be opened.
    Enter,
    /// The directory on top of the path is being filled.
    Fill,
    /// A file was made and is to be closed.
    CloseFile,
    Done,
}

impl MakeTree {
    /// The tree stands in the named directory. One buffer is enough.
    pub fn new(root: &str, shape: &WalkCell, buffers: Vec<Buffer>) -> Self {
        let shape = *shape;
        let root = root.to_owned();
        MakeTree { shape, root, buffers, path: Vec::new(), state: State::Begin, failed: false, flying: false }
    }

    fn file_slot(&self) -> Slot {
        Slot(self.shape.levels + 2)
    }

    /// The name of the directory that is made or entered next, and where it stands.
    fn child(&self) -> (Slot, String) {
        match self.path.last() {
            None => (ROOT, self.root.clone()),
            Some(level) => (Slot(self.path.len() as u32), format!("n_d{}", level.children)),
        }
    }

    fn fill(&mut self, buffer: Buffer) -> Operation {
        let depth = self.path.len() as u32;
        let file_slot = self.file_slot();
        let shape = self.shape;
        let top = self.path.last().copied().unwrap_or_default();
        if top.files < shape.files {
            self.state = State::CloseFile;
            let name = format!("n_f{}", top.files);
            return Operation::named(
                OpKind::Open(Open::CREATE),
                Slot(depth),
                file_slot,
                name.as_bytes(),
                buffer,
            );
        }
        if depth <= shape.levels && top.children < shape.branching {
            self.state = State::Enter;
            let (dir, name) = self.child();
            return Operation::named(OpKind::MakeDir, dir, ROOT, name.as_bytes(), buffer);
        }
        self.path.pop();
        match self.path.last_mut() {
            Some(parent) => parent.children += 1,
            None => self.state = State::Done,
        }
        Operation::on(OpKind::Close, Slot(depth), buffer)
    }

    fn decide(&mut self, buffer: Buffer) -> Operation {
        match self.state {
            State::Begin => {
                self.state = State::Enter;
                Operation::named(OpKind::MakeDir, ROOT, ROOT, self.root.as_bytes(), buffer)
            }
            State::Enter => {
                let (dir, name) = self.child();
                self.path.push(Level::default());
                self.state = State::Fill;
                Operation::named(OpKind::OpenDir, dir, Slot(self.path.len() as u32), name.as_bytes(), buffer)
            }
            State::CloseFile => {
                self.state = State::Fill;
                if let Some(top) = self.path.last_mut() {
                    top.files += 1;
                }
                Operation::on(OpKind::Close, self.file_slot(), buffer)
            }
            State::Fill | State::Done => self.fill(buffer),
        }
    }
}

impl Workload for MakeTree {
    fn next(&mut self, now: Nanos) -> Step {
        if self.flying {
            return Step::Wait(Wait::ForOne);
        }
        match self.buffers.pop() {
            Some(buffer) if self.state != State::Done && !self.failed => {
                self.flying = true;
                Step::Issue(self.decide(buffer), now)
            }
            other => {
                self.buffers.extend(other);
                Step::Done
            }
        }
    }

    fn completed(&mut self, completion: Completion) {
        self.flying = false;
        self.failed |= completion.result.is_err();
        self.buffers.push(completion.operation.buffer);
    }
}
