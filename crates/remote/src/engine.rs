//! The engine for storage that a client reaches. It keeps up to `depth` operations in flight, and none of them
//! blocks.
//!
//! ```text
//! submit -> slot order -> table (file, path) -> client -> ... -> take -> table (changes) -> completion
//! ```

use std::sync::Arc;

use nilometer_model::Nanos;
use nilometer_storage::{
    Arena, Clock, Completion, Engine, EngineError, Operation, Wait, Wake,
    engine::{Options, SlotOrder, SubmittedOperation},
};

use crate::{
    client::{Client, Finished, Flight},
    table::{Begun, SlotTable},
};

/// Longest time that a dropped engine waits for operations under way before it abandons them.
const LAST_WAIT: Nanos = Nanos::from_millis(1000);

/// An engine that sends operations to a server through a [`Client`].
#[derive(Debug)]
pub(crate) struct RemoteEngine<C: Client> {
    client: C,
    // An `Option`, so that `drop` can leak it together with operations that never end.
    table: Option<SlotTable<C::File>>,
    order: SlotOrder,
    ready: Vec<SubmittedOperation>,
    finished: Vec<Finished<C::File>>,
    /// Completions not yet returned to the caller.
    known: Vec<Completion>,
    clock: Clock,
    last: Nanos,
    depth: usize,
    /// Operations submitted and not yet returned.
    flying: usize,
    /// The subset of `flying` that the client is working on.
    under_way: usize,
}

impl<C: Client> RemoteEngine<C> {
    /// Makes an engine on the directory at this path.
    pub(crate) fn new(client: C, root: String, options: &Options) -> Self {
        let Options { depth, slots, clock, .. } = *options;
        let depth = depth.max(1) as usize;
        RemoteEngine {
            client,
            table: Some(SlotTable::new(root, slots)),
            order: SlotOrder::new(slots),
            ready: Vec::with_capacity(depth),
            finished: Vec::with_capacity(depth),
            known: Vec::with_capacity(depth),
            clock,
            last: clock.now(),
            depth,
            flying: 0,
            under_way: 0,
        }
    }

    fn begin(&mut self, submitted: SubmittedOperation) {
        let SubmittedOperation { mut operation, due } = submitted;
        let issued = self.last;
        let table = self.table.as_mut().expect("it is there until the engine is dropped");
        match table.begin(&mut operation) {
            Begun::Known(result) => {
                let finished = self.last;
                self.known.push(Flight { operation, due, issued }.completed(result, finished));
            }
            Begun::Asked(request) => {
                self.under_way += 1;
                self.client.begin(request, Flight { operation, due, issued });
            }
        }
    }

    /// Turns the server's answers into completions.
    fn settle(&mut self) {
        let table = self.table.as_mut().expect("it is there until the engine is dropped");
        for Finished { mut flight, ended, outcome } in self.finished.drain(..) {
            self.under_way -= 1;
            let result = outcome.and_then(|reply| table.settle(&mut flight.operation, reply));
            self.known.push(flight.completed(result, ended));
        }
    }

    /// Returns completions and begins the operations that waited for them, until none of those completes at
    /// once.
    fn give_out(&mut self, done: &mut Vec<Completion>) {
        while !self.known.is_empty() {
            let mut ready = std::mem::take(&mut self.ready);
            for completion in self.known.drain(..) {
                self.flying -= 1;
                self.order.finished(&completion.operation, &mut ready);
                done.push(completion);
            }
            for submitted in ready.drain(..) {
                self.begin(submitted);
            }
            self.ready = ready;
        }
    }
}

impl<C: Client> Engine for RemoteEngine<C> {
    fn depth(&self) -> usize {
        self.depth
    }

    fn now(&self) -> Nanos {
        self.last
    }

    fn tick(&mut self) -> Nanos {
        self.last = self.clock.now();
        self.last
    }

    fn submit(&mut self, operation: Operation, due: Nanos) {
        self.flying += 1;
        if let Some(submitted) = self.order.submit(SubmittedOperation { operation, due }) {
            self.begin(submitted);
        }
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        if wait == Wait::ForOne && self.flying == 0 {
            return;
        }
        let before = done.len();
        self.give_out(done);
        let wait = if done.len() > before { Wait::Poll } else { wait };
        self.client.take(wait, &self.clock, &mut self.finished);
        if wait != Wait::Poll || !self.finished.is_empty() {
            self.tick();
        }
        self.settle();
        self.give_out(done);
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.client.waker()
    }

    fn register(&mut self, _arena: &Arc<Arena>) -> Result<(), EngineError> {
        Ok(())
    }
}

impl<C: Client> Drop for RemoteEngine<C> {
    fn drop(&mut self) {
        let limit = self.clock.now() + LAST_WAIT;
        while self.under_way > 0 && self.tick() < limit {
            self.client.take(Wait::Until(limit), &self.clock, &mut self.finished);
            self.settle();
        }
        if self.under_way > 0 {
            // The operations still use files in the table. Their memory is freed when they end, if ever.
            std::mem::forget(self.table.take());
        }
    }
}
