//! Packets of 8040 bytes over loopback to a sink that stores nothing, beside bare loops that receive them into the same
//! memory again and again: what order, blocks and the ring cost.
//!
//! The sender is the same for all, paced below the rate at which the bare loops lose packets. What counts is the
//! processor time of the threads that receive: of Nilometer that of the writer, too.

use std::{
    net::{SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    sync::{Arc, atomic::AtomicBool},
    thread,
    time::Duration,
};

use anyhow::Context;
use nilometer_intake::{
    Receiver, Until,
    assembly::{Assembly, ReorderWindow},
    transport::{
        Flow, SendPace, Sender, SendingStation, StreamCourse, Transport,
        faults::Faults,
        udp::{Listening, ROOM, Sending, UdpInlet, UdpOutlet},
    },
};
use nilometer_model::{DataKind, Frequency, Nanos, PixelType, packets::frames_of_block};
use nilometer_recording::{Missing, instrument::Content};
use nilometer_ring::{Chronicle, Ring};
use nilometer_storage::{Arena, Clock, Drive, Engine, engine::Null, process::Usage};

use crate::{
    bare,
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    discarded::DiscardingLane,
    ours::SEED,
    sending::{BODY, PREFIX, Serial},
};

const PACKET: usize = PREFIX + BODY;
/// Slots of the ring: as few as are always free.
const SLOTS: usize = 16;
/// The time in which the packets of one sender's burst come.
const BURST: Nanos = Nanos(100_000);
/// Without a packet for so long, all have come.
const SILENCE: Duration = Duration::from_millis(200);

const BATCHES: &str = "bare, recvmmsg";
const JOINED: &str = "bare, GRO";
const OURS: &str = "nilometer";

/// How packets leave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Eight packets with one call, which the kernel need not take apart.
    pub(crate) segments: bool,
    pub(crate) rate: Frequency,
    pub(crate) packets: u64,
}

impl Load {
    /// For so many seconds, in bursts.
    #[expect(clippy::cast_sign_loss, reason = "neither is below 0")]
    pub(crate) fn lasting(rate: Frequency, seconds: f64) -> Self {
        Load { segments: true, rate, packets: (rate.0 * seconds) as u64 }
    }
}

/// A sender that hands packets over in bursts, as the kernel also joins them from a network card: 8 Gbit/s.
pub(crate) fn joined(stop: &Stop) -> anyhow::Result<Outcome> {
    run(stop, Load { segments: true, rate: Frequency(124_000.0), packets: 250_000 })
}

/// A sender that hands over each packet alone: 4 Gbit/s.
pub(crate) fn single(stop: &Stop) -> anyhow::Result<Outcome> {
    run(stop, Load { segments: false, rate: Frequency(62_000.0), packets: 125_000 })
}

fn run(stop: &Stop, load: Load) -> anyhow::Result<Outcome> {
    let noise = Content::prepare(&DataKind::Vlbi.into(), &[BODY as u64 * 4], PixelType::Uint2, SEED)?;
    let noise = &noise;
    let gigabits = load.rate.0 * PACKET as f64 * 8e-9;
    let how = if load.segments { "in bursts of up to eight" } else { "one by one" };
    let contest = Contest {
        title: format!(
            "receiving: {} packets of {PACKET} bytes at {gigabits:.1} Gbit/s, {how}",
            load.packets
        ),
        quantity: Quantity::CpuPerOperation,
        phases: &["receive"],
        rounds: 9,
        contestants: vec![
            Contestant::new(BATCHES, || Ok(vec![bare_receiver(noise, load, false)?])),
            Contestant::new(JOINED, || Ok(vec![bare_receiver(noise, load, true)?])),
            Contestant::new(OURS, || ours(noise, load)),
        ],
        bounds: vec![
            Bound { subject: OURS, peer: BATCHES, limit: Limit::Times(1.15) },
            Bound { subject: OURS, peer: JOINED, limit: Limit::Times(1.15) },
        ],
    };
    contest.run(stop)
}

/// Sends all packets; the thread that waits for them is heard afterwards.
pub(crate) fn send(noise: &Content, load: Load, to: SocketAddr) -> anyhow::Result<()> {
    send_evenly(noise, load, &[to])
}

/// The same, by a sender with numbers of its own for each address, which sends its share of the packets.
pub(crate) fn send_evenly(noise: &Content, load: Load, to: &[SocketAddr]) -> anyhow::Result<()> {
    let stations = (0..).zip(to).map(|(number, to)| {
        let outlet = UdpOutlet::connect(*to, &Sending { segments: load.segments, ..Sending::default() })?;
        let format = Box::new(Serial::of_station(number));
        let flow = Flow::new(format, noise.clone(), StreamCourse::default(), 64);
        Ok(SendingStation::new(flow, Faults::default(), SEED, vec![Box::new(outlet)], None))
    });
    let stations = stations.collect::<anyhow::Result<Vec<_>>>()?;
    let (rate, packets) = (load.rate.0 / to.len() as f64, load.packets / to.len() as u64);
    // Bursts of as many packets as those of one sender: the kernel takes as many at once from each.
    let pace = SendPace::new(Frequency(rate)).with_bursts_of(Nanos(BURST.0 * to.len() as u64));
    let left = Sender::new(stations, pace, packets).run(Clock::start(), &AtomicBool::new(false))?;
    anyhow::ensure!(left.sent.iter().all(|sent| sent.packets == packets), "{:?}", left.sent);
    Ok(())
}

/// A loop that receives into the same memory again and again.
pub(crate) fn bare_receiver(noise: &Content, load: Load, joined: bool) -> anyhow::Result<Cost> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?;
    bare::receive_room(socket.as_raw_fd(), ROOM.0 as usize)?;
    if joined {
        bare::receive_segments(socket.as_raw_fd(), ROOM.0 as usize)?;
    }
    let receiving = thread::spawn(move || -> anyhow::Result<Cost> {
        // Until the first packet is there, the sender prepares.
        socket.peek(&mut [0])?;
        socket.set_read_timeout(Some(SILENCE))?;
        let (clock, before) = (Clock::start(), Usage::of_thread());
        let packets = if joined {
            bare::receive_joined(&socket, PACKET)?
        } else {
            bare::receive_batches(&socket, PACKET)?
        };
        Ok(cost(packets, Usage::of_thread().since(before), clock.now()))
    });
    send(noise, load, address)?;
    whole(receiving.join().ok().context("the receiver panicked")??, load)
}

/// The highest rate, in steps, at which a bare `recvmmsg` loop takes every packet for so many seconds. What the sender does not
/// reach does not count.
pub(crate) fn lossless(noise: &Content, seconds: f64) -> anyhow::Result<Frequency> {
    let taken = |rate: f64, seconds: f64| {
        let load = Load::lasting(Frequency(rate), seconds);
        let cost = bare_receiver(noise, load, false).ok()?;
        let all = cost.amount >= load.packets as f64;
        all.then(|| Frequency(rate.min(cost.amount / (cost.wall - SILENCE.as_secs_f64()))))
    };
    let rates = (1..=STEPS).rev().map(|step| f64::from(step) * STEP);
    // What it does not take for a moment it does not take for long.
    let mut lasting = rates.filter_map(|rate| taken(rate, 1.0).and_then(|_| taken(rate, seconds)));
    lasting.next().context("a bare loop loses packets at any rate here")
}

/// Packets a second: 1.6 to 32 Gbit/s.
const STEP: f64 = 25_000.0;
const STEPS: u32 = 20;

fn ours(noise: &Content, load: Load) -> anyhow::Result<Vec<Cost>> {
    let inlet = UdpInlet::open(&Listening::at("127.0.0.1:0".parse()?))?;
    let address = inlet.address()?;
    ours_from(Box::new(inlet), load, || send(noise, load, address))
}

/// What receiving from this transport costs while all packets are sent.
pub(crate) fn ours_from(
    transport: Box<dyn Transport>,
    load: Load,
    send: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Cost>> {
    let frames = frames_of_block(BODY, 4096).context("such frames fill pages")?;
    let (clock, size) = (Clock::start(), frames as usize * BODY);
    let mut slots = Arena::shared_out(SLOTS, size).1;
    for slot in &mut slots {
        slot.fill(1);
    }
    let ring = Ring::new(slots, 1, Chronicle::new(size as u64, Nanos::from_millis(10)));
    let writing = thread::spawn({
        let ring = ring.clone();
        move || write(ring, clock)
    });
    let receiving = thread::spawn(move || receive(transport, &ring, frames, clock));
    send()?;
    let (packets, received) = receiving.join().ok().context("the receiver panicked")?;
    let written = writing.join().ok().context("the writer panicked")?;
    Ok(vec![whole(cost(packets, received.and(written), clock.now()), load)?])
}

fn receive(transport: Box<dyn Transport>, ring: &Arc<Ring>, frames: u64, clock: Clock) -> (u64, Usage) {
    let format = Box::new(Serial::new());
    let assembly =
        Assembly::new(vec![format], ring.clone(), frames, ReorderWindow::default(), Missing::Filled);
    let until = Until { silence: Nanos(SILENCE.as_nanos() as u64), ..Until::default() };
    let mut receiver = Receiver::new(vec![transport], assembly, until);
    let live = receiver.live();
    // The thread does nothing before, but waits for the first packet.
    ring.close(receiver.run(clock, &AtomicBool::new(false)));
    let placed = live.lock().map_or(0, |traffic| traffic.tally.placed);
    (placed, Usage::of_thread())
}

fn write(ring: Arc<Ring>, clock: Clock) -> Usage {
    let mut engine = Null::new(1, clock);
    ring.seat_writer(0, engine.waker());
    Drive::new(&mut DiscardingLane::new(ring, clock), &mut engine).run(|_| {});
    Usage::of_thread()
}

fn cost(packets: u64, usage: Usage, wall: Nanos) -> Cost {
    Cost { amount: packets as f64, cpu: usage.total().seconds(), wall: wall.seconds() }
}

/// A figure counts if hardly anything was lost.
fn whole(cost: Cost, load: Load) -> anyhow::Result<Cost> {
    let share = cost.amount / load.packets as f64;
    eprintln!("  received {:.2} %", share * 100.0);
    anyhow::ensure!(share > 0.9, "only {:.1} % of the packets came", share * 100.0);
    Ok(cost)
}
