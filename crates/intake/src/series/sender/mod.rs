//! The other end: frames of a simulated instrument as a series of messages, sent as a detector sends them. Images are made and
//! compressed by threads, leave the detector when they are due whether or not anybody takes them, and wait in a queue for a
//! connection that does; one that finds the queue full is lost.
//!
//! ```text
//! thread 0: images 0, 2, 4 ... made and compressed -> two that are ready each -+
//! thread 1: images 1, 3, 5 ...                     -> .........................-+-> when due -> faults -> queue -> PUSH
//!     ^ memory of the pool <------------------------- when sent, or dropped ------------------------------------+
//! ```
//!
//! Memory is that of the pool: it is made when it is first needed, and there is no more of it than images can be anywhere between
//! the threads and the connections.

mod course;
mod makers;
mod messages;
mod pool;
mod queue;
#[cfg(test)]
mod tests;

pub use queue::SendQueueLimits;

use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
    thread,
};

use nilometer_codec::{Compression, ElementSize};
use nilometer_model::{FrameCompression, Histogram, Nanos, Schedule, Seed};
use nilometer_recording::{chunk::compression_of, instrument::Content};
use nilometer_storage::Clock;
use nilometer_wire::series::SeriesStart;

use crate::transport::{faults::Faults, zeromq::PushSocket};
use course::SeriesCourse;
use pool::ImagePool;

/// In which form messages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamVersion {
    /// JSON and blobs.
    One,
    /// CBOR.
    Two,
}

/// What becomes of an image that is due while the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOverflow {
    /// It is dropped, as a detector does, which can't wait.
    Drop,
    /// It waits, and all behind it do: nothing is lost, and the pace is that of the receiver.
    Wait,
}

/// A series that is made and sent.
#[derive(Debug)]
pub struct SimulatedSeries {
    /// What its start says.
    pub start: SeriesStart,
    /// In which form.
    pub version: StreamVersion,
    /// How images are packed: not at all, bslz4, or in version 2 lz4.
    pub compression: FrameCompression,
    /// When images are due: when the first is, and each behind it.
    pub schedule: Schedule,
    /// How long an image is exposed: it leaves at the end of that.
    pub exposure: Nanos,
    /// What is in them: a frame a channel, by its number.
    pub content: Content,
    /// Threads that make images; one at least.
    pub threads: usize,
    /// How many images may wait for connections.
    pub queue: SendQueueLimits,
    /// What becomes of those that are more.
    pub overflow: SendOverflow,
    /// Told the number of the first image that is dropped, when it is.
    pub first_dropped: fn(u64),
    /// What goes wrong with images before they are sent; those in another size, and others beside them, are none of this.
    pub faults: Faults,
    /// Where the faults come from.
    pub seed: Seed,
}

/// What was sent. Images that were due are sent, lost by a fault that was asked for, dropped, or unsent.
#[derive(Debug, Clone, Default)]
pub struct SentSeries {
    /// Images that were due.
    pub due: u64,
    /// Images that were sent: the kernel has all of them. Second copies apart.
    pub images: u64,
    /// Bytes of their pixels, as they were sent.
    pub bytes: u64,
    /// Second copies that were sent.
    pub duplicated: u64,
    /// Images that were left out by a fault that was asked for, and how many times one or more in a row.
    pub lost: u64,
    /// See `lost`.
    pub losses: u64,
    /// Images that left the detector after one with a higher number.
    pub reordered: u64,
    /// Images that found the queue full.
    pub dropped: u64,
    /// Of these, how many while nobody was connected.
    pub dropped_alone: u64,
    /// Images that nobody took before the end was given up.
    pub unsent: u64,
    /// Images that this machine had not made when they were due.
    pub made_late: u64,
    /// The most images that were in the queue.
    pub queued_most: usize,
    /// From when images were due until they were sent.
    pub lateness: Histogram,
    /// From the start until the last image left the detector.
    pub paced: Nanos,
    /// From the start until the last was sent.
    pub wall: Nanos,
}

impl SimulatedSeries {
    /// Sends all of it to who is connected, once somebody is; and the end, also if it is to stop before.
    ///
    /// When all images were due, those in the queue are sent as long as somebody takes any of them. Where nobody took a byte for
    /// ten seconds, the rest is given up; images that are to wait are given up only where nobody is connected.
    ///
    /// # Errors
    /// If the network fails, or if the version has no word for what is to be said.
    pub fn send(&self, push: &mut PushSocket, clock: Clock, stop: &AtomicBool) -> io::Result<SentSeries> {
        let pool = Arc::new(self.pool());
        thread::scope(|scope| {
            let ready = self.make_all(scope, &pool);
            let sent = SeriesCourse::new(self, push, clock, stop, ready).run();
            // Threads whose images nobody takes end.
            pool.close();
            sent
        })
    }

    fn codec(&self) -> Compression {
        compression_of(self.compression).expect("detectors compress as it is built in")
    }

    fn pool(&self) -> ImagePool {
        let element = ElementSize::of(self.start.element.bytes() as u64).unwrap_or(ElementSize::One);
        let most = self.codec().most_bytes(self.content.frame_size());
        let most = most.next_multiple_of(element.bytes());
        let held = if self.faults.reorder > 0.0 { self.faults.distance as usize } else { 0 };
        let ready = self.threads.max(1) * (makers::READY + 1);
        let limit = ready + held + self.queue.images + course::BESIDE;
        ImagePool::new(limit, self.start.channels.len(), most)
    }
}
