//! A recording set up: how an instrument's frames lie in memory and in files, and what delivers them.

use std::sync::{Arc, atomic::AtomicBool};

use nilometer_acquisition::{
    Delivery, Expected, Feed, Pace, Setup, Stream,
    instrument::Content,
    journal::Head,
    sink::{LaneOptions, RawLayout, Spacing, frames_per_file, lanes_of},
    suited_engine,
};
use nilometer_model::{
    Bytes, Instrument, Invalid, Seed, Storing, TargetDescription,
    plan::{Goal, RecordingRun, Route},
};
use nilometer_storage::{Target, TargetError, engine::Options};

use super::loopback::{self, Sends};
use crate::{patience::within, phase::Run};

/// A recording that can be made.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) setup: Setup,
    /// How its lanes are laid out.
    pub(super) layouts: Vec<RawLayout>,
    /// What is then on the target.
    pub(super) expected: Expected,
    /// Who sends packets, if it is of packets.
    pub(super) sends: Option<Sends>,
}

/// What comes to a recorder.
#[derive(Debug)]
struct Source {
    feed: Feed,
    expected: Expected,
    stream: Option<Stream>,
    sends: Option<Sends>,
}

/// The recorder of a cell's instrument, or of a stream of it, `name` being the first part of its files' names.
pub(super) fn setup(
    run: &Run,
    target: &Arc<dyn Target>,
    cell: &RecordingRun,
    seed: Seed,
    name: &str,
) -> Result<Ready, Invalid> {
    let shape = Shape::of(cell, target.description());
    let (recorded, stop) = (cell.recorded(), Arc::default());
    let Source { feed, expected, stream, sends } = source(run, cell, seed, &shape, &stop)?;
    let origin = if let Expected::Frames(content) = &expected { content.origin() } else { None };
    let lane = |lane| {
        let head = Head {
            recording: seed.0,
            lane,
            lanes: shape.lanes,
            frame_size: recorded.frame_size().0,
            stride: shape.spacing.stride,
            frames_per_file: shape.frames_per_file,
            storing: recorded.storing,
            format: recorded.format,
        };
        let suited = RawLayout::suited(name.into(), head, shape.spacing.direct);
        let (origin, stream, picture) = (origin.clone(), stream.clone(), recorded.picture());
        RawLayout { keep: shape.keep, origin, stream, picture, ..suited }
    };
    let layouts: Vec<_> = (0..shape.lanes).map(lane).collect();
    let deep = layouts.iter().all(RawLayout::is_deep);
    let lanes = layouts.iter().map(|layout| (target.clone(), layout.clone())).collect();
    let setup = Setup {
        lanes: lanes_of(lanes, LaneOptions::default())
            .map_err(|error| Invalid::Refused(error.to_string()))?,
        engine: engine(run, target, deep)?,
        slots: shape.slots,
        feed,
        stop,
        allowance: recorded.allowance(),
        hang_after: run.hang_after,
    };
    Ok(Ready { setup, layouts, expected, sends })
}

/// The instrument: in this process, or at the other end of this machine's own network.
fn source(
    run: &Run,
    cell: &RecordingRun,
    seed: Seed,
    shape: &Shape,
    stop: &Arc<AtomicBool>,
) -> Result<Source, Invalid> {
    if cell.route == Route::Loopback {
        let loopback = loopback::stream(&cell.instrument, cell.duration, seed, (run.clock, stop.clone()))?;
        return Ok(Source {
            feed: Feed::Network(loopback.network),
            expected: loopback.expected,
            stream: Some(loopback.stream),
            sends: Some(loopback.sends),
        });
    }
    let Instrument { data, shape: pixels, pixel, .. } = &cell.instrument;
    let content = Content::prepare(data, pixels, *pixel, seed.named("content"));
    let content = content.map_err(|error| Invalid::Refused(format!("data: {error}")))?;
    let pace = if cell.goal == Goal::Limit { Pace::AsTaken } else { Pace::Due(cell.instrument.schedule()) };
    let delivery = Delivery { frames: shape.frames, ..Delivery::lasting(pace, cell.duration) };
    let feed = Feed::Instrument { content: content.clone(), delivery };
    Ok(Source { feed, expected: Expected::Frames(content), stream: None, sends: None })
}

/// How the lanes' operations are best issued, which the target is asked.
fn engine(run: &Run, target: &Arc<dyn Target>, deep: bool) -> Result<Options, Invalid> {
    let clock = run.clock;
    match within(run.hang_after, target, move |target| suited_engine(target, deep, clock)) {
        Ok(Ok(options)) => Ok(options),
        Ok(Err(error)) => Err(Invalid::Refused(error.to_string())),
        Err(TargetError::Hung { .. }) => Err(Invalid::Hung),
        Err(error) => Err(Invalid::Refused(error.to_string())),
    }
}

/// How an instrument's frames lie in memory and in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    spacing: Spacing,
    frames_per_file: u64,
    slots: usize,
    /// Full files that stay in a lane, where old ones can be removed.
    keep: Option<u64>,
    /// Frames at the most, where nothing can be removed.
    frames: u64,
    /// They go into chunks.
    chunked: bool,
    lanes: u32,
    /// As many recorders as streams that have one each.
    rings: u64,
}

/// Through the cache a write is a copy by one processor, and the writes of one file exclude each other: two lanes copy
/// at the same time.
const BUFFERED_LANES: u32 = 2;

impl Shape {
    /// On a target that is described so.
    pub(crate) fn of(cell: &RecordingRun, target: &TargetDescription) -> Self {
        let (recorded, rings) = (cell.recorded(), cell.rings());
        let frame = recorded.frame_size().0;
        let spacing = Spacing::suited(target, frame, recorded.storing, recorded.format);
        // There is nothing between blocks of packets.
        let spacing = if cell.route == Route::InPlace { spacing } else { spacing.unpadded(frame) };
        let stride = spacing.stride;
        let frames_per_file = frames_per_file(&recorded, stride);
        let lanes = if spacing.direct { 1 } else { BUFFERED_LANES };
        let slots = spacing.slots(Bytes(cell.buffer.0 / rings));
        let (keep, frames) = if recorded.storing == Storing::Files {
            let keep =
                cell.fill.map_or(cell.keep, |fill| fill.keep(target.space.usable(), target.space.free));
            let file = frames_per_file * stride * u64::from(lanes) * rings;
            (Some((keep.0 / file).max(1)), u64::MAX)
        } else {
            (None, frames_in_one_file(cell, &recorded, stride).div_ceil(rings))
        };
        let chunked = recorded.storing.is_chunked();
        Shape { spacing, frames_per_file, slots, keep, frames, chunked, lanes, rings }
    }

    /// The most that lies on the target at once: what is kept and three open files a lane, or all frames.
    pub(crate) fn footprint(&self) -> Bytes {
        let frames = match self.keep {
            Some(keep) => u64::from(self.lanes) * (keep + 3) * self.frames_per_file,
            None => self.frames,
        };
        Bytes(frames * self.spacing.stride * self.rings)
    }

    /// Files that lie there at once, the journals included.
    pub(crate) fn files(&self) -> u64 {
        let lanes = u64::from(self.lanes);
        // A chunk may be in two pieces, where one writer leaves it to another.
        let chunks = if self.chunked { 2 * self.frames.div_ceil(self.frames_per_file) } else { 0 };
        self.rings * (lanes * self.keep.map_or(2, |keep| keep + 4) + chunks)
    }

    /// All rings.
    pub(crate) fn memory(&self) -> Bytes {
        Bytes(self.rings * self.slots as u64 * self.spacing.slot())
    }
}

/// Frames of an instrument that puts all into one file: at its pace what comes in its time, else as much as is kept.
fn frames_in_one_file(cell: &RecordingRun, recorded: &Instrument, stride: u64) -> u64 {
    if cell.goal == Goal::Limit {
        return (cell.keep.0 / stride).max(1);
    }
    cell.duration.0.div_ceil(recorded.period().0) + recorded.streams
}
