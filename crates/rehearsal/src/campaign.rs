//! A campaign in virtual time: the recorder itself, on storage with known properties.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nilometer_acquisition::{
    Lane, Outcome, Writer,
    sink::{Gauge, LaneFiles, RawLayout},
};
use nilometer_campaign::{Pass, sample_of};
use nilometer_model::{
    Bytes, FileNames, Format, Goal, Histogram, Instrument, Nanos, Phase, ReaderTotals, Storing,
    sustained::step,
};
use nilometer_plan::{Cell, Key, Measured, RecordingRun, Results};
use nilometer_recording::journal::Head;
use nilometer_ring::{Chronicle, Delivery, Pace, Ring, Source};
use nilometer_storage::{
    Arena, Drive, Engine,
    clock::VirtualClock,
    interleave,
    process::Usage,
    testing::{Device, Simulated},
};

use crate::storage_case::{FRAME_SIZE, StorageCase};

/// The duration of a recording, as in `evaluate`.
const DURATION: Nanos = Nanos::from_millis(40_000);
/// Passes at full speed, as in `evaluate`.
const PASSES: u32 = 3;
/// Seconds from a recording to the next.
const BETWEEN: f64 = 3.0;
/// The time between two checks if a pass may end.
const LOOK: Nanos = Nanos::from_millis(500);
/// Writes in flight, as the recorder has them past the cache.
const DEPTH: usize = 4;
const FRAMES_PER_FILE: u64 = 24;

/// A campaign in virtual time.
struct VirtualCampaign<'a> {
    case: &'a StorageCase,
    /// Seconds since it began.
    at: f64,
    /// The cache that the passes found so far; `None` before the first.
    cache: Option<Bytes>,
    samples: Vec<Measured>,
}

/// Records as `evaluate --for` does: at the instrument's rate, then in passes at full speed, with and without a
/// reader in the same rounds.
pub fn results(case: &StorageCase) -> Results {
    let mut running = VirtualCampaign { case, at: 0.0, cache: None, samples: Vec::new() };
    let with_readers = case.readers_cost > 0.0;
    running.record(Goal::Pace, 0, false);
    if with_readers {
        running.record(Goal::Pace, 0, true);
    }
    for round in 0..PASSES {
        for turn in 0..=u32::from(with_readers) {
            // In turn, so that drift hits both alike.
            running.record(Goal::Limit, round, (turn + round) % 2 == 1 && with_readers);
        }
    }
    let goals = [Goal::Pace, Goal::Limit, Goal::Pace, Goal::Limit];
    let cells = goals.map(|goal| Cell::recording("camera", cell(case, goal))).into();
    Results { samples: running.samples, cells, ..Results::default() }
}

impl VirtualCampaign<'_> {
    fn record(&mut self, goal: Goal, repeat: u32, read: bool) {
        let pass = self.cache.map_or(Pass::Whole, Pass::after);
        let device = self.case.device(self.at, read);
        let outcome = recorded(self.case, &cell(self.case, goal), &layout(), device, pass);
        self.at += outcome.wall.seconds() + BETWEEN;
        let reader = ReaderTotals { frames: 1, bytes: FRAME_SIZE, wall: Nanos(1), ..ReaderTotals::default() };
        let readers = if read { vec![reader] } else { Vec::new() };
        let sample = sample_of(&cell(self.case, goal), outcome, readers);
        if goal == Goal::Limit && !read {
            let found = step(&sample.series).map_or(Bytes(0), |step| step.volume);
            self.cache = Some(self.cache.unwrap_or(Bytes(0)).max(found));
        }
        let cell = usize::from(goal == Goal::Limit) + 2 * usize::from(read);
        self.samples.push(Measured { key: Key { target: 0, cell, repeat, phase: Phase::Ingest }, sample });
    }
}

/// The recording of the case's instrument.
pub fn cell(case: &StorageCase, goal: Goal) -> RecordingRun {
    let text = format!(
        "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [256, 256]\npixel = \"uint8\"\nframe_rate = \"{} Hz\"\n",
        case.frame_rate
    );
    RecordingRun {
        goal,
        duration: DURATION,
        buffer: Bytes(case.slots * FRAME_SIZE),
        keep: Bytes(1 << 40),
        ..RecordingRun::new(Instrument::parse(&text, "camera").expect("a valid instrument"))
    }
}

/// Records on a device to the end, or until the pass may end.
pub fn recorded(
    case: &StorageCase,
    run: &RecordingRun,
    layout: &RawLayout,
    device: Device,
    pass: Pass,
) -> Outcome {
    let clock = VirtualClock::default();
    let target = Simulated::new(device, clock.clone());
    let RecordingRun { instrument, goal, .. } = run;
    let (_, slots) = Arena::shared_out(case.slots as usize, FRAME_SIZE as usize);
    let ring = Ring::new(slots, 1, Chronicle::new(FRAME_SIZE, instrument.allowance()));
    let mut engine = target.attach(DEPTH, 8);
    let mut idle = Simulated::new(Device::default(), clock.clone()).attach(1, 1);
    ring.seat_writer(0, engine.waker());
    ring.seat_source(idle.waker());
    let mut writer = Writer::new(ring.clone(), 0, LaneFiles::new(layout.clone(), Gauge::with_reserve(0)));
    let stop = Arc::new(AtomicBool::new(false));
    let mut source = source(&ring, run, &stop);
    let mut looked = Nanos(0);
    {
        let mut drives = [Drive::new(&mut source, &mut idle), Drive::new(&mut writer, &mut engine)];
        interleave(&clock, &mut drives, Nanos::MAX, &mut |_, completion| {
            let now = completion.finished;
            if *goal == Goal::Limit && now.since(looked) >= LOOK {
                looked = now;
                stop.fetch_or(pass.may_end(now, &ring.chronicle().work), Ordering::Relaxed);
            }
        });
    }
    outcome(case, &clock, &ring, source.due(), writer.totals().clone())
}

/// A layout of files past the cache, without syncs.
pub fn layout() -> RawLayout {
    let head = Head {
        recording: 1,
        lane: 0,
        lanes: 1,
        frame_size: FRAME_SIZE,
        stride: FRAME_SIZE,
        frames_per_file: FRAMES_PER_FILE,
        storing: Storing::Files,
        format: Format::Raw,
        names: FileNames::default(),
    };
    RawLayout { keep: Some(4), ..RawLayout::suited("n_0".into(), head, true) }
}

fn source(ring: &Arc<Ring>, run: &RecordingRun, stop: &Arc<AtomicBool>) -> Source {
    let pace = if run.goal == Goal::Limit { Pace::AsTaken } else { Pace::Due(run.instrument.schedule()) };
    Source::new(ring.clone(), Delivery::lasting(pace, run.duration), stop.clone(), Box::new(|_, _| {}))
}

fn outcome(
    case: &StorageCase,
    clock: &VirtualClock,
    ring: &Arc<Ring>,
    due: u64,
    totals: nilometer_acquisition::WriterTotals,
) -> Outcome {
    let now = clock.now();
    let frames = totals.stored;
    #[expect(clippy::cast_sign_loss, reason = "no size is below zero")]
    let written = (frames as f64 * FRAME_SIZE as f64 / case.compression.unwrap_or(1.0)) as u64;
    // The compressor is busy unless it waits for frames.
    let busy =
        if case.compression.is_some() { frames as f64 * FRAME_SIZE as f64 / case.truth().0 } else { 0.0 };
    let usage = Usage { user: Nanos::from_seconds(busy), ..Usage::default() };
    let lane = Lane { totals, written, usage, run_delay: Nanos(0), ended: now };
    Outcome {
        reader: None,
        fed: true,
        traffic: None,
        series: None,
        books: ring.books(),
        chronicle: ring.chronicle(),
        due,
        stopped: false,
        begun: Nanos(0),
        wall: now,
        lanes: vec![Some(lane)],
        usage,
        source: Usage::default(),
        lateness: Histogram::default(),
        run_delay: Nanos(0),
        faults: Vec::new(),
        hung: false,
    }
}
