//! Where bytes go: a [`Target`] is a storage system under test and makes [`Engine`]s; a [`Workload`] says the next
//! operation; [`Drive`] joins the two and is the only loop through which bytes pass, evaluating and recording.
//!
//! An operation owns its buffer until it is completed, files are slots that the workload chooses, and names are
//! relative to a slot, so nothing is allocated or formatted in the loop and nothing can leave the run's directory.
//!
//! Storage may hang. What asks it is given up after a time ([`in_time`]), also where it only holds the small files that users
//! write for this program ([`user_file`]).
//!
//! Where unsafe code is, and why, stands in ARCHITECTURE.md.

pub mod buffer;
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
