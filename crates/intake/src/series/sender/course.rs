//! Sends a series. Images leave the detector when they are due, pass the configured faults, wait in the
//! queue, and are handed to connections. One thread does all of it, and waits only for time and for the
//! network.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, TryRecvError},
    },
};

use nilometer_model::{Moment, Nanos};
use nilometer_storage::{Calendar, Clock};

use super::{
    SendOverflow, SentSeries, SimulatedSeries,
    messages::image_of,
    pool::PackedImage,
    queue::{QueuedImage, SendQueue},
};
use crate::transport::{
    faults::{Departures, Leaving},
    zeromq::{OutgoingMessage, PushSocket},
};

/// Number of images outside the making threads, the held-back ones and the queue. They are those under way on
/// connections, one that no connection took, and one that just left.
pub(super) const BESIDE: usize = 64 + 2;
/// Maximum time between checks for a stop.
const LOOK: Nanos = Nanos::from_millis(20);
/// Interval between looks for an image that this machine has not made yet.
const MADE_LOOK: Nanos = Nanos::from_millis(1);
/// After the last image was due, the rest is given up if no byte was taken for this long.
const GIVEN_UP_AFTER: Nanos = Nanos::from_millis(10_000);
/// The same after a stop. It also applies to the end message alone if no peer is connected: the receivers of
/// the series may be gone.
const STOPPED_AFTER: Nanos = Nanos::from_millis(1_000);

/// The course of one series.
#[derive(Debug)]
pub(super) struct SeriesCourse<'a> {
    series: &'a SimulatedSeries,
    push: &'a mut PushSocket,
    clock: Clock,
    stop: &'a AtomicBool,
    /// Images that the threads have made.
    ready: Vec<Receiver<PackedImage>>,
    departures: Departures,
    /// Images that left the detector and are held back.
    held: BTreeMap<u64, Arc<PackedImage>>,
    /// Images that left and must get into the queue.
    leaving: VecDeque<QueuedImage>,
    queue: SendQueue,
    /// True if no more images are due.
    is_over: bool,
    /// The next message, which no connection has taken yet.
    offered: Option<OutgoingMessage>,
    /// When the first image was due.
    begun: Nanos,
    /// When the exposure of the first image began.
    begun_at: Moment,
    sent: SentSeries,
}

/// Progress at the end: if the byte count stands still for some time, the rest is given up.
#[derive(Debug)]
struct SendProgress {
    bytes: u64,
    at: Nanos,
}

/// The situation after the last image was due.
#[derive(Debug, Clone, Copy)]
pub(super) struct SendEnd {
    /// A stop was requested.
    pub(super) stopped: bool,
    /// No peer is connected.
    pub(super) alone: bool,
    /// Only the end message is left.
    pub(super) only_end: bool,
}

impl<'a> SeriesCourse<'a> {
    pub(super) fn new(
        series: &'a SimulatedSeries,
        push: &'a mut PushSocket,
        clock: Clock,
        stop: &'a AtomicBool,
        ready: Vec<Receiver<PackedImage>>,
    ) -> Self {
        SeriesCourse {
            series,
            push,
            clock,
            stop,
            ready,
            departures: Departures::new(series.faults, &[1], series.seed),
            held: BTreeMap::new(),
            leaving: VecDeque::new(),
            queue: SendQueue::new(series.queue),
            is_over: false,
            offered: None,
            begun: Nanos(0),
            begun_at: Moment::default(),
            sent: SentSeries::default(),
        }
    }

    /// Sends everything, after waiting for a peer that takes it.
    pub(super) fn run(mut self) -> io::Result<SentSeries> {
        self.begin()?;
        self.all_images()?;
        self.finish()
    }

    /// Sends the rest and returns the result.
    pub(super) fn finish(mut self) -> io::Result<SentSeries> {
        self.end()?;
        let counts = self.departures.counts();
        Ok(SentSeries {
            due: counts.due,
            lost: counts.lost,
            losses: counts.losses,
            reordered: counts.reordered,
            queued_most: self.queue.most(),
            ..self.sent
        })
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sends the start message as soon as a peer takes it. Time begins then.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.offered = Some(self.series.start_message()?);
        while !self.is_stopped() {
            self.hand_over()?;
            if self.offered.is_none() && self.push.under_way() == 0 {
                break;
            }
            self.push.wait(true, LOOK)?;
        }
        self.begun = self.clock.now();
        let Moment(origin) = Calendar::start_of(self.clock);
        // The first image leaves now, at the end of its exposure.
        self.begun_at = Moment((origin + self.begun).since(self.series.exposure));
        Ok(())
    }

    /// Lets every image leave when it is due.
    pub(super) fn all_images(&mut self) -> io::Result<()> {
        let mut number = 0;
        let mut looked_for = None;
        while number < self.series.start.images && !self.is_stopped() {
            self.hand_over()?;
            let due = self.begun + self.series.schedule.due(number);
            let now = self.clock.now();
            let at_most = if !self.leaving.is_empty() {
                LOOK
            } else if now < due {
                due.since(now).min(LOOK)
            } else if let Some(image) = self.made(number)? {
                self.leave(number, image);
                self.sent.paced = now.since(self.begun);
                number += 1;
                continue;
            } else {
                self.sent.made_late += u64::from(looked_for != Some(number));
                looked_for = Some(number);
                MADE_LOOK
            };
            self.push.wait(!self.queue.is_empty() || self.offered.is_some(), at_most)?;
        }
        Ok(())
    }

    /// An image, if its thread has made it.
    fn made(&mut self, number: u64) -> io::Result<Option<PackedImage>> {
        let thread = (number % self.ready.len() as u64) as usize;
        match self.ready[thread].try_recv() {
            Ok(image) => Ok(Some(image)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(io::Error::other("a thread that makes images ended")),
        }
    }

    /// Lets an image leave when it is due, with the configured faults, into the queue.
    fn leave(&mut self, number: u64, image: PackedImage) {
        self.held.insert(number, Arc::new(image));
        let lost = self.departures.counts().lost;
        let mut leaving = Vec::new();
        self.departures.next(&mut leaving);
        if self.departures.counts().lost > lost {
            self.held.remove(&number);
        }
        self.left(&leaving);
    }

    /// Moves leaving images to the queue. A number that stands twice in a row leaves twice.
    fn left(&mut self, leaving: &[Leaving]) {
        let mut before = None;
        for leaving in leaving {
            let Leaving::Packet(number) = *leaving else { continue };
            let Some(image) = self.held.get(&number).cloned() else { continue };
            self.leaving.push_back(QueuedImage { number, is_copy: before == Some(number), image });
            before = Some(number);
        }
        for leaving in leaving {
            if let Leaving::Packet(number) = leaving {
                self.held.remove(number);
            }
        }
        self.fill_queue();
    }

    /// Puts leaving images into the queue, as far as there is room. An image without room waits or is
    /// dropped, as configured. After the last image was due, it always waits, because all held-back images
    /// leave at once then.
    fn fill_queue(&mut self) {
        while let Some(image) = self.leaving.pop_front() {
            let Err(image) = self.queue.push(image) else { continue };
            if self.series.overflow == SendOverflow::Wait || self.is_over {
                self.leaving.push_front(image);
                return;
            }
            if !image.is_copy {
                if self.sent.dropped == 0 {
                    (self.series.first_dropped)(image.number);
                }
                self.sent.dropped += 1;
                self.sent.dropped_alone += u64::from(self.push.connected() == 0);
            }
        }
    }

    /// Hands messages to the connections that take them now, and counts those that the kernel has taken.
    fn hand_over(&mut self) -> io::Result<()> {
        self.push.tend()?;
        loop {
            self.fill_queue();
            let Some(message) = self.next_message()? else { break };
            self.offered = self.push.offer(message)?;
            if self.offered.is_some() {
                break;
            }
        }
        for message in self.push.take_sent() {
            self.count(&message);
        }
        Ok(())
    }

    fn next_message(&mut self) -> io::Result<Option<OutgoingMessage>> {
        if let Some(offered) = self.offered.take() {
            return Ok(Some(offered));
        }
        let image = self.queue.pop();
        image.map(|image| self.series.image_message(&image, self.begun_at)).transpose()
    }

    /// Counts a message that the kernel has taken completely.
    fn count(&mut self, message: &OutgoingMessage) {
        let Some(image) = image_of(message.tag) else { return };
        let now = self.clock.now();
        self.sent.wall = now.since(self.begun);
        if image.is_copy {
            self.sent.duplicated += 1;
            return;
        }
        self.sent.images += 1;
        self.sent.bytes += message.pixels();
        let due = self.begun + self.series.schedule.due(image.number);
        self.sent.lateness.add(now.since(due).0);
    }

    /// Sends the rest and the end message, while a peer takes them. No more images are due.
    fn end(&mut self) -> io::Result<()> {
        let mut held = Vec::new();
        self.departures.finish(&mut held);
        self.is_over = true;
        self.left(&held);
        let mut end = Some(self.series.end_message());
        let mut progress = SendProgress { bytes: self.push.bytes(), at: self.clock.now() };
        loop {
            if self.is_stopped() {
                self.drop_waiting();
            }
            self.hand_over()?;
            let waits = self.offered.is_some() || !self.queue.is_empty() || !self.leaving.is_empty();
            let images = waits || self.push.under_way() > 0;
            if !waits && end.is_some() {
                self.offered = end.take();
                continue;
            }
            if !images || self.is_given_up(&mut progress) {
                break;
            }
            self.push.wait(waits, LOOK)?;
        }
        self.drop_waiting();
        let given_up = self.offered.take().into_iter().chain(self.push.give_up());
        self.sent.unsent += given_up.filter(is_first).count() as u64;
        Ok(())
    }

    /// Returns true if no byte was taken for too long.
    fn is_given_up(&self, progress: &mut SendProgress) -> bool {
        let now = self.clock.now();
        if self.push.bytes() != progress.bytes {
            *progress = SendProgress { bytes: self.push.bytes(), at: now };
        }
        let alone = self.push.connected() == 0;
        let only_end = self.queue.is_empty() && self.leaving.is_empty() && self.push.under_way() == 0;
        let only_end =
            only_end && self.offered.as_ref().is_none_or(|message| image_of(message.tag).is_none());
        let state = SendEnd { stopped: self.is_stopped(), alone, only_end };
        now.since(progress.at) >= patience(self.series.overflow, state)
    }

    /// Drops all waiting images.
    fn drop_waiting(&mut self) {
        let waiting = std::iter::from_fn(|| self.queue.pop()).chain(self.leaving.drain(..));
        self.sent.unsent += waiting.filter(|image| !image.is_copy).count() as u64;
    }
}

/// How long to wait at the end for a peer that takes bytes.
pub(super) fn patience(overflow: SendOverflow, state: SendEnd) -> Nanos {
    let SendEnd { stopped, alone, only_end } = state;
    match overflow {
        _ if stopped || alone && only_end => STOPPED_AFTER,
        SendOverflow::Wait if !alone => Nanos::MAX,
        SendOverflow::Wait | SendOverflow::Drop => GIVEN_UP_AFTER,
    }
}

/// Returns true if a message is an image, and not a second copy.
fn is_first(message: &OutgoingMessage) -> bool {
    image_of(message.tag).is_some_and(|image| !image.is_copy)
}
