//! How operations are issued. An engine only does what it is told; what to do is a [`crate::Workload`]'s part.

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

/// Does operations. Belongs to the thread that made it.
///
/// Operations in flight have no order among themselves, with one exception: an operation uses the file that its slot
/// held when it was submitted, or that an open submitted before it puts there. So a close may follow a read at once, but
/// a sync covers only writes that were completed before it was submitted.
pub trait Engine {
    /// How many operations may be in flight. The caller counts; `submit` is then never refused.
    fn depth(&self) -> usize;
    /// The last clock reading (when something finished, or by `tick`): costs nothing.
    fn now(&self) -> Nanos;
    /// Reads the clock.
    fn tick(&mut self) -> Nanos;
    /// Takes an operation that should have been issued at `due`.
    fn submit(&mut self, operation: Operation, due: Nanos);
    /// Appends what is done, waiting as told. It may return early with nothing.
    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>);
    /// Makes a waiting `reap` of this engine return, from any thread; if none waits, the next one.
    fn waker(&self) -> Arc<dyn Wake>;
    /// Memory that operations will use, so that the kernel can keep it mapped. May be called several times. After an
    /// error the engine works all the same, without the advantage.
    fn register(&mut self, arena: &Arc<Arena>) -> Result<(), EngineError>;
    /// In virtual time: when `reap` will next have something. On a real clock nobody asks.
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

/// The end of an engine that other threads hold.
pub trait Wake: Send + std::marker::Sync {
    /// Makes the engine look up.
    fn wake(&self);
}

/// An engine that can't be made.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The kernel or its administrator does not allow it.
    #[error("the engine `{engine}` is not permitted here ({source}): use engine = \"{instead}\"")]
    NotPermitted {
        /// The word in plans.
        engine: &'static str,
        /// What the kernel said.
        source: std::io::Error,
        /// What works everywhere.
        instead: &'static str,
    },
    /// The target can't be driven this way.
    #[error("the engine `{engine}` can't drive {target}: use one of {choices}")]
    Unsuitable {
        /// The word in plans.
        engine: &'static str,
        /// The target's kind.
        target: &'static str,
        /// What would do.
        choices: &'static str,
    },
    /// A resource ran out while it was set up.
    #[error("the engine `{engine}` could not be set up: {what}: {source}")]
    Setup {
        /// The word in plans.
        engine: &'static str,
        /// The step that failed.
        what: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
}

/// How an engine is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Which one.
    pub kind: EngineKind,
    /// Operations in flight.
    pub depth: u32,
    /// Slots for open files, the run's directory included.
    pub slots: u32,
    /// The run's clock.
    pub clock: Clock,
}

/// An engine on the files of a directory, which may also read those of another.
pub fn on_directory(reach: impl Into<Reach>, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
    let reach = reach.into();
    let Options { kind, depth, slots, clock } = *options;
    match kind {
        EngineKind::Sync => Ok(Box::new(Sync::new(files::Files::new(reach, slots), clock))),
        EngineKind::IoUring => Ok(Box::new(Uring::new(reach, slots, depth, clock)?)),
        EngineKind::Pool => {
            Ok(Box::new(Pool::new(shared::SharedFiles::new(reach, slots), slots, depth, clock)?))
        }
        // It is made by those who have started MPI.
        EngineKind::MpiIo => Err(EngineError::Unsuitable {
            engine: kind.name(),
            target: "a directory without processes that MPI has started",
            choices: "sync, io_uring, pool",
        }),
    }
}
