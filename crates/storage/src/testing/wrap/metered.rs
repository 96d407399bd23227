//! Counters of an engine's operations, which any thread may read while it works.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use nilometer_model::Nanos;

use crate::{Arena, Completion, Engine, EngineError, Operation, Wait, Wake, operation::OpKind};

/// Counters of completed operations. Several engines may share one.
#[derive(Debug, Default)]
pub struct Meter([Counters; OpKind::ALL.len()]);

#[derive(Debug, Default)]
struct Counters {
    operations: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
}

/// A reading of a meter. Its figures may be some operations apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Operations completed, failed ones included.
    pub operations: u64,
    /// Bytes read or written.
    pub bytes: u64,
    /// Operations that failed.
    pub errors: u64,
}

impl Meter {
    /// Returns the counts of one kind of operation. For an open, its mode does not matter.
    pub fn of(&self, kind: OpKind) -> Counts {
        let Counters { operations, bytes, errors } = &self.0[place(kind)];
        Counts {
            operations: operations.load(Relaxed),
            bytes: bytes.load(Relaxed),
            errors: errors.load(Relaxed),
        }
    }

    /// Returns the counts of all kinds together.
    pub fn total(&self) -> Counts {
        OpKind::ALL.into_iter().map(|kind| self.of(kind)).fold(Counts::default(), |sum, one| Counts {
            operations: sum.operations + one.operations,
            bytes: sum.bytes + one.bytes,
            errors: sum.errors + one.errors,
        })
    }

    fn count(&self, completion: &Completion) {
        let counters = &self.0[place(completion.operation.kind)];
        counters.operations.fetch_add(1, Relaxed);
        match completion.result {
            Ok(bytes) if completion.operation.kind.is_data() => {
                counters.bytes.fetch_add(u64::from(bytes), Relaxed);
            }
            Ok(_) => {}
            Err(_) => {
                counters.errors.fetch_add(1, Relaxed);
            }
        }
    }
}

/// Returns the place of a kind in [`OpKind::ALL`].
const fn place(kind: OpKind) -> usize {
    match kind {
        OpKind::Read => 0,
        OpKind::Write => 1,
        OpKind::Sync => 2,
        OpKind::SyncData => 3,
        OpKind::Allocate => 4,
        OpKind::Truncate => 5,
        OpKind::Open(_) => 6,
        OpKind::OpenDir => 7,
        OpKind::Close => 8,
        OpKind::Stat => 9,
        OpKind::List => 10,
        OpKind::Unlink => 11,
        OpKind::RemoveDir => 12,
        OpKind::MakeDir => 13,
        OpKind::Rename => 14,
        OpKind::Nop => 15,
    }
}

/// An engine that counts its operations.
pub struct Metered {
    inner: Box<dyn Engine>,
    meter: Arc<Meter>,
}

impl std::fmt::Debug for Metered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metered").field("total", &self.meter.total()).finish_non_exhaustive()
    }
}

impl Metered {
    /// Wraps an engine.
    pub fn new(inner: Box<dyn Engine>, meter: Arc<Meter>) -> Self {
        Metered { inner, meter }
    }
}

impl Engine for Metered {
    forward_depth_and_clock!();

    fn submit(&mut self, operation: Operation, due: Nanos) {
        self.inner.submit(operation, due);
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        let before = done.len();
        self.inner.reap(wait, done);
        for completion in &done[before..] {
            self.meter.count(completion);
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
mod tests {
    use nilometer_model::EngineKind;

    use super::*;
    use crate::{Buffer, Slot, operation::Open, testing::trial};

    #[test]
    fn each_kind_has_its_place() {
        for (index, kind) in OpKind::ALL.into_iter().enumerate() {
            assert_eq!(place(kind), index);
        }
    }

    #[test]
    fn another_thread_reads_what_was_done() {
        let (_directory, root) = trial::directory();
        let meter = Arc::new(Meter::default());
        let inner = trial::on_directory(root, EngineKind::Sync, 1);
        let mut engine = Metered::new(inner, meter.clone());
        for name in [b"one", b"one"] {
            let open = trial::named(OpKind::Open(Open::CREATE), Slot(1), name);
            trial::once(&mut engine, open).result.ok();
        }
        for _ in 0..3 {
            trial::once(&mut engine, Operation::write(Slot(1), 0, 100, Buffer::alone(100)));
        }
        std::thread::spawn(move || {
            let write = Counts { operations: 3, bytes: 300, errors: 0 };
            assert_eq!(meter.of(OpKind::Write), write);
            assert_eq!(meter.of(OpKind::Open(Open::READ)), Counts { operations: 2, bytes: 0, errors: 1 });
            assert_eq!(meter.total(), Counts { operations: 5, bytes: 300, errors: 1 });
        })
        .join()
        .expect("the counts are right");
    }
}
