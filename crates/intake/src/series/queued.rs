//! Messages that wait: for a slot, for the start of their series, or for the next recording.

use nilometer_model::Nanos;
use nilometer_storage::Buffer;
use nilometer_wire::{
    cbor::DataPlace,
    series::{SeriesError, SeriesImage, SeriesMessage, SeriesMessageKind},
    stream1, stream2,
};

use super::{FrameIntake, SeriesRefusal, SlotAnswer};
use crate::transport::zeromq::ZmqMessage;

/// A message that came.
#[derive(Debug)]
pub(super) struct QueuedMessage {
    pub(super) arrived: Nanos,
    pub(super) message: ZmqMessage,
    /// Whether each of its long strings lies in memory of its own, and not in a slot of the intake.
    pub(super) own: Vec<bool>,
}

/// An image of which not all frames have a slot yet, or whose start did not come yet.
#[derive(Debug)]
pub(super) struct HeldImage {
    pub(super) image: SeriesImage,
    pub(super) queued: QueuedMessage,
}

impl QueuedMessage {
    /// The message of a series that it is, of either version.
    pub(super) fn decoded(&self) -> Result<SeriesMessage, SeriesError> {
        let parts = self.message.parts();
        let first = parts.first().map_or(&[][..], |part| part.bytes);
        match &parts[..] {
            [only] if !stream1::is_json(first) => stream2::decode(*only),
            parts => stream1::decode(parts),
        }
    }

    /// The kind of message that it begins as, also if it can't be read.
    pub(super) fn kind(&self) -> Option<SeriesMessageKind> {
        let parts = self.message.parts();
        let first = parts.first()?.bytes;
        if stream1::is_json(first) { stream1::kind_of(first) } else { stream2::kind_of(first) }
    }

    /// Its slots go back to their intake.
    pub(super) fn give_back(self, intake: &mut dyn FrameIntake) {
        let buffers = self.message.apart.into_iter().zip(self.own);
        let slots = buffers.filter_map(|(buffer, is_own)| buffer.filter(|_| !is_own));
        slots.for_each(|slot| intake.give_back(slot));
    }

    /// The same message without slots of this intake, which ends before it is needed: pixels are copied into memory of their own.
    pub(super) fn detached(mut self, intake: &mut dyn FrameIntake) -> Self {
        let parts = self.message.parts();
        let lengths: Vec<usize> = parts.iter().flat_map(|part| part.cuts).map(|cut| cut.length).collect();
        drop(parts);
        for ((buffer, is_own), length) in self.message.apart.iter_mut().zip(&mut self.own).zip(lengths) {
            let Some(slot) = buffer.take_if(|_| !*is_own) else { continue };
            let mut copy = Buffer::alone(length.max(1));
            copy[..length].copy_from_slice(&slot[..length]);
            intake.give_back(slot);
            *buffer = Some(copy);
            *is_own = true;
        }
        self
    }

    /// A slot of the intake with the bytes of a string of it: the one that they were read into, or another that they are copied
    /// to. `Err(None)` if there is no slot yet. Bytes that are not there were dropped, because there was no slot or none as long.
    pub(super) fn slot(
        &mut self,
        now: Nanos,
        place: &DataPlace,
        intake: &mut dyn FrameIntake,
    ) -> Result<Buffer, Option<SeriesRefusal>> {
        if let DataPlace::Apart { cut, .. } = place
            && self.own.get(*cut) == Some(&false)
            && let Some(slot) = self.message.apart.get_mut(*cut).and_then(Option::take)
        {
            return Ok(slot);
        }
        filled_slot(now, self.message.bytes(place), place.length(), intake)
    }
}

fn filled_slot(
    now: Nanos,
    bytes: Option<&[u8]>,
    length: usize,
    intake: &mut dyn FrameIntake,
) -> Result<Buffer, Option<SeriesRefusal>> {
    match (intake.slot(now, length), bytes) {
        (SlotAnswer::TooLong, _) => Err(Some(SeriesRefusal::TooLong)),
        (SlotAnswer::Wait, Some(_)) => Err(None),
        (SlotAnswer::Lost, _) | (SlotAnswer::Wait, None) => Err(Some(SeriesRefusal::NoRoom)),
        (SlotAnswer::Free(slot), None) => {
            intake.give_back(slot);
            Err(Some(SeriesRefusal::NoRoom))
        }
        (SlotAnswer::Free(mut slot), Some(bytes)) => {
            slot[..length].copy_from_slice(bytes);
            Ok(slot)
        }
    }
}
