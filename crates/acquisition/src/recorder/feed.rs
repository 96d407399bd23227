//! What delivers frames to a recorder: an instrument that is simulated in this process, or the network.

use std::{
    sync::{Arc, Mutex, atomic::AtomicBool},
    thread,
};

use nilometer_model::Nanos;
use nilometer_storage::{
    Buffer, Clock, Drive, Engine,
    engine::Null,
    process::{pin_to, processors},
};

use super::threads::SourceTotals;
use crate::{
    Delivery, Ring, Source,
    assembly::{Assembly, Limits, Missing},
    format::WireFormat,
    instrument::Content,
    receiver::{Receiver, Traffic, Until},
    transport::Transport,
};

/// See the module.
#[derive(Debug)]
pub enum Feed {
    /// Frames with this content, when they are due.
    Instrument {
        /// What is in the frames.
        content: Content,
        /// When they come.
        delivery: Delivery,
    },
    /// Packets.
    Network(Network),
}

/// Packets that are recorded in blocks.
#[derive(Debug)]
pub struct Network {
    /// Where they come: at one port, or each module at its own. At least one.
    pub ports: Vec<Port>,
    /// Frames of a block: [`nilometer_model::packets::frames_of_block`].
    pub frames_of_block: u64,
    /// How far from their place they may come.
    pub limits: Limits,
    /// What becomes of those that don't.
    pub missing: Missing,
    /// When it ends by itself.
    pub until: Until,
    /// The only processor for the thread that puts packets in their place, if it is to have one.
    pub cpu: Option<usize>,
}

/// Where packets come.
#[derive(Debug)]
pub struct Port {
    /// How they arrive.
    pub transport: Box<dyn Transport>,
    /// What stands in them.
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
        }
    }

    /// Touches all slots, so that their memory is there when it is needed.
    pub(super) fn prepare_slots(&self, slots: &mut [Buffer]) {
        match self {
            Feed::Instrument { content, .. } => prepare_all(slots, |slot| content.prepare_slot(slot)),
            Feed::Network(_) => prepare_all(slots, |slot| slot.fill(0)),
        }
    }

    /// The source of a ring.
    pub(super) fn onto(self, ring: Arc<Ring>, stop: Arc<AtomicBool>, clock: Clock) -> Job {
        let feeding = match self {
            Feed::Instrument { content, delivery } => Feeding::Instrument { content, delivery },
            Feed::Network(Network { ports, frames_of_block, limits, missing, until, cpu }) => {
                let (transports, formats) =
                    ports.into_iter().map(|port| (port.transport, port.format)).unzip();
                let assembly = Assembly::new(formats, ring.clone(), frames_of_block, limits, missing);
                let receiver = Box::new(Receiver::new(transports, assembly, until));
                Feeding::Network { receiver, until, cpu }
            }
        };
        Job { ring, stop, clock, feeding }
    }
}

/// Threads that touch memory, at the most: more wait for each other in the kernel.
const TOUCHING: usize = 8;

/// Prepares slots on as many threads as there are processors: most of the time goes into the kernel, which brings the memory.
fn prepare_all(slots: &mut [Buffer], prepare: impl Fn(&mut [u8]) + Sync) {
    let threads = processors().len().clamp(1, TOUCHING);
    let share = slots.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        for slots in slots.chunks_mut(share) {
            scope.spawn(|| slots.iter_mut().for_each(|slot| prepare(slot)));
        }
    });
}

/// What a source's thread does.
#[derive(Debug)]
pub(super) struct Job {
    ring: Arc<Ring>,
    stop: Arc<AtomicBool>,
    clock: Clock,
    feeding: Feeding,
}

#[derive(Debug)]
enum Feeding {
    Instrument { content: Content, delivery: Delivery },
    Network { receiver: Box<Receiver>, until: Until, cpu: Option<usize> },
}

impl Job {
    /// All is ready: what came before is not recorded.
    pub(super) fn discard(&mut self) -> std::io::Result<()> {
        match &mut self.feeding {
            Feeding::Instrument { .. } => Ok(()),
            Feeding::Network { receiver, .. } => receiver.discard(),
        }
    }

    /// For how long frames come, from the beginning on.
    pub(super) fn duration(&self) -> Nanos {
        match &self.feeding {
            Feeding::Instrument { delivery, .. } => delivery.duration,
            // The time is counted from the first packet.
            Feeding::Network { until, .. } => until.duration + until.duration,
        }
    }

    /// What comes from the network, while it comes.
    pub(super) fn live(&self) -> Option<Arc<Mutex<Traffic>>> {
        match &self.feeding {
            Feeding::Instrument { .. } => None,
            Feeding::Network { receiver, .. } => Some(receiver.live()),
        }
    }

    /// Delivers until it is over.
    pub(super) fn run(self) -> SourceTotals {
        let Job { ring, stop, clock, feeding } = self;
        let mut engine = Null::new(1, clock);
        ring.seat_source(engine.waker());
        match feeding {
            Feeding::Instrument { content, delivery } => {
                let fill = Box::new(move |number, slot: &mut [u8]| content.fill(number, slot));
                let mut source = Source::new(ring, delivery, stop, fill);
                let begun = clock.now();
                Drive::new(&mut source, &mut engine).run(|_| {});
                let lateness = source.lateness().clone();
                SourceTotals {
                    frames: source.due(),
                    stopped: source.has_stopped(),
                    begun,
                    lateness,
                    ..SourceTotals::default()
                }
            }
            Feeding::Network { mut receiver, cpu, .. } => {
                // Where it runs is a wish that was checked before.
                cpu.map(pin_to);
                let begun = clock.now();
                let frames = receiver.run(clock, &stop);
                ring.close(frames);
                SourceTotals { frames, begun: receiver.first().unwrap_or(begun), ..SourceTotals::default() }
            }
        }
    }
}
