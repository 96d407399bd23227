//! Packets from a network that loses, doubles and delays them, in virtual time, onto a target that forgets what was not
//! synced: crashed at random moments, everything that was acknowledged or called durable is there, each packet in its
//! place, every gap noted, and nothing that is half written is called whole.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use nilometer_acquisition::{
    Follower, Following, Purpose, Writer,
    sink::{Durability, Gauge, LaneFiles, RawLayout},
};
use nilometer_intake::{
    Receiver, Traffic, Until,
    assembly::{Assembly, ReorderWindow},
    conformance::SerialFormat,
    transport::MemoryTransport,
};
use nilometer_model::{FileNames, Format, Nanos, Seed, Storing};
use nilometer_recording::{
    Missing, Stream,
    journal::{self, Entry, Head},
    reader::{Index, Trust},
};
use nilometer_ring::{Chronicle, Ring};
use nilometer_storage::{
    Arena, Completion, Drive, Engine, Step, Wait, Workload,
    clock::VirtualClock,
    interleave,
    testing::{Cost, Device, Simulated},
};
use nilometer_wire::WireFormat;

use crate::lab::read_all;

/// Bytes of a packet that are kept; 16 of them fill a page of the simulated target.
const BODY: usize = 32;
const PER_BLOCK: u64 = 16;
const BLOCK: usize = BODY * PER_BLOCK as usize;
const PACKETS: u64 = 1500;
/// From one packet to the next.
const PERIOD: u64 = 200;
const FILLED: u8 = 77;
/// Operations of the lane that are in flight at once, at the most.
const IN_FLIGHT: usize = 3;

/// A serial number of 8 bytes in front of 32 bytes that repeat it, with a mark.
fn format() -> SerialFormat {
    SerialFormat::new(BODY, |behind| behind.fill(FILLED))
}

fn body(serial: u64, mark: u8) -> [u8; BODY] {
    let mut body = [mark; BODY];
    body[..8].copy_from_slice(&serial.to_le_bytes());
    body
}

/// The network: each packet comes at its time.
struct Network {
    receiver: Receiver,
    ring: Arc<Ring>,
    memory: std::sync::mpsc::SyncSender<Vec<u8>>,
    arrivals: Vec<(Nanos, u64)>,
    next: usize,
    over: bool,
}

impl Workload for Network {
    fn next(&mut self, now: Nanos) -> Step {
        while let Some(&(_, serial)) = self.arrivals.get(self.next).filter(|(at, _)| *at <= now) {
            let packet = [&serial.to_le_bytes()[..], &body(serial, 1)].concat();
            self.memory.try_send(packet).expect("the transport takes all that came");
            self.next += 1;
        }
        self.receiver.turn(now).expect("memory does not fail");
        if let Some(&(at, _)) = self.arrivals.get(self.next) {
            return Step::Wait(Wait::Until(at));
        }
        if !std::mem::replace(&mut self.over, true) {
            let blocks = self.receiver.end(now, None);
            self.ring.close(blocks);
        }
        Step::Done
    }

    fn completed(&mut self, _completion: Completion) {
        unreachable!("it issues nothing");
    }
}

/// What a network makes of the packets: when each comes, the first one first.
fn arrivals(seed: Seed) -> Vec<(Nanos, u64)> {
    let mut stream = seed.named("network").stream();
    let mut arrivals = vec![(Nanos(0), 0)];
    for serial in 1..PACKETS {
        let due = serial * PERIOD;
        let late = if stream.below(10) == 0 { stream.below(8 * PERIOD) } else { 0 };
        match stream.below(40) {
            0 => {}
            1 => arrivals.extend([(Nanos(due + late), serial), (Nanos(due + late + PERIOD), serial)]),
            _ => arrivals.push((Nanos(due + late), serial)),
        }
    }
    arrivals[1..].sort_unstable();
    arrivals
}

struct Run {
    target: Simulated,
    durable: Option<u64>,
    mark: u64,
    traffic: Traffic,
    clock: VirtualClock,
}

fn layout() -> RawLayout {
    let head = Head {
        recording: 3,
        lane: 0,
        lanes: 1,
        frame_size: BLOCK as u64,
        stride: BLOCK as u64,
        frames_per_file: 8,
        storing: Storing::Shared,
        format: Format::Raw,
        names: FileNames::default(),
    };
    RawLayout {
        durability: Durability::EachFile,
        checksums: true,
        stream: Some(Stream::new(Format::Raw, format().geometry(), Missing::Filled)),
        ..RawLayout::suited("n_p".into(), head, true)
    }
}

/// Records to the end, or until the power goes off at `until`.
fn run(seed: Seed, until: Nanos) -> Run {
    let clock = VirtualClock::default();
    let write = Cost { base: Nanos(500), picoseconds_per_byte: 200 };
    let sync = Cost::fixed(Nanos(20_000));
    let device = Device { write, sync, metadata: Cost::fixed(Nanos(2000)), parallel: 2, ..Device::default() };
    let target = Simulated::new(device, clock.clone());
    // A slot for each block: nothing is refused.
    let ring = Ring::new(Arena::shared_out(100, BLOCK).1, 1, Chronicle::new(BLOCK as u64, Nanos(100_000)));
    let mut engine = target.attach(IN_FLIGHT, 8);
    ring.seat_writer(0, engine.waker());
    let mut writer = Writer::new(ring.clone(), 0, LaneFiles::new(layout(), Gauge::with_reserve(0)));
    let mut idle = Simulated::new(Device::default(), clock.clone()).attach(1, 1);
    ring.seat_source(idle.waker());
    let limits = ReorderWindow { window: 32, gap: 200, patience: Nanos(50_000), quiet: Nanos(20_000) };
    let assembly = Assembly::new(vec![Box::new(format())], ring.clone(), PER_BLOCK, limits, Missing::Filled);
    let (memory, transport) = MemoryTransport::channel();
    let receiver = Receiver::new(vec![Box::new(transport)], assembly, Until::default());
    let live = receiver.live();
    let arrivals = arrivals(seed);
    let mut network = Network { receiver, ring: ring.clone(), memory, arrivals, next: 0, over: false };
    {
        let mut drives = [Drive::new(&mut network, &mut idle), Drive::new(&mut writer, &mut engine)];
        interleave(&clock, &mut drives, until, &mut |_, _| {});
    }
    let traffic = live.lock().expect("one thread").clone();
    Run { target, durable: writer.sink().durable(), mark: ring.mark(), traffic, clock }
}

/// What a reader finds, and what is wrong with it.
fn found(run: &Run, seed: Seed, trust: Trust) -> (Index, Vec<String>) {
    let journal = read_all(&run.target, "n_p.0.journal");
    let index = Index::unite([journal.as_slice()], trust);
    let file = read_all(&run.target, "n_p.raw");
    let noted = journal::prefix(&journal).into_iter().filter_map(|entry| match entry {
        Entry::Frame { number, checksum, .. } => Some((number, checksum?)),
        _ => None,
    });
    let checksums: BTreeMap<u64, u32> = noted.collect();
    let there: BTreeSet<u64> = arrivals(seed).into_iter().map(|(_, serial)| serial).collect();
    let mut wrong = Vec::new();
    for (block, place) in index.frames.iter() {
        let extent = place.extent;
        let bytes = file.get(extent.offset as usize..extent.end() as usize).unwrap_or_default();
        if bytes.is_empty() || checksums.get(&block) != Some(&crc32fast::hash(bytes)) {
            wrong.push(format!("block {block} differs from its checksum"));
            continue;
        }
        let gaps: BTreeMap<u64, u64> =
            index.gaps.get(&block).into_iter().flatten().map(|gap| (u64::from(gap.at), gap.count)).collect();
        let noted = |at: u64| gaps.range(..=at).next_back().is_some_and(|(first, count)| at < first + count);
        for (at, packet) in (0..).zip(bytes.chunks_exact(BODY)) {
            let serial = block * PER_BLOCK + at;
            let filled = packet == body(serial, FILLED);
            if !filled && packet != body(serial, 1) || filled != noted(at) {
                wrong.push(format!("packet {serial} is neither there nor noted as missing"));
            }
            if !filled && !there.contains(&serial) {
                wrong.push(format!("packet {serial} never came"));
            }
        }
    }
    (index, wrong)
}

/// A copy of a recording that is over.
fn copied(from: &Simulated, clock: &VirtualClock) -> Simulated {
    let to = Simulated::new(Device::default(), clock.clone());
    let ring = Ring::new(Arena::shared_out(4, BLOCK).1, 1, Chronicle::new(BLOCK as u64, Nanos(100_000)));
    let purpose = Purpose::Copy(ring.clone());
    let mut follower = Follower::new(vec![layout()], purpose, Following::default(), Arc::default());
    let mut reading = from.attach(1, Follower::slots(1));
    ring.seat_source(reading.waker());
    let mut writing = to.attach(IN_FLIGHT, 8);
    ring.seat_writer(0, writing.waker());
    let mut writer = Writer::new(ring, 0, LaneFiles::new(layout(), Gauge::with_reserve(0)));
    {
        let mut drives = [Drive::new(&mut follower, &mut reading), Drive::new(&mut writer, &mut writing)];
        interleave(clock, &mut drives, Nanos::MAX, &mut |_, _| {});
    }
    to
}

#[test]
fn a_copy_says_what_is_missing_as_the_recording_does() {
    let mut gaps = 0;
    for seed in (0..50).map(Seed) {
        let Run { target, durable, mark, traffic, clock } = run(seed, Nanos::MAX);
        let first = (read_all(&target, "n_p.0.journal"), read_all(&target, "n_p.raw"));
        let of = |journal: &[u8]| Index::unite([journal], Trust::Durable);
        let index = of(&first.0);
        let copy = Run { target: copied(&target, &clock), durable, mark, traffic, clock };
        let (copied, wrong) = found(&copy, seed, Trust::Durable);
        assert_eq!(wrong, Vec::<String>::new(), "{seed:?}");
        assert_eq!(read_all(&copy.target, "n_p.raw"), first.1, "{seed:?}: as long, and with the same bytes");
        assert!(copied.frames.iter().eq(index.frames.iter()), "{seed:?}: as long a last block");
        assert_eq!((&copied.gaps, copied.due, copied.last), (&index.gaps, index.due, index.last), "{seed:?}");
        gaps += index.gaps.len();
    }
    assert!(gaps > 0, "nothing was missing in any");
}

fn seeds() -> u64 {
    if std::env::var_os("NILOMETER_LONG").is_some() { 50_000 } else { 1000 }
}

/// A moment of the recording.
fn moment(seed: Seed) -> Nanos {
    Nanos(seed.named("moment").stream().below(PACKETS * PERIOD + 100_000))
}

#[test]
fn a_recording_is_complete_and_says_what_is_missing() {
    for seed in (0..50).map(Seed) {
        let run = run(seed, Nanos::MAX);
        let (index, wrong) = found(&run, seed, Trust::Durable);
        assert_eq!(wrong, Vec::<String>::new(), "{seed:?}");
        let came: BTreeSet<u64> = arrivals(seed).into_iter().map(|(_, serial)| serial).collect();
        let last = came.last().expect("the first came at least") + 1;
        let tally = &run.traffic.tally;
        assert_eq!((tally.placed, tally.missing), (came.len() as u64, last - came.len() as u64), "{seed:?}");
        assert_eq!(tally.came(), arrivals(seed).len() as u64);
        let bytes: u64 = index.frames.iter().map(|(_, place)| u64::from(place.extent.size)).sum();
        assert_eq!((bytes, index.missing(), index.ended), (last * BODY as u64, vec![], 1), "{seed:?}");
        assert_eq!(read_all(&run.target, "n_p.raw").len() as u64, bytes, "nothing stands behind the end");
    }
}

#[test]
fn what_was_called_durable_survives_the_loss_of_power() {
    let mut promised = 0;
    for seed in (0..seeds()).map(Seed) {
        let run = run(seed, moment(seed));
        let before = found(&run, seed, Trust::Acknowledged).0;
        run.target.crash(seed.named("crash"));
        let (after, wrong) = found(&run, seed, Trust::Durable);
        assert_eq!(wrong, Vec::<String>::new(), "{seed:?}");
        let kept =
            || before.frames.iter().filter(|(_, place)| run.durable.is_some_and(|last| place.file() <= last));
        let gone: Vec<_> = kept().filter(|(number, _)| !after.frames.contains(*number)).collect();
        assert!(gone.is_empty(), "{seed:?}: {gone:?} were called durable");
        promised += kept().count();
    }
    assert!(promised > 1000, "only {promised} blocks were called durable: the moments are too early");
}

#[test]
fn what_was_acknowledged_survives_the_death_of_the_process() {
    let mut seen = 0;
    for seed in (0..seeds() / 3).map(Seed) {
        let run = run(seed, moment(seed));
        run.target.kill();
        let (index, wrong) = found(&run, seed, Trust::Acknowledged);
        assert_eq!(wrong, Vec::<String>::new(), "{seed:?}");
        let gone: Vec<u64> = (0..run.mark).filter(|number| !index.frames.contains(*number)).collect();
        assert!(gone.is_empty(), "{seed:?}: {gone:?} were acknowledged");
        // A block may be acknowledged before an earlier one that is written at the same time: that one was promised to nobody.
        let holes: u64 = index.missing().iter().map(|(_, count)| count).sum();
        assert!(holes < IN_FLIGHT as u64, "{seed:?}: {:?} are missing", index.missing());
        seen += index.frames.len();
    }
    assert!(seen > 1000, "only {seen} blocks were recorded: the moments are too early");
}
