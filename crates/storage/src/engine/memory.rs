//! An engine on a tree in memory, in real time: what the machine can do when the storage costs nothing but copying.

use std::sync::{Arc, Mutex, MutexGuard};

use nilometer_model::Nanos;

use super::{Engine, EngineError, Wait, Wake, pause::Pause};
use crate::{
    Arena, Clock, Completion, Errno, Operation,
    tree::{Slots, Tree},
};

/// See the module.
#[derive(Debug)]
pub struct Memory {
    tree: Arc<Mutex<Tree>>,
    slots: Slots,
    clock: Clock,
    last: Nanos,
    done: Vec<Completion>,
    pause: Pause,
}

impl Memory {
    /// For the calling thread.
    pub(crate) fn new(tree: Arc<Mutex<Tree>>, slots: u32, clock: Clock) -> Self {
        let (slots, last) = (Slots::new(slots, 1), clock.now());
        Memory { tree, slots, clock, last, done: Vec::with_capacity(1), pause: Pause::here() }
    }

    fn execute(&mut self, operation: &mut Operation) -> Result<u32, Errno> {
        let mut tree = lock(&self.tree);
        let moment = tree.moment();
        self.slots.execute(&mut tree, operation, moment)
    }
}

fn lock(tree: &Mutex<Tree>) -> MutexGuard<'_, Tree> {
    tree.lock().expect("no engine panics while it holds the tree")
}

impl Engine for Memory {
    fn depth(&self) -> usize {
        1
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.last
    }

    fn tick(&mut self) -> Nanos {
        self.last = self.clock.now();
        self.last
    }

    fn submit(&mut self, mut operation: Operation, due: Nanos) {
        let issued = self.last;
        let result = self.execute(&mut operation);
        let finished = self.tick();
        self.done.push(Completion { operation, result, due, issued, finished });
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        if self.done.is_empty() && wait != Wait::Poll {
            self.last = self.pause.wait(wait, &self.clock);
        }
        if done.is_empty() {
            std::mem::swap(&mut self.done, done);
        } else {
            done.append(&mut self.done);
        }
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.pause.waker()
    }

    fn register(&mut self, _arena: &Arc<Arena>) -> Result<(), EngineError> {
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Ok(mut tree) = self.tree.lock() {
            self.slots.close_all(&mut tree);
        }
    }
}
