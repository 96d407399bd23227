//! How data come, wait and are written: the recorder.
//!
//! ```text
//! instrument -> Source -> Ring -> Writer (one a lane) -> Sink -> Engine -> Target -> Reader
//! ```
//!
//! [`Source`](nilometer_ring::Source) and [`Writer`] are workloads: threads drive them in production ([`Recorder`]), a test steps all of them on
//! one virtual clock. A lane is a directory on a target with a writer of its own. A writer takes frames whenever its sink
//! has room for one, so that a lane gets as many as it is fast at this moment, and no figure of its speed has to be kept
//! or guessed. A lane that fails, or whose storage is full, hands its frames to the others. Each lane keeps its own journal,
//! and a [reader](nilometer_recording::reader) unites them, so that no lane is special.
//!
//! Two words: a frame is *acknowledged* when it survives the death of the process, *durable* when it survives the loss
//! of power. A slot of the ring is free again when its frame is acknowledged.

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
    Came, Copied, Ending, Feed, Lane, LaneStatus, Lost, MemoryStatus, Network, Outcome, Port, Recorder,
    RecordingError, RingStatus, SenderStatus, SeriesFeed, Setup, Status, ThreadStatus, ring_of,
    suited_engine,
};
pub use recording_plan::{LayoutOptions, PART, RecordingPlan, Retention, StoredFrames};
pub use writer::{Writer, WriterTotals};
