//! Puts the frames of an image of the current series into the intake.

use nilometer_model::Nanos;
use nilometer_wire::series::SeriesName;

use super::{
    super::{FrameIntake, RefusedFrame, SeriesFrame, SeriesRefusal, queued::HeldImage},
    SeriesReception,
};

impl SeriesReception {
    pub(super) fn image_of_series(&mut self, now: Nanos, held: HeldImage, intake: &mut dyn FrameIntake) {
        let Some(check) = &self.check else { return };
        if let Some(start) = self.repeated.take() {
            if check.has_image(&held.image) && self.followed.is_none() {
                // The detector began anew and counts from the same number.
                self.behind.push_front(held.queued);
                self.follow(now, start, true);
                return;
            }
            self.tally.starts += 1;
        }
        self.heard = now;
        self.tally.note_unread(&held.image.unread);
        for fault in &held.image.unread_channels {
            self.tally.refuse(SeriesRefusal::Malformed, Some(fault.to_string()));
        }
        intake.noted(&held.image);
        self.held.push_back(held);
        self.hand_on_held(now, intake);
    }

    /// Counts the frames of an image as refused.
    pub(super) fn refuse(&mut self, held: HeldImage, why: SeriesRefusal, intake: &mut dyn FrameIntake) {
        let SeriesName { number, unique } = &held.image.series;
        let shown: String = unique.chars().take(40).collect();
        let fault =
            (why == SeriesRefusal::Foreign).then(|| format!("series {number} {shown:?} is another one"));
        held.image.channels.iter().for_each(|_| self.tally.refuse(why, fault.clone()));
        held.queued.give_back(intake);
    }

    /// Hands on frames that have slots, in order of arrival.
    pub(super) fn hand_on_held(&mut self, now: Nanos, intake: &mut dyn FrameIntake) {
        while let Some(mut held) = self.held.pop_front() {
            while !held.image.channels.is_empty() {
                if !self.hand_on(now, &mut held, intake) {
                    self.held.push_front(held);
                    self.others.is_held_up(now);
                    return;
                }
                held.image.channels.remove(0);
            }
            held.queued.give_back(intake);
        }
    }

    /// Hands on the first frame of an image, or counts its refusal. Returns false if there is no slot for it
    /// yet.
    fn hand_on(&mut self, now: Nanos, held: &mut HeldImage, intake: &mut dyn FrameIntake) -> bool {
        let HeldImage { image, queued } = held;
        let (Some(check), Some(data)) = (&mut self.check, image.channels.first()) else { return true };
        let array = &data.array;
        let bytes = queued.message.bytes(&array.place);
        let number = match check.frame(image, data, bytes, intake.frames_max()) {
            Ok(number) => number,
            Err(refused) => {
                self.tally.count(refused);
                return true;
            }
        };
        let length = array.place.length();
        let data = match queued.slot(now, &array.place, intake) {
            Ok(slot) => slot,
            Err(None) => return false,
            Err(Some(why)) => {
                let fault = format!("frame {number} of {length} B, as it came");
                self.tally.refuse(why, Some(fault));
                return true;
            }
        };
        let frame = SeriesFrame {
            number,
            arrived: queued.arrived,
            data,
            length,
            size: check.frame_bytes(),
            packing: array.packing,
            element: array.element,
            times: image.times.clone(),
            hash: image.hash,
        };
        match intake.take(now, frame) {
            Ok(()) => {
                check.came(number);
                if let Some(peer) = queued.message.peer.filter(|peer| self.proved.last() != Some(peer)) {
                    self.proved.push(peer);
                }
                self.first.get_or_insert(queued.arrived);
                self.last = queued.arrived;
                self.tally.frames += 1;
                self.tally.bytes += length as u64;
            }
            Err(RefusedFrame { slot, fault }) => {
                intake.give_back(slot);
                self.tally.refuse(SeriesRefusal::Packing, Some(format!("frame {number}: {fault}")));
            }
        }
        true
    }
}
