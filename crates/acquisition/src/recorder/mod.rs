//! The recorder on threads: a source and a writer for each lane, supervised. Nothing here decides anything about
//! frames; that is in the workloads, which tests run on a virtual clock.

mod feed;
mod outcome;
mod sender_status;
mod source_totals;
mod status;
mod threads;

use std::{
    collections::BTreeSet,
    mem::size_of,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use nilometer_intake::{Traffic, joined::MetadataReader, series::SeriesTraffic};
use nilometer_model::{Bytes, EngineKind, Nanos};
use nilometer_ring::{Chronicle, Frame, FrameTurn, LaneCounts, MemoryAccount, MemoryPart, Ring};
use nilometer_storage::{
    Arena, Buffer, Clock, EngineError, Target,
    engine::Options,
    process::{Usage, resident_memory},
};

use feed::{AwaitedValues, LiveTraffic};
pub use feed::{Copied, Feed, Network, Port, SeriesFeed};
pub use outcome::{Ending, Lane, Outcome};
pub use sender_status::{SenderStatus, ThreadStatus};
use source_totals::SourceTotals;
pub use status::{Came, LaneStatus, Lost, MemoryStatus, RingStatus, Status};
use status::{LaneWatch, Recent};
use threads::{LaneJob, Report};

use crate::sink::{EncodeStage, FILE_SLOTS, LaneSetup, RingNeeds};

/// A recording to be made.
#[derive(Debug)]
pub struct Setup {
    /// Where frames go: [`crate::sink::lanes_of`]. At least one.
    pub lanes: Vec<LaneSetup>,
    /// How the lanes' operations are issued.
    pub engine: Options,
    /// Slots of the ring.
    pub slots: usize,
    /// What delivers frames.
    pub feed: Feed,
    /// Set from elsewhere to end the recording in order.
    pub stop: Arc<AtomicBool>,
    /// What a stall is longer than, and how late a frame may be.
    pub allowance: Nanos,
    /// How long a lane may be silent after the last frame.
    pub hang_after: Nanos,
}

/// Operations in flight a lane, where several are of use.
const DEPTH: u32 = 4;

/// How a lane's operations are best issued, several at once if that is of use: `RawLayout::is_deep`. Otherwise each is a copy
/// into the cache, one at a time in a lane.
pub fn suited_engine(target: &dyn Target, deep: bool, clock: Clock) -> Result<Options, EngineError> {
    let sync = Options { kind: EngineKind::Sync, depth: 1, slots: FILE_SLOTS, clock };
    let options = Options { kind: EngineKind::IoUring, depth: DEPTH, ..sync };
    if !deep {
        return Ok(sync);
    }
    match target.engine(&options) {
        Ok(_) => Ok(options),
        Err(EngineError::NotPermitted { .. }) => Ok(sync),
        Err(error) => Err(error),
    }
}

/// A recording that could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A lane could not be set up.
    #[error("lane {lane}: {why}")]
    Lane {
        /// Which.
        lane: usize,
        /// What went wrong.
        why: String,
    },
    /// A lane's storage did not answer while the lane was set up.
    #[error("lane {lane}: hung while it was set up")]
    Hung {
        /// Which.
        lane: usize,
    },
    /// A thread could not be started, or the network gave up.
    #[error("can't start: {0}")]
    Thread(#[from] std::io::Error),
}

/// A recording that runs.
#[derive(Debug)]
pub struct Recorder {
    ring: Arc<Ring>,
    reports: Receiver<Report>,
    clock: Clock,
    stop: Arc<AtomicBool>,
    hang_after: Nanos,
    /// When the last frame is due at the latest.
    over: Nanos,
    /// When a thread reported last, or frames were seen to be settled.
    heard: Nanos,
    /// Frames below this were settled when it was looked last.
    mark: u64,
    /// Threads that have not reported.
    open: usize,
    before: Usage,
    source: SourceTotals,
    /// The source has reported.
    fed: bool,
    lanes: Vec<Option<Lane>>,
    /// The source, until the recording begins.
    waits: Option<(feed::Job, SyncSender<Report>)>,
    duration: Nanos,
    /// What comes from the network.
    live: Option<LiveTraffic>,
    /// What lanes do, and what came in the last second.
    watched: Vec<LaneWatch>,
    counts: LaneCounts,
    recent: Recent,
    memory: MemoryAccount,
}

/// How long lanes have to end when a recording does not begin.
const LEAVE: Nanos = Nanos::from_millis(2000);
/// How often it is looked whether the recording was stopped.
const LOOK: Nanos = Nanos::from_millis(50);

impl Recorder {
    /// Starts a recording: the first frame is due when all lanes are ready.
    pub fn start(setup: Setup) -> Result<Self, RecordingError> {
        let mut recorder = Recorder::prepare(setup)?;
        recorder.begin()?;
        Ok(recorder)
    }

    /// Makes all lanes ready. Packets that come from then on are recorded; frames of an instrument come from [`Recorder::begin`] on.
    pub fn prepare(setup: Setup) -> Result<Self, RecordingError> {
        let Setup { mut lanes, engine, feed, stop, allowance, hang_after, .. } = setup;
        let count = lanes.len();
        let clock = engine.clock;
        let reserved = lanes.iter().any(|lane| lane.sink.reserves_all());
        let needs = lanes.iter().map(|lane| lane.sink.needs()).reduce(RingNeeds::and);
        let needs = needs.expect("a recording has a lane");
        let slot = needs.slot.max(feed.slot_size(needs.alignment));
        // What the program takes by itself.
        let before = resident_memory();
        let (arena, mut slots) = Arena::aligned(setup.slots, slot, needs.alignment);
        feed.prepare_slots(&mut slots, &stop);
        let memory = account_of(before, &arena, slots.len(), &mut lanes);
        let chronicle = Chronicle::new(feed.frame_size() as u64, allowance);
        let ring = ring_of(needs, slots, count, chronicle, feed.turn());
        let (sender, reports) = sync_channel(2 * count + 2);
        let watched = LaneWatch::of(&lanes);
        for (seat, lane) in lanes.into_iter().enumerate() {
            let ring = ring.clone();
            let arena = arena.clone();
            let sender = sender.clone();
            let written = watched[seat].written();
            let counts = watched[seat].counts();
            let job = LaneJob { ring, seat, lane, written, counts, options: engine, arena };
            thread::Builder::new().name(format!("lane {seat}")).spawn(move || threads::lane(job, &sender))?;
        }
        let early = all_ready(&reports, count, hang_after).and_then(|early| whole_ring(reserved, early));
        let early = match early {
            Ok(early) => early,
            Err(error) => {
                // Lanes that are ready end, and what they made may be removed then.
                ring.close(0);
                drop(sender);
                while reports.recv_timeout(LEAVE.duration()).is_ok() {}
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
            mark: 0,
            open: count + 1,
            before: Usage::default(),
            source: SourceTotals::default(),
            fed: false,
            lanes: (0..count).map(|_| None).collect(),
            duration: job.duration(),
            live: job.live(),
            watched,
            counts,
            recent: Recent::default(),
            memory,
            waits: Some((job, sender)),
        };
        for report in early {
            recorder.hear(report);
        }
        Ok(recorder)
    }

    /// What came since it was prepared is none of the recording: for one that begins later.
    pub fn discard(&mut self) -> Result<(), RecordingError> {
        match &mut self.waits {
            Some((job, _)) => Ok(job.discard()?),
            None => Ok(()),
        }
    }

    /// Before its files are closed, values that come apart from the frames are awaited.
    pub fn await_values(&mut self, reader: Arc<MetadataReader>) {
        if let Some((job, _)) = &mut self.waits {
            job.awaited = AwaitedValues(Some(reader));
        }
    }

    /// It does not begin: whether all lanes ended in time.
    pub fn cancel(mut self) -> bool {
        self.open -= usize::from(self.waits.take().is_some());
        self.ring.close(0);
        while self.open > 0 {
            match self.reports.recv_timeout(self.hang_after.duration()) {
                Ok(report) => self.hear(report),
                Err(_) => return false,
            }
        }
        true
    }

    /// The first frame is due now.
    pub fn begin(&mut self) -> Result<(), RecordingError> {
        self.begin_at(None)
    }

    /// The first frame of an instrument is due at this time of the recording's clock, or now.
    pub fn begin_at(&mut self, start: Option<Nanos>) -> Result<(), RecordingError> {
        let Some((mut job, sender)) = self.waits.take() else { return Ok(()) };
        job.starts = start;
        self.before = Usage::of_process();
        self.over = start.unwrap_or_else(|| self.clock.now()) + self.duration;
        thread::Builder::new().name("source".into()).spawn(move || threads::source(job, &sender))?;
        Ok(())
    }

    /// What came from the network so far, if frames come from there.
    pub fn traffic(&self) -> Option<Traffic> {
        match &self.live {
            Some(LiveTraffic::Packets(live)) => {
                Some(live.lock().unwrap_or_else(PoisonError::into_inner).clone())
            }
            _ => None,
        }
    }

    /// What came of a series so far, if frames come as one.
    pub fn series_traffic(&self) -> Option<SeriesTraffic> {
        match &self.live {
            Some(LiveTraffic::Series(live)) => {
                Some(live.lock().unwrap_or_else(PoisonError::into_inner).clone())
            }
            _ => None,
        }
    }

    /// The account of its memory, in which other parts of the recorder state what they take and count what they hold.
    pub fn memory(&self) -> &MemoryAccount {
        &self.memory
    }

    /// The ring: how far it is.
    pub fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// No more frames come; what is there is stored.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// What it came to, if it ends within this time. A thread that does not report in time is given up.
    pub fn wait(&mut self, at_most: Nanos) -> Option<Outcome> {
        let until = self.clock.now() + at_most;
        while self.open > 0 {
            match self.reports.recv_timeout(LOOK.min(at_most).duration()) {
                Ok(report) => self.hear(report),
                Err(_) if self.clock.now() > self.patience() => return Some(self.outcome(true)),
                Err(_) if self.clock.now() >= until => return None,
                Err(_) => {}
            }
        }
        Some(self.outcome(false))
    }

    /// What it came to, though somebody did not report: whoever that is is given up.
    pub fn give_up(&mut self) -> Outcome {
        self.outcome(self.open > 0)
    }

    /// What it came to.
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
            Report::Ready(_) | Report::Refused(..) => return,
        }
        self.open -= 1;
        self.heard = self.clock.now();
    }

    /// Until when somebody must report: for so long after the last frame, or after what was heard last if that is later. A
    /// simulated instrument that is slower than its pace delivers longer than it should: frames are heard as well.
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

    /// What this process spent on the recording: all, without what simulates an instrument.
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
                faults.push(format!("lane {lane}: {errno}"));
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

/// Lanes that never got a frame end.
impl Drop for Recorder {
    fn drop(&mut self) {
        if self.waits.is_some() {
            self.ring.close(0);
        }
    }
}

/// The account of a recorder that had so much memory before: its ring has so many slots in this arena, and its lanes have theirs.
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

/// The ring of so many lanes whose sinks ask this of it: it gives leases where they write chunks.
pub fn ring_of(
    needs: RingNeeds,
    slots: Vec<Buffer>,
    lanes: usize,
    chronicle: Chronicle,
    turn: FrameTurn,
) -> Arc<Ring> {
    Ring::in_turn(slots, lanes, chronicle, needs.chunk, turn)
}

/// Waits until every lane is, or some are and others do not answer. What those reported meanwhile that have failed already.
fn all_ready(reports: &Receiver<Report>, lanes: usize, limit: Nanos) -> Result<Vec<Report>, RecordingError> {
    let mut waiting: BTreeSet<usize> = (0..lanes).collect();
    let mut early = Vec::new();
    while let Some(&lane) = waiting.first() {
        match reports.recv_timeout(limit.duration()) {
            Ok(Report::Refused(lane, why)) => return Err(RecordingError::Lane { lane, why }),
            Ok(Report::Ready(lane)) => drop(waiting.remove(&lane)),
            Ok(report) => {
                if let Report::Lane(lane, _) = &report {
                    waiting.remove(lane);
                }
                early.push(report);
            }
            Err(_) if waiting.len() < lanes => break,
            Err(_) => return Err(RecordingError::Hung { lane }),
        }
    }
    Ok(early)
}

/// Where space is reserved before the recording begins, every lane has its own.
fn whole_ring(reserved: bool, early: Vec<Report>) -> Result<Vec<Report>, RecordingError> {
    for report in early.iter().filter(|_| reserved) {
        if let Report::Lane(lane, ended) = report {
            let why = ended.totals.fault.map_or("no room for its file".into(), |fault| fault.to_string());
            return Err(RecordingError::Lane { lane: *lane, why });
        }
    }
    Ok(early)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriterTotals;

    fn said(reports: impl IntoIterator<Item = Report>, lanes: usize) -> Result<Vec<Report>, RecordingError> {
        let (sender, receiver) = sync_channel(8);
        reports.into_iter().for_each(|report| sender.send(report).expect("there is room"));
        all_ready(&receiver, lanes, Nanos::from_millis(10))
    }

    fn full(lane: usize) -> Report {
        let totals = WriterTotals { full: true, ..WriterTotals::default() };
        let (usage, none) = (Usage::default(), Nanos(0));
        Report::Lane(lane, Box::new(Lane { totals, written: 0, usage, run_delay: none, ended: none }))
    }

    #[test]
    fn what_lanes_report_before_all_are_ready_is_heard_later() {
        let early = said([full(1), Report::Ready(0), Report::Ready(2)], 3).expect("two are ready");
        assert!(matches!(early[..], [Report::Lane(1, _)]), "{early:?}");
        assert!(whole_ring(false, early).is_ok());
        let early = said([full(1), Report::Ready(0)], 2).expect("one is ready");
        let error = whole_ring(true, early).expect_err("its space is not reserved").to_string();
        assert!(error.contains("lane 1: no room"), "{error}");
    }

    #[test]
    fn a_lane_that_does_not_answer_keeps_others_from_nothing() {
        assert!(matches!(said([Report::Ready(1)], 2), Ok(early) if early.is_empty()));
        assert!(matches!(said([], 2), Err(RecordingError::Hung { lane: 0 })));
        let refused = Report::Refused(1, "why".into());
        assert!(matches!(said([Report::Ready(0), refused], 2), Err(RecordingError::Lane { lane: 1, .. })));
    }
}
