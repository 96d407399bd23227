//! How data come, wait and are written: the recorder.
//!
//! ```text
//! instrument -> Source -> Ring -> Writer (one a lane) -> Sink -> Engine -> Target -> Reader
//! ```
//!
//! [`Source`] and [`Writer`] are workloads: threads drive them in production ([`record`]), a test steps all of them on
//! one virtual clock. A lane is a directory on a target with a writer of its own; a lane that fails hands its frames to
//! the others. Each lane keeps its own journal, and a [`reader`] unites them, so that no lane is special.
//!
//! Two words: a frame is *acknowledged* when it survives the death of the process, *durable* when it survives the loss
//! of power. A slot of the ring is free again when its frame is acknowledged.

#![forbid(unsafe_code)]

pub mod cbf;
pub mod instrument;
pub mod journal;
mod mark;
pub mod reader;
mod recorder;
mod ring;
pub mod sink;
mod source;
mod writer;

pub use mark::Mark;
pub use recorder::{Outcome, RecordError, Setup, record};
pub use ring::{Frame, Ring, Taken};
pub use source::{Fill, Pace, Source};
pub use writer::{Writer, WriterTotals};
