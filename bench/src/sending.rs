//! Packets of 8040 bytes over loopback, as a VLBI back end sends them, beside a bare loop of the same calls: what pacing,
//! faults that are not asked for, headers, stamps and the histogram cost.
//!
//! Both hand eight packets to the kernel with one call (UDP GSO), to the same receiver, which takes them as fast as it
//! can. The bare loop sends as many prepared packets in turn as Nilometer does; sending the same eight over and over, which
//! stay in the processor's nearest cache, stands beside it. What counts is the processor time of the thread that sends; on
//! loopback it brings the packets to the receiver's socket, too.

use std::{
    hint::black_box,
    io,
    net::{SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::Context;
use nilometer_intake::transport::{
    Flow, Outlet, SendPace, Sender, SendingStation, Sent, StreamCourse,
    faults::Faults,
    udp::{Sending, UdpOutlet},
};
use nilometer_model::{DataKind, Frequency, PixelType};
use nilometer_recording::instrument::Content;
use nilometer_storage::Clock;
use nilometer_wire::{Geometry, Ignored, Near, Packet, Part, WireFormat};

use crate::{
    bare,
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::SEED,
};

pub(crate) const PREFIX: usize = 8;
const HEADER: usize = 32;
pub(crate) const BODY: usize = HEADER + 8000;
/// Where the station begins in a word of the header.
const STATION_BITS: u32 = 28;
/// Packets of a call, and of a round.
const BURST: usize = 8;
const PACKETS: u64 = 400_000;

const BARE: &str = "bare, GSO";
const SAME: &str = "bare, the same eight packets";
const OURS: &str = "nilometer";
const SINGLY: &str = "nilometer without GSO";
const NOWHERE: &str = "nilometer to nowhere";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let noise = Content::prepare(&DataKind::Vlbi.into(), &[BODY as u64 * 4], PixelType::Uint2, SEED)?;
    let contest = Contest {
        title: format!("sending: {PACKETS} packets of {} bytes over loopback", PREFIX + BODY),
        quantity: Quantity::CpuPerOperation,
        phases: &["send"],
        rounds: 15,
        contestants: vec![
            Contestant::new(BARE, || bare(noise.distinct() as usize)),
            Contestant::new(SAME, || bare(BURST)),
            Contestant::new(OURS, || ours(&noise, true)),
            Contestant::new(SINGLY, || ours(&noise, false)),
            Contestant::new(NOWHERE, || Ok(vec![sent(&noise, Nowhere::default())?])),
        ],
        bounds: vec![Bound { subject: OURS, peer: BARE, limit: Limit::Times(1.10) }],
    };
    contest.run(stop)
}

fn bare(prepared: usize) -> anyhow::Result<Vec<Cost>> {
    let receiver = Receiver::start()?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(receiver.address)?;
    let mut packets = vec![0; prepared * (PREFIX + BODY)];
    SEED.stream().fill(&mut packets);
    let messages = packets.chunks_exact(BURST * (PREFIX + BODY)).cycle().take(PACKETS as usize / BURST);
    let cost =
        measure::thread(PACKETS as f64, || Ok(bare::send_segments(&socket, messages, PREFIX + BODY)?))?;
    receiver.end()?;
    Ok(vec![cost])
}

fn ours(noise: &Content, segments: bool) -> anyhow::Result<Vec<Cost>> {
    let receiver = Receiver::start()?;
    let outlet = UdpOutlet::connect(receiver.address, &Sending { segments, ..Sending::default() })?;
    let cost = sent(noise, outlet)?;
    receiver.end()?;
    Ok(vec![cost])
}

/// What it costs to send all packets by an outlet.
fn sent(noise: &Content, outlet: impl Outlet + 'static) -> anyhow::Result<Cost> {
    let window = outlet.burst(PREFIX + BODY) as u64;
    let flow = Flow::new(Box::new(Serial::new()), noise.clone(), StreamCourse::default(), window);
    let station = SendingStation::new(flow, Faults::default(), SEED, vec![Box::new(outlet)], None);
    // Nothing can be that fast: every packet is overdue.
    let sender = Sender::new(vec![station], SendPace::new(Frequency(1e9)), PACKETS);
    let mut sent = 0;
    let cost = measure::thread(PACKETS as f64, || {
        sent = sender.run(Clock::start(), &AtomicBool::new(false))?.sent[0].packets;
        Ok(())
    })?;
    anyhow::ensure!(sent == PACKETS, "{sent} of {PACKETS} packets were sent");
    Ok(cost)
}

/// An outlet without a network: what is left is what making and pacing packets cost.
#[derive(Debug, Default)]
struct Nowhere(Sent);

impl Outlet for Nowhere {
    fn send(&mut self, packets: &[Packet<'_>]) -> io::Result<()> {
        black_box(packets);
        self.0.packets += packets.len() as u64;
        Ok(())
    }

    fn burst(&self, _packet_size: usize) -> usize {
        BURST
    }

    fn room(&self) -> u64 {
        u64::MAX
    }

    fn totals(&self) -> Sent {
        self.0
    }
}

/// A serial number in front of a frame with a header, as FILA10G sends VDIF.
#[derive(Debug)]
pub(crate) struct Serial {
    geometry: Geometry,
    /// Stands in the headers of frames, so that two senders never send the same bytes.
    station: u32,
}

impl Serial {
    pub(crate) fn new() -> Self {
        Serial::of_station(0)
    }

    /// One of several senders.
    pub(crate) fn of_station(station: u32) -> Self {
        let geometry = Geometry { prefix: PREFIX, parts: vec![BODY], number_bits: 64, behind: Vec::new() };
        Serial { geometry, station }
    }
}

impl WireFormat for Serial {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn place(&mut self, packet: Packet<'_>) -> Result<Part, Ignored> {
        let frame = packet.prefix.try_into().map(u64::from_le_bytes).map_err(|_| Ignored::Size)?;
        Ok(Part { frame, part: 0 })
    }

    fn fill(&self, _near: Option<Near<'_>>, _part: usize, into: &mut [u8]) {
        into.fill(0);
    }

    fn make(&self, number: u64, _part: usize, prefix: &mut [u8], body: &mut [u8]) {
        prefix.copy_from_slice(&number.to_le_bytes());
        for word in body[..HEADER].as_chunks_mut::<4>().0 {
            *word = (number as u32 ^ self.station << STATION_BITS).to_le_bytes();
        }
    }

    fn of_another_sender(&self) -> Option<Box<dyn WireFormat>> {
        Some(Box::new(Serial::new()))
    }
}

/// Takes what comes, as fast as it can, in a thread of its own.
struct Receiver {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    thread: JoinHandle<io::Result<()>>,
}

impl Receiver {
    fn start() -> anyhow::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(Duration::from_millis(20)))?;
        bare::receive_segments(socket.as_raw_fd(), 64 << 20)?;
        let address = socket.local_addr()?;
        let (over, received) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let thread = thread::spawn({
            let (over, received) = (over.clone(), received.clone());
            move || receive(&socket, &over, &received)
        });
        Ok(Receiver { address, over, received, thread })
    }

    /// Ends it; something must have come.
    fn end(self) -> anyhow::Result<()> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().ok().context("the receiver panicked")??;
        let received = self.received.load(Ordering::Relaxed);
        anyhow::ensure!(received > 0, "nothing was received");
        eprintln!("  received {:.1} %", received as f64 / (PACKETS * (PREFIX + BODY) as u64) as f64 * 100.0);
        Ok(())
    }
}

fn receive(socket: &UdpSocket, over: &AtomicBool, received: &AtomicU64) -> io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        match socket.recv(&mut bytes) {
            Ok(count) => drop(received.fetch_add(count as u64, Ordering::Relaxed)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if over.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
        }
    }
}
