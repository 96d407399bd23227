//! The simulated instrument at the other end of the network. It sends each packet when it is due, with the
//! faults that the user configured, whether or not a recorder takes it.

use std::{
    io,
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
};

use nilometer_model::{Histogram, Nanos, Seed};
use nilometer_storage::{Calendar, Clock, process::Usage};

use super::{
    Flow, InStep, Made, Outlet, SendPace, Sent, Waiting,
    faults::{Departures, FaultCounts, Faults, Leaving},
};
use nilometer_wire::Packet;

/// One stream with its own outlets.
#[derive(Debug)]
pub struct SendingStation {
    flow: Flow,
    departures: Departures,
    /// One for each port to which packets go.
    outlets: Vec<Box<dyn Outlet>>,
    /// A second way to the first of these, from another port.
    stranger: Option<Box<dyn Outlet>>,
    foreign: Vec<Vec<u8>>,
    leaving: Vec<Leaving>,
    ready: Vec<Ready>,
}

/// A packet that is ready to be sent.
#[derive(Debug, Clone, Copy)]
struct Ready {
    way: Way,
    bytes: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Port(usize),
    Stranger,
}

/// The location of a packet's bytes: in the flow, or by index among the packets outside any flow.
#[derive(Debug, Clone, Copy)]
enum Bytes {
    Made(Made),
    Odd(usize),
    Foreign(usize),
}

/// Number of prepared packets of another kind.
const FOREIGN: u64 = 16;

impl SendingStation {
    /// Sends a flow with faults derived from the seed.
    ///
    /// The packets of a frame are divided among the outlets in order: the first outlet gets the first ones.
    /// Every second foreign packet leaves by `stranger`, if there is one. Foreign packets consist of random
    /// bytes, in a size that the stream has.
    pub fn new(
        flow: Flow,
        faults: Faults,
        seed: Seed,
        outlets: Vec<Box<dyn Outlet>>,
        stranger: Option<Box<dyn Outlet>>,
    ) -> Self {
        let parts = flow.geometry().parts.len();
        assert!(!outlets.is_empty() && parts.is_multiple_of(outlets.len()), "each port gets as many packets");
        let sizes = flow.packet_sizes();
        let departures = Departures::new(faults, &sizes, seed);
        let random = |(index, size): (u64, &usize)| {
            let mut bytes = vec![0; *size];
            seed.named("foreign packets").part(index).stream().fill(&mut bytes);
            bytes
        };
        let foreign = (0..FOREIGN).zip(sizes.iter().cycle()).map(random).collect();
        let leaving = Vec::new();
        let ready = Vec::new();
        SendingStation { flow, departures, outlets, stranger, foreign, leaving, ready }
    }

    /// Sends the next packets, which are due.
    fn send(&mut self, packets: Range<u64>) -> io::Result<()> {
        self.leaving.clear();
        packets.for_each(|_| self.departures.next(&mut self.leaving));
        self.send_leaving()
    }

    /// Sends the packets that were held back, after the last one was due.
    fn finish(&mut self) -> io::Result<()> {
        self.leaving.clear();
        self.departures.finish(&mut self.leaving);
        self.send_leaving()
    }

    fn send_leaving(&mut self) -> io::Result<()> {
        let odd = self.make();
        let SendingStation { flow, outlets, stranger, foreign, ready, .. } = self;
        for ready in ready.chunk_by(|a, b| a.way == b.way) {
            let bytes = |ready: &Ready| match ready.bytes {
                Bytes::Made(made) => flow.packet(made),
                Bytes::Odd(index) => alone(&odd[index]),
                Bytes::Foreign(index) => alone(&foreign[index]),
            };
            let packets: Vec<Packet<'_>> = ready.iter().map(bytes).collect();
            let outlet = match ready[0].way {
                Way::Port(port) => &mut outlets[port],
                Way::Stranger => stranger.as_mut().expect("an outlet exists if strangers send"),
            };
            outlet.send(&packets)?;
        }
        Ok(())
    }

    /// Prepares the packets that leave next. Packets in another size are copies.
    fn make(&mut self) -> Vec<Vec<u8>> {
        let mut odd = Vec::new();
        self.ready.clear();
        for left in &self.leaving {
            self.ready.push(match *left {
                Leaving::Packet(number) => {
                    Ready { way: Way::Port(self.port(number)), bytes: Bytes::Made(self.flow.make(number)) }
                }
                Leaving::Odd(number, size) => {
                    let made = self.flow.make(number);
                    odd.push(cut(self.flow.packet(made), size));
                    Ready { way: Way::Port(self.port(number)), bytes: Bytes::Odd(odd.len() - 1) }
                }
                Leaving::Foreign(number) => {
                    let strange = number % 2 == 1 && self.stranger.is_some();
                    let way = if strange { Way::Stranger } else { Way::Port(0) };
                    Ready { way, bytes: Bytes::Foreign((number % FOREIGN) as usize) }
                }
            });
        }
        odd
    }

    /// The port by which a packet leaves: a frame's parts are divided evenly.
    fn port(&self, number: u64) -> usize {
        let parts = self.flow.geometry().parts.len();
        let outlets = self.outlets.len();
        if outlets == 1 { 0 } else { (number % parts as u64) as usize / (parts / outlets) }
    }

    fn restarts(&self) -> u64 {
        let parts = self.flow.geometry().parts.len() as u64;
        self.flow.course().restarts(self.departures.counts().due.div_ceil(parts))
    }

    fn sent(&self) -> Sent {
        let ways = self.outlets.iter().chain(&self.stranger);
        ways.fold(Sent::default(), |sent, outlet| sent.and(outlet.totals()))
    }
}

/// A packet in another size: cut off, or with zeroes behind it.
fn cut(packet: Packet<'_>, size: usize) -> Vec<u8> {
    let mut bytes = [packet.prefix, packet.body].concat();
    bytes.resize(size, 0);
    bytes
}

/// A packet in one piece.
fn alone(bytes: &[u8]) -> Packet<'_> {
    Packet { prefix: &[], body: bytes }
}

/// Stations that send in step.
#[derive(Debug)]
pub struct Sender {
    stations: Vec<SendingStation>,
    pace: SendPace,
    packets: u64,
    burst: u64,
}

/// The result of sending.
#[derive(Debug, Clone, Default)]
pub struct Left {
    /// Faults of each station.
    pub counts: Vec<FaultCounts>,
    /// Packets and bytes that each station handed to the network.
    pub sent: Vec<Sent>,
    /// How late packets left after they were due, in nanoseconds. A packet in a burst leaves with the last
    /// one of it.
    pub lateness: Histogram,
    /// How often serial numbers fell back, over all stations.
    pub restarts: u64,
    /// Size of the kernel's send buffer in bytes: the smallest of all stations.
    pub room: u64,
    /// Packets in a burst.
    pub burst: u64,
    /// When the last packet was due, counted from the beginning.
    pub due: Nanos,
    /// Time from the beginning until the last packet had left.
    pub wall: Nanos,
    /// Resource usage of the sending thread.
    pub usage: Usage,
    /// True if it was stopped before its end.
    pub stopped: bool,
}

impl Sender {
    /// Takes at least one station. Each sends `packets` packets at this pace.
    pub fn new(stations: Vec<SendingStation>, pace: SendPace, packets: u64) -> Self {
        let most = stations
            .iter()
            .map(|station| station.outlets[0].burst(station.flow.geometry().packet_size()))
            .min();
        let burst = pace.burst(most.expect("there is at least one station")) as u64;
        Sender { stations, pace, packets, burst }
    }

    /// Packets in a burst at this pace, limited by the outlet that takes the fewest at once. A flow's window
    /// must hold them all.
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// Sends everything on the calling thread, until the end or until `stop` is set.
    ///
    /// # Errors
    ///
    /// If an outlet fails, which would hit every further packet.
    pub fn run(mut self, clock: Clock, stop: &AtomicBool) -> io::Result<Left> {
        let mut waiting = Waiting::here();
        let usage = Usage::of_thread();
        let mut lateness = Histogram::default();
        let start = clock.now();
        let (mut now, mut first) = (start, 0);
        let running = || Calendar::now().running;
        let mut in_step = InStep::new(start, running());
        while first < self.packets && !stop.load(Ordering::Relaxed) {
            let next = self.pace.burst_end(first, self.burst).min(self.packets);
            in_step.look(now, running);
            for index in 0..self.stations.len() {
                let phase = self.phase(index);
                waiting.until(in_step.at(phase + self.pace.due(next - 1)), now, clock);
                self.stations[index].send(first..next)?;
                now = clock.now();
                for number in first..next {
                    lateness.add(now.since(in_step.at(phase + self.pace.due(number))).0);
                }
            }
            first = next;
        }
        self.stations.iter_mut().try_for_each(SendingStation::finish)?;
        let wall = clock.now().since(start);
        let usage = Usage::of_thread().since(usage);
        let due = first.checked_sub(1).map_or(Nanos(0), |last| self.pace.due(last));
        let stopped = first < self.packets;
        Ok(Left { lateness, due, wall, usage, stopped, ..self.told() })
    }

    /// Collects the counters of stations and their outlets.
    fn told(&self) -> Left {
        Left {
            counts: self.stations.iter().map(|station| station.departures.counts()).collect(),
            sent: self.stations.iter().map(SendingStation::sent).collect(),
            restarts: self.stations.iter().map(SendingStation::restarts).sum(),
            room: self.stations.iter().map(|station| station.outlets[0].room()).min().unwrap_or_default(),
            burst: self.burst,
            ..Left::default()
        }
    }

    /// Offset of a station: each begins its share of a burst's time later, so that they do not send at the
    /// same moment.
    fn phase(&self, index: usize) -> Nanos {
        Nanos(self.pace.due(self.burst - 1).0 * index as u64 / self.stations.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{DataKind, Frequency, PixelType};

    use super::*;
    use crate::transport::{
        StreamCourse,
        trial::{Kept, Numbered},
    };
    use nilometer_recording::instrument::Content;
    use nilometer_wire::WireFormat;

    const FRAME: usize = 200;
    const PACKETS: u64 = 3000;

    fn station(faults: Faults, seed: u64, stranger: bool) -> (SendingStation, Kept, Kept) {
        let content =
            Content::prepare(&DataKind::Vlbi.into(), &[FRAME as u64 * 4], PixelType::Uint2, Seed(seed));
        let (content, format) = (content.expect("it can be made"), Box::new(Numbered::new(&[FRAME])));
        let flow = Flow::new(format, content, StreamCourse::default(), 8 + faults.distance);
        let (kept, other) = (Kept::default(), Kept::default());
        let second: Option<Box<dyn Outlet>> = stranger.then(|| Box::new(other.clone()) as Box<dyn Outlet>);
        (SendingStation::new(flow, faults, Seed(seed), vec![Box::new(kept.clone())], second), kept, other)
    }

    fn run(stations: Vec<SendingStation>, stop: bool) -> Left {
        let sender = Sender::new(stations, SendPace::new(Frequency(1e6)), PACKETS);
        sender.run(Clock::start(), &AtomicBool::new(stop)).expect("memory takes all")
    }

    fn serial(packet: &[u8]) -> u64 {
        Numbered::new(&[FRAME])
            .place(Packet { prefix: &packet[..8], body: &packet[8..] })
            .expect("one of ours")
            .frame
    }

    #[test]
    fn every_packet_leaves_once_in_order_with_what_follows_from_its_number() {
        let (station, kept, _) = station(Faults::default(), 1, false);
        let content = station.flow.packet_sizes();
        let left = run(vec![station], false);
        let packets = kept.packets();
        assert!(packets.iter().map(|packet| serial(packet)).eq(0..PACKETS));
        assert!(packets.iter().all(|packet| packet.len() == content[0]));
        let Left { counts, lateness, burst, stopped, wall, .. } = left;
        assert_eq!(counts, [FaultCounts { due: PACKETS, left: PACKETS, ..FaultCounts::default() }]);
        assert_eq!((lateness.count(), burst, stopped), (PACKETS, 8, false));
        assert!(wall >= Nanos::from_millis(3), "3000 packets at a million a second in {wall}");
    }

    #[test]
    fn faults_are_those_of_the_pure_part_and_foreign_packets_come_from_two_sides() {
        let faults = Faults {
            loss: 0.1,
            loss_burst: 3,
            reorder: 0.1,
            distance: 20,
            duplicate: 0.1,
            odd: 0.1,
            foreign: 0.5,
        };
        let (station, kept, other) = station(faults, 2, true);
        let left = run(vec![station], false);
        let (mut departures, mut leaving) = (Departures::new(faults, &[FRAME + 8], Seed(2)), Vec::new());
        (0..PACKETS).for_each(|_| departures.next(&mut leaving));
        departures.finish(&mut leaving);
        assert_eq!(left.counts, [departures.counts()]);
        let own = |left: &&Leaving| !matches!(left, Leaving::Foreign(number) if number % 2 == 1);
        let packets = kept.packets();
        assert_eq!(packets.len(), leaving.iter().filter(own).count());
        for (packet, left) in packets.iter().zip(leaving.iter().filter(own)) {
            match *left {
                Leaving::Packet(number) => assert_eq!((serial(packet), packet.len()), (number, FRAME + 8)),
                Leaving::Odd(number, size) => {
                    assert_eq!(packet.len(), size);
                    assert!(size < 8 || serial(packet) == number);
                }
                Leaving::Foreign(_) => assert!(packet.len() == FRAME + 8 && serial(packet) > PACKETS),
            }
        }
        let foreign = left.counts[0].foreign;
        assert_eq!(other.packets().len() as u64, foreign / 2);
        assert_eq!(left.sent[0].packets, packets.len() as u64 + foreign / 2);
    }

    #[test]
    fn stations_take_turns_and_each_sends_all() {
        let (one, kept, _) = station(Faults::default(), 1, false);
        let (two, other, _) = station(Faults { loss: 1.0, ..Faults::default() }, 2, false);
        let left = run(vec![one, two], false);
        assert_eq!((kept.packets().len() as u64, other.packets().len()), (PACKETS, 0));
        assert_eq!(left.counts.iter().map(|counts| counts.lost).collect::<Vec<_>>(), [0, PACKETS]);
        assert_eq!(left.lateness.count(), 2 * PACKETS);
    }

    #[test]
    fn the_parts_of_a_frame_are_shared_out_among_ports() {
        let content = Content::prepare(&DataKind::Vlbi.into(), &[4 * 64 * 4], PixelType::Uint2, Seed(1));
        let format = Box::new(Numbered::new(&[64; 4]));
        let flow = Flow::new(format, content.expect("it can be made"), StreamCourse::default(), 8);
        let ports = [Kept::default(), Kept::default()];
        let outlets = ports.iter().map(|kept| Box::new(kept.clone()) as Box<dyn Outlet>).collect();
        run(vec![SendingStation::new(flow, Faults::default(), Seed(1), outlets, None)], false);
        for (port, kept) in ports.iter().enumerate() {
            let packets = kept.packets();
            assert_eq!(packets.len() as u64, PACKETS / 2);
            assert!(packets.iter().all(|packet| serial(packet) as usize % 4 / 2 == port));
        }
    }

    #[test]
    fn a_stop_ends_it() {
        let (station, kept, _) = station(Faults::default(), 1, false);
        let left = run(vec![station], true);
        assert!(left.stopped && kept.packets().is_empty(), "{left:?}");
    }
}
