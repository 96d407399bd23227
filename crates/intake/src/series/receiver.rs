//! Takes the messages of one series after the other from a socket into an intake.

use std::{
    io,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use nilometer_model::Nanos;
use nilometer_ring::LaneCounts;
use nilometer_storage::{Buffer, Clock};

use super::{
    FrameIntake, SeriesCheck, SeriesEnding, SeriesTally, SeriesTraffic, SeriesUntil, queued::QueuedMessage,
    reception::SeriesReception,
};
use crate::transport::zeromq::{MessagePeer, MessageRoom, PullSocket, RoomAnswer, RoomRequest};

/// Longest without a look whether the series is over.
const LOOK: Nanos = Nanos::from_millis(20);
/// The same while nothing is read.
const CLOSED_LOOK: Nanos = Nanos::from_millis(1);
/// How often the figures are brought up to date.
const TELL: Nanos = Nanos::from_millis(100);

/// A socket, and the series that comes from it.
#[derive(Debug)]
pub struct SeriesReceiver {
    socket: PullSocket,
    reception: SeriesReception,
    /// Each recording has a clock of its own, and the socket outlives it: what is added to the clock's time for the socket.
    epoch: Nanos,
    /// The latest time of the socket.
    latest: Nanos,
    told: Nanos,
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
            reception: SeriesReception::new(until),
            epoch: Nanos(0),
            latest: Nanos(0),
            told: Nanos(0),
            ending: None,
            fault: None,
            live: Arc::default(),
            lanes: None,
        }
    }

    /// For the next series: all figures begin anew.
    pub(super) fn reset(&mut self, now: Nanos, until: SeriesUntil) {
        self.reception.begin_next(now, until);
        // Also of a series that began, and whose recording could not be prepared.
        self.socket.end_series(self.latest);
        self.socket.count_anew();
        self.epoch = self.latest.since(now);
        self.told = Nanos(0);
        self.ending = None;
        self.lanes = None;
        self.live = Arc::default();
    }

    /// Why a series that began can't be recorded; said once.
    pub(super) fn take_unusable(&mut self) -> Option<String> {
        self.reception.take_unusable()
    }

    /// Messages of the next series are there already: they are lost with the connection.
    pub fn has_next(&self) -> bool {
        self.reception.has_next()
    }

    /// Nobody records what came behind the series: it is counted.
    pub fn abandon_next(&mut self, now: Nanos) {
        self.reception.abandon();
        self.tell(now);
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
        self.reception.series()
    }

    /// The address that began it.
    pub fn sender(&self) -> Option<IpAddr> {
        self.reception.sender.map(|MessagePeer { address, .. }| address)
    }

    /// When the first frame was there.
    pub fn first(&self) -> Option<Nanos> {
        self.reception.first
    }

    /// What became of frames.
    pub fn tally(&self) -> &SeriesTally {
        &self.reception.tally
    }

    /// Receives until the series is over, or it is to stop; on a thread of its own. An error is one after which nothing comes.
    pub fn run(
        &mut self,
        clock: Clock,
        stop: &AtomicBool,
        intake: &mut dyn FrameIntake,
    ) -> io::Result<SeriesEnding> {
        // A series that began before has waited for this, not this for it.
        self.reception.resume(clock.now());
        let ending = loop {
            let now = clock.now();
            if stop.load(Ordering::Relaxed) {
                break Ok(self.reception.stopped());
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
        if now.since(self.told) >= TELL {
            self.tell(now);
        }
        self.reception.tend(now, intake);
        self.prove_senders();
        if let Some(queued) = self.reception.take_queued(now) {
            self.accept(now, queued, intake);
            return Ok(());
        }
        let at_most = if self.reception.waits_for_slots() { Nanos::from_millis(1) } else { LOOK };
        self.receive(now, at_most, intake).map(drop)
    }

    /// Takes what is there already behind a series that is over, up to the start of the next. It would be lost with the connection.
    pub fn look_behind(&mut self, now: Nanos, intake: &mut dyn FrameIntake) -> io::Result<()> {
        while !self.reception.has_next() && self.receive(now, Nanos(0), intake)? {}
        self.reception.queue_rest(intake);
        self.tell(now);
        Ok(())
    }

    /// Whether a message came within this time.
    fn receive(&mut self, now: Nanos, at_most: Nanos, intake: &mut dyn FrameIntake) -> io::Result<bool> {
        if self.reception.is_closed() {
            thread::sleep(CLOSED_LOOK.duration());
            return Ok(false);
        }
        let mut room = SlotRoom { now, reception: &mut self.reception, intake };
        self.latest = now + self.epoch;
        let Some(message) = self.socket.receive(self.latest, at_most, &mut room)? else { return Ok(false) };
        let queued = self.reception.received(now, message);
        self.accept(now, queued, intake);
        Ok(true)
    }

    /// Takes a message, and tells the socket if a series begins with it.
    fn accept(&mut self, now: Nanos, queued: QueuedMessage, intake: &mut dyn FrameIntake) {
        let had_begun = self.reception.series().is_some();
        self.reception.accept(now, queued, intake);
        if let (false, Some(series), Some(sender)) = (had_begun, self.series(), self.reception.sender) {
            self.socket.begin_series(sender, series.start().channels.len());
        }
        self.prove_senders();
    }

    /// The socket trusts connections that brought frames.
    fn prove_senders(&mut self) {
        for peer in self.reception.take_proved() {
            self.socket.prove(peer);
        }
    }

    /// Whether the series is over, and how.
    pub fn is_over(&self, now: Nanos) -> Option<SeriesEnding> {
        self.reception.is_over(now)
    }

    /// No frame is taken any more: those that did not come are told. What comes after is late.
    pub fn finish(&mut self, now: Nanos, intake: &mut dyn FrameIntake) {
        self.reception.finish(now, intake);
        self.latest = now + self.epoch;
        self.socket.end_series(self.latest);
        // What came stands still, and the lanes go on.
        self.lanes = None;
        self.tell(now);
    }

    pub(super) fn tell(&mut self, now: Nanos) {
        // Before the tally is taken: whatever a lane has stored by then came before.
        let stored = self.lanes.as_ref().map(LaneCounts::get);
        let SeriesReception { tally, first, last, .. } = &self.reception;
        let series = self.reception.series();
        let frames = series.and_then(SeriesCheck::announced);
        let upto = series.map_or(0, SeriesCheck::came_upto);
        let traffic = SeriesTraffic {
            tally: tally.clone(),
            counted: self.socket.counted(),
            frames,
            missing: upto.saturating_sub(tally.frames),
            first: *first,
            last: *last,
            stored,
            ending: self.ending,
            fault: self.fault.clone(),
        };
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = traffic;
        self.told = now;
    }
}

/// Slots of an intake as room for images of the series that is received. Starts have their arrays with them.
struct SlotRoom<'a> {
    now: Nanos,
    reception: &'a mut SeriesReception,
    intake: &'a mut dyn FrameIntake,
}

impl MessageRoom for SlotRoom<'_> {
    fn room(&mut self, asked: RoomRequest<'_>) -> RoomAnswer {
        self.reception.room(self.now, asked, self.intake)
    }

    fn give_back(&mut self, buffer: Buffer) {
        self.reception.give_back(buffer, self.intake);
    }

    fn is_awaited(&self) -> bool {
        self.reception.waits_for_slots()
    }
}
