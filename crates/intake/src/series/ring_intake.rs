//! A ring as the destination for frames of a series. Each frame stays in the slot into which its bytes were
//! received.
//!
//! ```text
//! SeriesReceiver -> RingIntake -> ring -> writer -> [encode stage, for frames that came plain] -> sink
//!                       | packed in another way than the recording has them: unpacked here
//! ```
//!
//! Frames must be in order in two cases. If files hold consecutive frame numbers, a file is complete when
//! frames of the next one arrive. And in several datasets, each frame is appended to the last one.
//!
//! Frames of several connections overtake each other. They are sorted here first, as far as that takes few
//! slots and little time.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use nilometer_codec::ElementSize;
use nilometer_hdf5::ImageTimeColumn;
use nilometer_model::{FrameCompression, Nanos};
use nilometer_recording::{chunk, journal::Encoding};
use nilometer_ring::{Frame, FrameMessage, Ring, StoredAs};
use nilometer_storage::Buffer;
use nilometer_wire::{
    series::{Packing, SeriesImage, SeriesStart, TimeRatio},
    stream1::digest_of,
};

use super::{FrameIntake, RefusedFrame, SeriesFrame, SlotAnswer};
use crate::{
    joined::{JoinedValues, values_of_user_data},
    transport::zeromq::ZmqMessage,
};

/// How the frames of a series are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesStorage {
    /// Bytes of an unpacked frame.
    pub frame_size: u64,
    /// Encoding of stored frames. Frames that arrive with this encoding are stored unchanged.
    pub encoding: Encoding,
    /// True if frames should be in order, as far as that takes few slots and little time.
    pub in_order: bool,
    /// Maximum number of frames, if the dataset can't grow.
    pub frames_max: Option<u64>,
}

impl SeriesStorage {
    /// Bytes of a slot into which any received frame fits.
    pub fn slot_size(&self) -> usize {
        // This is the longest of all packings; and the sender may have used small blocks.
        let most = Encoding::Chunk(FrameCompression::Bslz4, ElementSize::One).length_max(self.frame_size);
        most as usize + LZ4_HEAD
    }
}

/// Reorder buffer: at most 64 frames, or a quarter of the ring's slots.
const WAITING_MAX: usize = 64;
const WAITING_SHARE: usize = 4;
/// Maximum wait in the reorder buffer.
const WAITING_FOR: Nanos = Nanos::from_millis(200);

/// Puts the frames of a series into a ring.
#[derive(Debug)]
pub struct RingIntake {
    ring: Arc<Ring>,
    storage: SeriesStorage,
    spares: Vec<Buffer>,
    full: Vec<Frame>,
    /// Scratch memory for an unpacked frame.
    unpacked: Vec<u8>,
    order: Option<FrameOrder>,
    /// Destination for values of images beside their pixels.
    values: Option<Arc<JoinedValues>>,
}

/// The reorder buffer: frames that arrived before others with a lower number.
#[derive(Debug)]
struct FrameOrder {
    waiting: BTreeMap<u64, WaitingFrame>,
    /// The length of all halts so far: meanwhile nobody read the frames for which others wait.
    halts: Nanos,
    /// The number of the next frame in order.
    next: u64,
    most: usize,
}

/// A frame in the reorder buffer.
#[derive(Debug)]
struct WaitingFrame {
    frame: Frame,
    /// The length of all halts before it arrived.
    halts_before: Nanos,
}

impl RingIntake {
    /// Makes an intake for a ring.
    pub fn new(ring: Arc<Ring>, storage: SeriesStorage) -> Self {
        let most = (ring.books().slots / WAITING_SHARE).min(WAITING_MAX);
        let order = FrameOrder { waiting: BTreeMap::new(), halts: Nanos(0), next: 0, most };
        let order = (ring.gives_leases() || storage.in_order).then_some(order);
        RingIntake {
            ring,
            storage,
            spares: Vec::new(),
            full: Vec::new(),
            unpacked: Vec::new(),
            order,
            values: None,
        }
    }

    /// Joins values of images to their frames.
    #[must_use]
    pub fn joining(mut self, values: Option<Arc<JoinedValues>>) -> Self {
        self.values = values;
        self
    }

    /// Hands on frames in the reorder buffer, since no frame arrives any more.
    pub fn finish(&mut self, now: Nanos) {
        self.release(now, |_| true);
    }

    /// Hands on waiting frames, from the lowest number on, while they are in order or `until` returns true.
    fn release(&mut self, now: Nanos, until: impl Fn(&FrameOrder) -> bool) {
        let Some(order) = &mut self.order else { return };
        while let Some((number, frame)) = order.take_first(&until) {
            order.next = number + 1;
            self.full.push(frame);
        }
        self.hand_on(now);
    }

    fn hand_on(&mut self, now: Nanos) {
        if !self.full.is_empty() {
            self.ring.put(now, &mut self.full, &mut self.spares, false);
        }
    }

    /// Converts the bytes in the slot to the recording's encoding, or to plain ones. `None` means plain. Bytes that are
    /// converted are first compared with their hash.
    fn suited(
        &mut self,
        frame: &mut SeriesFrame,
        message: &mut FrameMessage,
    ) -> Result<Option<StoredAs>, String> {
        let Some(came_as) = came_as(frame)? else { return Ok(None) };
        if came_as.encoding == self.storage.encoding {
            return Ok(Some(came_as));
        }
        let Encoding::Chunk(compression, element) = came_as.encoding else { return Ok(None) };
        self.unpacked.resize(self.storage.frame_size as usize, 0);
        let packed = &frame.data[..came_as.length as usize];
        let sent = &packed[packed.len() - frame.length..];
        message.compare(|| digest_of(sent));
        chunk::decode(compression, element, packed, &mut self.unpacked).map_err(|error| error.to_string())?;
        frame.data[..self.unpacked.len()].copy_from_slice(&self.unpacked);
        Ok(None)
    }
}

impl FrameOrder {
    /// Takes the waiting frame with the lowest number, if it is next or `until` returns true.
    fn take_first(&mut self, until: impl Fn(&FrameOrder) -> bool) -> Option<(u64, Frame)> {
        let (first, _) = self.waiting.first_key_value()?;
        let taken = (*first <= self.next || until(self)).then(|| self.waiting.pop_first()).flatten()?;
        let (number, waiting) = taken;
        Some((number, waiting.frame))
    }

    fn insert(&mut self, number: u64, frame: Frame) {
        self.waiting.insert(number, WaitingFrame { frame, halts_before: self.halts });
    }

    fn waits_too_long(&self, now: Nanos) -> bool {
        let waited = |WaitingFrame { frame, halts_before }: &WaitingFrame| {
            let halts = self.halts.since(*halts_before);
            now.since(frame.arrived).since(halts)
        };
        let first = self.waiting.first_key_value();
        self.waiting.len() > self.most || first.is_some_and(|(_, waiting)| waited(waiting) >= WAITING_FOR)
    }
}

impl FrameIntake for RingIntake {
    fn slot(&mut self, now: Nanos, length: usize) -> SlotAnswer {
        if self.spares.is_empty() {
            self.ring.put(now, &mut self.full, &mut self.spares, true);
        }
        match self.spares.pop() {
            Some(slot) if slot.len() >= length + LZ4_HEAD => SlotAnswer::Free(slot),
            Some(slot) => {
                self.spares.push(slot);
                SlotAnswer::TooLong
            }
            None => {
                // The frame for which others wait may be the one that finds no slot.
                self.release(now, |_| true);
                SlotAnswer::Wait
            }
        }
    }

    fn give_back(&mut self, slot: Buffer) {
        self.spares.push(slot);
    }

    fn begin(&mut self, _: Nanos, _: &SeriesStart, _: &ZmqMessage) -> Result<(), String> {
        Ok(())
    }

    fn frames_max(&self) -> Option<u64> {
        self.storage.frames_max
    }

    fn noted(&mut self, image: &SeriesImage) {
        let Some(values) = &self.values else { return };
        let times = &image.times;
        let seconds = |time: Option<TimeRatio>| time.map(TimeRatio::seconds);
        let times = [times.start, times.stop, times.real].map(seconds);
        let keys = ImageTimeColumn::ALL.map(ImageTimeColumn::key);
        let times: Vec<_> = keys.into_iter().zip(times).collect();
        values.put_of_image(image.image, &times);
        image.times.series_date.iter().for_each(|date| values.put_series_date(date));
        values.put_user_data(image.image, &values_of_user_data(&image.fields));
    }

    fn take(&mut self, now: Nanos, mut frame: SeriesFrame) -> Result<(), RefusedFrame> {
        let mut message = FrameMessage::new(frame.length as u64, frame.hash);
        let came_as = match self.suited(&mut frame, &mut message) {
            Ok(came_as) => came_as,
            Err(fault) => return Err(RefusedFrame { slot: frame.data, fault }),
        };
        let SeriesFrame { number, arrived, data, .. } = frame;
        let frame = Frame { came_as, message: Some(message), ..Frame::new(number, arrived, arrived, data) };
        match &mut self.order {
            None => self.full.push(frame),
            Some(order) => order.insert(number, frame),
        }
        self.release(now, |order| order.waits_too_long(now));
        self.hand_on(now);
        Ok(())
    }

    fn tend(&mut self, now: Nanos) {
        self.release(now, |order| order.waits_too_long(now));
    }

    fn halted(&mut self, length: Nanos) {
        self.ring.halted(length);
        if let Some(order) = &mut self.order {
            order.halts += length;
        }
    }

    /// The total number of frames is set when the ring is closed.
    fn missing(&mut self, _: Nanos, _: Range<u64>) {}
}

/// The encoding of a frame's bytes, if they are not plain. A bare block gets the header that HDF5 expects.
fn came_as(frame: &mut SeriesFrame) -> Result<Option<StoredAs>, String> {
    let element = ElementSize::of(frame.element.bytes() as u64).ok_or("its pixels have an unknown size")?;
    let length = frame.length as u32;
    let stored_as =
        |compression, length| StoredAs { encoding: Encoding::Chunk(compression, element), length };
    match frame.packing {
        Packing::Plain => Ok(None),
        Packing::BitshuffleLz4 { .. } => Ok(Some(stored_as(FrameCompression::Bslz4, length))),
        Packing::Lz4 => Ok(Some(stored_as(FrameCompression::Lz4, length))),
        Packing::Lz4Block => {
            put_lz4_head(&mut frame.data, frame.length, frame.size)?;
            Ok(Some(stored_as(FrameCompression::Lz4, length + LZ4_HEAD as u32)))
        }
    }
}

/// Length of the header of an HDF5 filter 32004 chunk with one block: size of all elements, of a block, and
/// of its compressed bytes.
const LZ4_HEAD: usize = 16;

/// Makes a chunk of HDF5 filter 32004 from one LZ4 block:
/// <https://github.com/nexusformat/HDF5-External-Filter-Plugins>.
fn put_lz4_head(data: &mut [u8], length: usize, size: u64) -> Result<(), String> {
    let block = u32::try_from(size).map_err(|_| format!("a frame of {size} B in one LZ4 block"))?;
    if length as u64 == size {
        return Err(
            "one LZ4 block as long as its frame, which the filter of HDF5 takes for one that is not packed"
                .into(),
        );
    }
    data.copy_within(..length, LZ4_HEAD);
    let parts = [&size.to_be_bytes()[..], &block.to_be_bytes(), &(length as u32).to_be_bytes()];
    data[..LZ4_HEAD].copy_from_slice(&parts.concat());
    Ok(())
}

#[cfg(test)]
mod tests {
    use nilometer_storage::Buffer;

    use super::*;

    #[test]
    fn a_halt_is_no_wait_for_a_frame_that_nobody_could_read() {
        let mut order = FrameOrder { waiting: BTreeMap::new(), halts: Nanos(0), next: 0, most: 10 };
        let arrived = Nanos::from_millis(1000);
        order.insert(1, Frame::new(1, arrived, arrived, Buffer::empty()));
        let waits_too_long = |order: &FrameOrder, millis| order.waits_too_long(Nanos::from_millis(millis));
        assert_eq!([1199, 1200].map(|millis| waits_too_long(&order, millis)), [false, true]);
        order.halts += Nanos::from_millis(5000);
        assert_eq!([6199, 6200].map(|millis| waits_too_long(&order, millis)), [false, true]);
        // A frame that arrives behind the halt has not waited through it.
        order.waiting.clear();
        let later = Nanos::from_millis(7000);
        order.insert(2, Frame::new(2, later, later, Buffer::empty()));
        assert_eq!([7199, 7200].map(|millis| waits_too_long(&order, millis)), [false, true]);
    }
}
