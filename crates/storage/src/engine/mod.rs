//! How operations are issued. An engine only executes them; a [`crate::Workload`] chooses them.

mod files;
mod immediate;
mod mailbox;
mod null;
mod pause;
mod pool;
mod shared;
mod slot_order;
mod sync;
mod uring;

pub use files::Reach;
pub use files::plain;
pub use immediate::{Execute, Immediate};
pub use mailbox::Mailbox;
pub use null::{Nothing, Null};
pub use pool::{Blocking, Pool};
pub use slot_order::{SlotOrder, SubmittedOperation};
pub use sync::{Sync, SystemCalls};
pub use uring::Uring;

use std::sync::Arc;

use nilometer_model::{EngineKind, Nanos};

use crate::{Arena, Clock, Completion, Operation};

/// Executes operations. It belongs to the thread that made it.
///
/// Operations in flight have no order among themselves, with one exception. An operation uses the file that
/// its slot held when it was submitted, or that an open submitted before it puts there. A close may therefore
/// follow a read at once, but a sync covers only writes that completed before it was submitted.
pub trait Engine {
    /// The number of operations that may be in flight. The caller counts them, so `submit` never refuses one.
    fn depth(&self) -> usize;
    /// The last clock reading (of a completion or of `tick`). It costs nothing.
    fn now(&self) -> Nanos;
    /// Reads the clock.
    fn tick(&mut self) -> Nanos;
    /// Takes an operation that should have been issued at `due`.
    fn submit(&mut self, operation: Operation, due: Nanos);
    /// Appends completions and waits as `wait` says. It may return early with nothing.
    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>);
    /// Returns a handle that ends a waiting `reap` of this engine from any thread. If none waits, it ends the
    /// next one.
    fn waker(&self) -> Arc<dyn Wake>;
    /// Registers memory that operations will use, so that the kernel can keep it mapped. You may call it
    /// several times. After an error the engine still works, without the advantage.
    fn register(&mut self, arena: &Arc<Arena>) -> Result<(), EngineError>;
    /// In virtual time, the time at which `reap` will next return something. No caller needs it on a real
    /// clock.
    fn next_event(&self) -> Option<Nanos> {
        None
    }
}

/// How long `reap` waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    Poll,
    /// For a completion, a wake, or this time.
    Until(Nanos),
    /// For a completion; a wake may end it early, with nothing.
    ForOne,
    /// For a completion or a wake.
    News,
}

/// Wakes an engine from another thread.
pub trait Wake: Send + std::marker::Sync {
    /// Ends a wait of the engine.
    fn wake(&self);
}

/// Why an engine can't be created.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The kernel or its administrator does not allow it.
    #[error("the engine `{engine}` is not permitted here ({source}): use engine = \"{instead}\"")]
    NotPermitted {
        /// The engine's name in plans.
        engine: &'static str,
        /// The kernel's error.
        source: std::io::Error,
        /// An engine that works everywhere.
        instead: &'static str,
    },
    /// The target can't be driven this way.
    #[error("the engine `{engine}` can't drive {target}: use one of {choices}")]
    Unsuitable {
        /// The engine's name in plans.
        engine: &'static str,
        /// The target's kind.
        target: &'static str,
        /// The engines that work.
        choices: &'static str,
    },
    /// A resource ran out while it was set up.
    #[error("the engine `{engine}` could not be set up: {what}: {source}")]
    Setup {
        /// The engine's name in plans.
        engine: &'static str,
        /// The step that failed.
        what: &'static str,
        /// The kernel's error.
        source: std::io::Error,
    },
}

/// The settings of an engine.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The kind of engine.
    pub kind: EngineKind,
    /// Operations in flight.
    pub depth: u32,
    /// Slots for open files, the run's directory included.
    pub slots: u32,
    /// The run's clock.
    pub clock: Clock,
}

/// Creates an engine on the files of a directory. It may also read the files of a second one.
pub fn on_directory(reach: impl Into<Reach>, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
    let reach = reach.into();
    let Options { kind, depth, slots, clock } = *options;
    match kind {
        EngineKind::Sync => Ok(Box::new(Sync::new(files::Files::new(reach, slots), clock))),
        EngineKind::IoUring => Ok(Box::new(Uring::new(reach, slots, depth, clock)?)),
        EngineKind::Pool => {
            Ok(Box::new(Pool::new(shared::SharedFiles::new(reach, slots), slots, depth, clock)?))
        }
        // The code that starts MPI makes this engine.
        EngineKind::MpiIo => Err(EngineError::Unsuitable {
            engine: kind.name(),
            target: "a directory without processes that MPI has started",
            choices: "sync, io_uring, pool",
        }),
    }
}
