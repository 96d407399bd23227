//! The ingest phase: the shipped recorder with a simulated instrument in front of it. What is measured is what will
//! run.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nilometer_acquisition::{
    Chronicle, Delivery, Outcome, Pace, Recorder, Setup,
    instrument::Content,
    journal::Head,
    sink::{RawLayout, frames_per_file, is_aligned},
    suited_engine,
};
use nilometer_model::{Bytes, Ingest, Instrument, Invalid, Nanos, Sample, Seed, Storing, plan::IngestCell};
use nilometer_storage::{Calendar, Target, buffer::ALIGNMENT, process};

use crate::{
    phase::{Run, traffic_since},
    settle::settle,
    supervise::{GLANCE, SoFar},
    surroundings::Surroundings,
};

/// Records the cell's instrument onto the target, which has this number in the plan. What goes wrong is in the sample.
/// None if the campaign ended before the recording did.
pub(crate) fn run_ingest(
    run: &Run,
    surroundings: &mut Surroundings,
    (number, target): (usize, &Arc<dyn Target>),
    (cell, seed): (&IngestCell, Seed),
    tell: &mut dyn FnMut(SoFar),
) -> Option<Sample> {
    let settling = settle(run);
    let stop = Arc::new(AtomicBool::new(run.is_over()));
    let (load, traffic) = (process::load_average(), target.traffic());
    let setup = setup(run, target, cell, seed, &stop);
    let ((moment, before), started) = (surroundings.begin(&run.clock), Calendar::now().time);
    let mut sample = match setup.and_then(|setup| recorded(run, setup, tell)) {
        Ok(outcome) => sample(outcome, cell),
        Err(why) => Sample::invalid(Invalid::Refused(why)),
    };
    let spent = surroundings.end(&run.clock, &moment);
    spent.put(&mut sample, number, 1, surroundings.idle_cores());
    (sample.settling, sample.load, sample.started, sample.before) = (settling, load, started, before);
    sample.device = traffic_since(traffic, target.as_ref());
    let hung = sample.invalid == Some(Invalid::Hung);
    (hung || !stop.load(Ordering::Relaxed)).then_some(sample)
}

/// Records, and looks up from time to time.
fn recorded(run: &Run, setup: Setup, tell: &mut dyn FnMut(SoFar)) -> Result<Outcome, String> {
    let begun = run.clock.now();
    let mut recorder = Recorder::start(setup).map_err(|error| error.to_string())?;
    loop {
        if let Some(outcome) = recorder.wait(GLANCE) {
            return Ok(outcome);
        }
        if run.is_over() {
            recorder.stop();
        }
        let work = recorder.ring().chronicle().work;
        let (operations, bytes) = work
            .bins()
            .iter()
            .fold((0, 0), |(operations, bytes), bin| (operations + bin.operations, bytes + bin.bytes));
        tell(SoFar { elapsed: run.clock.now().since(begun), bytes, operations });
    }
}

fn setup(
    run: &Run,
    target: &Arc<dyn Target>,
    cell: &IngestCell,
    seed: Seed,
    stop: &Arc<AtomicBool>,
) -> Result<Setup, String> {
    let direct = target.description().direct_alignment().is_some() && is_aligned(&cell.instrument);
    let shape = Shape::of(cell, direct);
    let Instrument { data, shape: pixels, pixel, .. } = &cell.instrument;
    let content = Content::prepare(data, pixels, *pixel, seed.named("content"));
    let content = content.map_err(|error| format!("data: {error}"))?;
    let lane = |lane| {
        let head = Head {
            recording: seed.0,
            lane,
            lanes: shape.lanes,
            frame_size: cell.instrument.frame_size().0,
            stride: shape.stride,
            frames_per_file: shape.frames_per_file,
            storing: cell.instrument.storing,
            format: cell.instrument.format,
        };
        let suited = RawLayout::suited("n_ingest".into(), head, direct);
        let (origin, picture) = (content.origin(), cell.instrument.picture());
        (target.clone(), RawLayout { keep: shape.keep, origin, picture, ..suited })
    };
    let pace = if cell.paced { Pace::Due(cell.instrument.schedule()) } else { Pace::AsTaken };
    Ok(Setup {
        lanes: (0..shape.lanes).map(lane).collect(),
        engine: suited_engine(target.as_ref(), direct, run.clock).map_err(|error| error.to_string())?,
        slots: shape.slots,
        delivery: Delivery { frames: shape.frames, ..Delivery::lasting(pace, cell.duration) },
        reserve: None,
        content,
        stop: stop.clone(),
        allowance: cell.instrument.allowance(),
        hang_after: run.hang_after,
    })
}

/// How an instrument's frames lie in memory and in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    stride: u64,
    frames_per_file: u64,
    slots: usize,
    /// Full files that stay in a lane, where old ones can be removed.
    keep: Option<u64>,
    /// Frames at the most, where nothing can be removed.
    frames: u64,
    lanes: u32,
}

/// Through the cache a write is a copy by one processor, and the writes of one file exclude each other: two lanes copy
/// at the same time.
const BUFFERED_LANES: u32 = 2;

impl Shape {
    /// `direct` says whether the target has `O_DIRECT`.
    pub(crate) fn of(cell: &IngestCell, direct: bool) -> Self {
        let direct = direct && is_aligned(&cell.instrument);
        let frame = cell.instrument.frame_size().0;
        let stride = if direct { frame.next_multiple_of(ALIGNMENT as u64) } else { frame };
        let frames_per_file = frames_per_file(&cell.instrument, stride);
        let lanes = if direct { 1 } else { BUFFERED_LANES };
        let slots = (cell.buffer.0 / stride).max(2) as usize;
        let (keep, frames) = if cell.instrument.storing == Storing::Files {
            (Some((cell.keep.0 / (frames_per_file * stride * u64::from(lanes))).max(1)), u64::MAX)
        } else {
            (None, frames_in_one_file(cell, stride))
        };
        Shape { stride, frames_per_file, slots, keep, frames, lanes }
    }

    /// The most that lies on the target at once: what is kept and three open files a lane, or all frames.
    pub(crate) fn footprint(&self) -> Bytes {
        let frames = match self.keep {
            Some(keep) => u64::from(self.lanes) * (keep + 3) * self.frames_per_file,
            None => self.frames,
        };
        Bytes(frames * self.stride)
    }

    /// Files that lie there at once, the journals included.
    pub(crate) fn files(&self) -> u64 {
        u64::from(self.lanes) * self.keep.map_or(2, |keep| keep + 4)
    }

    /// The ring.
    pub(crate) fn memory(&self) -> Bytes {
        Bytes(self.slots as u64 * self.stride.next_multiple_of(ALIGNMENT as u64))
    }
}

/// Frames of an instrument that puts all into one file: at its pace what comes in its time, else as much as is kept.
fn frames_in_one_file(cell: &IngestCell, stride: u64) -> u64 {
    if cell.paced {
        return cell.duration.0.div_ceil(cell.instrument.period().0) + cell.instrument.streams;
    }
    (cell.keep.0 / stride).max(1)
}

/// What the ring lived through.
fn told(chronicle: Chronicle) -> Ingest {
    Ingest {
        allowance: chronicle.allowance,
        late: chronicle.late,
        stalls: chronicle.stalls,
        stall_count: chronicle.stalled.0,
        stalled: chronicle.stalled.1,
        slowest_second: chronicle.slowest.map(Bytes),
        readable: chronicle.readable,
        levels: chronicle.levels,
        ..Ingest::default()
    }
}

fn sample(outcome: Outcome, cell: &IngestCell) -> Sample {
    let frame_size = cell.instrument.frame_size();
    let mut ingest = Ingest {
        instrument: cell.instrument.name.clone(),
        paced: cell.paced,
        frame_size,
        period: cell.instrument.period(),
        duration: cell.duration,
        due: outcome.due,
        slots: outcome.books.slots as u64,
        slots_high: outcome.books.high as u64,
        lost: outcome.books.lost(),
        ..told(outcome.chronicle.clone())
    };
    let mut sample = Sample {
        wall: outcome.wall,
        filling: outcome.source.total(),
        user: outcome.usage.user,
        system: outcome.usage.system,
        switches: outcome.usage.switches,
        run_delay: outcome.run_delay,
        lateness: outcome.lateness,
        series: outcome.chronicle.work,
        ..Sample::new(Nanos(0))
    };
    for lane in outcome.lanes.into_iter().flatten() {
        ingest.stored += lane.totals.stored;
        ingest.longest_stall = ingest.longest_stall.max(lane.totals.longest);
        sample.latency.merge(&lane.totals.lateness);
        ingest.durable.merge(&lane.totals.durable);
        if let Some(errno) = lane.totals.fault {
            *sample.errors.entry(errno.0).or_default() += 1;
        }
    }
    sample.bytes = ingest.stored * frame_size.0;
    sample.operations = ingest.stored;
    sample.invalid = judge(&sample, &ingest, &outcome.faults, outcome.hung);
    sample.ingest = Some(ingest);
    sample
}

/// A loss while the recorder itself waited for a processor says nothing about the storage.
fn judge(sample: &Sample, ingest: &Ingest, faults: &[String], hung: bool) -> Option<Invalid> {
    if hung {
        return Some(Invalid::Hung);
    }
    if !faults.is_empty() {
        return Some(Invalid::Refused(faults.join("; ")));
    }
    (ingest.lost > 0 && sample.run_delay.0 > ingest.longest_stall.0 / 2).then_some(Invalid::Starved)
}
