//! How data come, wait and are written: the recorder.
//!
//! ```text
//! instrument -> Source -> Ring -> Writer (one a lane) -> Sink -> Engine -> Target -> Reader
//! ```
//!
//! [`Source`] and [`Writer`] are workloads: threads drive them in production ([`Recorder`]), a test steps all of them on
//! one virtual clock. A lane is a directory on a target with a writer of its own. A writer takes frames whenever its sink
//! has room for one, so that a lane gets as many as it is fast at this moment, and no figure of its speed has to be kept
//! or guessed. A lane that fails, or whose storage is full, hands its frames to the others. Each lane keeps its own journal,
//! and a [reader](nilometer_recording::reader) unites them, so that no lane is special.
//!
//! Two words: a frame is *acknowledged* when it survives the death of the process, *durable* when it survives the loss
//! of power. A slot of the ring is free again when its frame is acknowledged.

#![forbid(unsafe_code)]

pub mod assembly;
mod chronicle;
#[cfg(any(test, feature = "test-kit"))]
pub mod conformance;
mod expected;
pub mod export;
mod follower;
mod frame_chunks;
mod hdf5_master;
mod hdf5_reading;
pub mod joined;
mod kept_values;
pub mod lone_file;
mod memory_account;
mod receiver;
mod recorder;
mod recording_plan;
mod repair;
pub mod replay;
mod reserved;
mod ring;
pub mod senders;
pub mod series;
pub mod sink;
mod source;
pub mod transport;
mod turn;
mod user_layout;
mod watermark;
mod writer;

pub use chronicle::Chronicle;
pub use expected::{Blocks, Expected};
pub use follower::{Follower, Following, Purpose};
pub use hdf5_master::{MasterError, ModulesPart, put_master, put_master_of_modules};
pub use hdf5_reading::{FrameReadError, Hdf5FrameReader, ReadingTotals, ReadingWatch};
pub use memory_account::{HeldMemory, MemoryAccount, MemoryOfPart, MemoryPart, MemoryPlan};
pub use receiver::{Receiver, Span, Traffic, Until};
pub use recorder::{
    Came, Copied, Ending, Feed, Lane, LaneStatus, Lost, MemoryStatus, Network, Outcome, Port, Recorder,
    RecordingError, RingStatus, SenderStatus, SeriesFeed, Setup, Status, ThreadStatus, ring_of,
    suited_engine,
};
pub use recording_plan::{LayoutOptions, PART, RecordingPlan, Retention, StoredFrames};
pub use repair::{RepairError, RepairOptions, RepairOutcome, RepairedFile, index_faults, repair_recording};
pub use reserved::free_reserved;
pub use ring::{Frame, FrameMessage, Ring, RingCounters, RingSnapshot, StackedFrame, Taken, WhenFull};
pub use source::{Delivery, FillFrame, Pace, Source};
pub use turn::FrameTurn;
pub use user_layout::{AskedFiles, UserLayout, UserLayoutError};
pub use watermark::{Settled, Watermark};
pub use writer::{LaneCounts, PacketCount, StoredCounts, StoredTotals, Writer, WriterTotals};
