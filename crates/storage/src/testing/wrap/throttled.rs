//! A cap on an engine's rate, for storage that others use at the same time. Operations wait inside, in order,
//! until they may start. The wait is part of their latency from `due`, not of the storage's.

use std::{collections::VecDeque, sync::Arc};

use nilometer_model::{ByteRate, Frequency, Nanos};

use super::sooner;
use crate::{Arena, Completion, Engine, EngineError, Operation, Wait, Wake};

/// The highest rate. Unused capacity is not made up for later.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cap {
    /// Bytes of reads and writes, if capped; above zero.
    pub bytes: Option<ByteRate>,
    /// Operations of any kind, if capped; above zero.
    pub operations: Option<Frequency>,
}

impl Cap {
    /// Returns the time from this operation to the next.
    fn spacing(&self, operation: &Operation) -> Nanos {
        let bytes = if operation.kind.is_data() { f64::from(operation.length) } else { 0.0 };
        let by_bytes = self.bytes.map_or(0.0, |rate| bytes / rate.0);
        let by_count = self.operations.map_or(0.0, |rate| 1.0 / rate.0);
        Nanos::from_seconds(by_bytes.max(by_count))
    }
}

/// An engine with a cap.
pub struct Throttled {
    inner: Box<dyn Engine>,
    cap: Cap,
    /// The time at which the next operation may be issued.
    free_at: Nanos,
    waiting: VecDeque<(Operation, Nanos)>,
}

impl std::fmt::Debug for Throttled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Throttled")
            .field("cap", &self.cap)
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl Throttled {
    /// Wraps an engine.
    pub fn new(inner: Box<dyn Engine>, cap: Cap) -> Self {
        let waiting = VecDeque::with_capacity(inner.depth());
        Throttled { inner, cap, free_at: Nanos(0), waiting }
    }

    /// Issues the operations whose time has come.
    fn release(&mut self) {
        while let Some((operation, due)) = self.waiting.pop_front_if(|_| self.inner.now() >= self.free_at) {
            self.free_at = self.inner.now() + self.cap.spacing(&operation);
            self.inner.submit(operation, due);
        }
    }

    fn next_release(&self) -> Option<Nanos> {
        (!self.waiting.is_empty()).then_some(self.free_at)
    }
}

impl Engine for Throttled {
    forward_depth_and_clock!();

    fn submit(&mut self, operation: Operation, due: Nanos) {
        self.waiting.push_back((operation, due));
        self.release();
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        if !self.waiting.is_empty() {
            self.inner.tick();
            self.release();
        }
        self.inner.reap(sooner(wait, self.next_release()), done);
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.inner.waker()
    }

    fn register(&mut self, arena: &Arc<Arena>) -> Result<(), EngineError> {
        self.inner.register(arena)
    }

    fn next_event(&self) -> Option<Nanos> {
        [self.inner.next_event(), self.next_release()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Buffer, Clock, Drive, Slot, Step, Workload, clock::VirtualClock, drive::interleave, engine::Null,
        operation::OpKind, testing::trial,
    };

    struct Writes {
        left: u32,
        free: Vec<Buffer>,
        issued: Vec<Nanos>,
    }

    impl Writes {
        fn new(left: u32, depth: usize) -> Self {
            Writes { left, free: Arena::shared_out(depth, 1000).1, issued: Vec::new() }
        }
    }

    impl Workload for Writes {
        fn next(&mut self, now: Nanos) -> Step {
            let Some(left) = self.left.checked_sub(1) else { return Step::Done };
            let Some(buffer) = self.free.pop() else { return Step::Wait(Wait::ForOne) };
            self.left = left;
            Step::Issue(Operation::write(Slot(1), 0, 1000, buffer), now)
        }

        fn completed(&mut self, completion: Completion) {
            self.issued.push(completion.issued);
            self.free.push(completion.operation.buffer);
        }
    }

    /// 1000 bytes each at 1 MB/s: one every millisecond.
    const MEGABYTE: Cap = Cap { bytes: Some(ByteRate(1e6)), operations: None };

    fn spaced(issued: &[Nanos]) {
        let millis: Vec<_> = (0..).map(Nanos::from_millis).take(issued.len()).collect();
        assert_eq!(issued, millis);
    }

    #[test]
    fn in_virtual_time_the_spacing_is_exact() {
        for depth in [1, 4] {
            let clock = VirtualClock::default();
            let inner = trial::in_virtual_time(depth, clock.clone(), Nanos(100));
            let mut engine = Throttled::new(inner, MEGABYTE);
            let mut workload = Writes::new(20, depth);
            let drive = Drive::new(&mut workload, &mut engine);
            interleave(&clock, &mut [drive], Nanos::MAX, &mut |_, _| ());
            spaced(&workload.issued);

            let clock = VirtualClock::default();
            let inner = trial::in_virtual_time(depth, clock, Nanos(100));
            let mut workload = Writes::new(20, depth);
            Drive::new(&mut workload, &mut Throttled::new(inner, MEGABYTE)).run(|_| ());
            spaced(&workload.issued);
        }
    }

    #[test]
    fn in_real_time_the_cap_is_kept_and_nearly_reached() {
        let took = || {
            let mut engine = Throttled::new(Box::new(Null::new(4, Clock::start())), MEGABYTE);
            let mut workload = Writes::new(101, 4);
            Drive::new(&mut workload, &mut engine).run(|_| ());
            workload.issued[100].since(workload.issued[0])
        };
        // It is as fast as a busy machine allows.
        let is_reached = || {
            let took = took();
            assert!(took >= Nanos::from_millis(100), "{took:?}");
            took < Nanos::from_millis(1000)
        };
        assert!((0..5).any(|_| is_reached()), "a second and more in each of five runs");
    }

    #[test]
    fn the_tighter_cap_decides() {
        let both = Cap { operations: Some(Frequency(100.0)), ..MEGABYTE };
        let write = Operation::write(Slot(1), 0, 1000, Buffer::alone(1000));
        assert_eq!(both.spacing(&write), Nanos::from_millis(10));
        assert_eq!(MEGABYTE.spacing(&write), Nanos::from_millis(1));
        let sync = Operation::on(OpKind::Sync, Slot(1), Buffer::empty());
        assert_eq!(MEGABYTE.spacing(&sync), Nanos(0));
        assert_eq!(both.spacing(&sync), Nanos::from_millis(10));
        assert_eq!(Cap::default().spacing(&write), Nanos(0));
    }
}
