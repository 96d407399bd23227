//! The engine of storage that a client reaches: as many operations in flight as its depth, none of which blocks.
//!
//! ```text
//! submit -> slot order -> table (which file, which path) -> client -> ... -> take -> table (what it changes) -> completion
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

/// So long an engine that is dropped waits for what is under way, before it leaves that behind.
const LAST_WAIT: Nanos = Nanos::from_millis(1000);

/// See the module.
#[derive(Debug)]
pub(crate) struct RemoteEngine<C: Client> {
    client: C,
    // Behind an option so that it can be left behind with operations that never end.
    table: Option<SlotTable<C::File>>,
    order: SlotOrder,
    ready: Vec<SubmittedOperation>,
    finished: Vec<Finished<C::File>>,
    /// Done without the server.
    known: Vec<Completion>,
    clock: Clock,
    last: Nanos,
    depth: usize,
    /// Submitted, and not given back.
    flying: usize,
    /// Of these, begun by the client.
    under_way: usize,
}

impl<C: Client> RemoteEngine<C> {
    /// On the directory of this path.
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

    /// What the server has answered, as completions.
    fn settle(&mut self) {
        let table = self.table.as_mut().expect("it is there until the engine is dropped");
        for Finished { mut flight, ended, outcome } in self.finished.drain(..) {
            self.under_way -= 1;
            let result = outcome.and_then(|reply| table.settle(&mut flight.operation, reply));
            self.known.push(flight.completed(result, ended));
        }
    }

    /// Gives out what is done, and begins what waited for it, until nothing of that is done at once.
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
            // Files in it are still being used, and memory that operations own comes back with them, if ever.
            std::mem::forget(self.table.take());
        }
    }
}
