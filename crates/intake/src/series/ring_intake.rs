//! A ring as what takes the frames of a series: each stays in the slot that its bytes were received into.
//!
//! ```text
//! SeriesReceiver -> RingIntake -> ring -> writer -> [encode stage, for frames that came plain] -> sink
//!                       | packed in another way than the recording has them: unpacked here
//! ```
//!
//! Where frames go into files of consecutive numbers, a file is over when frames of the next come; and where they go into several
//! datasets, each stands behind the last. Those of several connections overtake each other: they are put in order here first, as far as that takes few slots and little time.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use nilometer_codec::ElementSize;
use nilometer_hdf5::ImageTimeColumn;
use nilometer_model::{FrameCompression, Nanos};
use nilometer_recording::{chunk, journal::Encoding};
use nilometer_ring::{Frame, FrameMessage, Ring, StoredAs};
use nilometer_storage::Buffer;
use nilometer_wire::series::{Packing, SeriesImage, SeriesStart, TimeRatio};

use super::{FrameIntake, RefusedFrame, SeriesFrame, SlotAnswer};
use crate::{
    joined::{JoinedValues, values_of_user_data},
    transport::zeromq::ZmqMessage,
};

/// How the frames of a series are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesStorage {
    /// Bytes of a frame, unpacked.
    pub frame_size: u64,
    /// What is stored of each: those that come so are stored as they came.
    pub encoding: Encoding,
    /// Frames are to be in order, as far as that takes few slots and little time.
    pub in_order: bool,
    /// Frames that the dataset has places for, if it can't grow.
    pub frames_max: Option<u64>,
}

impl SeriesStorage {
    /// Bytes of a slot that any frame fits into as it comes.
    pub fn slot_size(&self) -> usize {
        // Of all that frames are packed by, this takes most; and the sender may have used small blocks.
        let most = Encoding::Chunk(FrameCompression::Bslz4, ElementSize::One).length_max(self.frame_size);
        most as usize + LZ4_HEAD
    }
}

/// Frames that wait for those before them, at the most: so many, and of all slots one in so many.
const WAITING_MAX: usize = 64;
const WAITING_SHARE: usize = 4;
/// And so long.
const WAITING_FOR: Nanos = Nanos::from_millis(200);

/// See the module.
#[derive(Debug)]
pub struct RingIntake {
    ring: Arc<Ring>,
    storage: SeriesStorage,
    spares: Vec<Buffer>,
    full: Vec<Frame>,
    /// Where a frame is unpacked.
    unpacked: Vec<u8>,
    order: Option<FrameOrder>,
    /// Where what images say beside their pixels goes.
    values: Option<Arc<JoinedValues>>,
}

/// Frames that came before others with a lower number.
#[derive(Debug)]
struct FrameOrder {
    waiting: BTreeMap<u64, Frame>,
    /// The number of the frame that is awaited.
    next: u64,
    most: usize,
}

impl RingIntake {
    /// Into a ring.
    pub fn new(ring: Arc<Ring>, storage: SeriesStorage) -> Self {
        let most = (ring.books().slots / WAITING_SHARE).min(WAITING_MAX);
        let order = FrameOrder { waiting: BTreeMap::new(), next: 0, most };
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

    /// What images say beside their pixels is joined to their frames.
    #[must_use]
    pub fn joining(mut self, values: Option<Arc<JoinedValues>>) -> Self {
        self.values = values;
        self
    }

    /// No frame comes any more: those that wait for others are handed on.
    pub fn finish(&mut self, now: Nanos) {
        self.release(now, |_| true);
    }

    /// Hands on those that wait, from the lowest number on, as long as that is to be.
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

    /// What is in the slot: as the recording has it, or plain.
    fn suited(&mut self, frame: &mut SeriesFrame) -> Result<Option<StoredAs>, String> {
        let Some(came_as) = came_as(frame)? else { return Ok(None) };
        if came_as.encoding == self.storage.encoding {
            return Ok(Some(came_as));
        }
        let Encoding::Chunk(compression, element) = came_as.encoding else { return Ok(None) };
        self.unpacked.resize(self.storage.frame_size as usize, 0);
        let packed = &frame.data[..came_as.length as usize];
        chunk::decode(compression, element, packed, &mut self.unpacked).map_err(|error| error.to_string())?;
        frame.data[..self.unpacked.len()].copy_from_slice(&self.unpacked);
        Ok(None)
    }
}

impl FrameOrder {
    /// The frame of the lowest number, if it is awaited, or if it waits no longer.
    fn take_first(&mut self, until: impl Fn(&FrameOrder) -> bool) -> Option<(u64, Frame)> {
        let (first, _) = self.waiting.first_key_value()?;
        (*first <= self.next || until(self)).then(|| self.waiting.pop_first()).flatten()
    }

    fn waits_too_long(&self, now: Nanos) -> bool {
        self.waiting.len() > self.most
            || self
                .waiting
                .first_key_value()
                .is_some_and(|(_, frame)| now.since(frame.arrived) >= WAITING_FOR)
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
                // The frame that others wait for may be the one that finds no slot.
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
        let came_as = match self.suited(&mut frame) {
            Ok(came_as) => came_as,
            Err(fault) => return Err(RefusedFrame { slot: frame.data, fault }),
        };
        let SeriesFrame { number, arrived, data, length, .. } = frame;
        let message = Some(FrameMessage { bytes: length as u64, is_damaged: false });
        let frame = Frame { came_as, message, ..Frame::new(number, arrived, arrived, data) };
        match &mut self.order {
            None => self.full.push(frame),
            Some(order) => drop(order.waiting.insert(number, frame)),
        }
        self.release(now, |order| order.waits_too_long(now));
        self.hand_on(now);
        Ok(())
    }

    fn tend(&mut self, now: Nanos) {
        self.release(now, |order| order.waits_too_long(now));
    }

    /// The ring is told how many are due when it is closed.
    fn missing(&mut self, _: Nanos, _: Range<u64>) {}
}

/// What the bytes of a frame are, if not its own. A bare block gets what HDF5 has in front of it.
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

/// Bytes in front of a chunk of HDF5 filter 32004 with one block: of all elements, of a block, and of it compressed.
const LZ4_HEAD: usize = 16;

/// Makes a chunk of HDF5 filter 32004 of one LZ4 block: <https://github.com/nexusformat/HDF5-External-Filter-Plugins>.
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
