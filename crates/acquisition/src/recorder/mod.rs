//! The recorder on threads: a source and a writer for each lane, supervised. Decisions about frames are made in
//! the workloads, which tests run on a virtual clock.

mod chosen_engine;
mod data_stream_status;
mod data_streams;
mod feed;
mod lane_status;
mod memory_status;
mod outcome;
mod readiness;
mod recent;
mod room;
mod sender_status;
mod source_totals;
mod status;
mod status_sum;
mod threads;

use std::{
    mem::size_of,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use nilometer_intake::{Traffic, joined::MetadataReader, series::SeriesTraffic};
use nilometer_model::{Bytes, Nanos};
use nilometer_ring::{Chronicle, Frame, FrameTurn, LaneCounts, MemoryAccount, MemoryPart, Ring};
use nilometer_storage::{
    Arena, Buffer, Clock,
    clock::halt_between,
    process::{Usage, resident_memory},
};

pub use chosen_engine::{ChosenEngine, EngineReason, EngineWish, suited_engine};
pub use data_stream_status::DataStreamStatus;
pub use data_streams::{DataStreamWatch, NamedStatus};
use feed::{AwaitedValues, LiveTraffic};
pub use feed::{Copied, Feed, Network, Port, SeriesFeed};
pub use lane_status::LaneStatus;
use lane_status::LaneWatch;
pub use memory_status::{MemoryStatus, RingStatus};
pub use outcome::{Ending, Lane, Outcome};
pub use readiness::RecordingError;
use readiness::{all_ready, whole_ring};
use recent::Recent;
pub use sender_status::{SenderStatus, ThreadStatus};
use source_totals::SourceTotals;
pub use status::{Came, Lost, Status};
use threads::{LaneJob, Report};

use crate::sink::{EncodeStage, LaneSetup, RingNeeds};

/// Settings of a new recording.
#[derive(Debug)]
pub struct Setup {
    /// The lanes that store frames, at least one: [`crate::sink::lanes_of`].
    pub lanes: Vec<LaneSetup>,
    /// The engine that issues the lanes' operations.
    pub engine: ChosenEngine,
    /// Number of slots in the ring.
    pub slots: usize,
    /// Source of the frames.
    pub feed: Feed,
    /// Another thread sets it to end the recording in order.
    pub stop: Arc<AtomicBool>,
    /// A longer pause counts as a stall; also the lateness allowed for a frame.
    pub allowance: Nanos,
    /// Longest silence of a lane after the last frame.
    pub hang_after: Nanos,
}

/// A running recording.
#[derive(Debug)]
pub struct Recorder {
    ring: Arc<Ring>,
    reports: Receiver<Report>,
    clock: Clock,
    stop: Arc<AtomicBool>,
    hang_after: Nanos,
    /// Latest time at which the last frame is due.
    over: Nanos,
    /// Time of the last report from a thread, or of the last progress in settled frames.
    heard: Nanos,
    /// Time of the last look for threads that hang.
    looked: Nanos,
    /// Frames below this number were settled at the last check.
    mark: u64,
    /// Number of threads that have not reported.
    open: usize,
    before: Usage,
    source: SourceTotals,
    /// The source has reported.
    fed: bool,
    /// The source listens on after its report, and reports the end of that too.
    listens: bool,
    lanes: Vec<Option<Lane>>,
    /// The source, until the recording begins, and the sender for its report.
    waits: Option<(feed::Job, SyncSender<Report>)>,
    duration: Nanos,
    /// Live counters of the network.
    live: Option<LiveTraffic>,
    /// Counters and endings of the lanes.
    watched: Vec<LaneWatch>,
    counts: LaneCounts,
    recent: Recent,
    memory: MemoryAccount,
    engine: ChosenEngine,
}

/// Time that lanes have to end if a recording does not begin.
const LEAVE: Nanos = Nanos::from_millis(2000);
/// Interval at which the recorder checks if it was stopped.
const LOOK: Nanos = Nanos::from_millis(50);

/// Ends the lanes that are ready; the caller may then remove the files they made.
fn end_lanes(ring: &Ring, sender: SyncSender<Report>, reports: &Receiver<Report>) {
    ring.close(0);
    drop(sender);
    while reports.recv_timeout(LEAVE.duration()).is_ok() {}
}

impl Recorder {
    /// Starts a recording: the first frame is due when all lanes are ready.
    pub fn start(setup: Setup) -> Result<Self, RecordingError> {
        let mut recorder = Recorder::prepare(setup)?;
        recorder.begin()?;
        Ok(recorder)
    }

    /// Makes all lanes ready. Packets received from then on are recorded; an instrument delivers frames from
    /// [`Recorder::begin`] on.
    pub fn prepare(setup: Setup) -> Result<Self, RecordingError> {
        let Setup { mut lanes, engine, feed, stop, allowance, hang_after, .. } = setup;
        let count = lanes.len();
        let clock = engine.options.clock;
        let reserved = lanes.iter().any(|lane| lane.sink.reserves_all());
        let needs = lanes.iter().map(|lane| lane.sink.needs()).reduce(RingNeeds::and);
        let needs = needs.expect("a recording has a lane");
        let slot = needs.slot.max(feed.slot_size(needs.alignment));
        // Memory of the program itself.
        let before = resident_memory();
        let (arena, mut slots) = Arena::aligned(setup.slots, slot, needs.alignment);
        feed.prepare_slots(&mut slots, &stop);
        let memory = account_of(before, &arena, slots.len(), &mut lanes);
        let chronicle = Chronicle::new(feed.frame_size() as u64, allowance);
        let ring = ring_of(needs, slots, count, chronicle, feed.turn());
        let (sender, reports) = sync_channel(2 * count + 3);
        let watched = LaneWatch::of(&lanes);
        for (seat, lane) in lanes.into_iter().enumerate() {
            let ring = ring.clone();
            let arena = arena.clone();
            let sender = sender.clone();
            let written = watched[seat].written();
            let counts = watched[seat].counts();
            let job = LaneJob { ring, seat, lane, written, counts, options: engine.options, arena };
            thread::Builder::new().name(format!("lane {seat}")).spawn(move || threads::lane(job, &sender))?;
        }
        let early = all_ready(&reports, count, hang_after).and_then(|early| whole_ring(reserved, early));
        let early = match early {
            Ok(early) => early,
            Err(error) => {
                end_lanes(&ring, sender, &reports);
                return Err(error);
            }
        };
        let counts = LaneCounts::new(watched.iter().map(LaneWatch::lane_count));
        let mut job = feed.onto(ring.clone(), stop.clone(), clock);
        job.count_stored(&counts);
        job.discard()?;
        let mut recorder = Recorder {
            ring,
            reports,
            clock,
            stop,
            hang_after,
            over: Nanos::MAX,
            heard: Nanos(0),
            looked: Nanos(0),
            mark: 0,
            open: count + 1 + usize::from(job.listens_on()),
            before: Usage::default(),
            source: SourceTotals::default(),
            fed: false,
            listens: job.listens_on(),
            lanes: (0..count).map(|_| None).collect(),
            duration: job.duration(),
            live: job.live(),
            watched,
            counts,
            recent: Recent::default(),
            memory,
            engine,
            waits: Some((job, sender)),
        };
        for report in early {
            recorder.hear(report);
        }
        Ok(recorder)
    }

    /// Discards packets received since [`Recorder::prepare`], for a recording that begins later.
    pub fn discard(&mut self) -> Result<(), RecordingError> {
        match &mut self.waits {
            Some((job, _)) => Ok(job.discard()?),
            None => Ok(()),
        }
    }

    /// Makes the source wait for values that arrive apart from the frames, before the files are closed.
    pub fn await_values(&mut self, reader: Arc<MetadataReader>) {
        if let Some((job, _)) = &mut self.waits {
            job.awaited = AwaitedValues(Some(reader));
        }
    }

    /// Ends the lanes of a recording that does not begin. Returns true if all ended in time.
    pub fn cancel(mut self) -> bool {
        if self.waits.take().is_some() {
            self.open -= 1 + usize::from(std::mem::take(&mut self.listens));
        }
        self.ring.close(0);
        while self.open > 0 {
            match self.reports.recv_timeout(self.hang_after.duration()) {
                Ok(report) => self.hear(report),
                Err(_) => return false,
            }
        }
        true
    }

    /// Begins the recording: the first frame is due now.
    pub fn begin(&mut self) -> Result<(), RecordingError> {
        self.begin_at(None)
    }

    /// Begins the recording with an instrument's first frame due at `start`, on the recording's clock. `None`
    /// means now.
    pub fn begin_at(&mut self, start: Option<Nanos>) -> Result<(), RecordingError> {
        let Some((mut job, sender)) = self.waits.take() else { return Ok(()) };
        job.starts = start;
        self.before = Usage::of_process();
        self.over = start.unwrap_or_else(|| self.clock.now()) + self.duration;
        thread::Builder::new().name("source".into()).spawn(move || threads::source(job, &sender))?;
        Ok(())
    }

    /// Packets received from the network so far, if frames come from there.
    pub fn traffic(&self) -> Option<Traffic> {
        match &self.live {
            Some(LiveTraffic::Packets(live)) => {
                Some(live.lock().unwrap_or_else(PoisonError::into_inner).clone())
            }
            _ => None,
        }
    }

    /// Messages of a series received so far, if frames come as one.
    pub fn series_traffic(&self) -> Option<SeriesTraffic> {
        match &self.live {
            Some(LiveTraffic::Series(live)) => {
                Some(live.lock().unwrap_or_else(PoisonError::into_inner).clone())
            }
            _ => None,
        }
    }

    /// The account of the recorder's memory. Other parts of the recorder state their bounds in it and count the
    /// bytes they hold.
    pub fn memory(&self) -> &MemoryAccount {
        &self.memory
    }

    /// The engine of all lanes.
    pub fn engine(&self) -> &ChosenEngine {
        &self.engine
    }

    /// The ring, with its progress.
    pub fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// Ends the recording: no more frames arrive, and the lanes store those in the ring.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns the outcome if the recording ends within `at_most`. The recorder gives up a thread that does not
    /// report in time. The recording of a data stream ends with the others of its scan.
    pub fn wait(&mut self, at_most: Nanos) -> Option<Outcome> {
        let until = self.clock.now() + at_most;
        while self.open > 0 {
            match self.reports.recv_timeout(LOOK.min(at_most).duration()) {
                Ok(report) => self.hear(report),
                Err(_) if self.is_hung() => return Some(self.outcome(true)),
                Err(_) if self.clock.now() >= until => return None,
                Err(_) => {}
            }
        }
        Some(self.outcome(false))
    }

    /// Returns the outcome now, and gives up every thread that has not reported.
    pub fn give_up(&mut self) -> Outcome {
        self.outcome(self.open > 0)
    }

    /// Waits for the end of the recording and returns its outcome.
    pub fn wait_to_end(mut self) -> Outcome {
        loop {
            if let Some(outcome) = self.wait(LOOK) {
                return outcome;
            }
        }
    }

    fn hear(&mut self, report: Report) {
        match report {
            Report::Lane(lane, result) => {
                self.watched[lane].end(result.ending());
                self.lanes[lane] = Some(*result);
            }
            Report::Source(totals) => {
                self.source = *totals;
                self.fed = true;
                self.over = self.clock.now();
            }
            Report::Listened => self.listens = false,
            Report::Ready(_) | Report::Refused(..) => return,
        }
        self.open -= 1;
        self.heard = self.clock.now();
    }

    /// Returns true if a thread did not report in time. One that listens behind the end has any time.
    fn is_hung(&mut self) -> bool {
        self.excuse_halt();
        self.open > usize::from(self.listens) && self.clock.now() > self.patience()
    }

    /// Grants all threads the time for which this process was halted: none of them ran either.
    fn excuse_halt(&mut self) {
        let now = self.clock.now();
        let before = std::mem::replace(&mut self.looked, now);
        let halt = halt_between(now.since(before), LOOK);
        if halt > Nanos(0) {
            self.heard = self.over.min(before).max(self.heard) + halt;
        }
    }

    /// Returns the time until which the recorder waits for a report: `hang_after` behind the last frame, or
    /// behind the last report if that is later. A simulated instrument may be slower than its pace and deliver
    /// for longer, so progress in settled frames counts as a report.
    fn patience(&mut self) -> Nanos {
        let mark = self.ring.mark();
        if std::mem::replace(&mut self.mark, mark) != mark {
            self.heard = self.clock.now();
        }
        if self.stop.load(Ordering::Relaxed) {
            self.over = self.over.min(self.clock.now());
        }
        self.over.max(self.heard) + self.hang_after
    }

    /// Processor time that this process spent on the recording, without the simulated instrument.
    fn usage(&self, source: Usage) -> Usage {
        let all = Usage::of_process().since(self.before);
        if self.live.is_some() { all } else { all.since(source) }
    }

    fn outcome(&mut self, hung: bool) -> Outcome {
        self.watched.iter_mut().for_each(|lane| lane.end(Ending::Hung));
        let source = std::mem::take(&mut self.source);
        let lanes = std::mem::take(&mut self.lanes);
        let mut faults = Vec::new();
        for (lane, result) in lanes.iter().enumerate() {
            if let Some(errno) = result.as_ref().and_then(|result| result.totals.fault) {
                faults.push(format!("lane {}: {errno}", lane + 1));
            }
        }
        faults.extend(source.fault.map(|why| format!("the recording that is copied: {why}")));
        let present = || lanes.iter().flatten();
        Outcome {
            traffic: self.traffic(),
            series: self.series_traffic(),
            books: self.ring.books(),
            chronicle: self.ring.chronicle(),
            due: source.frames,
            stopped: source.stopped,
            begun: source.begun,
            wall: present().map(|lane| lane.ended).max().unwrap_or(source.begun).since(source.begun),
            usage: self.usage(source.usage),
            source: source.usage,
            lateness: source.lateness,
            reader: source.reader,
            fed: self.fed,
            run_delay: present().map(|lane| lane.run_delay).fold(source.run_delay, |all, one| all + one),
            lanes,
            faults,
            hung,
        }
    }
}

/// Lanes of a recording that never began end without a frame.
impl Drop for Recorder {
    fn drop(&mut self) {
        if self.waits.is_some() {
            self.ring.close(0);
        }
    }
}

/// Accounts for the recorder's memory: `before` bytes of the program, a ring with `slots` slots in this arena,
/// and the lanes' buffers.
fn account_of(before: Bytes, arena: &Arena, slots: usize, lanes: &mut [LaneSetup]) -> MemoryAccount {
    let memory = MemoryAccount::default();
    memory.hold(MemoryPart::Program, before.0);
    memory.hold(MemoryPart::Ring, arena.region().1 as u64);
    memory.hold(MemoryPart::SlotHeaders, (slots * (size_of::<Buffer>() + size_of::<Frame>())) as u64);
    for lane in lanes {
        lane.sink.account(&memory);
        memory.hold(MemoryPart::EncodeStages, lane.encode.as_ref().map_or(0, EncodeStage::memory));
    }
    memory
}

/// Makes a ring for lanes whose sinks have these needs. It gives leases if they write chunks.
pub fn ring_of(
    needs: RingNeeds,
    slots: Vec<Buffer>,
    lanes: usize,
    chronicle: Chronicle,
    turn: FrameTurn,
) -> Arc<Ring> {
    Ring::in_turn(slots, lanes, chronicle, needs.chunk, turn)
}
