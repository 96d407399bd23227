//! An engine on a tree in memory, in real time: the rate of the machine if storage costs nothing but copying.

use std::sync::{Arc, Mutex};

use super::tree::{Slots, Tree};
use crate::{
    Clock, Errno, Operation,
    engine::{Execute, Immediate},
};

/// An engine that copies to and from a tree in memory.
pub type MemoryEngine = Immediate<Copies>;

/// Runs each operation on the tree, under its lock.
#[derive(Debug)]
pub struct Copies {
    tree: Arc<Mutex<Tree>>,
    slots: Slots,
}

impl MemoryEngine {
    /// Creates an engine for the calling thread.
    pub(crate) fn new(tree: Arc<Mutex<Tree>>, slots: u32, clock: Clock) -> Self {
        Immediate::around(Copies { tree, slots: Slots::new(slots, 1) }, 1, clock)
    }
}

impl Execute for Copies {
    fn execute(&mut self, operation: &mut Operation) -> Result<u32, Errno> {
        let mut tree = self.tree.lock().expect("no engine panics while it holds the tree");
        let moment = tree.moment();
        self.slots.execute(&mut tree, operation, moment)
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        if let Ok(mut tree) = self.tree.lock() {
            self.slots.close_all(&mut tree);
        }
    }
}
