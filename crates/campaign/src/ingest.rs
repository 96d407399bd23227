//! The ingest phase: the shipped recorder with a simulated instrument in front of it. What is measured is what will
//! run.

use std::sync::{Arc, atomic::AtomicBool};

use nilometer_acquisition::{
    Delivery, Outcome, Pace, Setup,
    journal::{Head, Origin},
    record,
    sink::{RawLayout, frames_per_file},
    suited_engine,
};
use nilometer_model::{Bytes, Ingest, Invalid, Nanos, Sample, Seed, plan::IngestCell};
use nilometer_storage::{Target, buffer::ALIGNMENT, process};

use crate::phase::{Run, settle, traffic_since};

/// Records the cell's instrument onto the target. What goes wrong is in the sample.
pub(crate) fn run_ingest(
    run: &Run,
    target: &Arc<dyn Target>,
    cell: &IngestCell,
    seed: Seed,
    stop: &Arc<AtomicBool>,
) -> Sample {
    let settling = settle(&run.clock);
    let (load, busy, traffic) = (process::load_average(), process::machine_busy(), target.traffic());
    let setup = setup(run, target, cell, seed, stop);
    let mut sample = match setup.and_then(|setup| record(setup).map_err(|error| error.to_string())) {
        Ok(outcome) => sample(outcome, cell),
        Err(why) => Sample::invalid(Invalid::Refused(why)),
    };
    sample.settling = settling;
    sample.load = load;
    sample.device = traffic_since(traffic, target.as_ref());
    sample.machine = run.machine_since(busy, sample.wall);
    sample
}

fn setup(
    run: &Run,
    target: &Arc<dyn Target>,
    cell: &IngestCell,
    seed: Seed,
    stop: &Arc<AtomicBool>,
) -> Result<Setup, String> {
    let direct = target.description().direct_alignment().is_some();
    let shape = Shape::of(cell, direct);
    let lane = |lane| {
        let head = Head {
            recording: seed.0,
            lane,
            lanes: shape.lanes,
            frame_size: cell.instrument.frame_size().0,
            stride: shape.stride,
            frames_per_file: shape.frames_per_file,
            origin: Origin::Pattern,
        };
        let suited = RawLayout::suited("n_ingest".into(), head, direct);
        (target.clone(), RawLayout { keep: Some(shape.keep), ..suited })
    };
    let pace = if cell.paced { Pace::Due(cell.instrument.schedule()) } else { Pace::AsTaken };
    Ok(Setup {
        lanes: (0..shape.lanes).map(lane).collect(),
        engine: suited_engine(target.as_ref(), direct, run.clock).map_err(|error| error.to_string())?,
        frame_size: cell.instrument.frame_size().0 as usize,
        slots: shape.slots,
        delivery: Delivery::lasting(pace, cell.duration),
        reserve: None,
        content: seed.named("content"),
        stop: stop.clone(),
        hang_after: run.hang_after,
    })
}

/// How an instrument's frames lie in memory and in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    stride: u64,
    frames_per_file: u64,
    slots: usize,
    /// Full files that stay in a lane.
    keep: u64,
    lanes: u32,
}

/// Through the cache a write is a copy by one processor, and the writes of one file exclude each other: two lanes copy
/// at the same time.
const BUFFERED_LANES: u32 = 2;

impl Shape {
    pub(crate) fn of(cell: &IngestCell, direct: bool) -> Self {
        let frame = cell.instrument.frame_size().0;
        let stride = if direct { frame.next_multiple_of(ALIGNMENT as u64) } else { frame };
        let frames_per_file = frames_per_file(&cell.instrument, stride);
        let lanes = if direct { 1 } else { BUFFERED_LANES };
        let keep = (cell.keep.0 / (frames_per_file * stride * u64::from(lanes))).max(1);
        Shape { stride, frames_per_file, slots: (cell.buffer.0 / stride).max(2) as usize, keep, lanes }
    }

    /// The most that lies on the target at once: what is kept, and three open files a lane.
    pub(crate) fn footprint(&self) -> Bytes {
        Bytes(u64::from(self.lanes) * (self.keep + 3) * self.frames_per_file * self.stride)
    }

    /// Files that lie there at once, the journals included.
    pub(crate) fn files(&self) -> u64 {
        u64::from(self.lanes) * (self.keep + 4)
    }

    /// The ring.
    pub(crate) fn memory(&self) -> Bytes {
        Bytes(self.slots as u64 * self.stride.next_multiple_of(ALIGNMENT as u64))
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
        ..Ingest::default()
    };
    let mut sample = Sample {
        wall: outcome.wall,
        filling: outcome.source.total(),
        user: outcome.usage.user,
        system: outcome.usage.system,
        run_delay: outcome.run_delay,
        ..Sample::new(Nanos(0))
    };
    for lane in outcome.lanes.into_iter().flatten() {
        ingest.stored += lane.totals.stored;
        ingest.longest_stall = ingest.longest_stall.max(lane.totals.longest);
        sample.latency.merge(&lane.totals.lateness);
        sample.series.merge(lane.series);
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
