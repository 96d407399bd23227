//! An engine that says that something was done, and does it not: whoever trusts it must be found out.

use nilometer_model::Nanos;
use nilometer_storage::{Completion, Engine, OpKind, Operation, Wait};

/// Operations of a kind are only said to be done; done is another that changes nothing.
pub(crate) struct Pretending {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) kind: OpKind,
    pub(crate) instead: OpKind,
}

/// The offset of what is done instead: nothing else of that kind has it.
const PRETENDED: u64 = 1;

impl Engine for Pretending {
    crate::forwards!(engine);

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
    fn next_event(&self) -> Option<Nanos> {
        self.engine.next_event()
    }
}
