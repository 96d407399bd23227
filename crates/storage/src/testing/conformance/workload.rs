//! The rules for every workload. The suite runs it in virtual time on a simulated target, at every depth,
//! with the least memory it demands: without faults, and with all operations failing from some point on.

mod watched;

use std::sync::Arc;

use nilometer_model::Nanos;

use crate::{
    Arena, Buffer, Completion, Drive, Engine, EngineError, Errno, Operation, Step, Wait, Wake, Workload,
    clock::VirtualClock,
    testing::{Cost, Device, Simulated},
};
use watched::{Watched, Words};

/// The least resources with which a workload works.
#[derive(Debug, Clone, Copy)]
pub struct Demands {
    /// The number of buffers.
    pub buffers: usize,
    /// The bytes of a buffer.
    pub bytes: usize,
    /// The number of slots, including the run's directory.
    pub slots: u32,
}

/// Checks a workload. `lay_out` makes the files it expects. `make` gives it its buffers and must return the
/// same workload each time.
pub fn workload_suite(
    demands: Demands,
    lay_out: &dyn Fn(&mut dyn Engine),
    make: &mut dyn FnMut(Vec<Buffer>) -> Box<dyn Workload>,
) {
    let mut suite = Suite { demands, lay_out, make };
    for depth in [1, 2, 7] {
        for more in [0, 5] {
            let first = suite.run(depth, demands.buffers + more, None);
            let again = suite.run(depth, demands.buffers + more, None);
            assert!(
                first == again,
                "the same history gave other operations at depth {depth}: {}",
                difference(&first, &again)
            );
            suite.fail(depth, demands.buffers + more, first.len() as u64);
        }
    }
}

struct Suite<'a> {
    demands: Demands,
    lay_out: &'a dyn Fn(&mut dyn Engine),
    make: &'a mut dyn FnMut(Vec<Buffer>) -> Box<dyn Workload>,
}

impl Suite<'_> {
    /// Fails all operations from some point on: each of the first ones, then ever fewer points.
    fn fail(&mut self, depth: usize, buffers: usize, operations: u64) {
        let mut from = 0;
        while from <= operations {
            self.run(depth, buffers, Some(from));
            from += 1 + from / 8;
        }
    }

    /// Runs to the end under watch and returns the operations.
    fn run(&mut self, depth: usize, buffers: usize, fail_from: Option<u64>) -> Words {
        let cost = Cost { base: Nanos(1000), picoseconds_per_byte: 100 };
        let device = Device { parallel: 3, ..Device::with_cost(cost) };
        let target = Simulated::new(device, VirtualClock::default());
        (self.lay_out)(&mut target.attach(1, 64));
        let (arena, buffers) = Arena::shared_out(buffers, self.demands.bytes);
        let mut watched = Watched::new((self.make)(buffers), depth);
        let inner = target.attach(depth, self.demands.slots);
        let mut engine = Failing { inner, left: fail_from.unwrap_or(u64::MAX) };
        Drive::new(&mut watched, &mut engine).run(|_| {});
        for _ in 0..3 {
            let step = watched.next(engine.now());
            assert!(matches!(step, Step::Done), "after done, and nothing in flight, comes {step:?}");
        }
        let words = watched.finish();
        drop(engine);
        assert_eq!(
            Arc::strong_count(&arena),
            1,
            "buffers are left over after the workload and its engine are gone"
        );
        words
    }
}

fn difference(first: &Words, again: &Words) -> String {
    let at = first.iter().zip(again).position(|(first, again)| first != again);
    let at = at.unwrap_or(first.len().min(again.len()));
    format!("operation {at} is {:?}, then {:?}", first.get(at), again.get(at))
}

/// Fails every operation after the first `left` completions. A failed operation may have taken effect anyway.
struct Failing<E> {
    inner: E,
    left: u64,
}

impl<E: Engine> Engine for Failing<E> {
    forward_depth_and_clock!();

    fn submit(&mut self, operation: Operation, due: Nanos) {
        self.inner.submit(operation, due);
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        let before = done.len();
        self.inner.reap(wait, done);
        for completion in &mut done[before..] {
            match self.left.checked_sub(1) {
                Some(left) => self.left = left,
                None => completion.result = Err(Errno::EIO),
            }
        }
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.inner.waker()
    }

    fn register(&mut self, arena: &Arc<Arena>) -> Result<(), EngineError> {
        self.inner.register(arena)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.inner.next_event()
    }
}

#[cfg(test)]
mod tests;
