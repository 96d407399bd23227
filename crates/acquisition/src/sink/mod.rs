//! What becomes of frames: a sink turns them into operations. It has the shape of a workload, one level up: frames go
//! in, operations come out, completions go in, acknowledged frames come out. So every byte of a recorder passes an
//! engine, and every sink can be tested on the virtual clock.

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

/// What became of frames.
#[derive(Debug, Default)]
pub struct Stored {
    /// They survive the death of the process.
    pub acknowledged: Vec<Frame>,
    /// Those that survive the loss of power now.
    pub durable: Vec<FrameCount>,
}

/// What a sink asks of the ring that it gets frames from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingNeeds {
    /// Bytes of a slot.
    pub slot: usize,
    /// Where slots begin in memory.
    pub alignment: Alignment,
    /// Frames that one writer gets in a row at the most, where each writes chunks of the recording.
    pub chunk: Option<u64>,
}

impl RingNeeds {
    /// What suits both: they are lanes of one recording.
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

/// Turns frames into operations. Pure, as a workload is.
pub trait Sink: Debug + Send {
    /// What it asks of the ring.
    fn needs(&self) -> RingNeeds;
    /// It takes the space of the whole recording before the first frame: a lane without is a recording that can't begin.
    fn reserves_all(&self) -> bool {
        false
    }
    /// How the thread that drives it is woken, by a sink that has threads of its own.
    fn seat(&mut self, waker: Arc<dyn Wake>) {
        drop(waker);
    }
    /// Where it counts the memory that grows with what it stores.
    fn account(&mut self, account: &MemoryAccount) {
        let _ = account;
    }
    /// Bytes of acknowledged frames and of those on their way to it, as they were written: encoded, if they are.
    fn written(&self) -> u64;
    /// Whether the first frames can be stored: what they need is made.
    fn is_ready(&self) -> bool {
        true
    }
    /// Whether it takes another frame now.
    fn has_room(&self) -> bool;
    /// The next frame, of this number, begins a chunk; the one before is over. Only called when there is room, and only
    /// where the ring gives leases.
    fn begin(&mut self, first: u64) {
        let _ = first;
    }
    /// The chunk is over, and what comes next is not known yet. As `begin`.
    fn end(&mut self) {}
    /// Takes a frame. Only called when there is room.
    fn submit(&mut self, frame: Frame);
    /// No frame waits now: what was collected to be written together is to be written.
    fn flush(&mut self) {}
    /// No frame comes any more, but those that other lanes give back: none is held until there are more.
    fn put_open(&mut self) {}
    /// The next operation, with its due time, if there is one to be issued.
    fn next(&mut self, now: Nanos) -> Option<(Operation, Nanos)>;
    /// An operation is done. What became of frames by it is appended; an error means that the sink has failed.
    fn completed(&mut self, completion: Completion, stored: &mut Stored) -> Result<(), Errno>;
    /// What to wait for when there is no operation to be issued.
    fn wait(&self, now: Nanos) -> Wait {
        let _ = now;
        Wait::ForOne
    }
    /// When it is to be asked for the next operation, though nothing comes: what is acknowledged has to become durable.
    fn wakes_at(&self) -> Option<Nanos> {
        None
    }
    /// Its storage has no room for another frame, and will not have.
    fn is_full(&self) -> bool;
    /// No frame comes any more: what is open is to be completed. What the whole recording came to, if it ended and not only
    /// this lane.
    fn finish(&mut self, due: Option<Due>);
    /// All is completed after `finish`.
    fn is_finished(&self) -> bool;
    /// After a failure: every frame that is not acknowledged and not in flight.
    fn abandon(&mut self) -> Vec<Frame>;
}
