//! The recorder on threads: a source and a writer for each lane, supervised. Nothing here decides anything about
//! frames; that is in the workloads, which tests run on a virtual clock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use nilometer_model::{Bytes, Nanos, Series, plan::EngineKind};
use nilometer_storage::{
    Arena, Clock, Drive, Engine, EngineError, Errno, Target,
    engine::{Null, Options},
    process::{self, Usage},
};

use crate::{
    Books, Delivery, Ring, Source, Writer, WriterTotals,
    instrument::Content,
    sink::{Gauge, RawFiles, RawLayout},
};

/// A recording to be made from a simulated instrument.
#[derive(Debug)]
pub struct Setup {
    /// Where frames go: a lane each.
    pub lanes: Vec<(Arc<dyn Target>, RawLayout)>,
    /// How the lanes' operations are issued.
    pub engine: Options,
    /// Slots of the ring.
    pub slots: usize,
    /// What comes.
    pub delivery: Delivery,
    /// How much of each lane's storage is left free. If none, a lane writes until there is no space.
    pub reserve: Option<Bytes>,
    /// What is in the frames.
    pub content: Content,
    /// Set from elsewhere to end the recording in order.
    pub stop: Arc<AtomicBool>,
    /// How long a lane may be silent after the last frame.
    pub hang_after: Nanos,
}

/// Slots for open files that a lane needs: the directory, the journal and three files, see [`RawFiles`].
const FILE_SLOTS: u32 = 8;
/// Writes in flight a lane, where writes go past the cache.
const DEPTH: u32 = 4;

/// How a lane's operations are best issued. Past the cache several writes in flight keep the device busy; through it each
/// is a copy, one at a time in a lane.
pub fn suited_engine(target: &dyn Target, direct: bool, clock: Clock) -> Result<Options, EngineError> {
    let sync = Options { kind: EngineKind::Sync, depth: 1, slots: FILE_SLOTS, clock };
    let options = Options { kind: EngineKind::IoUring, depth: DEPTH, ..sync };
    if !direct {
        return Ok(sync);
    }
    match target.engine(&options) {
        Ok(_) => Ok(options),
        Err(EngineError::NotPermitted { .. }) => Ok(sync),
        Err(error) => Err(error),
    }
}

/// What a recording came to.
#[derive(Debug)]
pub struct Outcome {
    /// Slots, loss.
    pub books: Books,
    /// Frames that were due.
    pub due: u64,
    /// A frame found no free slot, and the recording was to end then.
    pub stopped: bool,
    /// When the first frame was due, on the clock of the setup.
    pub begun: Nanos,
    /// From the first frame until the last lane was done.
    pub wall: Nanos,
    /// By lane; none for one that hung or did not start.
    pub lanes: Vec<Option<Lane>>,
    /// Processor time of this process while it recorded, the simulated instrument apart.
    pub usage: Usage,
    /// Processor time of the simulated instrument.
    pub source: Usage,
    /// How long the recorder's threads waited for a processor.
    pub run_delay: Nanos,
    /// Why lanes or the source have no result.
    pub faults: Vec<String>,
    /// Somebody did not report in time.
    pub hung: bool,
}

/// What a lane did.
#[derive(Debug)]
pub struct Lane {
    /// Frames.
    pub totals: WriterTotals,
    /// Bytes of frames over time.
    pub series: Series,
    /// How long it waited for a processor.
    pub run_delay: Nanos,
    /// When it was done.
    pub ended: Nanos,
}

/// How a lane ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With the recording.
    InOrder,
    /// Before, in order, because its storage was full up to the reserve.
    Full,
    /// Before, because its storage failed.
    Failed(Errno),
    /// It did not report in time.
    Hung,
}

impl Outcome {
    /// How each lane ended, and when.
    pub fn endings(&self) -> impl Iterator<Item = (Ending, Option<Nanos>)> {
        self.lanes.iter().map(|lane| {
            let Some(Lane { totals, ended, .. }) = lane else { return (Ending::Hung, None) };
            let ending = match *totals {
                WriterTotals { fault: Some(errno), .. } => Ending::Failed(errno),
                WriterTotals { full: true, .. } => Ending::Full,
                _ => Ending::InOrder,
            };
            (ending, Some(ended.since(self.begun)))
        })
    }

    /// Frames that are acknowledged.
    pub fn stored(&self) -> u64 {
        self.lanes.iter().flatten().map(|lane| lane.totals.stored).sum()
    }

    /// Frames that a lane held when it hung: nobody knows.
    pub fn unknown(&self) -> u64 {
        self.due.saturating_sub(self.stored() + self.books.lost())
    }
}

/// A recording that could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A lane could not be set up.
    #[error("lane {lane}: {why}")]
    Lane {
        /// Which.
        lane: usize,
        /// What went wrong.
        why: String,
    },
    /// A thread could not be started.
    #[error("can't start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

enum Report {
    Ready,
    Refused(usize, String),
    Lane(usize, Box<Lane>),
    Source(SourceTotals),
}

/// What the simulated instrument did.
#[derive(Debug, Clone, Copy, Default)]
struct SourceTotals {
    frames: u64,
    stopped: bool,
    begun: Nanos,
    usage: Usage,
    run_delay: Nanos,
}

/// Records until the delivery is over or it is stopped.
pub fn record(setup: Setup) -> Result<Outcome, RecordError> {
    let Setup { lanes, engine, delivery, content, stop, hang_after, .. } = setup;
    let (count, clock) = (lanes.len(), engine.clock);
    let slot_size = lanes.iter().map(|(_, layout)| layout.head.stride as usize).max().unwrap_or(1);
    let (arena, mut slots) = Arena::shared_out(setup.slots, slot_size);
    for slot in &mut slots {
        content.prepare_slot(slot);
    }
    let ring = Ring::new(slots, count);
    let (sender, reports) = sync_channel(2 * count + 2);
    for (seat, (target, layout)) in lanes.into_iter().enumerate() {
        let (ring, arena, reserve) = (ring.clone(), arena.clone(), setup.reserve);
        let job = LaneJob { ring, seat, target, layout, reserve, options: engine, arena };
        let sender = sender.clone();
        thread::Builder::new().name(format!("lane {seat}")).spawn(move || run_lane(job, &sender))?;
    }
    all_ready(&reports, count, hang_after)?;
    let job = SourceJob { ring: ring.clone(), delivery, stop: stop.clone(), content, clock };
    let before = Usage::of_process();
    thread::Builder::new().name("source".into()).spawn(move || run_source(job, &sender))?;
    let patience = Patience { clock, over: clock.now() + delivery.duration, stop, hang_after };
    let results = await_all(&reports, count, patience);
    Ok(outcome(&ring, results, before))
}

fn all_ready(reports: &Receiver<Report>, lanes: usize, limit: Nanos) -> Result<(), RecordError> {
    for lane in 0..lanes {
        match reports.recv_timeout(limit.duration()) {
            Ok(Report::Refused(lane, why)) => return Err(RecordError::Lane { lane, why }),
            Err(_) => return Err(RecordError::Lane { lane, why: "hung while it was set up".into() }),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// How long results are waited for.
struct Patience {
    clock: Clock,
    /// When the last frame is due at the latest.
    over: Nanos,
    stop: Arc<AtomicBool>,
    hang_after: Nanos,
}

impl Patience {
    /// When it ends: after the last frame, or after what was heard last if that is later.
    fn end(&mut self, heard: Nanos) -> Nanos {
        let now = self.clock.now();
        if self.stop.load(Ordering::Relaxed) {
            self.over = self.over.min(now);
        }
        self.over.max(heard) + self.hang_after
    }
}

/// What came of the source and the lanes.
struct Results {
    source: SourceTotals,
    lanes: Vec<Option<Lane>>,
    hung: bool,
}

/// How often it is looked whether the recording was stopped.
const LOOK: Nanos = Nanos::from_millis(50);

/// Waits for the source and all lanes, but not for ever.
fn await_all(reports: &Receiver<Report>, count: usize, mut patience: Patience) -> Results {
    let mut results =
        Results { source: SourceTotals::default(), lanes: (0..count).map(|_| None).collect(), hung: false };
    let (mut open, mut heard) = (count + 1, Nanos(0));
    while open > 0 {
        match reports.recv_timeout(LOOK.duration()) {
            Ok(Report::Lane(lane, result)) => results.lanes[lane] = Some(*result),
            Ok(Report::Source(totals)) => {
                results.source = totals;
                patience.over = patience.clock.now();
            }
            Ok(Report::Ready | Report::Refused(..)) => continue,
            Err(_) if patience.clock.now() < patience.end(heard) => continue,
            Err(_) => {
                results.hung = true;
                return results;
            }
        }
        (open, heard) = (open - 1, patience.clock.now());
    }
    results
}

fn outcome(ring: &Ring, results: Results, before: Usage) -> Outcome {
    let Results { source, lanes, hung } = results;
    let mut faults = Vec::new();
    for (lane, result) in lanes.iter().enumerate() {
        if let Some(errno) = result.as_ref().and_then(|result| result.totals.fault) {
            faults.push(format!("lane {lane}: {errno}"));
        }
    }
    let present = || lanes.iter().flatten();
    Outcome {
        books: ring.books(),
        due: source.frames,
        stopped: source.stopped,
        begun: source.begun,
        wall: present().map(|lane| lane.ended).max().unwrap_or(source.begun).since(source.begun),
        usage: Usage::of_process().since(before).since(source.usage),
        source: source.usage,
        run_delay: present().map(|lane| lane.run_delay).fold(source.run_delay, |all, one| all + one),
        lanes,
        faults,
        hung,
    }
}

struct LaneJob {
    ring: Arc<Ring>,
    seat: usize,
    target: Arc<dyn Target>,
    layout: RawLayout,
    reserve: Option<Bytes>,
    options: Options,
    arena: Arc<Arena>,
}

fn run_lane(job: LaneJob, reports: &SyncSender<Report>) {
    let seat = job.seat;
    let report = match lane_engine(&job) {
        Ok(engine) => {
            drop(reports.send(Report::Ready));
            Report::Lane(seat, Box::new(drive_lane(job, engine)))
        }
        Err(why) => Report::Refused(seat, why),
    };
    // A report that nobody waits for any more is dropped.
    drop(reports.send(report));
}

fn lane_engine(job: &LaneJob) -> Result<Box<dyn Engine>, String> {
    let mut engine = job.target.engine(&job.options).map_err(|error| error.to_string())?;
    // Without the right to lock memory it is only slower.
    engine.register(&job.arena).ok();
    job.ring.seat_writer(job.seat, engine.waker());
    Ok(engine)
}

fn drive_lane(job: LaneJob, mut engine: Box<dyn Engine>) -> Lane {
    let LaneJob { ring, seat, target, layout, reserve, options, .. } = job;
    let stride = layout.head.stride;
    let gauge = Gauge::with_reserve(reserve.map_or(0, |reserve| reserve.0));
    // Where the storage can't say, there is room until a write fails.
    let read = |gauge: &Gauge| {
        if let (Some(_), Ok(space)) = (reserve, target.space()) {
            gauge.read(space.free.0);
        }
    };
    read(&gauge);
    let mut writer = Writer::new(ring, seat, RawFiles::new(layout, gauge.clone()));
    let mut series = Series::new(options.clock.now());
    let before = process::run_delay();
    Drive::new(&mut writer, engine.as_mut()).run(|completion| {
        if RawFiles::writes_frame(&completion.operation) && completion.result.is_ok() {
            series.add(completion.finished, stride);
        }
        if Gauge::is_due(completion.operation.kind) {
            read(&gauge);
        }
    });
    let run_delay = process::run_delay().since(before);
    Lane { totals: writer.totals().clone(), series, run_delay, ended: options.clock.now() }
}

struct SourceJob {
    ring: Arc<Ring>,
    delivery: Delivery,
    stop: Arc<AtomicBool>,
    content: Content,
    clock: Clock,
}

fn run_source(job: SourceJob, reports: &SyncSender<Report>) {
    let SourceJob { ring, delivery, stop, content, clock } = job;
    let mut engine = Null::new(1, clock);
    ring.seat_source(engine.waker());
    let fill = Box::new(move |number, slot: &mut [u8]| content.fill(number, slot));
    let mut source = Source::new(ring, delivery, stop, fill);
    let begun = clock.now();
    Drive::new(&mut source, &mut engine).run(|_| {});
    let (frames, stopped) = (source.due(), source.has_stopped());
    // The thread has done nothing else.
    let (usage, run_delay) = (Usage::of_thread(), process::run_delay());
    drop(reports.send(Report::Source(SourceTotals { frames, stopped, begun, usage, run_delay })));
}
