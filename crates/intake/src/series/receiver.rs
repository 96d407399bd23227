//! Takes the messages of one series after another from a socket into an intake.

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
    FrameIntake, SeriesCheck, SeriesEnding, SeriesRefusal, SeriesRelay, SeriesTally, SeriesTraffic,
    SeriesUntil, queued::QueuedMessage, reception::SeriesReception,
};
use crate::transport::zeromq::{MessagePeer, MessageRoom, PullSocket, RoomAnswer, RoomRequest};
use nilometer_wire::series::SeriesMessageKind;

/// Maximum time between checks for the end of the series.
const LOOK: Nanos = Nanos::from_millis(20);
/// The same while nothing is read.
const CLOSED_LOOK: Nanos = Nanos::from_millis(1);
/// Time between looks at the other processes of a recording, and the longest wait for messages beside them.
const RELAY_LOOK: Nanos = Nanos::from_millis(2);
/// How long a process that is done tries to pass the end on to the others.
const PASSED_ON_BY: Nanos = Nanos::from_millis(2000);
/// A turn that takes longer is a halt: somebody stopped the process, or it got no processor. No look and no frame
/// takes this long.
const HALT: Nanos = Nanos::from_millis(250);
/// Interval at which the live figures are updated.
const TELL: Nanos = Nanos::from_millis(100);

/// A socket, and the series received from it.
#[derive(Debug)]
pub struct SeriesReceiver {
    socket: PullSocket,
    reception: SeriesReception,
    /// Offset of the socket's time to the recording's clock. Each recording has its own clock, and the socket
    /// outlives it.
    epoch: Nanos,
    /// The latest time of the socket.
    latest: Nanos,
    /// When the last turn began. `None` before the first one of a wait.
    pub(super) turned: Option<Nanos>,
    told: Nanos,
    ending: Option<SeriesEnding>,
    fault: Option<String>,
    live: Arc<Mutex<SeriesTraffic>>,
    /// Totals stored by the lanes, if they are counted.
    lanes: Option<LaneCounts>,
    /// The other processes that record the series. `None` if there are none.
    relay: Option<SeriesRelay>,
    /// True if other processes record the rest of the series.
    is_share: bool,
    /// When these were last looked at.
    relay_looked: Nanos,
}

impl SeriesReceiver {
    /// Makes a receiver for a socket.
    pub fn new(socket: PullSocket, until: SeriesUntil) -> Self {
        SeriesReceiver {
            socket,
            reception: SeriesReception::new(until),
            epoch: Nanos(0),
            latest: Nanos(0),
            turned: None,
            told: Nanos(0),
            ending: None,
            fault: None,
            live: Arc::default(),
            lanes: None,
            relay: None,
            is_share: false,
            relay_looked: Nanos(0),
        }
    }

    /// Makes it take a share of the series: other processes get the rest, and each passes the start and the end on.
    pub fn share_with(&mut self, relay: SeriesRelay) {
        self.reception.others.await_others();
        self.is_share = true;
        self.relay = Some(relay);
    }

    /// Prepares for the next series: all figures begin anew.
    pub(super) fn reset(&mut self, now: Nanos, until: SeriesUntil) {
        self.reception.begin_next(now, until);
        // Also if a series began and its recording could not be prepared.
        self.socket.end_series(self.latest);
        self.socket.count_anew();
        self.epoch = self.latest.since(now);
        self.turned = None;
        self.told = Nanos(0);
        self.ending = None;
        self.lanes = None;
        self.live = Arc::default();
    }

    /// Takes the reason why a series that began can't be recorded.
    pub(super) fn take_unusable(&mut self) -> Option<String> {
        self.reception.take_unusable()
    }

    /// Returns true if messages of the next series are there already: closing the connection would lose them.
    pub fn has_next(&self) -> bool {
        self.reception.has_next()
    }

    /// Counts the messages behind the series, since the next series is not recorded.
    pub fn abandon_next(&mut self, now: Nanos) {
        self.reception.abandon();
        self.tell(now);
    }

    /// The state so far. During reception it is at most a tenth of a second old.
    pub fn live(&self) -> Arc<Mutex<SeriesTraffic>> {
        self.live.clone()
    }

    /// Adds the lanes' stored totals to the live state from now on.
    pub fn count_stored(&mut self, lanes: LaneCounts) {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).stored = Some(lanes.get());
        self.lanes = Some(lanes);
    }

    /// The current series. `None` before it begins.
    pub fn series(&self) -> Option<&SeriesCheck> {
        self.reception.series()
    }

    /// The address that began it.
    pub fn sender(&self) -> Option<IpAddr> {
        self.reception.sender.map(|MessagePeer { address, .. }| address)
    }

    /// When the first frame was complete.
    pub fn first(&self) -> Option<Nanos> {
        self.reception.first
    }

    /// Counts of frames.
    pub fn tally(&self) -> &SeriesTally {
        &self.reception.tally
    }

    /// Receives until the series is over or `stop` is set. Runs on its own thread.
    ///
    /// # Errors
    ///
    /// If no message can arrive any more.
    pub fn run(
        &mut self,
        clock: Clock,
        stop: &AtomicBool,
        intake: &mut dyn FrameIntake,
    ) -> io::Result<SeriesEnding> {
        // A series that began earlier has waited for this call, not the other way round.
        self.reception.resume(clock.now());
        self.turned = None;
        let ending = loop {
            let now = clock.now();
            self.excuse_halt(now, intake);
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
        self.leave_others();
        ending
    }

    /// Adds a halt since the last turn to all waits: meanwhile nobody read the messages that arrived.
    pub(super) fn excuse_halt(&mut self, now: Nanos, intake: &mut dyn FrameIntake) {
        let step = now.since(self.turned.replace(now).unwrap_or(now));
        if step > HALT {
            self.reception.halted(now, step);
            intake.halted(step);
        }
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
        self.look_at_others(now, intake)?;
        let look = if self.relay.is_some() { RELAY_LOOK } else { LOOK };
        let at_most = if self.reception.waits_for_slots() { Nanos::from_millis(1) } else { look };
        self.receive(now, at_most, intake).map(drop)
    }

    /// Takes waiting messages behind a series that is over, up to the start of the next. Closing the
    /// connection would lose them.
    pub fn look_behind(&mut self, now: Nanos, intake: &mut dyn FrameIntake) -> io::Result<()> {
        while !self.reception.has_next() && self.receive(now, Nanos(0), intake)? {}
        self.reception.queue_rest(intake);
        self.tell(now);
        Ok(())
    }

    /// Receives a message. Returns false if none arrived within this time.
    fn receive(&mut self, now: Nanos, at_most: Nanos, intake: &mut dyn FrameIntake) -> io::Result<bool> {
        if self.reception.is_closed() {
            thread::sleep(CLOSED_LOOK.duration());
            return Ok(false);
        }
        let mut room = SlotRoom { now, reception: &mut self.reception, intake };
        self.latest = now + self.epoch;
        let Some(message) = self.socket.receive(self.latest, at_most, &mut room)? else { return Ok(false) };
        let queued = self.reception.received(now, message);
        if let Some(relay) = &mut self.relay
            && matches!(queued.kind(), Some(SeriesMessageKind::Start | SeriesMessageKind::End))
        {
            relay.pass_on(&queued.message)?;
        }
        self.accept(now, queued, intake);
        Ok(true)
    }

    /// Takes starts and ends that came to the other processes of the recording.
    fn look_at_others(&mut self, now: Nanos, intake: &mut dyn FrameIntake) -> io::Result<()> {
        let Some(relay) = &mut self.relay else { return Ok(()) };
        if self.reception.is_closed() || now.since(self.relay_looked) < RELAY_LOOK {
            return Ok(());
        }
        self.relay_looked = now;
        relay.tend()?;
        let mut room = SlotRoom { now, reception: &mut self.reception, intake };
        let message = relay.receive(now + self.epoch, &mut room)?;
        for _ in 0..relay.take_strangers() {
            let fault = "it came beside the stream, without the key of this recording".to_owned();
            self.reception.tally.refuse(SeriesRefusal::Foreign, Some(fault));
        }
        if let Some(message) = message {
            let queued = self.reception.received(now, message);
            self.accept(now, queued, intake);
        }
        Ok(())
    }

    /// Waits until the kernel has the messages for the other processes, or `is_over`. They can't go on without the
    /// start of a series.
    pub(super) fn pass_on_all(&mut self, is_over: &dyn Fn() -> bool) -> io::Result<()> {
        while let Some(relay) = self.relay.as_mut().filter(|relay| relay.has_waiting() && !is_over()) {
            relay.tend()?;
            thread::sleep(RELAY_LOOK.duration());
        }
        Ok(())
    }

    /// Passes the end of a series on, and leaves the other processes. Some of them may have ended.
    fn leave_others(&mut self) {
        let clock = Clock::start();
        self.pass_on_all(&|| clock.now() >= PASSED_ON_BY).ok();
        self.relay = None;
    }

    /// Processes a message, and tells the socket if a series begins with it.
    fn accept(&mut self, now: Nanos, queued: QueuedMessage, intake: &mut dyn FrameIntake) {
        let had_begun = self.reception.series().is_some();
        self.reception.accept(now, queued, intake);
        if let (false, Some(series), Some(sender)) = (had_begun, self.series(), self.reception.sender) {
            self.socket.begin_series(sender, series.start().channels.len());
        }
        self.prove_senders();
    }

    /// Marks connections that brought frames as trusted.
    fn prove_senders(&mut self) {
        for peer in self.reception.take_proved() {
            self.socket.prove(peer);
        }
    }

    /// How the series ended. `None` while it is not over.
    pub fn is_over(&self, now: Nanos) -> Option<SeriesEnding> {
        self.reception.is_over(now)
    }

    /// Takes no more frames and reports the missing ones. Later messages are late.
    pub fn finish(&mut self, now: Nanos, intake: &mut dyn FrameIntake) {
        self.reception.finish(now, intake);
        self.latest = now + self.epoch;
        self.socket.end_series(self.latest);
        // The traffic stands still, and the lanes go on.
        self.lanes = None;
        self.tell(now);
    }

    pub(super) fn tell(&mut self, now: Nanos) {
        // Read before the tally: frames that a lane has stored by then were received before.
        let stored = self.lanes.as_ref().map(LaneCounts::get);
        let SeriesReception { tally, first, last, .. } = &self.reception;
        let series = self.reception.series();
        let frames = series.and_then(SeriesCheck::announced);
        let upto = series.map_or(0, SeriesCheck::came_upto);
        let traffic = SeriesTraffic {
            tally: tally.clone(),
            counted: self.socket.counted(),
            frames,
            missing: if self.is_share { 0 } else { upto.saturating_sub(tally.frames) },
            is_share: self.is_share,
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

/// Gives slots of an intake to images of the current series. Arrays of a start stay with their message.
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
