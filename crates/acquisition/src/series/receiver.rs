//! Takes the messages of one series from a socket into an intake, until the series is over.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use nilometer_model::Nanos;
use nilometer_storage::{Buffer, Clock};
use nilometer_wire::{
    cbor::DataPlace,
    series::{SeriesImage, SeriesMessage, SeriesName, SeriesStart},
    stream1, stream2,
};

use super::{
    FrameIntake, RefusedFrame, SeriesCheck, SeriesEnding, SeriesFrame, SeriesRefusal, SeriesTally,
    SeriesTraffic, SeriesUntil, SlotAnswer,
};
use crate::{
    LaneCounts,
    transport::zeromq::{MessageRoom, PullSocket, RoomAnswer, ZmqMessage},
};

/// Images that wait for the start of their series, at the most, and how long: they hold their slots meanwhile.
const EARLY_MAX: usize = 8;
const EARLY_FOR: Nanos = Nanos::from_millis(1000);
/// Longest without a look whether the series is over.
const LOOK: Nanos = Nanos::from_millis(20);
/// How often the figures are brought up to date.
const TELL: Nanos = Nanos::from_millis(100);

/// An image of which not all frames have a slot yet.
#[derive(Debug)]
struct HeldImage {
    arrived: Nanos,
    image: SeriesImage,
    message: ZmqMessage,
}

/// See the module.
#[derive(Debug)]
pub struct SeriesReceiver {
    socket: PullSocket,
    until: SeriesUntil,
    check: Option<SeriesCheck>,
    tally: SeriesTally,
    /// Images that came before the start.
    early: VecDeque<HeldImage>,
    /// Images whose frames wait for slots.
    held: VecDeque<HeldImage>,
    begun: Option<Nanos>,
    /// When something of the series came last.
    heard: Nanos,
    told: Nanos,
    /// When the first frame was there, and the last.
    first: Option<Nanos>,
    last: Nanos,
    ending: Option<SeriesEnding>,
    fault: Option<String>,
    live: Arc<Mutex<SeriesTraffic>>,
    /// What the lanes store meanwhile.
    lanes: Option<LaneCounts>,
}

impl SeriesReceiver {
    /// From a socket.
    pub fn new(socket: PullSocket, until: SeriesUntil) -> Self {
        SeriesReceiver {
            socket,
            until,
            check: None,
            tally: SeriesTally::default(),
            early: VecDeque::new(),
            held: VecDeque::new(),
            begun: None,
            heard: Nanos(0),
            told: Nanos(0),
            first: None,
            last: Nanos(0),
            ending: None,
            fault: None,
            live: Arc::default(),
            lanes: None,
        }
    }

    /// What came so far: a tenth of a second old at the most, while it is turned.
    pub fn live(&self) -> Arc<Mutex<SeriesTraffic>> {
        self.live.clone()
    }

    /// From now on it says what the lanes have stored beside what came.
    pub fn count_stored(&mut self, lanes: LaneCounts) {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).stored = Some(lanes.get());
        self.lanes = Some(lanes);
    }

    /// The series, once it began.
    pub fn series(&self) -> Option<&SeriesCheck> {
        self.check.as_ref()
    }

    /// When the first frame was there.
    pub fn first(&self) -> Option<Nanos> {
        self.first
    }

    /// What became of frames.
    pub fn tally(&self) -> &SeriesTally {
        &self.tally
    }

    /// Receives until the series is over, or it is to stop; on a thread of its own. An error is one after which nothing comes.
    pub fn run(
        &mut self,
        clock: Clock,
        stop: &AtomicBool,
        intake: &mut dyn FrameIntake,
    ) -> io::Result<SeriesEnding> {
        // A series that began before has waited for this, not this for it.
        self.heard = clock.now();
        let ending = loop {
            let now = clock.now();
            if stop.load(Ordering::Relaxed) {
                break Ok(self.stopped());
            }
            if let Some(ending) = self.is_over(now) {
                break Ok(ending);
            }
            if let Err(error) = self.turn(now, intake) {
                self.fault = Some(error.to_string());
                break Err(error);
            }
        };
        self.ending = ending.as_ref().ok().copied();
        self.finish(clock.now(), intake);
        ending
    }

    /// Takes a message, or waits for one for a short time.
    pub fn turn(&mut self, now: Nanos, intake: &mut dyn FrameIntake) -> io::Result<()> {
        self.begun.get_or_insert(now);
        if now.since(self.told) >= TELL {
            self.tell(now);
        }
        self.hand_on_held(now, intake);
        self.give_up_early(now, intake);
        intake.tend(now);
        // What waits for slots is not overtaken; as long as it waits, the senders do.
        let waits = !self.held.is_empty();
        let mut room = SlotRoom { now, intake, closed: waits };
        let at_most = if waits { Nanos::from_millis(1) } else { LOOK };
        let message = self.socket.receive(now, at_most, &mut room)?;
        if let Some(message) = message {
            self.came(now, message, intake);
        }
        Ok(())
    }

    /// Whether the series is over, and how.
    pub fn is_over(&self, now: Nanos) -> Option<SeriesEnding> {
        let Some(check) = &self.check else {
            let begun = self.begun.unwrap_or(now);
            return (now.since(begun) >= self.until.begin).then_some(SeriesEnding::NoSeries);
        };
        let is_complete = check.is_complete();
        if is_complete && check.has_ended() {
            return Some(SeriesEnding::Complete);
        }
        if self.first.is_some_and(|first| now.since(first) >= self.until.duration) {
            return Some(self.stopped());
        }
        let SeriesUntil { silence, after_end, after_last, .. } = self.until;
        let (silence, ending) = match check.has_ended() {
            _ if is_complete => (after_last.min(silence), SeriesEnding::Complete),
            true => (after_end.min(silence), SeriesEnding::Silent),
            false => (silence, SeriesEnding::Silent),
        };
        let is_silent = self.held.is_empty() && now.since(self.heard) >= silence;
        is_silent.then_some(ending)
    }

    /// How a series ended that was told to end now.
    fn stopped(&self) -> SeriesEnding {
        let is_complete = self.check.as_ref().is_some_and(SeriesCheck::is_complete);
        if is_complete { SeriesEnding::Complete } else { SeriesEnding::Stopped }
    }

    /// No frame is taken any more: those that did not come are told. What comes after is late.
    pub fn finish(&mut self, now: Nanos, intake: &mut dyn FrameIntake) {
        self.hand_on_held(now, intake);
        while let Some(held) = self.held.pop_front() {
            self.refuse(held, SeriesRefusal::NoRoom, intake);
        }
        while let Some(early) = self.early.pop_front() {
            self.refuse(early, SeriesRefusal::Early, intake);
        }
        if let Some(check) = &mut self.check {
            check.close();
            check.missing().for_each(|frames| intake.missing(now, frames));
        }
        // What came stands still, and the lanes go on.
        self.lanes = None;
        self.tell(now);
    }

    fn tell(&mut self, now: Nanos) {
        // Before the tally is taken: whatever a lane has stored by then came before.
        let stored = self.lanes.as_ref().map(LaneCounts::get);
        let frames = self.check.as_ref().map(SeriesCheck::frames);
        let upto = self.check.as_ref().map_or(0, SeriesCheck::came_upto);
        let traffic = SeriesTraffic {
            tally: self.tally.clone(),
            counted: self.socket.counted(),
            frames,
            missing: upto.saturating_sub(self.tally.frames),
            first: self.first,
            last: self.last,
            stored,
            ending: self.ending,
            fault: self.fault.clone(),
        };
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = traffic;
        self.told = now;
    }

    /// A message came.
    fn came(&mut self, now: Nanos, message: ZmqMessage, intake: &mut dyn FrameIntake) {
        let parts = message.parts();
        let first = parts.first().map_or(&[][..], |part| part.bytes);
        let said = match &parts[..] {
            [only] if !stream1::is_json(first) => stream2::decode(*only),
            parts => stream1::decode(parts),
        };
        match said {
            Ok(SeriesMessage::Start(start)) => {
                self.start(now, *start, &message, intake);
                give_all_back(message, intake);
            }
            Ok(SeriesMessage::Image(image)) => {
                self.image(now, HeldImage { arrived: now, image, message }, intake);
            }
            Ok(SeriesMessage::End(series)) => {
                self.end(now, &series);
                give_all_back(message, intake);
            }
            Err(error) => {
                self.tally.refuse(SeriesRefusal::Malformed, Some(error.to_string()));
                give_all_back(message, intake);
            }
        }
    }

    fn start(&mut self, now: Nanos, start: SeriesStart, message: &ZmqMessage, intake: &mut dyn FrameIntake) {
        if let Some(check) = &mut self.check {
            match check.starts_again(&start) {
                Ok(()) => self.tally.starts += 1,
                Err(refused) => {
                    self.tally.count(refused);
                    // Nothing more comes of this one: the next is not to wait for it.
                    check.is_followed();
                }
            }
            return;
        }
        let begun = SeriesCheck::new(start)
            .and_then(|check| intake.begin(now, check.start(), message).map(|()| check));
        match begun {
            Ok(check) => self.check = Some(check),
            Err(fault) => {
                self.tally.refuse(SeriesRefusal::Shape, Some(fault));
                return;
            }
        }
        self.tally.starts += 1;
        self.heard = now;
        for early in std::mem::take(&mut self.early) {
            let is_ours = self.check.as_ref().is_some_and(|check| check.is_ours(&early.image.series).is_ok());
            if is_ours {
                self.image(now, early, intake);
            } else {
                // The rest of a series whose start nobody saw.
                self.refuse(early, SeriesRefusal::Early, intake);
            }
        }
    }

    fn end(&mut self, now: Nanos, series: &SeriesName) {
        let Some(check) = &mut self.check else {
            self.tally.refuse(SeriesRefusal::Early, Some("an end without a start".to_owned()));
            return;
        };
        match check.ends(series) {
            Ok(()) => {
                self.tally.ends += 1;
                self.heard = now;
            }
            Err(refused) => self.tally.count(refused),
        }
    }

    fn image(&mut self, now: Nanos, held: HeldImage, intake: &mut dyn FrameIntake) {
        let Some(check) = &self.check else {
            self.early.push_back(held);
            return;
        };
        if let Err(refused) = check.is_ours(&held.image.series) {
            self.tally.count(refused);
            give_all_back(held.message, intake);
            return;
        }
        self.heard = now;
        if held.image.image < check.start().images {
            intake.noted(&held.image);
        }
        self.held.push_back(held);
        self.hand_on_held(now, intake);
    }

    /// Refuses images that came before the start, where they are too many or waited for too long.
    fn give_up_early(&mut self, now: Nanos, intake: &mut dyn FrameIntake) {
        while let Some(first) = self.early.front()
            && (self.early.len() > EARLY_MAX || now.since(first.arrived) >= EARLY_FOR)
            && let Some(early) = self.early.pop_front()
        {
            self.refuse(early, SeriesRefusal::Early, intake);
        }
    }

    /// Counts the frames of an image as refused.
    fn refuse(&mut self, held: HeldImage, why: SeriesRefusal, intake: &mut dyn FrameIntake) {
        held.image.channels.iter().for_each(|_| self.tally.refuse(why, None));
        give_all_back(held.message, intake);
    }

    /// Hands on what has a slot, in the order in which it came.
    fn hand_on_held(&mut self, now: Nanos, intake: &mut dyn FrameIntake) {
        while let Some(mut held) = self.held.pop_front() {
            while !held.image.channels.is_empty() {
                if !self.hand_on(now, &mut held, intake) {
                    self.held.push_front(held);
                    return;
                }
                held.image.channels.remove(0);
            }
            give_all_back(held.message, intake);
        }
    }

    /// Hands on the first frame of an image, or counts why not. Whether that is done: if not, there is no slot for it yet.
    fn hand_on(&mut self, now: Nanos, held: &mut HeldImage, intake: &mut dyn FrameIntake) -> bool {
        let HeldImage { arrived, image, message } = held;
        let (Some(check), Some(data)) = (&mut self.check, image.channels.first()) else { return true };
        let array = &data.array;
        let bytes = message.bytes(&array.place);
        let number = match check.frame(image, data, bytes) {
            Ok(number) => number,
            Err(refused) => {
                self.tally.count(refused);
                return true;
            }
        };
        let length = array.place.length();
        let slot = match take_slot(&array.place, message) {
            Some(slot) => Ok(slot),
            None => filled_slot(now, message.bytes(&array.place), length, intake),
        };
        let data = match slot {
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
            arrived: *arrived,
            data,
            length,
            size: check.frame_bytes(),
            packing: array.packing,
            element: array.element,
            times: image.times.clone(),
        };
        match intake.take(now, frame) {
            Ok(()) => {
                check.came(number);
                self.first.get_or_insert(*arrived);
                self.last = *arrived;
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

/// The slot that bytes were read into, if they were.
fn take_slot(place: &DataPlace, message: &mut ZmqMessage) -> Option<Buffer> {
    match place {
        DataPlace::Apart { cut, .. } => message.apart.get_mut(*cut)?.take(),
        DataPlace::Within(_) => None,
    }
}

/// A slot with bytes that lie in the message: they are few, or beside others. None of the errors if there is no slot yet. Bytes
/// that are not there were dropped, because there was no slot or none as long.
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

fn give_all_back(message: ZmqMessage, intake: &mut dyn FrameIntake) {
    message.apart.into_iter().flatten().for_each(|slot| intake.give_back(slot));
}

/// Slots of an intake as room for what is long in images. Starts have their arrays with them.
struct SlotRoom<'a> {
    now: Nanos,
    intake: &'a mut dyn FrameIntake,
    /// Others wait for slots.
    closed: bool,
}

impl MessageRoom for SlotRoom<'_> {
    fn room(&mut self, before: &[u8], part: usize, length: usize) -> RoomAnswer {
        let is_image = if part == 0 { stream2::is_image(before) } else { stream1::is_pixels(before, part) };
        if !is_image {
            return RoomAnswer::Along;
        }
        if self.closed {
            return RoomAnswer::Later;
        }
        match self.intake.slot(self.now, length) {
            SlotAnswer::Free(slot) => RoomAnswer::Apart(slot),
            SlotAnswer::Wait => RoomAnswer::Later,
            SlotAnswer::Lost | SlotAnswer::TooLong => RoomAnswer::Dropped,
        }
    }

    fn give_back(&mut self, buffer: Buffer) {
        self.intake.give_back(buffer);
    }
}
