//! The storage layer. A [`Target`] is a storage system under test and makes [`Engine`]s. A [`Workload`]
//! chooses the next operation. [`Drive`] joins the two and is the only loop through which bytes pass, in
//! evaluations and recordings alike.
//!
//! An operation owns its buffer until it completes. Files are slots that the workload chooses, and names are
//! relative to a slot. The loop therefore allocates and formats nothing, and no operation can leave the run's
//! directory.
//!
//! Storage may hang. Code that queries it gives up after a time limit ([`in_time`]), even for the small files
//! that users write for this program ([`user_file`]).
//!
//! ARCHITECTURE.md lists the unsafe code and the reasons for it.

pub mod buffer;
pub mod census;
pub mod clock;
pub mod detached;
pub mod drive;
pub mod engine;
mod in_flight;
pub mod listing;
pub mod listing_bound;
pub mod network;
pub mod new_file;
pub mod observer;
pub mod operation;
pub mod pieces;
pub mod process;
pub mod recall;
pub mod tally;
pub mod target;
#[cfg(any(test, feature = "test-kit"))]
pub mod testing;
pub mod user_file;

pub use buffer::{Arena, Buffer};
pub use clock::{Calendar, Clock};
pub use detached::{DetachedTask, NoOutcome, PATIENCE, in_time, within};
pub use drive::{Drive, Ended, Step, Turn, Workload, interleave};
pub use engine::{Engine, EngineError, Wait, Wake};
pub use in_flight::InFlightTable;
pub use operation::{Completion, Errno, OpKind, Open, Operation, ROOT, SOURCE, Slot};
pub use tally::{Counted, Tally};
pub use target::{Target, TargetError};
