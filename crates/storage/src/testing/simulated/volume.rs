//! The state that a simulated target shares with its engines: the tree, and the operations in flight on it.
//!
//! An operation changes the tree when it completes, so effects follow the order of completions over all
//! engines.

use std::collections::BTreeMap;

use nilometer_model::{Nanos, Seed};

use super::Device;
use crate::{
    operation::{Completion, Errno, OpKind, Operation},
    testing::tree::{Journal, Slots, Tree},
};

/// The tree of a simulated target and its operations in flight.
#[derive(Debug)]
pub(crate) struct Volume {
    tree: Tree,
    device: Device,
    /// The time at which each server of the device is free.
    servers: Vec<Nanos>,
    /// The time at which the device has written the whole page cache.
    drained: Nanos,
    /// By completion time, then by order of arrival.
    flying: BTreeMap<(Nanos, u64), Flying>,
    coming: u64,
    clients: BTreeMap<u64, Client>,
    traffic: (u64, u64),
    /// Bytes given to the device for writing.
    given: u64,
}

/// One engine's state on the target.
#[derive(Debug)]
struct Client {
    /// `None` after the loss of power or of its process.
    slots: Option<Slots>,
    depth: usize,
    flying: usize,
    done: Vec<Completion>,
    /// The engine is gone, but some of its operations are still in flight.
    left: bool,
}

#[derive(Debug)]
struct Flying {
    client: u64,
    operation: Operation,
    due: Nanos,
    issued: Nanos,
    begin: Nanos,
    /// A sync covers changes completed before it was issued.
    moment: u64,
}

impl Volume {
    pub(super) fn new(device: Device) -> Self {
        assert!(device.parallel > 0, "a device that serves nothing at a time can't be simulated");
        let tree = if device.hollow {
            Tree::hollow(device.capacity)
        } else {
            Tree::new(device.capacity, Some(Journal::default()))
        };
        Volume::of(tree, device)
    }

    fn of(tree: Tree, device: Device) -> Self {
        let servers = vec![Nanos(0); device.parallel];
        let flying = BTreeMap::new();
        let clients = BTreeMap::new();
        Volume {
            tree,
            device,
            servers,
            drained: Nanos(0),
            flying,
            coming: 0,
            clients,
            traffic: (0, 0),
            given: 0,
        }
    }

    /// Returns a copy with the same files, safe and not, without engines.
    pub(super) fn copy(&self) -> Self {
        let mut tree = self.tree.clone();
        tree.close_all();
        Volume::of(tree, self.device.clone())
    }

    pub(super) fn used(&self) -> u64 {
        self.tree.used()
    }

    pub(super) fn traffic(&self) -> (u64, u64) {
        self.traffic
    }

    /// Empties the tree, for good.
    pub(super) fn clear(&mut self) {
        self.tree.clear();
    }

    pub(crate) fn enter(&mut self, depth: usize, slots: u32) -> u64 {
        self.coming += 1;
        let slots = Slots::new(slots, self.device.alignment);
        let slots = Some(if self.device.objects { slots.of_objects() } else { slots });
        self.clients.insert(self.coming, Client { slots, depth, flying: 0, done: Vec::new(), left: false });
        self.coming
    }

    /// Notes that the engine is gone; its operations in flight still complete.
    pub(crate) fn leave(&mut self, client: u64) {
        if let Some(state) = self.clients.get_mut(&client) {
            state.left = true;
        }
        self.close_if_left(client);
    }

    pub(crate) fn submit(&mut self, client: u64, operation: Operation, due: Nanos, now: Nanos) {
        self.advance(now);
        let state = self.client(client);
        assert!(
            state.flying < state.depth,
            "more operations under way than the engine's depth of {}",
            state.depth
        );
        state.flying += 1;
        let (begin, end) = self.serve(&operation, now);
        self.coming += 1;
        let moment = self.tree.moment();
        let flying = Flying { client, operation, due, issued: now, begin, moment };
        self.flying.insert((end, self.coming), flying);
    }

    /// Returns when the engine has something to reap.
    pub(crate) fn next_of(&mut self, client: u64) -> Option<Nanos> {
        let done = self.client(client).done.first().map(|completion| completion.finished);
        let next = || self.flying.iter().find(|(_, flying)| flying.client == client).map(|(key, _)| key.0);
        done.or_else(next)
    }

    pub(crate) fn reap(&mut self, client: u64, now: Nanos, done: &mut Vec<Completion>) {
        self.advance(now);
        let state = self.client(client);
        state.flying -= state.done.len();
        done.append(&mut state.done);
    }

    /// Completes the operations that are due by now.
    pub(super) fn advance(&mut self, now: Nanos) {
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((finished, _), flying) = entry.remove_entry();
            self.finish(flying, finished);
        }
    }

    /// Loses the power now. Operations in flight may have taken effect in part.
    pub(super) fn crash(&mut self, seed: Seed, now: Nanos) {
        if self.device.objects {
            // Servers keep the objects stored so far.
            return self.kill(now);
        }
        self.advance(now);
        let mut stream = seed.named("flying").stream();
        for ((end, order), mut flying) in std::mem::take(&mut self.flying) {
            let half_done = match flying.operation.kind {
                OpKind::Sync | OpKind::SyncData => false,
                OpKind::Write => true,
                _ => stream.below(2) == 0,
            };
            if half_done && end < self.device.dead_from {
                // Its answer is lost with the engine; the write is kept, torn or lost like other unsafe ones.
                self.execute(&mut flying).unwrap_or_default();
            }
            self.flying.insert((now, order), flying);
        }
        self.tree.crash(seed);
        self.cut_off();
        self.advance(now);
    }

    /// Kills all processes that use the target now. The device completes operations it has begun; the rest
    /// never happen.
    pub(super) fn kill(&mut self, now: Nanos) {
        self.advance(now);
        for ((end, order), mut flying) in std::mem::take(&mut self.flying) {
            if flying.begin <= now && end < self.device.dead_from {
                self.execute(&mut flying).unwrap_or_default();
            }
            self.flying.insert((now, order), flying);
        }
        for client in self.clients.values_mut() {
            if let Some(slots) = &mut client.slots {
                slots.close_all(&mut self.tree);
            }
        }
        self.cut_off();
        self.advance(now);
    }

    /// Cuts off all present engines.
    fn cut_off(&mut self) {
        self.clients.values_mut().for_each(|client| client.slots = None);
        self.servers.fill(Nanos(0));
        self.drained = Nanos(0);
    }

    fn client(&mut self, client: u64) -> &mut Client {
        self.clients.get_mut(&client).expect("a client leaves with its engine")
    }

    fn serve(&mut self, operation: &Operation, now: Nanos) -> (Nanos, Nanos) {
        let (begin, end) = match operation.kind {
            OpKind::Write if self.device.page_cache > 0 => {
                let (drained, end) = self.device.serve_cached(self.drained, now, operation, self.given);
                self.drained = drained;
                (now, end)
            }
            OpKind::Sync | OpKind::SyncData if self.device.page_cache > 0 => (now, now.max(self.drained)),
            _ => self.serve_uncached(operation, now),
        };
        if operation.kind == OpKind::Write {
            self.given += u64::from(operation.length);
        }
        (begin, end)
    }

    fn serve_uncached(&mut self, operation: &Operation, now: Nanos) -> (Nanos, Nanos) {
        let server = self.servers.iter_mut().min().expect("a device serves at least one at a time");
        let (begin, end) = self.device.serve(now.max(*server), operation, self.given);
        *server = end;
        (begin, end)
    }

    fn finish(&mut self, mut flying: Flying, finished: Nanos) {
        let dead = finished >= self.device.dead_from;
        let result = if dead { Err(Errno::EIO) } else { self.execute(&mut flying) };
        let Flying { client, operation, due, issued, .. } = flying;
        self.client(client).done.push(Completion { operation, result, due, issued, finished });
        self.close_if_left(client);
    }

    fn execute(&mut self, flying: &mut Flying) -> Result<u32, Errno> {
        let client = self.clients.get_mut(&flying.client).expect("a client stays while it has operations");
        let slots = client.slots.as_mut().ok_or(Errno::EIO)?;
        let result = slots.execute(&mut self.tree, &mut flying.operation, flying.moment);
        let moved = u64::from(result.unwrap_or_default());
        match flying.operation.kind {
            OpKind::Read => self.traffic.0 += moved,
            OpKind::Write => self.traffic.1 += moved,
            _ => {}
        }
        result
    }

    fn close_if_left(&mut self, client: u64) {
        let state = self.client(client);
        if state.left
            && state.done.len() == state.flying
            && let Some(mut slots) = self.clients.remove(&client).and_then(|client| client.slots)
        {
            slots.close_all(&mut self.tree);
        }
    }
}
