//! An instrument's packets over a network: this machine's own, or that between machines. Here are the sender of
//! the packets, and the expected recording.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use nilometer_acquisition::{Network, Port};
use nilometer_intake::{
    Expected, Until,
    assembly::ReorderWindow,
    transport::{
        Left, Sender, Simulation, SimulationError, Transport,
        faults::Faults,
        udp::{Listening, Sending, UdpInlet},
    },
};
use nilometer_model::{Bytes, Instrument, Invalid, Nanos, Packets, Seed, SentPackets};
use nilometer_recording::{Missing, Stream};
use nilometer_storage::{Calendar, Clock, DetachedTask};
use nilometer_wire::Known;

/// A stream of packets, ready to be recorded.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) network: Network,
    pub(super) stream: Stream,
    pub(super) expected: Expected,
    pub(super) shape: Shape,
    pub(super) awaited: StreamSent,
}

/// The stream of packets and its destination: the same at both ends.
#[derive(Debug, Clone)]
pub(super) struct StreamSent {
    /// The instrument, reduced to one stream.
    pub(super) instrument: Instrument,
    /// The duration of the stream.
    pub(super) duration: Nanos,
    pub(super) seed: Seed,
    /// The address, with the first port.
    pub(super) to: SocketAddr,
    /// The time of the first frame, in seconds since 2000-01-01 00:00 UTC.
    pub(super) begins: u64,
    /// The number of packets that are recorded together.
    pub(super) lot: u64,
}

/// The simulated instrument, on a thread of its own.
#[derive(Debug)]
pub(super) struct Sends {
    sender: Option<Sender>,
    clock: Clock,
    /// Set to end the instrument.
    cease: Arc<AtomicBool>,
    /// Set when all packets are sent.
    over: Arc<AtomicBool>,
    task: Option<DetachedTask<io::Result<Left>>>,
}

/// Properties of the packets that do not depend on the recording.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// The size of the longest packet.
    pub(super) size: Bytes,
    /// The number of packets in a block.
    pub(super) of_block: u64,
    /// The bytes of packets that may wait in the kernel, at each port.
    pub(super) room: Bytes,
    /// The number of ports that receive packets.
    pub(super) ports: usize,
}

/// The packets sent.
#[derive(Debug)]
pub(super) struct Went {
    pub(super) sent: SentPackets,
    pub(super) shape: Shape,
}

/// From 1970-01-01 to 2000-01-01 00:00 UTC, in seconds.
const YEAR_2000: u64 = 946_684_800;

/// Prepares one stream of an instrument that lasts `duration` and arrives at an address of this machine.
pub(super) fn incoming(
    instrument: &Instrument,
    duration: Nanos,
    seed: Seed,
    address: IpAddr,
    until: Until,
) -> Result<Incoming, Invalid> {
    let instrument = Instrument { streams: 1, ..instrument.clone() };
    let Some(packets) = &instrument.packets else { return Err(refused("it sends no packets")) };
    let (to, inlets) = inlets(address, packets.ports()).map_err(|error| refused(&error.to_string()))?;
    let begins = (Calendar::now().time.0 / 1_000_000_000).saturating_sub(YEAR_2000);
    let known = Known { begins, ..Known::of(&instrument) };
    let format = nilometer_wire::of(packets, &known).map_err(|why| refused(&why))?;
    let frames_of_block = instrument.frames_of_block().unwrap_or(1);
    let geometry = format.geometry();
    let shape = Shape {
        size: Bytes(geometry.packet_size() as u64),
        of_block: frames_of_block * geometry.parts.len() as u64,
        room: Bytes(inlets.iter().map(UdpInlet::room).min().unwrap_or(0)),
        ports: inlets.len(),
    };
    let stream = Stream::new(packets.stored(), geometry, Missing::Filled).sent_as(packets, &known);
    let network = Network {
        ports: ports(packets, known, inlets).map_err(|why| refused(&why))?,
        frames_of_block,
        limits: ReorderWindow::default(),
        missing: Missing::Filled,
        until,
        cpu: None,
        beside: None,
    };
    let awaited = StreamSent { instrument, duration, seed, to, begins, lot: shape.of_block };
    let expected = awaited.simulation().and_then(|it| it.expected(0));
    let expected = expected.map_err(|error| refused(&error.to_string()))?;
    Ok(Incoming { network, stream, expected: Expected::Blocks(Box::new(expected)), shape, awaited })
}

fn refused(why: &str) -> Invalid {
    Invalid::Refused(format!("over the network: {why}"))
}

impl StreamSent {
    fn simulation(&self) -> Result<Simulation, SimulationError> {
        Simulation {
            instrument: self.instrument.clone(),
            to: self.to,
            sending: Sending::default(),
            duration: self.duration,
            packets: u64::MAX,
            faults: Faults::default(),
            restart_after: None,
            jump: None,
            begins: self.begins,
            seed: self.seed,
        }
        .in_lots(self.lot)
    }

    /// Makes the sender. It sets `over` when all is sent.
    pub(super) fn sends(&self, clock: Clock, over: Arc<AtomicBool>) -> Result<Sends, Invalid> {
        let sender = self.simulation().and_then(|it| it.sender());
        let sender = sender.map_err(|error| refused(&error.to_string()))?;
        Ok(Sends { sender: Some(sender), clock, cease: Arc::default(), over, task: None })
    }
}

/// Sockets at neighbouring ports, and the first of these.
fn inlets(address: IpAddr, ports: u16) -> io::Result<(SocketAddr, Vec<UdpInlet>)> {
    let listening = Listening::at((address, 0).into());
    let inlets = UdpInlet::open_all(&listening, ports)?;
    Ok((inlets[0].address()?, inlets))
}

/// The packet parameters at each port.
fn ports(packets: &Packets, known: Known, inlets: Vec<UdpInlet>) -> Result<Vec<Port>, String> {
    let known = learning(packets, known);
    let port = |(port, inlet): (u16, UdpInlet)| {
        let format = nilometer_wire::of(packets, &Known { port, ..known })?;
        Ok(Port { transport: Box::new(inlet), format })
    };
    (0..).zip(inlets).map(port).collect()
}

/// The recorder's knowledge before it begins. If packets have serial numbers it learns the frames of a second
/// instead.
fn learning(packets: &Packets, known: Known) -> Known {
    let frames_per_second = known.frames_per_second.filter(|_| packets.serial().is_none());
    Known { frames_per_second, ..known }
}

impl Sends {
    /// Starts the sender: the first packet is due now.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        let Some(sender) = self.sender.take() else { return Ok(()) };
        let clock = self.clock;
        let cease = self.cease.clone();
        let over = self.over.clone();
        let task = DetachedTask::begin("instrument", move || {
            let left = sender.run(clock, &cease);
            over.store(true, Ordering::Relaxed);
            left
        })?;
        self.task = Some(task);
        Ok(())
    }

    /// Ends the sender: no more packets are due.
    pub(super) fn cease(&self) {
        self.cease.store(true, Ordering::Relaxed);
    }

    /// True if it was begun and has not sent all.
    pub(super) fn is_busy(&self) -> bool {
        self.task.is_some() && !self.over.load(Ordering::Relaxed)
    }

    /// Returns the counts of packets sent, if the sender ends within `at_most`; or the reason why it could not.
    pub(super) fn went(&mut self, at_most: Nanos) -> Result<SentPackets, Invalid> {
        self.cease();
        match self.task.take().and_then(|task| task.outcome_within(at_most).ok()) {
            Some(Ok(left)) => Ok(sent(&left)),
            Some(Err(error)) => Err(refused(&error.to_string())),
            None => Err(refused("the instrument did not end")),
        }
    }
}

/// The counts in a sender's report.
fn sent(left: &Left) -> SentPackets {
    SentPackets {
        due: left.counts.iter().map(|counts| counts.due).sum(),
        packets: left.sent.iter().map(|sent| sent.packets).sum(),
        bytes: left.sent.iter().map(|sent| sent.bytes).sum(),
        lateness: left.lateness.clone(),
        user: left.usage.user,
        system: left.usage.system,
        switches: left.usage.switches,
    }
}
