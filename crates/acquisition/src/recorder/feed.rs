//! Sources of a recorder's frames: an instrument simulated in this process, the network, or another recording
//! to copy.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use nilometer_intake::{
    Receiver, ScanMember, Traffic, Until,
    assembly::{Assembly, ReorderWindow},
    joined::{JoinedValues, MetadataReader},
    series::{LentReceiver, RingIntake, SeriesCheck, SeriesEnding, SeriesStorage, SeriesTraffic},
    transport::Transport,
};
use nilometer_model::{EngineKind, Nanos};
use nilometer_recording::{Missing, instrument::Content};
use nilometer_ring::{Delivery, FrameTurn, LaneCounts, Ring, Source};
use nilometer_storage::{
    Arena, Buffer, Clock, Drive, Engine, Target,
    buffer::Alignment,
    engine::{Null, Options},
    process::{pin_to, processors},
};

use super::source_totals::SourceTotals;
use crate::{
    Follower, Following, Purpose,
    export::{FrameSupply, RecordedFrames},
    sink::RawLayout,
};
use nilometer_wire::WireFormat;

/// Source of a recording's frames.
#[derive(Debug)]
pub enum Feed {
    /// A simulated instrument: frames with this content, when they are due.
    Instrument {
        /// Content of the frames.
        content: Content,
        /// Schedule of the frames.
        delivery: Delivery,
    },
    /// Packets from the network.
    Network(Network),
    /// Frames that arrive as messages, of a series that has begun.
    Series(SeriesFeed),
    /// Frames of another recording, as the recorder there acknowledges them.
    Recording(Copied),
    /// All frames of an existing recording, as fast as the storage delivers them.
    Recorded(RecordedFrames),
}

/// A recording that is copied while it is made. The copy ends with the recording, or when you stop it.
#[derive(Debug)]
pub struct Copied {
    /// Storage of the recording to copy.
    pub target: Arc<dyn Target>,
    /// Layouts of its lanes, at least one.
    pub lanes: Vec<RawLayout>,
    /// Settings for following it.
    pub following: Following,
}

impl Copied {
    /// Copies the recording into a ring until it ends or `stop` is set, then closes the ring.
    fn run(self, ring: Arc<Ring>, stop: Arc<AtomicBool>, clock: Clock) -> SourceTotals {
        let slots = Follower::slots(self.lanes.len() as u32);
        let options = Options { kind: EngineKind::Sync, depth: 1, slots, clock };
        let mut engine = match self.target.engine(&options) {
            Ok(engine) => engine,
            Err(error) => {
                ring.close(0);
                return SourceTotals { fault: Some(error.to_string()), ..SourceTotals::default() };
            }
        };
        ring.seat_source(engine.waker());
        let mut follower = Follower::new(self.lanes, Purpose::Copy(ring), self.following, stop);
        let begun = clock.now();
        Drive::new(&mut follower, engine.as_mut()).run(|_| {});
        let totals = follower.totals();
        let reader = Some((totals, follower.late().clone()));
        SourceTotals { frames: totals.frames, begun, reader, ..SourceTotals::default() }
    }
}

/// A series of frames that arrive as messages.
#[derive(Debug)]
pub struct SeriesFeed {
    /// The receiver that has taken the start of the series.
    pub receiver: LentReceiver,
    /// Size, encoding and order in which its frames are stored.
    pub storage: SeriesStorage,
    /// Destination of values that images carry beside their pixels. `None` if nobody stores them.
    pub values: Option<Arc<JoinedValues>>,
}

impl SeriesFeed {
    /// Receives into a ring until the series is over, and closes the ring.
    fn run(
        mut self,
        ring: &Arc<Ring>,
        stop: &AtomicBool,
        clock: Clock,
        awaited: &AwaitedValues,
    ) -> SourceTotals {
        let begun = clock.now();
        let receiver = &mut self.receiver;
        let mut intake = RingIntake::new(ring.clone(), self.storage).joining(self.values.take());
        // The receiver's counters report a fault of the network.
        let ending = receiver.run(clock, stop, &mut intake);
        if ending.is_ok_and(|ending| ending != SeriesEnding::Stopped) {
            receiver.look_behind(clock.now(), &mut intake).ok();
        }
        intake.finish(clock.now());
        // The recording ends behind the last frame that arrived: blank frames that were announced and did not
        // arrive have no reader.
        let due = receiver.series().map_or(0, SeriesCheck::came_upto);
        awaited.of(due, stop);
        ring.close(due);
        let begun = receiver.first().unwrap_or(begun);
        if !receiver.goes_back() {
            receiver.abandon_next(clock.now());
        }
        SourceTotals { frames: due, begun, ..SourceTotals::default() }
    }
}

/// Live counters of packets or messages from outside this process.
#[derive(Debug, Clone)]
pub(super) enum LiveTraffic {
    Packets(Arc<Mutex<Traffic>>),
    Series(Arc<Mutex<SeriesTraffic>>),
}

/// Packets that are recorded in blocks.
#[derive(Debug)]
pub struct Network {
    /// Ports at which packets arrive, at least one: one for all modules, or one for each.
    pub ports: Vec<Port>,
    /// Frames of a block: [`nilometer_model::packets::frames_of_block`].
    pub frames_of_block: u64,
    /// Largest distance of a packet from its expected position.
    pub limits: ReorderWindow,
    /// Treatment of packets that don't arrive within the limits.
    pub missing: Missing,
    /// Condition at which the recording ends by itself.
    pub until: Until,
    /// Processor to which the assembling thread is pinned. `None` leaves it to the scheduler.
    pub cpu: Option<usize>,
    /// Its place among the data streams of a scan. If the recording ends by itself, it counts packets until the others
    /// have ended. `None` if the scan has no others.
    pub beside: Option<ScanMember>,
}

/// A source of packets.
#[derive(Debug)]
pub struct Port {
    /// Transport over which packets arrive.
    pub transport: Box<dyn Transport>,
    /// Layout of the packets.
    pub format: Box<dyn WireFormat>,
}

impl Feed {
    /// Bytes of a frame, or of a full block of packets.
    pub(super) fn frame_size(&self) -> usize {
        match self {
            Feed::Instrument { content, .. } => content.frame_size(),
            Feed::Network(network) => {
                network.ports[0].format.geometry().frame_size() * network.frames_of_block as usize
            }
            Feed::Series(series) => series.storage.frame_size as usize,
            Feed::Recording(copied) => copied.lanes[0].head.frame_size as usize,
            Feed::Recorded(recorded) => recorded.frame_size(),
        }
    }

    /// The instrument's frames that this feed delivers.
    pub(super) fn turn(&self) -> FrameTurn {
        match self {
            Feed::Instrument { delivery, .. } => delivery.turn,
            Feed::Network(_) | Feed::Series(_) | Feed::Recording(_) | Feed::Recorded(_) => FrameTurn::ALL,
        }
    }

    /// Smallest size of a slot in bytes, whatever the lanes need: a read may be longer than the frame.
    pub(super) fn slot_size(&self, alignment: Alignment) -> usize {
        match self {
            Feed::Instrument { .. } | Feed::Network(_) => 0,
            // The write of a frame may end with a page.
            Feed::Series(series) => Arena::distance(series.storage.slot_size(), alignment),
            Feed::Recording(copied) => Follower::room(&copied.lanes) as usize,
            Feed::Recorded(recorded) => recorded.slot_size(),
        }
    }

    /// Touches all slots, so that their memory is there when the recording needs it. It stops early once `stop`
    /// is set.
    pub(super) fn prepare_slots(&self, slots: &mut [Buffer], stop: &AtomicBool) {
        match self {
            Feed::Instrument { content, .. } => prepare_all(slots, stop, |slot| content.prepare_slot(slot)),
            Feed::Network(_) | Feed::Series(_) => prepare_all(slots, stop, |slot| slot.fill(0)),
            // A copy can wait: the cost of its page faults appears in its own figures.
            Feed::Recording(_) | Feed::Recorded(_) => {}
        }
    }

    /// Makes this feed the source of a ring.
    pub(super) fn onto(self, ring: Arc<Ring>, stop: Arc<AtomicBool>, clock: Clock) -> Job {
        let feeding = match self {
            Feed::Instrument { content, delivery } => Feeding::Instrument { content, delivery },
            Feed::Network(network) => {
                let Network { ports, frames_of_block, limits, missing, until, cpu, beside } = network;
                let (transports, formats) =
                    ports.into_iter().map(|port| (port.transport, port.format)).unzip();
                let assembly = Assembly::new(formats, ring.clone(), frames_of_block, limits, missing);
                let receiver = Box::new(Receiver::new(transports, assembly, until));
                Feeding::Network { receiver, until, cpu, beside }
            }
            Feed::Series(series) => Feeding::Series(series),
            Feed::Recording(copied) => Feeding::Recording(copied),
            Feed::Recorded(recorded) => Feeding::Recorded(recorded),
        };
        Job { ring, stop, clock, feeding, starts: None, awaited: AwaitedValues::default() }
    }
}

/// Most threads that touch memory: more of them would only wait for each other in the kernel.
const TOUCHING: usize = 8;

/// Prepares slots on several threads, because the kernel takes most of the time to provide the memory. There is
/// one thread for each processor, at most [`TOUCHING`].
fn prepare_all(slots: &mut [Buffer], stop: &AtomicBool, prepare: impl Fn(&mut [u8]) + Sync) {
    let threads = processors().len().clamp(1, TOUCHING);
    let share = slots.len().div_ceil(threads).max(1);
    let goes_on = |_: &&mut Buffer| !stop.load(Ordering::Relaxed);
    thread::scope(|scope| {
        for slots in slots.chunks_mut(share) {
            scope.spawn(|| slots.iter_mut().take_while(goes_on).for_each(|slot| prepare(slot)));
        }
    });
}

/// Work of a source's thread.
#[derive(Debug)]
pub(super) struct Job {
    ring: Arc<Ring>,
    stop: Arc<AtomicBool>,
    clock: Clock,
    feeding: Feeding,
    /// Due time of an instrument's first frame. `None` if it is due at once.
    pub(super) starts: Option<Nanos>,
    /// Values to wait for before the ring is closed.
    pub(super) awaited: AwaitedValues,
}

/// Values that arrive apart from the frames. The source waits for them once the last frame has arrived.
#[derive(Debug, Default)]
pub(super) struct AwaitedValues(pub(super) Option<Arc<MetadataReader>>);

impl AwaitedValues {
    /// Waits for the values of the first `frames` frames.
    fn of(&self, frames: u64, stop: &AtomicBool) {
        if let Some(reader) = &self.0 {
            reader.await_rest(frames, stop);
        }
    }
}

/// The end of a source's work.
#[derive(Debug)]
pub(super) struct JobEnd {
    pub(super) totals: SourceTotals,
    /// The rest of the work, behind the end of the recording. `None` if there is none.
    pub(super) listening: Option<ListeningRest>,
}

/// A receiver that counts packets behind the end of its recording.
#[derive(Debug)]
pub(super) struct ListeningRest {
    receiver: Box<Receiver>,
    member: ScanMember,
    stop: Arc<AtomicBool>,
}

impl ListeningRest {
    /// Counts until all data streams of the scan have ended.
    pub(super) fn run(mut self) {
        self.receiver.count_behind_end(self.member, &self.stop);
    }
}

#[derive(Debug)]
enum Feeding {
    Instrument { content: Content, delivery: Delivery },
    Network { receiver: Box<Receiver>, until: Until, cpu: Option<usize>, beside: Option<ScanMember> },
    Series(SeriesFeed),
    Recording(Copied),
    Recorded(RecordedFrames),
}

/// Reads all frames of a recording into a ring, and closes the ring.
fn supply(recorded: RecordedFrames, ring: &Arc<Ring>, stop: Arc<AtomicBool>, clock: Clock) -> SourceTotals {
    let mut engine = Null::new(1, clock);
    ring.seat_source(engine.waker());
    let frames = recorded.due_slots();
    let begun = clock.now();
    match FrameSupply::new(recorded, ring.clone(), stop, &engine.waker()) {
        Ok(mut supply) => Drive::new(&mut supply, &mut engine).run(|_| {}),
        Err(error) => {
            ring.close(0);
            return SourceTotals { fault: Some(error.to_string()), ..SourceTotals::default() };
        }
    }
    SourceTotals { frames, begun, ..SourceTotals::default() }
}

/// Longer than any recording: a copy ends with the recording it follows, or when you stop it.
const FOR_EVER: Nanos = Nanos(u64::MAX / 4);

impl Job {
    /// Makes the receiver report the lanes' stored totals together with its own counts, both taken at one
    /// moment.
    pub(super) fn count_stored(&mut self, counts: &LaneCounts) {
        match &mut self.feeding {
            Feeding::Network { receiver, .. } => receiver.count_stored(counts.clone()),
            Feeding::Series(series) => series.receiver.count_stored(counts.clone()),
            Feeding::Instrument { .. } | Feeding::Recording(_) | Feeding::Recorded(_) => {}
        }
    }

    /// Discards packets received so far: all lanes are ready, and only later packets are recorded.
    pub(super) fn discard(&mut self) -> std::io::Result<()> {
        match &mut self.feeding {
            // All frames of a series that has begun are part of it.
            Feeding::Instrument { .. }
            | Feeding::Series(_)
            | Feeding::Recording(_)
            | Feeding::Recorded(_) => Ok(()),
            Feeding::Network { receiver, .. } => receiver.discard(),
        }
    }

    /// Time during which frames arrive, counted from the beginning.
    pub(super) fn duration(&self) -> Nanos {
        match &self.feeding {
            Feeding::Instrument { delivery, .. } => delivery.duration,
            // The receiver counts the duration from the first packet, which may arrive this much later.
            Feeding::Network { until, .. } => until.duration + until.duration,
            Feeding::Series(_) | Feeding::Recording(_) | Feeding::Recorded(_) => FOR_EVER,
        }
    }

    /// Live counters of the network, if frames come from there.
    pub(super) fn live(&self) -> Option<LiveTraffic> {
        match &self.feeding {
            Feeding::Instrument { .. } | Feeding::Recording(_) | Feeding::Recorded(_) => None,
            Feeding::Network { receiver, .. } => Some(LiveTraffic::Packets(receiver.live())),
            Feeding::Series(series) => Some(LiveTraffic::Series(series.receiver.live())),
        }
    }

    /// Returns true if it listens on after its end, while other data streams of the scan go on.
    pub(super) fn listens_on(&self) -> bool {
        matches!(&self.feeding, Feeding::Network { beside: Some(_), .. })
    }

    /// Delivers frames until the recording is over.
    pub(super) fn run(self) -> JobEnd {
        let Job { ring, stop, clock, feeding, starts, awaited } = self;
        let mut engine = Null::new(1, clock);
        ring.seat_source(engine.waker());
        let totals = match feeding {
            Feeding::Instrument { content, delivery } => {
                let fill = Box::new(move |number, slot: &mut [u8]| content.fill(number, slot));
                let begun = starts.unwrap_or_else(|| clock.now());
                let mut source = Source::new(ring, delivery, stop, fill).starting_at(begun);
                Drive::new(&mut source, &mut engine).run(|_| {});
                let lateness = source.lateness().clone();
                SourceTotals {
                    frames: source.due(),
                    stopped: source.has_stopped(),
                    begun: source.began().unwrap_or(begun),
                    lateness,
                    ..SourceTotals::default()
                }
            }
            Feeding::Series(series) => series.run(&ring, &stop, clock, &awaited),
            Feeding::Recording(copied) => copied.run(ring, stop, clock),
            Feeding::Recorded(recorded) => supply(recorded, &ring, stop, clock),
            Feeding::Network { mut receiver, cpu, beside, .. } => {
                // Pinning is optional; the program checked the processor before.
                cpu.map(pin_to);
                let begun = clock.now();
                let frames = receiver.run(clock, &stop);
                awaited.of(frames, &stop);
                ring.close(frames);
                let begun = receiver.first().unwrap_or(begun);
                let listening = beside.map(|member| ListeningRest { receiver, member, stop });
                let totals = SourceTotals { frames, begun, ..SourceTotals::default() };
                return JobEnd { totals, listening };
            }
        };
        JobEnd { totals, listening: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_slots_are_touched_once_a_recording_is_to_end() {
        let (_, mut slots) = Arena::shared_out(100, 8);
        prepare_all(&mut slots, &AtomicBool::new(true), |slot| slot.fill(1));
        assert!(slots.iter().all(|slot| slot[..] == [0; 8]));
        prepare_all(&mut slots, &AtomicBool::new(false), |slot| slot.fill(1));
        assert!(slots.iter().all(|slot| slot[..] == [1; 8]));
    }
}
