//! An engine of many threads, each blocked in one operation: for systems bound by latency, and for libraries
//! that offer only blocking calls. Slots keep their order ([`SlotOrder`]); the threads take all other
//! operations as they become free.

mod exchange;

use std::{sync::Arc, time::Duration};

use nilometer_model::Nanos;

use self::exchange::{Exchange, ThreadNews};
use super::{Engine, EngineError, SlotOrder, SubmittedOperation, Wait, Wake};
use crate::{Arena, Clock, Completion, Operation, operation::Errno};

/// Runs an operation in the calling thread; many threads may call it at once.
pub trait Blocking: Send + std::marker::Sync + 'static {
    /// Returns the bytes moved, the bytes of the answer, or 0.
    fn execute(&self, operation: &mut Operation) -> Result<u32, Errno>;
}

/// How long a dropped pool waits for threads that are in the middle of an operation before it leaves them
/// behind.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The stack of a thread: enough for a system call or a library.
const STACK_BYTES: usize = 256 * 1024;

/// An engine of threads that each block in one operation.
#[derive(Debug)]
pub struct Pool {
    exchange: Arc<Exchange>,
    order: SlotOrder,
    came: Vec<ThreadNews>,
    ready: Vec<SubmittedOperation>,
    clock: Clock,
    last: Nanos,
    depth: usize,
    flying: usize,
}

impl Pool {
    /// Creates a pool of `depth` threads, from 1 to 4096, for operations on `slots` files.
    pub fn new(blocking: impl Blocking, slots: u32, depth: u32, clock: Clock) -> Result<Self, EngineError> {
        assert!((1..=4096).contains(&depth), "limits are checked where they are configured");
        let depth = depth as usize;
        let pool = Pool {
            exchange: Arc::new(Exchange::new(depth)),
            order: SlotOrder::new(slots),
            came: Vec::with_capacity(depth),
            ready: Vec::new(),
            clock,
            last: clock.now(),
            depth,
            flying: 0,
        };
        let blocking: Arc<dyn Blocking> = Arc::new(blocking);
        for number in 0..depth {
            pool.start(number, blocking.clone()).map_err(|source| EngineError::Setup {
                engine: "pool",
                what: "start a thread (raise `ulimit -u`)",
                source,
            })?;
        }
        Ok(pool)
    }

    fn start(&self, number: usize, blocking: Arc<dyn Blocking>) -> std::io::Result<()> {
        let exchange = self.exchange.clone();
        let clock = self.clock;
        let thread = std::thread::Builder::new().name(format!("pool {number}")).stack_size(STACK_BYTES);
        self.exchange.enter();
        // Not joined: a thread may hang in its operation for ever.
        let started = thread.spawn(move || serve(&exchange, &*blocking, clock)).map(drop);
        if started.is_err() {
            self.exchange.leave();
        }
        started
    }
}

/// The loop of a pool thread.
fn serve(exchange: &Exchange, blocking: &dyn Blocking, clock: Clock) {
    struct Stay<'a>(&'a Exchange);
    impl Drop for Stay<'_> {
        fn drop(&mut self) {
            self.0.leave();
        }
    }
    let _stay = Stay(exchange);
    while let Some(SubmittedOperation { mut operation, due }) = exchange.next() {
        let issued = clock.now();
        let result = blocking.execute(&mut operation);
        let finished = clock.now();
        exchange.report(Completion { operation, result, due, issued, finished });
    }
}

impl Engine for Pool {
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
        if let Some(job) = self.order.submit(SubmittedOperation { operation, due }) {
            self.exchange.give(job);
        }
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        if wait == Wait::ForOne && self.flying == 0 {
            return;
        }
        let before = done.len();
        self.exchange.take(wait, &self.clock, &mut self.came);
        for news in self.came.drain(..) {
            let ThreadNews::Done(completion) = news else {
                panic!("a thread of the pool panicked: its operation is lost");
            };
            self.flying -= 1;
            self.order.finished(&completion.operation, &mut self.ready);
            done.push(completion);
        }
        for job in self.ready.drain(..) {
            self.exchange.give(job);
        }
        if wait != Wait::Poll || done.len() > before {
            self.tick();
        }
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.exchange.clone()
    }

    fn register(&mut self, _arena: &Arc<Arena>) -> Result<(), EngineError> {
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.exchange.end(LAST_WAIT);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::shared::SharedFiles, *};
    use crate::{
        Buffer,
        operation::{OpKind, ROOT},
        testing::trial::{self, FILE},
    };

    fn engine(depth: u32) -> (tempfile::TempDir, Pool) {
        let (directory, root) = trial::directory();
        let pool = Pool::new(SharedFiles::new(root.into(), 4), 4, depth, Clock::start()).expect("threads");
        (directory, pool)
    }

    #[test]
    fn what_is_written_is_read_at_any_depth() {
        for (depth, direct) in [(1, false), (2, true), (7, false), (7, true), (32, false), (100, true)] {
            trial::within(Duration::from_mins(1), move || {
                trial::round_trip(&mut engine(depth).1, depth, direct, true);
            });
        }
    }

    #[test]
    fn faults_are_data() {
        trial::faults(&mut engine(3).1);
    }

    #[test]
    fn waits_end_in_time_and_are_broken_by_a_wake() {
        trial::within(Duration::from_mins(1), || trial::waits(&mut engine(2).1));
    }

    #[test]
    fn all_threads_work_at_once() {
        struct Meet(std::sync::Barrier);
        impl Blocking for Meet {
            fn execute(&self, _operation: &mut Operation) -> Result<u32, Errno> {
                self.0.wait();
                Ok(0)
            }
        }
        trial::within(Duration::from_mins(1), || {
            let meet = Meet(std::sync::Barrier::new(32));
            let mut pool = Pool::new(meet, 2, 32, Clock::start()).expect("threads");
            for _ in 0..32 {
                pool.submit(Operation::read(ROOT, 0, 0, Buffer::empty()), Nanos(0));
            }
            let mut done = Vec::new();
            while done.len() < 32 {
                pool.reap(Wait::ForOne, &mut done);
            }
        });
    }

    struct Trap;

    impl Blocking for Trap {
        fn execute(&self, operation: &mut Operation) -> Result<u32, Errno> {
            match operation.kind {
                OpKind::Read => loop {
                    std::thread::park();
                },
                OpKind::Write => panic!("as a library may"),
                _ => Ok(0),
            }
        }
    }

    #[test]
    fn a_thread_that_hangs_is_left_behind() {
        trial::within(Duration::from_secs(20), || {
            let mut pool = Pool::new(Trap, 2, 2, Clock::start()).expect("threads");
            pool.submit(Operation::read(FILE, 0, 0, Buffer::empty()), Nanos(0));
            let other = trial::once(&mut pool, Operation::on(OpKind::Sync, FILE, Buffer::empty()));
            assert_eq!(other.result, Ok(0), "the other thread goes on");
            trial::waits(&mut pool);
        });
    }

    #[test]
    fn a_thread_that_panics_is_not_waited_for() {
        let outcome = std::thread::spawn(|| {
            let mut pool = Pool::new(Trap, 2, 1, Clock::start()).expect("threads");
            trial::once(&mut pool, Operation::write(FILE, 0, 0, Buffer::empty()));
        });
        assert!(outcome.join().is_err());
    }
}
