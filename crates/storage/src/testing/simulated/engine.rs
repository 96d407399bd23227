//! An engine on a simulated target, in virtual time. A waiting `reap` moves the time to the next completion,
//! so a lone [`crate::Drive`] runs as fast as the computer allows. With several drives, [`crate::interleave`]
//! moves the time.

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

use nilometer_model::Nanos;

use super::Volume;
use crate::{Arena, Completion, Engine, EngineError, Operation, Wait, Wake, clock::VirtualClock};

/// An engine in virtual time.
#[derive(Debug)]
pub struct SimulatedEngine {
    volume: Arc<Mutex<Volume>>,
    clock: VirtualClock,
    client: u64,
    depth: usize,
    woken: Arc<Woken>,
}

#[derive(Debug, Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl SimulatedEngine {
    pub(crate) fn new(volume: Arc<Mutex<Volume>>, clock: VirtualClock, depth: usize, slots: u32) -> Self {
        let client = volume.lock().expect("no engine panics while it holds the volume").enter(depth, slots);
        SimulatedEngine { volume, clock, client, depth, woken: Arc::default() }
    }

    fn volume(&self) -> MutexGuard<'_, Volume> {
        self.volume.lock().expect("no engine panics while it holds the volume")
    }

    /// Returns the time to which a waiting reap moves the clock.
    fn wait(&self, wait: Wait, woken: bool) -> Nanos {
        let now = self.clock.now();
        let next = self.volume().next_of(self.client);
        match wait {
            Wait::Poll => now,
            Wait::ForOne => next.unwrap_or(now),
            _ if woken => now,
            Wait::Until(time) => next.map_or(time, |next| next.min(time)),
            Wait::News => next.unwrap_or_else(|| {
                panic!("deadlock in virtual time at {} ns: nothing is in flight, and nobody wakes", now.0)
            }),
        }
    }
}

impl Engine for SimulatedEngine {
    fn depth(&self) -> usize {
        self.depth
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn tick(&mut self) -> Nanos {
        self.clock.now()
    }

    fn submit(&mut self, operation: Operation, due: Nanos) {
        let now = self.clock.now();
        self.volume().submit(self.client, operation, due, now);
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        let woken = self.woken.0.swap(false, Ordering::Acquire);
        self.clock.advance_to(self.wait(wait, woken));
        self.volume().reap(self.client, self.clock.now(), done);
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.woken.clone()
    }

    fn register(&mut self, _arena: &Arc<Arena>) -> Result<(), EngineError> {
        Ok(())
    }

    fn next_event(&self) -> Option<Nanos> {
        if self.woken.0.load(Ordering::Acquire) {
            return Some(self.clock.now());
        }
        self.volume().next_of(self.client)
    }
}

impl Drop for SimulatedEngine {
    fn drop(&mut self) {
        if let Ok(mut volume) = self.volume.lock() {
            volume.leave(self.client);
        }
    }
}
