//! A recording set up: how an instrument's frames lie in memory and in files, and what delivers them.

use std::sync::Arc;

use nilometer_acquisition::{
    Delivery, Feed, Pace, Setup,
    instrument::Content,
    journal::Head,
    sink::{RawLayout, frames_per_file, is_aligned},
    suited_engine,
};
use nilometer_model::{
    Bytes, Instrument, Invalid, Seed, Storing,
    plan::{Goal, IngestCell},
};
use nilometer_storage::{Target, TargetError, buffer::ALIGNMENT, engine::Options, target::Description};

use crate::{patience::within, phase::Run};

/// The recorder of a cell's instrument and what is in its frames, `name` being the first part of its files' names.
pub(super) fn setup(
    run: &Run,
    target: &Arc<dyn Target>,
    cell: &IngestCell,
    seed: Seed,
    name: &str,
) -> Result<(Setup, Content), Invalid> {
    let shape = Shape::of(cell, target.description());
    let Instrument { data, shape: pixels, pixel, .. } = &cell.instrument;
    let content = Content::prepare(data, pixels, *pixel, seed.named("content"));
    let content = content.map_err(|error| Invalid::Refused(format!("data: {error}")))?;
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
        let suited = RawLayout::suited(name.into(), head, shape.direct);
        let (origin, picture) = (content.origin(), cell.instrument.picture());
        (target.clone(), RawLayout { keep: shape.keep, origin, picture, ..suited })
    };
    let pace = if cell.goal == Goal::Limit { Pace::AsTaken } else { Pace::Due(cell.instrument.schedule()) };
    let setup = Setup {
        lanes: (0..shape.lanes).map(lane).collect(),
        engine: engine(run, target, shape.direct)?,
        slots: shape.slots,
        feed: Feed::Instrument {
            content: content.clone(),
            delivery: Delivery { frames: shape.frames, ..Delivery::lasting(pace, cell.duration) },
        },
        reserve: None,
        stop: Arc::default(),
        allowance: cell.instrument.allowance(),
        hang_after: run.hang_after,
    };
    Ok((setup, content))
}

/// How the lanes' operations are best issued, which the target is asked.
fn engine(run: &Run, target: &Arc<dyn Target>, direct: bool) -> Result<Options, Invalid> {
    let clock = run.clock;
    match within(run.hang_after, target, move |target| suited_engine(target, direct, clock)) {
        Ok(Ok(options)) => Ok(options),
        Ok(Err(error)) => Err(Invalid::Refused(error.to_string())),
        Err(TargetError::Hung { .. }) => Err(Invalid::Hung),
        Err(error) => Err(Invalid::Refused(error.to_string())),
    }
}

/// How an instrument's frames lie in memory and in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Frames go past the cache.
    direct: bool,
    stride: u64,
    frames_per_file: u64,
    slots: usize,
    /// Full files that stay in a lane, where old ones can be removed.
    keep: Option<u64>,
    /// Frames at the most, where nothing can be removed.
    frames: u64,
    /// They go into chunks.
    scattered: bool,
    lanes: u32,
}

/// Through the cache a write is a copy by one processor, and the writes of one file exclude each other: two lanes copy
/// at the same time.
const BUFFERED_LANES: u32 = 2;

impl Shape {
    /// On a target that is described so.
    pub(crate) fn of(cell: &IngestCell, target: &Description) -> Self {
        let direct = target.direct_alignment().is_some() && is_aligned(&cell.instrument);
        let frame = cell.instrument.frame_size().0;
        let stride = if direct { frame.next_multiple_of(ALIGNMENT as u64) } else { frame };
        let frames_per_file = frames_per_file(&cell.instrument, stride);
        let lanes = if direct { 1 } else { BUFFERED_LANES };
        let slots = (cell.buffer.0 / stride).max(2) as usize;
        let (keep, frames) = if cell.instrument.storing == Storing::Files {
            let keep = cell.fill.map_or(cell.keep, |fill| fill.keep(target.space.size, target.space.free));
            (Some((keep.0 / (frames_per_file * stride * u64::from(lanes))).max(1)), u64::MAX)
        } else {
            (None, frames_in_one_file(cell, stride))
        };
        let scattered = cell.instrument.storing == Storing::Scattered;
        Shape { direct, stride, frames_per_file, slots, keep, frames, scattered, lanes }
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
        let lanes = u64::from(self.lanes);
        // A chunk may be in two pieces, where one writer leaves it to another.
        let chunks = if self.scattered { 2 * self.frames.div_ceil(self.frames_per_file) } else { 0 };
        lanes * self.keep.map_or(2, |keep| keep + 4) + chunks
    }

    /// The ring.
    pub(crate) fn memory(&self) -> Bytes {
        Bytes(self.slots as u64 * self.stride.next_multiple_of(ALIGNMENT as u64))
    }
}

/// Frames of an instrument that puts all into one file: at its pace what comes in its time, else as much as is kept.
fn frames_in_one_file(cell: &IngestCell, stride: u64) -> u64 {
    if cell.goal == Goal::Limit {
        return (cell.keep.0 / stride).max(1);
    }
    cell.duration.0.div_ceil(cell.instrument.period().0) + cell.instrument.streams
}
