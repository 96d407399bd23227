//! A sink that acknowledges every frame without storing it: it measures the cost of the ring and the stages
//! alone.

use nilometer_model::Nanos;
use nilometer_recording::Due;
use nilometer_ring::Frame;
use nilometer_storage::{Completion, Errno, InFlightTable, Operation, ROOT, buffer::Alignment};

use super::{RingNeeds, Sink, Stored};

/// Acknowledges every frame without storing it. Drive it with a null engine: its operations have no file.
#[derive(Debug, Default)]
pub struct NullSink {
    slot: usize,
    written: u64,
    waiting: Option<Frame>,
    in_flight: InFlightTable<Frame>,
    finished: bool,
}

impl NullSink {
    /// Makes a sink for frames in slots of `slot` bytes.
    pub fn of_slots(slot: usize) -> Self {
        NullSink { slot, ..NullSink::default() }
    }
}

impl Sink for NullSink {
    fn needs(&self) -> RingNeeds {
        RingNeeds { slot: self.slot, alignment: Alignment::CacheLine, chunk: None }
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn has_room(&self) -> bool {
        self.waiting.is_none()
    }

    fn submit(&mut self, frame: Frame) {
        self.waiting = Some(frame);
    }

    fn next(&mut self, _now: Nanos) -> Option<(Operation, Nanos)> {
        let mut frame = self.waiting.take()?;
        let data = std::mem::take(&mut frame.data);
        let due = frame.due;
        let tag = self.in_flight.insert(frame);
        let length = data.len() as u32;
        self.written += u64::from(length);
        Some((Operation::write(ROOT, 0, length, data).tagged(tag), due))
    }

    fn completed(&mut self, completion: Completion, stored: &mut Stored) -> Result<(), Errno> {
        let Operation { tag, buffer, .. } = completion.operation;
        let frame = self.in_flight.remove(tag);
        stored.acknowledged.push(Frame { data: buffer, ..frame });
        Ok(())
    }

    fn is_full(&self) -> bool {
        false
    }

    fn finish(&mut self, _due: Option<Due>) {
        self.finished = true;
    }

    fn is_finished(&self) -> bool {
        self.finished && self.waiting.is_none() && self.in_flight.is_empty()
    }

    fn abandon(&mut self) -> Vec<Frame> {
        self.waiting.take().into_iter().collect()
    }
}
