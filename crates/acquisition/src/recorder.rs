//! The recorder on threads: a source and a writer for each lane, supervised. Nothing here decides anything about
//! frames; that is in the workloads, which tests run on a virtual clock.

use std::{
    sync::{
        Arc,
        atomic::AtomicBool,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use nilometer_model::{Nanos, Seed, Series};
use nilometer_storage::{
    Arena, Clock, Drive, Engine, OpKind, Target,
    engine::{Null, Options},
    process::{self, Usage},
};

use crate::{
    Pace, Ring, Source, Writer, WriterTotals,
    instrument::Pattern,
    ring::Books,
    sink::{RawFiles, RawLayout},
};

/// A recording to be made from a simulated instrument.
#[derive(Debug)]
pub struct Setup {
    /// Where frames go: a lane each.
    pub lanes: Vec<(Arc<dyn Target>, RawLayout)>,
    /// How the lanes' operations are issued.
    pub engine: Options,
    /// Bytes of a frame.
    pub frame_size: usize,
    /// Slots of the ring.
    pub slots: usize,
    /// When frames come.
    pub pace: Pace,
    /// How long they come.
    pub duration: Nanos,
    /// Of the frames' content.
    pub content: Seed,
    /// Set from elsewhere to end the recording in order.
    pub stop: Arc<AtomicBool>,
    /// How long a lane may be silent after the last frame.
    pub hang_after: Nanos,
}

/// What a recording came to.
#[derive(Debug)]
pub struct Outcome {
    /// Slots, loss.
    pub books: Books,
    /// Frames that were due.
    pub due: u64,
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
    begun: Nanos,
    usage: Usage,
    run_delay: Nanos,
}

/// Records until the duration is over or it is stopped.
pub fn record(setup: Setup) -> Result<Outcome, RecordError> {
    let lanes = setup.lanes.len();
    let pattern = Pattern::new(setup.content, setup.frame_size);
    let slot_size = setup.lanes.iter().map(|(_, layout)| layout.head.stride as usize).max().unwrap_or(1);
    let (arena, mut slots) = Arena::shared_out(setup.slots, slot_size);
    for slot in &mut slots {
        pattern.prepare(slot);
    }
    let ring = Ring::new(slots, lanes);
    let (sender, reports) = sync_channel(2 * lanes + 2);
    for (seat, (target, layout)) in setup.lanes.into_iter().enumerate() {
        let job =
            LaneJob { ring: ring.clone(), seat, target, layout, options: setup.engine, arena: arena.clone() };
        let sender = sender.clone();
        thread::Builder::new().name(format!("lane {seat}")).spawn(move || run_lane(job, &sender))?;
    }
    all_ready(&reports, lanes, setup.hang_after)?;
    let job = SourceJob {
        ring: ring.clone(),
        pace: setup.pace,
        duration: setup.duration,
        stop: setup.stop,
        pattern,
        clock: setup.engine.clock,
    };
    let before = Usage::of_process();
    thread::Builder::new().name("source".into()).spawn(move || run_source(job, &sender))?;
    Ok(collect(&ring, &reports, lanes, setup.duration + setup.hang_after, before))
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

/// Waits for the source and all lanes, each no longer than the limit.
fn collect(ring: &Ring, reports: &Receiver<Report>, count: usize, limit: Nanos, before: Usage) -> Outcome {
    let mut lanes: Vec<Option<Lane>> = (0..count).map(|_| None).collect();
    let (mut source, mut faults, mut hung) = (SourceTotals::default(), Vec::new(), false);
    for _ in 0..=count {
        match reports.recv_timeout(limit.duration()) {
            Ok(Report::Lane(lane, result)) => lanes[lane] = Some(*result),
            Ok(Report::Source(totals)) => source = totals,
            Ok(Report::Refused(lane, why)) => faults.push(format!("lane {lane}: {why}")),
            Ok(Report::Ready) => {}
            Err(_) => hung = true,
        }
    }
    for (lane, result) in lanes.iter().enumerate() {
        if let Some(errno) = result.as_ref().and_then(|result| result.totals.fault) {
            faults.push(format!("lane {lane}: {errno}"));
        }
    }
    let present = || lanes.iter().flatten();
    Outcome {
        books: ring.books(),
        due: source.frames,
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
    let LaneJob { ring, seat, layout, options, .. } = job;
    let stride = layout.head.stride;
    let mut writer = Writer::new(ring, seat, RawFiles::new(layout));
    let mut series = Series::new(options.clock.now());
    let before = process::run_delay();
    Drive::new(&mut writer, engine.as_mut()).run(|completion| {
        let operation = &completion.operation;
        let is_frame = operation.kind == OpKind::Write && u64::from(operation.length) == stride;
        if is_frame && completion.result.is_ok() {
            series.add(completion.finished, stride);
        }
    });
    let run_delay = process::run_delay().since(before);
    Lane { totals: writer.totals().clone(), series, run_delay, ended: options.clock.now() }
}

struct SourceJob {
    ring: Arc<Ring>,
    pace: Pace,
    duration: Nanos,
    stop: Arc<AtomicBool>,
    pattern: Pattern,
    clock: Clock,
}

fn run_source(job: SourceJob, reports: &SyncSender<Report>) {
    let SourceJob { ring, pace, duration, stop, pattern, clock } = job;
    let mut engine = Null::new(1, clock);
    ring.seat_source(engine.waker());
    let fill = Box::new(move |number, slot: &mut [u8]| pattern.stamp(number, slot));
    let mut source = Source::new(ring, pace, duration, stop, fill);
    let begun = clock.now();
    Drive::new(&mut source, &mut engine).run(|_| {});
    // The thread has done nothing else.
    let (usage, run_delay) = (Usage::of_thread(), process::run_delay());
    drop(reports.send(Report::Source(SourceTotals { frames: source.due(), begun, usage, run_delay })));
}
