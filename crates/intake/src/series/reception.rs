//! Receives one series after another from the messages of all senders. It does no I/O; the caller gives it
//! the time.
//!
//! ```text
//!            start                       image, image, ..               end, or silence
//! awaiting --------> (needs an image) --------> receiving ----------------------> over
//!     ^                                           | start of another series:        |
//!     |                                           | that message and all behind it  |
//!     +------------- next recording <-------------+ wait for the next recording <---+
//! ```
//!
//! A start message before the end of the current series ends that series: its sender aborted it. Other
//! connections may still bring its images, so reception goes on for a moment. Meanwhile short messages of the
//! next series are queued, and pixels stay in the kernel, so that their sender waits.

mod frames;
mod room;

use std::collections::VecDeque;

use nilometer_model::Nanos;
use nilometer_storage::Buffer;
use nilometer_wire::series::{
    SeriesAnnouncement, SeriesImage, SeriesMessage, SeriesMessageKind, SeriesName, SeriesStart,
};

use super::{
    FrameIntake, SeriesCheck, SeriesEnding, SeriesRefusal, SeriesTally, SeriesUntil,
    admission::{Admission, OtherSeries},
    check::StartMeaning,
    queued::{HeldImage, QueuedMessage},
    waiting_room::WaitingRoom,
};
use crate::transport::zeromq::{MessagePeer, ZmqMessage};

/// How long reception goes on after another series began: other connections may be behind.
const FOLLOWED_FOR: Nanos = Nanos::from_millis(200);
/// Maximum number of messages that wait for the next recording. Then no more are read.
const BEHIND_MAX: usize = 64;

/// A start that leaves out values which an image has.
#[derive(Debug)]
struct IncompleteStart {
    announced: SeriesAnnouncement,
    queued: QueuedMessage,
}

/// The state of the reception; see the diagram above.
#[derive(Debug)]
pub(super) struct SeriesReception {
    until: SeriesUntil,
    check: Option<SeriesCheck>,
    pub(super) tally: SeriesTally,
    pub(super) others: OtherSeries,
    incomplete: Option<IncompleteStart>,
    /// Why a series that began can't be recorded.
    unusable: Option<String>,
    /// Images whose start has not arrived.
    pub(super) early: WaitingRoom,
    /// Addresses of the slots into which connections currently read. Other buffers belong to messages that
    /// began during an earlier recording.
    lent: Vec<usize>,
    /// Images of the series that wait for slots.
    held: VecDeque<HeldImage>,
    /// A start that may belong to the same series, see [`StartMeaning::Repeated`].
    repeated: Option<QueuedMessage>,
    /// Messages that wait for the next recording.
    behind: VecDeque<QueuedMessage>,
    /// When another series began behind this one.
    followed: Option<Nanos>,
    /// The series behind this one has its name too: images and ends of that name are those of the next.
    begins_anew: bool,
    pub(super) begun: Option<Nanos>,
    /// The connection that brought the start. `None` before that, and for a message without a socket.
    pub(super) sender: Option<MessagePeer>,
    /// Connections that brought frames of the series since the receiver last took this list.
    proved: Vec<MessagePeer>,
    /// When the last message of the series arrived.
    heard: Nanos,
    /// When the first and the last frame were complete.
    pub(super) first: Option<Nanos>,
    pub(super) last: Nanos,
}

impl SeriesReception {
    pub(super) fn new(until: SeriesUntil) -> Self {
        SeriesReception {
            until,
            check: None,
            tally: SeriesTally::default(),
            others: OtherSeries::default(),
            incomplete: None,
            unusable: None,
            early: WaitingRoom::default(),
            lent: Vec::new(),
            held: VecDeque::new(),
            repeated: None,
            behind: VecDeque::new(),
            followed: None,
            begins_anew: false,
            begun: None,
            sender: None,
            proved: Vec::new(),
            heard: Nanos(0),
            first: None,
            last: Nanos(0),
        }
    }

    /// The current series. `None` before it begins.
    pub(super) fn series(&self) -> Option<&SeriesCheck> {
        self.check.as_ref()
    }

    /// Awaits the next series, by another clock. Queued messages are processed first.
    pub(super) fn begin_next(&mut self, now: Nanos, until: SeriesUntil) {
        self.until = until;
        if let Some(check) = self.check.take().filter(|check| !check.is_closed()) {
            // It began, and its recording could not be prepared.
            self.others.ends(&check.start().series, SeriesRefusal::Start);
        }
        self.held.clear();
        self.lent.clear();
        self.tally = SeriesTally::default();
        self.unusable = None;
        self.followed = None;
        self.begins_anew = false;
        self.begun = None;
        self.sender = None;
        self.first = None;
        self.last = Nanos(0);
        self.heard = now;
        self.others.restart(now);
    }

    /// Restarts waits after a time without reception that was not the sender's fault.
    pub(super) fn resume(&mut self, now: Nanos) {
        self.heard = now;
        self.others.resume(now);
    }

    /// Adds a time in which the receiver itself did not run to all waits.
    pub(super) fn halted(&mut self, now: Nanos, length: Nanos) {
        self.heard += length;
        self.begun = self.begun.map(|begun| begun + length);
        self.followed = self.followed.map(|followed| followed + length);
        self.others.resume(now);
    }

    /// Takes the reason why a series that began can't be recorded.
    pub(super) fn take_unusable(&mut self) -> Option<String> {
        self.unusable.take()
    }

    /// Takes the connections that brought frames since the last call, each at least once.
    pub(super) fn take_proved(&mut self) -> Vec<MessagePeer> {
        std::mem::take(&mut self.proved)
    }

    /// Returns true if images wait for slots: nothing overtakes them.
    pub(super) fn waits_for_slots(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns true if messages wait for the next recording.
    pub(super) fn has_next(&self) -> bool {
        !self.behind.is_empty()
    }

    /// Returns true if nothing is to be read from connections now. Either the queue for the next recording is
    /// full, or messages queued before must be processed first.
    pub(super) fn is_closed(&self) -> bool {
        if self.followed.is_none() { self.has_next() } else { self.is_full() }
    }

    fn is_full(&self) -> bool {
        self.behind.len() >= BEHIND_MAX
    }

    /// Takes the next message that was queued before this series.
    pub(super) fn take_queued(&mut self, now: Nanos) -> Option<QueuedMessage> {
        if self.followed.is_some() || self.waits_for_slots() {
            return None;
        }
        self.behind.pop_front().map(|queued| QueuedMessage { arrived: now, ..queued })
    }

    /// Wraps a message from a connection.
    pub(super) fn received(&mut self, now: Nanos, message: ZmqMessage) -> QueuedMessage {
        let is_own = |buffer: &Option<Buffer>| buffer.as_ref().is_some_and(|buffer| !self.returns(buffer));
        let own = message.apart.iter().map(is_own).collect();
        QueuedMessage { arrived: now, message, own }
    }

    /// Processes a message.
    pub(super) fn accept(&mut self, now: Nanos, queued: QueuedMessage, intake: &mut dyn FrameIntake) {
        match queued.decoded() {
            Ok(SeriesMessage::Start(start)) => self.start(now, *start, queued, intake),
            Ok(SeriesMessage::Image(image)) => self.image(now, HeldImage { image, queued }, intake),
            Ok(SeriesMessage::End(series)) => self.end(now, &series, queued, intake),
            Err(error) => {
                if queued.kind() == Some(SeriesMessageKind::Start) {
                    self.refuse_start(None, error.to_string(), intake);
                } else {
                    self.tally.refuse(SeriesRefusal::Malformed, Some(error.to_string()));
                }
                queued.give_back(intake);
            }
        }
    }

    /// Hands on images that have slots now, and gives up those that waited too long for their start.
    pub(super) fn tend(&mut self, now: Nanos, intake: &mut dyn FrameIntake) {
        self.begun.get_or_insert(now);
        self.hand_on_held(now, intake);
        while let Some(first) = self.early.first()
            && self.others.waited_enough(now, first.queued.arrived)
            && let Some(image) = self.early.take_first()
        {
            self.refuse(image, self.unstarted(), intake);
        }
        intake.tend(now);
    }

    /// How the series ended. `None` while it is not over.
    pub(super) fn is_over(&self, now: Nanos) -> Option<SeriesEnding> {
        let Some(check) = &self.check else {
            let begun = self.begun.unwrap_or(now);
            return (now.since(begun) >= self.until.begin).then_some(SeriesEnding::NoSeries);
        };
        let is_complete = check.is_complete();
        if is_complete && check.has_ended() && !check.exceeds() {
            return Some(SeriesEnding::Complete);
        }
        if let Some(followed) = self.followed
            && (now.since(followed) >= FOLLOWED_FOR || self.is_full() || is_complete)
            && !self.waits_for_slots()
        {
            return Some(if is_complete { SeriesEnding::Complete } else { SeriesEnding::Followed });
        }
        if self.first.is_some_and(|first| now.since(first) >= self.until.duration) {
            return Some(self.stopped());
        }
        let SeriesUntil { silence, after_end, after_last, .. } = self.until;
        let (silence, ending) = match (check.has_ended(), is_complete) {
            (true, _) if check.is_gapless() => (after_end.min(silence), SeriesEnding::Complete),
            (true, _) => (after_end.min(silence), SeriesEnding::Ended),
            // Its end message may be late, and closing the connection would keep the sender from going on.
            (false, true) => (after_last, SeriesEnding::Complete),
            (false, false) => (silence, SeriesEnding::Silent),
        };
        let is_silent = !self.waits_for_slots() && now.since(self.heard) >= silence;
        is_silent.then_some(ending)
    }

    /// How a series ends that is stopped now.
    pub(super) fn stopped(&self) -> SeriesEnding {
        let is_complete = self.check.as_ref().is_some_and(SeriesCheck::is_complete);
        if is_complete { SeriesEnding::Complete } else { SeriesEnding::Stopped }
    }

    /// Takes no more frames, and reports the missing ranges to the intake. Messages of other series stay for
    /// the next recording.
    pub(super) fn finish(&mut self, now: Nanos, intake: &mut dyn FrameIntake) {
        self.hand_on_held(now, intake);
        while let Some(held) = self.held.pop_front() {
            self.refuse(held, SeriesRefusal::NoRoom, intake);
        }
        self.queue_rest(intake);
        if let Some(check) = &mut self.check {
            check.close();
            check.missing().for_each(|frames| intake.missing(now, frames));
            self.others.ends(&check.start().series, SeriesRefusal::Late);
        }
    }

    /// Queues all messages of other series for the next recording.
    pub(super) fn queue_rest(&mut self, intake: &mut dyn FrameIntake) {
        if let Some(start) = self.repeated.take() {
            self.behind.push_front(start);
        }
        for early in self.early.take_all().into_iter().rev() {
            self.behind.push_front(early.queued);
        }
        self.behind = self.behind.drain(..).map(|queued| queued.detached(intake)).collect();
    }

    /// Counts the messages behind the series, since the next series is not recorded.
    pub(super) fn abandon(&mut self) {
        for queued in std::mem::take(&mut self.behind) {
            let frames = match queued.decoded() {
                Ok(SeriesMessage::Image(image)) => image.channels.len(),
                _ => 1,
            };
            let fault = "another series began behind this one";
            (0..frames).for_each(|_| self.tally.refuse(SeriesRefusal::Foreign, Some(fault.into())));
        }
    }

    /// The reason for which images without a start are now discarded.
    fn unstarted(&self) -> SeriesRefusal {
        if self.check.is_some() { SeriesRefusal::Foreign } else { SeriesRefusal::Early }
    }

    fn is_incomplete(&self, series: Option<&SeriesName>) -> bool {
        let incomplete = self.incomplete.as_ref();
        incomplete.is_some_and(|start| series.is_none_or(|name| name.is_same(&start.announced.series)))
    }

    /// Decides on an image of a series. An image without a series name counts as one of the current series.
    fn admission(&mut self, now: Nanos, series: Option<&SeriesName>) -> Admission {
        if let Some(check) = &self.check
            && !self.begins_anew
            && series.is_none_or(|name| check.is_ours(name).is_ok())
        {
            return Admission::Take;
        }
        if self.is_incomplete(series) || self.followed.is_some() {
            return Admission::Wait;
        }
        let unstarted = self.unstarted();
        self.others.admission(now, series.unwrap_or(&SeriesName::default()), unstarted)
    }

    fn start(
        &mut self,
        now: Nanos,
        announced: SeriesAnnouncement,
        queued: QueuedMessage,
        intake: &mut dyn FrameIntake,
    ) {
        let Some(check) = &self.check else {
            self.begin(now, IncompleteStart { announced, queued }, intake);
            return;
        };
        if self.followed.is_some() {
            self.behind.push_back(queued);
            return;
        }
        match check.meets(&announced) {
            StartMeaning::Next | StartMeaning::Repeated if !self.is_of_sender(&queued) => {
                let fault = format!("series {} begins at another address", announced.series.number);
                self.tally.refuse(SeriesRefusal::Foreign, Some(fault));
                if check.is_ours(&announced.series).is_err() {
                    self.others.ends(&announced.series, SeriesRefusal::Foreign);
                }
            }
            StartMeaning::Same => self.tally.starts += 1,
            StartMeaning::Repeated => self.repeated = Some(queued),
            StartMeaning::Next => {
                let is_anew = check.is_ours(&announced.series).is_ok();
                self.follow(now, queued, is_anew);
            }
            StartMeaning::Contradiction => {
                let fault = "a second start describes the series differently".to_owned();
                self.tally.refuse(SeriesRefusal::Shape, Some(fault));
            }
        }
    }

    /// Returns true if a message comes from the address that began the series: no other can end it.
    fn is_of_sender(&self, queued: &QueuedMessage) -> bool {
        let address = |peer: &MessagePeer| peer.address;
        self.sender.as_ref().map(address) == queued.message.peer.as_ref().map(address)
    }

    /// A series begins while another one is received. `is_anew` says that both have the same name.
    fn follow(&mut self, now: Nanos, start: QueuedMessage, is_anew: bool) {
        self.begins_anew = is_anew;
        // In front of all messages queued behind it.
        self.behind.push_front(start);
        self.followed.get_or_insert(now);
    }

    /// A series begins while none is received.
    fn begin(&mut self, now: Nanos, start: IncompleteStart, intake: &mut dyn FrameIntake) {
        let series = &start.announced.series;
        if let Some(before) = self.incomplete.take_if(|before| !before.announced.series.is_same(series)) {
            let fault = "it was aborted before an image described its pixels".to_owned();
            self.refuse_start(Some(before.announced.series), fault, intake);
            self.unusable = None;
        }
        self.others.begins(series);
        let complete = start.announced.completed(None);
        self.incomplete = Some(start);
        if let Some(complete) = complete {
            self.begin_with(now, complete, intake);
        } else if let Some(image) = self.first_of_incomplete() {
            self.complete_by(now, &image, intake);
        }
    }

    /// The first image of the series with an incomplete start, if it arrived before.
    fn first_of_incomplete(&mut self) -> Option<SeriesImage> {
        let series = self.incomplete.as_ref()?.announced.series.clone();
        let images = self.early.take_of(&series);
        let first = images.first().map(|held| held.image.clone());
        for held in images {
            drop(self.early.keep(held));
        }
        first
    }

    /// Completes the start with values from an image.
    fn complete_by(&mut self, now: Nanos, image: &SeriesImage, intake: &mut dyn FrameIntake) {
        let completed = self.incomplete.as_ref().and_then(|start| start.announced.completed(Some(image)));
        if let Some(complete) = completed {
            self.begin_with(now, complete, intake);
        }
    }

    fn begin_with(&mut self, now: Nanos, start: SeriesStart, intake: &mut dyn FrameIntake) {
        let Some(IncompleteStart { announced, queued }) = self.incomplete.take() else { return };
        let series = start.series.clone();
        let begun = SeriesCheck::new(start)
            .and_then(|check| intake.begin(now, check.start(), &queued.message).map(|()| check));
        let sender = queued.message.peer;
        queued.give_back(intake);
        match begun {
            Ok(check) => {
                self.check = Some(check);
                self.sender = sender;
            }
            Err(fault) => {
                self.refuse_start(Some(series), fault, intake);
                return;
            }
        }
        self.tally.starts += 1;
        self.tally.note_start(&announced);
        self.heard = now;
        for early in self.early.take_of(&series) {
            self.image(now, early, intake);
        }
        for stale in self.early.take_all() {
            // Left over from a series whose start was lost: another series began behind it.
            self.others.ends(&stale.image.series, SeriesRefusal::Early);
            self.refuse(stale, SeriesRefusal::Early, intake);
        }
    }

    /// Refuses the start of a series that can't be decoded or recorded, and its images.
    fn refuse_start(&mut self, series: Option<SeriesName>, fault: String, intake: &mut dyn FrameIntake) {
        let who =
            series.as_ref().map_or_else(|| "a series".to_owned(), |name| format!("series {}", name.number));
        self.unusable = Some(format!("{who} can't be recorded: {fault}"));
        self.tally.refuse(SeriesRefusal::Start, Some(fault));
        let Some(series) = series else { return };
        self.others.ends(&series, SeriesRefusal::Start);
        for early in self.early.take_of(&series) {
            self.refuse(early, SeriesRefusal::Start, intake);
        }
    }

    fn end(&mut self, now: Nanos, series: &SeriesName, queued: QueuedMessage, intake: &mut dyn FrameIntake) {
        if let Some(check) = &mut self.check
            && !self.begins_anew
            && check.ends(series).is_ok()
        {
            self.tally.ends += 1;
            self.tally.starts += u64::from(self.repeated.take().is_some());
            self.heard = now;
        } else if self.followed.is_some() {
            self.behind.push_back(queued);
            return;
        } else if self.incomplete.take_if(|start| start.announced.series.is_same(series)).is_some() {
            let fault = "it ended before an image described its pixels".to_owned();
            self.refuse_start(Some(series.clone()), fault, intake);
        } else if self.others.over(series).is_some() {
            self.tally.refuse(SeriesRefusal::Late, None);
        } else {
            self.tally.refuse(SeriesRefusal::Early, Some("an end without a start".to_owned()));
            let images = self.early.take_of(series);
            for early in images {
                self.refuse(early, SeriesRefusal::Early, intake);
            }
            self.others.ends(series, SeriesRefusal::Early);
        }
        queued.give_back(intake);
    }

    fn image(&mut self, now: Nanos, held: HeldImage, intake: &mut dyn FrameIntake) {
        let series = &held.image.series;
        match self.admission(now, Some(series)) {
            Admission::Take => self.image_of_series(now, held, intake),
            Admission::Discard(why) => self.refuse(held, why, intake),
            Admission::Wait if self.followed.is_some() => self.behind.push_back(held.queued),
            Admission::Wait => {
                let completes = self.is_incomplete(Some(series)).then(|| held.image.clone());
                if let Some(given_up) = self.early.keep(held) {
                    self.refuse(given_up, self.unstarted(), intake);
                }
                if let Some(image) = completes {
                    self.complete_by(now, &image, intake);
                }
            }
        }
    }
}
