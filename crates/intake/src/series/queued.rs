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

/// A received message.
#[derive(Debug)]
pub(super) struct QueuedMessage {
    pub(super) arrived: Nanos,
    pub(super) message: ZmqMessage,
    /// For each of its long strings: true if it has its own memory, false if it lies in a slot of the intake.
    pub(super) own: Vec<bool>,
}

/// An image whose frames do not all have slots yet, or whose start has not arrived.
#[derive(Debug)]
pub(super) struct HeldImage {
    pub(super) image: SeriesImage,
    pub(super) queued: QueuedMessage,
}

impl QueuedMessage {
    /// Decodes the series message, of either version.
    pub(super) fn decoded(&self) -> Result<SeriesMessage, SeriesError> {
        let parts = self.message.parts();
        let first = parts.first().map_or(&[][..], |part| part.bytes);
        match &parts[..] {
            [only] if !stream1::is_json(first) => stream2::decode(*only),
            parts => stream1::decode(parts),
        }
    }

    /// The kind of message according to its beginning, even if the rest can't be decoded.
    pub(super) fn kind(&self) -> Option<SeriesMessageKind> {
        let parts = self.message.parts();
        let first = parts.first()?.bytes;
        if stream1::is_json(first) { stream1::kind_of(first) } else { stream2::kind_of(first) }
    }

    /// Returns its slots to their intake.
    pub(super) fn give_back(self, intake: &mut dyn FrameIntake) {
        let buffers = self.message.apart.into_iter().zip(self.own);
        let slots = buffers.filter_map(|(buffer, is_own)| buffer.filter(|_| !is_own));
        slots.for_each(|slot| intake.give_back(slot));
    }

    /// The same message without slots of this intake, which ends before the message is used. Pixels are
    /// copied to other memory.
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

    /// Gets a slot of the intake with the bytes of a string: the one that holds them already, or another with
    /// a copy.
    ///
    /// # Errors `None` if there is no slot yet; otherwise the reason. Missing bytes were dropped, because
    /// there was no slot, or none large enough.
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
