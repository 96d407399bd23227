//! Sinks turn frames into operations. A sink has the shape of a workload, one level up: it takes frames and
//! gives operations, then takes completions and gives acknowledged frames. Every byte of a recorder therefore
//! passes an engine, and tests can run every sink on the virtual clock.

mod cbf;
mod encode;
mod lane;
mod null;
mod raw;

pub use encode::EncodeStage;
pub use lane::{LaneOptions, LaneSetup, encode_stage, lanes_memory, lanes_of};
pub use null::NullSink;
pub use raw::{Durability, FILE_SLOTS, Gauge, LaneFiles, Numbering, RawLayout, Spacing, Streamer};

use std::{fmt::Debug, sync::Arc};

use nilometer_model::Nanos;
use nilometer_recording::Due;
use nilometer_ring::{Frame, FrameCount, MemoryAccount};
use nilometer_storage::{Completion, Errno, Operation, Wait, buffer::Alignment, engine::Wake};

/// Frames acknowledged and frames made durable by a completion.
#[derive(Debug, Default)]
pub struct Stored {
    /// Frames that survive the death of the process.
    pub acknowledged: Vec<Frame>,
    /// Frames that survive a loss of power from now on.
    pub durable: Vec<FrameCount>,
}

/// Requirements of a sink for the ring that feeds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingNeeds {
    /// Bytes of a slot.
    pub slot: usize,
    /// Alignment of slots in memory.
    pub alignment: Alignment,
    /// Most frames that one writer gets in a row. `None` unless each writer writes chunks of the recording.
    pub chunk: Option<u64>,
}

impl RingNeeds {
    /// Combines the needs of two lanes of one recording.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let page = [self.alignment, other.alignment].contains(&Alignment::Page);
        RingNeeds {
            slot: self.slot.max(other.slot),
            alignment: if page { Alignment::Page } else { Alignment::CacheLine },
            chunk: self.chunk.or(other.chunk),
        }
    }
}

/// Turns frames into operations. A sink is pure, as a workload is.
pub trait Sink: Debug + Send {
    /// Returns the sink's requirements for the ring.
    fn needs(&self) -> RingNeeds;
    /// Returns true if the sink takes the space of the whole recording before the first frame. A recording
    /// can't begin if such a lane has no space.
    fn reserves_all(&self) -> bool {
        false
    }
    /// Gives a sink with threads of its own the waker of the thread that drives it.
    fn seat(&mut self, waker: Arc<dyn Wake>) {
        drop(waker);
    }
    /// Gives the sink the account in which it counts the memory that grows with the frames stored.
    fn account(&mut self, account: &MemoryAccount) {
        let _ = account;
    }
    /// Bytes of frames acknowledged or on their way to it, as written: encoded, if they are.
    fn written(&self) -> u64;
    /// Returns true if the sink can store the first frames: their files exist.
    fn is_ready(&self) -> bool {
        true
    }
    /// Returns true if the sink takes another frame now.
    fn has_room(&self) -> bool;
    /// Begins a chunk with the next frame, numbered `first`, and ends the previous one. Only called if there is
    /// room and the ring gives leases.
    fn begin(&mut self, first: u64) {
        let _ = first;
    }
    /// Ends the chunk; the next frame is not known yet. Only called if the ring gives leases.
    fn end(&mut self) {}
    /// Takes a frame. Only called when there is room.
    fn submit(&mut self, frame: Frame);
    /// Tells the sink that no frame waits now, so it writes the frames it has collected.
    fn flush(&mut self) {}
    /// Tells the sink that no more frames arrive, except those that other lanes give back. It then holds no
    /// frame back to wait for more.
    fn put_open(&mut self) {}
    /// The next operation with its due time, or `None` if there is none to issue.
    fn next(&mut self, now: Nanos) -> Option<(Operation, Nanos)>;
    /// Takes a completion, and appends the frames it acknowledged or made durable. An error means that the sink
    /// has failed.
    fn completed(&mut self, completion: Completion, stored: &mut Stored) -> Result<(), Errno>;
    /// Returns the event to wait for if there is no operation to issue.
    fn wait(&self, now: Nanos) -> Wait {
        let _ = now;
        Wait::ForOne
    }
    /// The time of the next operation if no frame or completion arrives before: acknowledged frames have to
    /// become durable.
    fn wakes_at(&self) -> Option<Nanos> {
        None
    }
    /// Returns true if the storage has no room for another frame, and never will.
    fn is_full(&self) -> bool;
    /// Ends the sink: no more frames arrive, so it completes its open files. `due` holds the totals of the
    /// recording, or `None` if only this lane ended.
    fn finish(&mut self, due: Option<Due>);
    /// Returns true if everything is completed after `finish`.
    fn is_finished(&self) -> bool;
    /// Takes back all frames neither acknowledged nor in flight, after a failure.
    fn abandon(&mut self) -> Vec<Frame>;
}
