//! The other end: frames of a simulated instrument as a series of messages, sent as a detector sends them.
//!
//! Threads make and compress images. These leave the detector when they are due, whether or not a receiver
//! takes them. They wait in a queue for a connection; an image that finds the queue full is lost.
//!
//! ```text
//! thread 0: images 0, 2, 4 ... made and compressed -> two that are ready each -+
//! thread 1: images 1, 3, 5 ...                     -> .........................-+-> when due, faults, queue -> PUSH
//!     ^ memory of the pool <------------------------- when sent, or dropped ------------------------------------+
//! ```
//!
//! All memory belongs to the pool. It is allocated on first use, and limited to the number of images that can
//! be anywhere between the threads and the connections.

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

/// The version of the stream protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamVersion {
    /// JSON and blobs.
    One,
    /// CBOR.
    Two,
}

/// How to treat an image that is due while the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOverflow {
    /// Drop it, as a detector does, which can't wait.
    Drop,
    /// It waits, and so do all behind it. Nothing is lost, and the receiver sets the pace.
    Wait,
}

/// A series to be made and sent.
#[derive(Debug)]
pub struct SimulatedSeries {
    /// Its start message.
    pub start: SeriesStart,
    /// The version of the stream protocol.
    pub version: StreamVersion,
    /// How images are packed: not at all, bslz4, or in version 2 lz4.
    pub compression: FrameCompression,
    /// When the first image and each further one are due.
    pub schedule: Schedule,
    /// Exposure time of an image, which leaves at the end of it.
    pub exposure: Nanos,
    /// The frames' content: one frame for each channel, by its number.
    pub content: Content,
    /// Number of threads that make images, at least one.
    pub threads: usize,
    /// Limits of the queue of images that wait for connections.
    pub queue: SendQueueLimits,
    /// How to treat images beyond these limits.
    pub overflow: SendOverflow,
    /// Called with the number of the first dropped image, when it is dropped.
    pub first_dropped: fn(u64),
    /// Faults before sending. Other sizes and foreign packets do not apply to images.
    pub faults: Faults,
    /// Seed of the faults.
    pub seed: Seed,
}

/// The result of sending. Each image that was due was sent, lost by a configured fault, dropped, or unsent.
#[derive(Debug, Clone, Default)]
pub struct SentSeries {
    /// Images that were due.
    pub due: u64,
    /// Images sent: the kernel took them completely. Second copies do not count.
    pub images: u64,
    /// Bytes of their pixels, as sent.
    pub bytes: u64,
    /// Second copies that were sent.
    pub duplicated: u64,
    /// Images lost by a configured fault.
    pub lost: u64,
    /// How many times one or more consecutive images were lost.
    pub losses: u64,
    /// Images that left the detector after one with a higher number.
    pub reordered: u64,
    /// Images that found the queue full.
    pub dropped: u64,
    /// Images dropped while no peer was connected.
    pub dropped_alone: u64,
    /// Images that no peer took before the end was given up.
    pub unsent: u64,
    /// Images that this machine had not finished when they were due.
    pub made_late: u64,
    /// The largest number of images in the queue.
    pub queued_most: usize,
    /// Time from when images were due until they were sent.
    pub lateness: Histogram,
    /// Time from the start until the last image left the detector.
    pub paced: Nanos,
    /// Time from the start until the last image was sent.
    pub wall: Nanos,
}

impl SimulatedSeries {
    /// Sends everything to the connected peers, once there is one. It sends the end message even after a
    /// stop.
    ///
    /// After the last image was due, it sends the queued images while a peer takes bytes. After ten seconds
    /// without a byte it gives up the rest. With [`SendOverflow::Wait`] it gives up only if no peer is
    /// connected.
    ///
    /// # Errors
    /// If the network fails, or if the version can't express the start or an image.
    pub fn send(&self, push: &mut PushSocket, clock: Clock, stop: &AtomicBool) -> io::Result<SentSeries> {
        let pool = Arc::new(self.pool());
        thread::scope(|scope| {
            let ready = self.make_all(scope, &pool);
            let sent = SeriesCourse::new(self, push, clock, stop, ready).run();
            // Ends threads whose images are no longer taken.
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
