//! Sets up a recording: the layout of an instrument's frames in memory and in files, and their source.

use std::{
    net::Ipv4Addr,
    sync::{Arc, atomic::AtomicBool},
};

use nilometer_acquisition::{
    ChosenEngine, EngineWish, Feed, LayoutOptions, RecordingPlan, Retention, Setup, StoredFrames,
    sink::{LaneOptions, RawLayout, lanes_of},
    suited_engine,
};
use nilometer_hdf5_recording::{Hdf5Contents, settle_instrument};
use nilometer_intake::{Expected, Until};
use nilometer_model::{Bytes, Goal, Instrument, Invalid, Nanos, Seed, TargetDescription};
use nilometer_network::own_address;
use nilometer_plan::{Fill, InstrumentTurn, RecordingRun, Route};
use nilometer_recording::{Stream, instrument::Content};
use nilometer_ring::{Delivery, FrameTurn, Pace};
use nilometer_storage::{Calendar, Target, TargetError, within};

use super::over_network::{self, Incoming, Sends, StreamSent, incoming};
use crate::task::Run;

/// A recording that is ready to begin.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) setup: Setup,
    /// The layouts of its lanes.
    pub(super) layouts: Vec<RawLayout>,
    /// The expected content of the target afterwards.
    pub(super) expected: Expected,
    /// The packets that it awaits, if it records packets.
    pub(super) packets: Option<PacketsIn>,
}

/// The packets that a recorder receives.
#[derive(Debug)]
pub(super) struct PacketsIn {
    pub(super) shape: over_network::Shape,
    pub(super) awaited: StreamSent,
    /// The sender, if it is in this process.
    pub(super) sends: Option<Sends>,
}

/// The source of a recorder's frames.
#[derive(Debug)]
struct Source {
    feed: Feed,
    expected: Expected,
    stream: Option<Stream>,
    packets: Option<PacketsIn>,
}

/// Sets up the recorder of a cell's instrument, or of a stream of it. `name` is the first part of its files'
/// names.
pub(super) fn setup(
    run: &Run,
    target: &Arc<dyn Target>,
    cell: &RecordingRun,
    seed: Seed,
    name: &str,
) -> Result<Ready, Invalid> {
    let onto = members_of(target);
    let shape = Shape::over(cell, &descriptions_of(target));
    let stop = Arc::default();
    let Source { feed, expected, stream, packets } = source(run, cell, seed, &shape, &stop)?;
    let origin = if let Expected::Frames(content) = &expected { content.origin() } else { None };
    let mut recorded = cell.recorded().into_owned();
    settle_instrument(&mut recorded).map_err(Invalid::Refused)?;
    let hdf5 = Hdf5Contents::of(&recorded, Calendar::start_of(run.clock));
    // The lanes of all processes have one dataset.
    let (first, of) = cell.dataset_turn().map_or((0, 1), |turn| (turn.first, turn.of));
    let own_lanes = shape.plan.lanes();
    let lane = |lane| {
        let mut layout = shape.plan.layout(name, seed.0, first * own_lanes + lane);
        layout.head.lanes = of * own_lanes;
        RawLayout { origin: origin.clone(), stream: stream.clone(), hdf5: hdf5.clone(), ..layout }
    };
    let layouts: Vec<_> = (0..own_lanes).map(lane).collect();
    let wish = EngineWish::usual(layouts.iter().all(RawLayout::is_deep));
    let each = onto.iter().flat_map(|member| std::iter::repeat_n(member, shape.plan.writers() as usize));
    let lanes = each.cloned().zip(layouts.iter().cloned()).collect();
    let encoders = cell.instrument.recording.encoders.map(|count| count as usize);
    let options = LaneOptions { encoders, ..LaneOptions::default() };
    let setup = Setup {
        lanes: lanes_of(lanes, options).map_err(|error| Invalid::Refused(error.to_string()))?,
        engine: engine(run, &onto, wish)?,
        slots: shape.plan.slots(),
        feed,
        stop,
        allowance: cell.recorded().allowance(),
        hang_after: run.hang_after,
    };
    Ok(Ready { setup, layouts, expected, packets })
}

/// Packets from another machine are over after this silence, or if they arrive this long after their time.
const SILENCE: Nanos = Nanos::from_millis(2000);

/// Makes the instrument, in this process or at the other end of a network.
fn source(
    run: &Run,
    cell: &RecordingRun,
    seed: Seed,
    shape: &Shape,
    stop: &Arc<AtomicBool>,
) -> Result<Source, Invalid> {
    if cell.route.has_packets() {
        return packets_of(run, cell, seed, stop);
    }
    let Instrument { data, shape: pixels, pixel, .. } = &cell.instrument;
    let content = Content::prepare(data, pixels, *pixel, seed.named("content"));
    let content = content.map_err(|error| Invalid::Refused(format!("data: {error}")))?;
    let turn = cell.dataset_turn().map_or(FrameTurn::ALL, turn_of);
    let frames = shape.frames.saturating_mul(turn.of.into());
    let delivery = Delivery { frames, turn, ..Delivery::lasting(pace(cell), cell.duration) };
    let feed = Feed::Instrument { content: content.clone(), delivery };
    Ok(Source { feed, expected: Expected::Frames(content), stream: None, packets: None })
}

/// The pace of a cell's frames. A part of an instrument has them when the whole instrument delivers them.
fn pace(cell: &RecordingRun) -> Pace {
    if cell.goal == Goal::Limit {
        return Pace::AsTaken;
    }
    match cell.turn {
        Some(turn) if cell.is_one_dataset() => Pace::Due(turn.schedule),
        Some(turn) => Pace::DueInTurn(turn.schedule, turn_of(turn)),
        None => Pace::Due(cell.instrument.schedule()),
    }
}

fn turn_of(InstrumentTurn { first, of, .. }: InstrumentTurn) -> FrameTurn {
    FrameTurn { first, of, line: 1 }
}

/// Makes a stream of the instrument's packets, over this machine's own network or that between machines.
fn packets_of(run: &Run, cell: &RecordingRun, seed: Seed, stop: &Arc<AtomicBool>) -> Result<Source, Invalid> {
    let is_own = cell.route == Route::Loopback;
    let address = if is_own { Ok(Ipv4Addr::LOCALHOST.into()) } else { own_address(cell.network) };
    let address = address.map_err(Invalid::Refused)?;
    // Another machine does not signal that it has sent all.
    let pause = cell.instrument.burst.map_or(Nanos(0), |burst| burst.pause);
    let silence = SILENCE + pause + cell.recorded().period();
    let duration = cell.duration + silence + SILENCE;
    let ends = Until { silence, duration, silence_at_start: duration, ..Until::default() };
    let until = if is_own { Until::default() } else { ends };
    let incoming = incoming(&cell.instrument, cell.duration, seed, address, until)?;
    let Incoming { network, stream, expected, shape, awaited } = incoming;
    let sends = is_own.then(|| awaited.sends(run.clock, stop.clone())).transpose()?;
    let packets = Some(PacketsIn { shape, awaited, sends });
    Ok(Source { feed: Feed::Network(network), expected, stream: Some(stream), packets })
}

/// The members of a target that a recording is striped over; else the target itself.
fn members_of(target: &Arc<dyn Target>) -> Vec<Arc<dyn Target>> {
    let members = target.members();
    if members.is_empty() { vec![target.clone()] } else { members.to_vec() }
}

/// The descriptions of these.
pub(super) fn descriptions_of(target: &Arc<dyn Target>) -> Vec<TargetDescription> {
    members_of(target).iter().map(|member| member.description().clone()).collect()
}

/// Chooses the engine for the lanes, the one that works on each target.
fn engine(run: &Run, onto: &[Arc<dyn Target>], wish: EngineWish) -> Result<ChosenEngine, Invalid> {
    let suited = onto.iter().map(|target| engine_on(run, target, wish)).collect::<Result<Vec<_>, _>>()?;
    Ok(ChosenEngine::for_all(suited).expect("a recording is onto one target at least"))
}

fn engine_on(run: &Run, target: &Arc<dyn Target>, wish: EngineWish) -> Result<ChosenEngine, Invalid> {
    let clock = run.clock;
    match within(run.hang_after, target, move |target| suited_engine(target, wish, clock)) {
        Ok(Ok(options)) => Ok(options),
        Ok(Err(error)) => Err(Invalid::Refused(error.to_string())),
        Err(TargetError::Hung { .. }) => Err(Invalid::Hung),
        Err(error) => Err(Invalid::Refused(error.to_string())),
    }
}

/// The layout of the recorders of a cell's instrument on a target. All are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) plan: RecordingPlan,
    /// The number of frames after which each recorder ends, if nothing makes room for new ones.
    frames: u64,
    /// The number of recorders: one for each stream that has its own.
    rings: u64,
}

impl Shape {
    /// The shape on a target with this description.
    pub(crate) fn of(cell: &RecordingRun, target: &TargetDescription) -> Self {
        Shape::over(cell, std::slice::from_ref(target))
    }

    /// The shape of one recording over targets with these descriptions, one at least.
    pub(crate) fn over(cell: &RecordingRun, onto: &[TargetDescription]) -> Self {
        let recorded = cell.recorded();
        let rings = cell.rings();
        // Packets from a network are recorded in blocks, with nothing between them.
        let padded = !cell.route.has_packets();
        let frames = StoredFrames { padded, ..StoredFrames::of(&recorded) };
        // Larger frames in HDF5 begin at a stripe.
        let align = onto.iter().filter_map(|on| cell.swept.layout_on(on).stripe_size).max();
        let options = LayoutOptions {
            align,
            retention: retention(cell, onto, &recorded),
            writers: cell.swept.writers,
            chunk_size: cell.swept.chunk_size,
            completes_shared: cell.is_one_dataset(),
            ..LayoutOptions::with_buffer(Bytes(cell.buffer.0 / rings))
        };
        let plan = RecordingPlan::of(frames, onto, &options);
        let bound = frames_at_the_most(cell, plan.spacing().stride).div_ceil(rings);
        Shape { plan, frames: if plan.is_bounded() { u64::MAX } else { bound }, rings }
    }

    /// The largest space that the recordings take at once; with several targets, on each.
    pub(crate) fn footprint(&self) -> Bytes {
        Bytes(self.plan.space(self.frames).0.saturating_mul(self.rings))
    }

    /// The number of files that exist at once, the journals included.
    pub(crate) fn files(&self) -> u64 {
        self.rings * self.plan.files(self.frames)
    }

    /// The memory of all rings.
    pub(crate) fn memory(&self) -> Bytes {
        Bytes(self.rings * self.plan.memory().0)
    }
}

/// Decides which part of each recording stays. Packets at their own pace are recorded as the recorder does by
/// default, into one growing file, if all may stay. Otherwise only the latest stay, as with `--keep`.
fn retention(cell: &RecordingRun, onto: &[TargetDescription], recorded: &Instrument) -> Retention {
    let filled = |fill: Fill| {
        let each = onto.iter().map(|on| fill.keep(on.space.usable(), on.space.free).0);
        Bytes(each.sum())
    };
    let keep = cell.fill.map_or(cell.keep, filled);
    if recorded.packets.is_some() && cell.goal == Goal::Pace && cell.all() <= keep {
        return Retention::All;
    }
    Retention::Latest(Bytes(keep.0 / cell.rings()))
}

/// The number of frames if all stay. At the instrument's pace these are the frames of its duration, else those
/// that fit into the kept space.
fn frames_at_the_most(cell: &RecordingRun, stride: u64) -> u64 {
    if cell.goal == Goal::Limit {
        return (cell.keep.0 / stride).max(1);
    }
    cell.frames()
}
