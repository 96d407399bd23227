//! Memory for the pixels of an image: a slot of the intake, or of the waiting room if the image's start has
//! not arrived.

use nilometer_model::Nanos;
use nilometer_storage::Buffer;
use nilometer_wire::{stream1, stream2};

use super::{
    super::{FrameIntake, SlotAnswer, admission::Admission},
    SeriesReception,
};
use crate::transport::zeromq::{RoomAnswer, RoomRequest};

impl SeriesReception {
    /// Gives room for a long string of a message. `asked` contains the bytes of the message before it.
    pub(in crate::series) fn room(
        &mut self,
        now: Nanos,
        asked: RoomRequest<'_>,
        intake: &mut dyn FrameIntake,
    ) -> RoomAnswer {
        let RoomRequest { before, part, length, is_trusted } = asked;
        let is_image = if part == 0 { stream2::is_image(before) } else { stream1::is_pixels(before, part) };
        if !is_image {
            return RoomAnswer::Along;
        }
        let series = if part == 0 { stream2::series_of(before) } else { stream1::series_of(before) };
        if series.is_none() && !is_trusted && self.check.is_some() {
            // The image's series is unknown, so a stranger gets no slot for it yet.
            return RoomAnswer::Along;
        }
        let is_sample = self.is_incomplete(series.as_ref());
        match self.admission(now, series.as_ref()) {
            Admission::Discard(_) => RoomAnswer::Dropped,
            Admission::Wait if self.followed.is_some() => RoomAnswer::Later,
            Admission::Wait => {
                self.early.lend(length, is_sample).map_or(RoomAnswer::Later, RoomAnswer::Apart)
            }
            Admission::Take if self.waits_for_slots() => self.later(now),
            Admission::Take => match intake.slot(now, length) {
                SlotAnswer::Free(slot) => {
                    self.lent.push(slot.as_ptr().addr());
                    RoomAnswer::Apart(slot)
                }
                SlotAnswer::Wait => self.later(now),
                SlotAnswer::Lost | SlotAnswer::TooLong => RoomAnswer::Dropped,
            },
        }
    }

    fn later(&mut self, now: Nanos) -> RoomAnswer {
        self.others.is_held_up(now);
        RoomAnswer::Later
    }

    /// Takes back the memory for a string whose message was cut off.
    pub(in crate::series) fn give_back(&mut self, buffer: Buffer, intake: &mut dyn FrameIntake) {
        if self.returns(&buffer) {
            intake.give_back(buffer);
        }
    }

    /// A connection is done with a buffer. Returns true if that is a slot of the intake.
    pub(super) fn returns(&mut self, buffer: &Buffer) -> bool {
        let slot = self.lent.iter().position(|address| *address == buffer.as_ptr().addr());
        if slot.is_none() {
            self.early.returns(buffer);
        }
        slot.map(|slot| self.lent.swap_remove(slot)).is_some()
    }
}
