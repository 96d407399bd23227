//! The other end: frames of a simulated instrument as a series of messages, compressed by threads, each image sent when it is
//! due. A receiver that is slower is waited for, as TCP has it; how late images leave is counted.
//!
//! ```text
//! thread 0: images 0, 2, 4 ... made and compressed -> two that are ready each -+
//! thread 1: images 1, 3, 5 ...                     -> .........................-+-> in order, when due -> PUSH
//! ```

use std::{
    io,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use nilometer_codec::{ChunkCodec, ElementSize};
use nilometer_model::{FrameCompression, Histogram, Nanos, Schedule};
use nilometer_recording::{chunk::compression_of, instrument::Content};
use nilometer_storage::Clock;
use nilometer_wire::{
    series::{ImageTimes, Packing, SeriesError, SeriesStart, TimeRatio},
    stream1,
    stream2::{self, ImageChannel, MessagePiece},
};

use crate::transport::zeromq::PushSocket;

/// In which form messages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamVersion {
    /// JSON and blobs.
    One,
    /// CBOR.
    Two,
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
    /// When images are due.
    pub schedule: Schedule,
    /// What is in them: a frame a channel, by its number.
    pub content: Content,
    /// Threads that make images; one at least.
    pub threads: usize,
}

/// What was sent.
#[derive(Debug, Clone, Default)]
pub struct SentSeries {
    /// Images.
    pub images: u64,
    /// Bytes of their pixels, as they were sent.
    pub bytes: u64,
    /// From when images were due until they were sent.
    pub lateness: Histogram,
    /// From the start until the last was sent.
    pub wall: Nanos,
    /// It was told to stop before all were sent.
    pub stopped: bool,
}

/// Images that a thread has ready, beside the one that it makes.
const READY: usize = 2;
/// Looks of 50 ms that the end is tried for.
const END_WAITS: u32 = 20;
/// Longest without a look whether it is to stop.
const LOOK: Nanos = Nanos::from_millis(20);

/// The pixels of an image, packed, by channel.
type PackedImage = Vec<Vec<u8>>;

impl SimulatedSeries {
    /// Sends all of it to who is connected, once somebody is; and the end, also if it is to stop before.
    ///
    /// # Errors
    /// If the network fails, or if the version has no word for what is to be said.
    pub fn send(&self, push: &mut PushSocket, clock: Clock, stop: &AtomicBool) -> io::Result<SentSeries> {
        while push.connected() == 0 && !stop.load(Ordering::Relaxed) {
            push.tend()?;
            thread::sleep(LOOK.duration());
        }
        thread::scope(|scope| {
            let mut ready = Vec::new();
            for first in 0..self.threads.max(1) as u64 {
                let (sender, receiver) = sync_channel(READY);
                scope.spawn(move || self.make(first, &sender));
                ready.push(receiver);
            }
            let sent = self.send_all(push, clock, stop, &ready);
            // Threads whose images nobody takes end.
            drop(ready);
            sent
        })
    }

    /// Makes every image of a thread, until nobody takes them.
    fn make(&self, first: u64, ready: &SyncSender<PackedImage>) {
        let channels = self.start.channels.len() as u64;
        let mut frame = vec![0; self.content.frame_size()];
        self.content.prepare_slot(&mut frame);
        let size = ElementSize::of(self.start.element.bytes() as u64).unwrap_or(ElementSize::One);
        let compression = compression_of(self.compression).expect("detectors compress as it is built in");
        let mut codec = ChunkCodec::new(compression, size);
        for image in (first..self.start.images).step_by(self.threads.max(1)) {
            let mut packed = PackedImage::new();
            for channel in 0..channels {
                self.content.fill(image * channels + channel, &mut frame);
                let mut into = vec![0; compression.most_bytes(frame.len())];
                let length = codec.encode(&frame, &mut into).expect("whole pixels, and room for the longest");
                into.truncate(length);
                packed.push(into);
            }
            if ready.send(packed).is_err() {
                return;
            }
        }
    }

    fn send_all(
        &self,
        push: &mut PushSocket,
        clock: Clock,
        stop: &AtomicBool,
        ready: &[Receiver<PackedImage>],
    ) -> io::Result<SentSeries> {
        let stopped = || stop.load(Ordering::Relaxed);
        let mut sent = SentSeries::default();
        let first: Vec<Vec<u8>> = match self.version {
            StreamVersion::One => stream1::encode_header(&self.start).map_err(unsaid)?,
            StreamVersion::Two => vec![stream2::encode_start(&self.start).map_err(unsaid)?],
        };
        let begins = deliver(push, &whole(&first), stop)?;
        let begun = clock.now();
        for image in 0..if begins { self.start.images } else { 0 } {
            let due = begun + self.schedule.due(image);
            while clock.now() < due && !stopped() {
                push.tend()?;
                thread::sleep(due.since(clock.now()).min(LOOK).duration());
            }
            let at = (image % ready.len() as u64) as usize;
            let Ok(packed) = ready[at].recv() else { break };
            if stopped() || !self.send_image(push, image, &packed, stop)? {
                break;
            }
            sent.images += 1;
            sent.bytes += packed.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
            sent.lateness.add(clock.now().since(due).0);
        }
        sent.wall = clock.now().since(begun);
        sent.stopped = sent.images < self.start.images;
        let end = match self.version {
            StreamVersion::One => stream1::encode_end(&self.start.series),
            StreamVersion::Two => stream2::encode_end(&self.start.series),
        };
        // Who has all of it may be gone; who is slow still takes what was sent before.
        push.send(&[&[&end]], END_WAITS)?;
        Ok(sent)
    }

    /// Sends an image; whether somebody took it before it was to stop.
    fn send_image(
        &self,
        push: &mut PushSocket,
        image: u64,
        packed: &PackedImage,
        stop: &AtomicBool,
    ) -> io::Result<bool> {
        let SeriesStart { shape, element, channels, series, .. } = &self.start;
        let channel =
            |(name, bytes)| ImageChannel { name, shape, element: *element, packing: self.packing(), bytes };
        let channels: Vec<_> =
            channels.iter().map(String::as_str).zip(packed.iter().map(Vec::as_slice)).map(channel).collect();
        let times = self.times(image);
        if let (StreamVersion::One, [only]) = (self.version, &channels[..]) {
            let parts = stream1::encode_image(series, image, &times, only).map_err(unsaid)?;
            return deliver(push, &parts.iter().map(|part| vec![part.bytes()]).collect::<Vec<_>>(), stop);
        }
        let pieces = stream2::encode_image(series, image, &times, &channels).map_err(unsaid)?;
        deliver(push, &[pieces.iter().map(MessagePiece::bytes).collect()], stop)
    }

    fn packing(&self) -> Packing {
        match self.compression {
            FrameCompression::Bslz4 => Packing::BitshuffleLz4 { element: self.start.element.bytes() as u8 },
            FrameCompression::Lz4 => Packing::Lz4,
            _ => Packing::Plain,
        }
    }

    /// When an image is taken, by the schedule.
    fn times(&self, image: u64) -> ImageTimes {
        let ratio = |time: Nanos| Some(TimeRatio { numerator: time.0, denominator: 1_000_000_000 });
        let start = self.schedule.due(image);
        let stop = self.schedule.due(image + 1);
        ImageTimes {
            start: ratio(start),
            stop: ratio(stop),
            real: ratio(stop.since(start)),
            series_date: None,
        }
    }
}

/// Parts of one piece each.
fn whole(parts: &[Vec<u8>]) -> Vec<Vec<&[u8]>> {
    parts.iter().map(|part| vec![part.as_slice()]).collect()
}

/// Sends a message of these parts, of pieces each; whether somebody took it before it was to stop.
fn deliver(push: &mut PushSocket, parts: &[Vec<&[u8]>], stop: &AtomicBool) -> io::Result<bool> {
    let parts: Vec<&[&[u8]]> = parts.iter().map(Vec::as_slice).collect();
    while !stop.load(Ordering::Relaxed) {
        if push.send(&parts, 0)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn unsaid(error: SeriesError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}
