//! The recorder: receives data, keeps them in a ring, and writes them.
//!
//! ```text
//! instrument -> Source -> Ring -> Writer (one a lane) -> Sink -> Engine -> Target -> Reader
//! ```
//!
//! [`Source`](nilometer_ring::Source) and [`Writer`] are workloads. Threads drive them in production
//! ([`Recorder`]), and a test steps all of them on one virtual clock.
//!
//! A lane is a directory on a target with its own writer. A writer takes a frame whenever its sink has room for
//! one. Each lane thus gets frames at its present speed, and no code has to measure or guess that speed.
//!
//! A lane that fails, or whose storage is full, hands its frames to the others. Each lane keeps its own
//! journal, and a [reader](nilometer_recording::reader) unites them, so no lane is special.
//!
//! Two terms: a frame is *acknowledged* when it survives the death of the process, and *durable* when it
//! survives the loss of power. A frame's slot in the ring is free again when the frame is acknowledged.

#![forbid(unsafe_code)]

#[cfg(any(test, feature = "test-kit"))]
pub mod conformance;
pub mod export;
mod follower;
mod recorder;
mod recording_plan;
pub mod sink;
mod writer;

pub use follower::{Follower, Following, Purpose};
pub use recorder::{
    Came, ChosenEngine, Copied, DataStreamStatus, DataStreamWatch, Ending, EngineReason, EngineWish, Feed,
    Lane, LaneStatus, Lost, MemoryStatus, NamedStatus, Network, Outcome, Port, Recorder, RecordingError,
    RingStatus, SenderStatus, SeriesFeed, Setup, Status, ThreadStatus, ring_of, suited_engine,
};
pub use recording_plan::{LayoutOptions, PART, RecordingPlan, Retention, StoredFrames};
pub use writer::{Writer, WriterTotals};
