//! An instrument's packets over this machine's own network: who sends them, and what was to be recorded of them.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use nilometer_acquisition::Expected;
use nilometer_acquisition::{
    Network, Port, Until,
    assembly::ReorderWindow,
    transport::{
        Left, Sender, Simulation, Transport,
        faults::Faults,
        udp::{Listening, Sending, UdpInlet},
    },
};
use nilometer_model::{Bytes, Instrument, Invalid, Nanos, Packets, Seed};
use nilometer_recording::{Missing, Stream};
use nilometer_storage::{Calendar, Clock, DetachedTask};
use nilometer_wire::Known;

/// A stream of packets, ready to be sent and to be recorded.
#[derive(Debug)]
pub(super) struct Loopback {
    pub(super) network: Network,
    pub(super) stream: Stream,
    pub(super) expected: Expected,
    pub(super) sends: Sends,
}

/// The simulated instrument, on a thread of its own.
#[derive(Debug)]
pub(super) struct Sends {
    sender: Option<Sender>,
    clock: Clock,
    /// Ends it.
    cease: Arc<AtomicBool>,
    /// Ends what records its packets.
    recording: Arc<AtomicBool>,
    task: Option<DetachedTask<io::Result<Left>>>,
    shape: Shape,
}

/// What is known of packets beside what became of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// The longest packet.
    pub(super) size: Bytes,
    /// Packets of a block.
    pub(super) of_block: u64,
    /// How many bytes of packets may wait in the kernel, at each port.
    pub(super) room: Bytes,
    /// Ports that packets come to.
    pub(super) ports: usize,
}

/// What was sent.
#[derive(Debug)]
pub(super) struct Went {
    pub(super) left: Left,
    pub(super) shape: Shape,
}

/// From 1970-01-01 to 2000-01-01 00:00 UTC, in seconds.
const YEAR_2000: u64 = 946_684_800;

/// One stream of an instrument, for so long. When it has sent all, it sets `recording`.
pub(super) fn stream(
    instrument: &Instrument,
    duration: Nanos,
    seed: Seed,
    clock: Clock,
    recording: Arc<AtomicBool>,
) -> Result<Loopback, Invalid> {
    let refused = |why: String| Invalid::Refused(format!("over loopback: {why}"));
    let instrument = Instrument { streams: 1, ..instrument.clone() };
    let Some(packets) = &instrument.packets else { return Err(refused("it sends no packets".into())) };
    let (to, inlets) = inlets(packets.ports()).map_err(|error| refused(error.to_string()))?;
    let begins = (Calendar::now().time.0 / 1_000_000_000).saturating_sub(YEAR_2000);
    let known = Known { begins, ..Known::of(&instrument) };
    let format = nilometer_wire::of(packets, &known).map_err(refused)?;
    let frames_of_block = packets.frames_of_block(instrument.frame_size());
    let geometry = format.geometry();
    let shape = Shape {
        size: Bytes(geometry.packet_size() as u64),
        of_block: frames_of_block * geometry.parts.len() as u64,
        room: Bytes(inlets.iter().map(UdpInlet::room).min().unwrap_or(0)),
        ports: inlets.len(),
    };
    let stream = Stream::new(packets.stored(), geometry, Missing::Filled).sent_as(packets, &known);
    let simulation = simulation(&instrument, to, duration, begins, seed).in_lots(shape.of_block);
    let made = simulation.and_then(|it| Ok((it.sender()?, it.expected(0)?)));
    let (sender, expected) = made.map_err(|error| refused(error.to_string()))?;
    let network = Network {
        ports: ports(packets, known, inlets).map_err(refused)?,
        frames_of_block,
        limits: ReorderWindow::default(),
        missing: Missing::Filled,
        until: Until::default(),
        cpu: None,
    };
    let sends = Sends { sender: Some(sender), clock, cease: Arc::default(), recording, task: None, shape };
    Ok(Loopback { network, stream, expected: Expected::Blocks(Box::new(expected)), sends })
}

/// Sockets at neighbouring ports, and the first of these.
fn inlets(ports: u16) -> io::Result<(SocketAddr, Vec<UdpInlet>)> {
    let listening = Listening::at((Ipv4Addr::LOCALHOST, 0).into());
    let inlets = UdpInlet::open_all(&listening, ports)?;
    Ok((inlets[0].address()?, inlets))
}

/// What is known of packets at each port.
fn ports(packets: &Packets, known: Known, inlets: Vec<UdpInlet>) -> Result<Vec<Port>, String> {
    let known = learning(packets, known);
    let port = |(port, inlet): (u16, UdpInlet)| {
        let format = nilometer_wire::of(packets, &Known { port, ..known })?;
        Ok(Port { transport: Box::new(inlet), format })
    };
    (0..).zip(inlets).map(port).collect()
}

/// What a recorder knows beforehand: it learns the frames of a second where packets have serial numbers.
fn learning(packets: &Packets, known: Known) -> Known {
    let frames_per_second = known.frames_per_second.filter(|_| packets.serial().is_none());
    Known { frames_per_second, ..known }
}

fn simulation(
    instrument: &Instrument,
    to: SocketAddr,
    duration: Nanos,
    begins: u64,
    seed: Seed,
) -> Simulation {
    Simulation {
        instrument: instrument.clone(),
        to,
        sending: Sending::default(),
        duration,
        packets: u64::MAX,
        faults: Faults::default(),
        restart_after: None,
        jump: None,
        begins,
        seed,
    }
}

impl Sends {
    /// The first packet is due now.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        let Some(sender) = self.sender.take() else { return Ok(()) };
        let clock = self.clock;
        let cease = self.cease.clone();
        let recording = self.recording.clone();
        let task = DetachedTask::begin("instrument", move || {
            let left = sender.run(clock, &cease);
            recording.store(true, Ordering::Relaxed);
            left
        })?;
        self.task = Some(task);
        Ok(())
    }

    /// No more packets are due.
    pub(super) fn cease(&self) {
        self.cease.store(true, Ordering::Relaxed);
    }

    /// What was sent, if it ends within this time; or why it could not be.
    pub(super) fn went(&mut self, at_most: Nanos) -> Result<Went, Invalid> {
        self.cease();
        match self.task.take().and_then(|task| task.outcome_within(at_most).ok()) {
            Some(Ok(left)) => Ok(Went { left, shape: self.shape }),
            Some(Err(error)) => Err(Invalid::Refused(format!("over loopback: {error}"))),
            None => Err(Invalid::Refused("over loopback: the instrument did not end".into())),
        }
    }
}
