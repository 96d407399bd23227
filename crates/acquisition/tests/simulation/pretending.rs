//! An engine that says that something was done, and does it not: whoever trusts it must be found out.

use std::sync::Arc;

use nilometer_model::Nanos;
use nilometer_storage::{Arena, Completion, Engine, EngineError, OpKind, Operation, Wait, Wake};

/// Operations of a kind are only said to be done; done is another that changes nothing.
pub(crate) struct Pretending {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) kind: OpKind,
    pub(crate) instead: OpKind,
}

/// The offset of what is done instead: nothing else of that kind has it.
const PRETENDED: u64 = 1;

impl Engine for Pretending {
    fn depth(&self) -> usize {
        self.engine.depth()
    }
    fn now(&self) -> Nanos {
        self.engine.now()
    }
    fn tick(&mut self) -> Nanos {
        self.engine.tick()
    }
    fn submit(&mut self, mut operation: Operation, due: Nanos) {
        if operation.kind == self.kind {
            (operation.kind, operation.offset) = (self.instead, PRETENDED);
            if self.instead == OpKind::Allocate {
                operation.length = 0;
            }
        }
        self.engine.submit(operation, due);
    }
    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        let before = done.len();
        self.engine.reap(wait, done);
        for Completion { operation, .. } in &mut done[before..] {
            if operation.kind == self.instead && operation.offset == PRETENDED {
                operation.kind = self.kind;
            }
        }
    }
    fn waker(&self) -> Arc<dyn Wake> {
        self.engine.waker()
    }
    fn register(&mut self, arena: &Arc<Arena>) -> Result<(), EngineError> {
        self.engine.register(arena)
    }
    fn next_event(&self) -> Option<Nanos> {
        self.engine.next_event()
    }
}
