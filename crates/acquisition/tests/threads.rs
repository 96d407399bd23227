//! The recorder on threads, with real bytes on a real file system, read back frame by frame.

use std::sync::{Arc, atomic::AtomicBool};

use nilometer_acquisition::{
    Ending, Feed, Network, Port, Recorder, Setup, Status,
    sink::{Durability, FILE_SLOTS, LaneOptions, RawLayout, lanes_of},
};
use nilometer_intake::{Until, assembly::ReorderWindow, transport::MemoryTransport};
use nilometer_model::{
    Bytes, Coldness, DeviceTraffic, EngineKind, FileNames, FileSystemSpace, Format, Instrument, Nanos,
    Schedule, Seed, Storing, TargetDescription,
};
use nilometer_recording::{
    Missing, Stream,
    instrument::{Content, Pattern},
    journal::Head,
    reader::{Recording, Trust},
    recording_storage::TargetDirectories,
    verify,
    view::{Extent, RecordingView, Scan},
};
use nilometer_ring::{Delivery, Pace};
use nilometer_storage::{
    Clock, Engine, EngineError, OpKind, Target,
    engine::Options,
    target::{Posix, TargetError, probe},
    testing::Memory,
    testing::wrap::{FaultEffect, Faulty, Rule, When},
};

use nilometer_wire::Known;

const FRAME: u64 = 100_000;

type Lanes = Vec<(Arc<dyn Target>, RawLayout)>;

fn lanes(directory: &std::path::Path, count: u32) -> (Lanes, Vec<std::path::PathBuf>) {
    let description = probe(directory).expect("a temporary directory can be described");
    let direct = description.direct_alignment().is_some();
    let mut lanes = Lanes::new();
    let mut directories = Vec::new();
    for lane in 0..count {
        let target = Posix::create(description.clone(), lane.into()).expect("a run directory can be made");
        directories.push(target.directory().to_owned());
        lanes.push((Arc::new(target), layout(lane, count, direct)));
    }
    (lanes, directories)
}

fn layout(lane: u32, lanes: u32, direct: bool) -> RawLayout {
    let stride = if direct { FRAME.next_multiple_of(4096) } else { FRAME };
    let head = Head {
        recording: 4,
        lane,
        lanes,
        frame_size: FRAME,
        stride,
        frames_per_file: 16,
        storing: Storing::Files,
        format: Format::Raw,
        names: FileNames::default(),
    };
    let suited = RawLayout::suited("n_rec".into(), head, direct);
    RawLayout { durability: Durability::EachFile, ..suited }
}

fn feed(delivery: Delivery) -> Feed {
    Feed::Instrument { content: Content::Pattern(Pattern::new(Seed(9), FRAME as usize)), delivery }
}

#[test]
fn two_lanes_store_what_the_instrument_delivers() {
    for (kind, depth) in [(EngineKind::Sync, 1), (EngineKind::IoUring, 4), (EngineKind::Pool, 2)] {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let (lanes, directories) = lanes(directory.path(), 2);
        let setup = Setup {
            lanes: lanes_of(lanes.clone(), LaneOptions::default()).expect("threads"),
            engine: Options { kind, depth, slots: FILE_SLOTS, clock: Clock::start() }.into(),
            slots: 200,
            feed: feed(Delivery::lasting(Pace::Due(Schedule::every(Nanos(500_000))), Nanos(100_000_000))),
            stop: Arc::new(AtomicBool::new(false)),
            allowance: Nanos::from_millis(10),
            hang_after: Nanos::from_millis(60_000),
        };
        let outcome = Recorder::start(setup).expect("nothing is in the way").wait_to_end();
        assert_eq!((outcome.due, outcome.faults.len(), outcome.hung), (200, 0, false), "{outcome:?}");
        assert!(outcome.endings().all(|(ending, _)| ending == Ending::InOrder), "{outcome:?}");
        // 200 slots for 200 frames: nothing can be lost, however slow the machine.
        assert_eq!((outcome.stored(), outcome.books.lost(), outcome.unknown()), (200, 0, 0));
        let recording = Recording::open(&directories, Trust::Durable).expect("two journals");
        let index = &recording.index;
        assert_eq!((index.heads.len(), index.ended, index.due, index.missing()), (2, 2, Some(200), vec![]));
        let (pattern, mut frames) = (Pattern::new(Seed(9), FRAME as usize), recording.frames());
        for number in 0..200 {
            let frame = frames.get(number).expect("readable").expect("recorded");
            assert_eq!(pattern.verify(number, frame), Ok(()), "frame {number} with {kind:?}");
        }
        drop(lanes);
        assert_eq!(
            std::fs::read_dir(directory.path()).expect("still there").count(),
            0,
            "run directories are gone"
        );
    }
}

#[test]
fn what_is_recorded_into_memory_is_verified_there() {
    let targets = [0, 1].map(|_| Arc::new(Memory::new(Bytes(1 << 26))) as Arc<dyn Target>);
    let lanes = targets.iter().zip(0..).map(|(target, lane)| (target.clone(), layout(lane, 2, false)));
    let setup = Setup {
        lanes: lanes_of(lanes.collect(), LaneOptions::default()).expect("threads"),
        engine: Options { kind: EngineKind::Sync, depth: 1, slots: FILE_SLOTS, clock: Clock::start() }.into(),
        slots: 200,
        feed: feed(Delivery::lasting(Pace::Due(Schedule::every(Nanos(500_000))), Nanos(100_000_000))),
        stop: Arc::new(AtomicBool::new(false)),
        allowance: Nanos::from_millis(10),
        hang_after: Nanos::from_millis(60_000),
    };
    let outcome = Recorder::start(setup).expect("nothing is in the way").wait_to_end();
    assert_eq!((outcome.stored(), outcome.faults.len()), (200, 0), "{outcome:?}");
    let directories = ["first", "second"].map(std::path::PathBuf::from);
    let storage = TargetDirectories::new(directories.iter().cloned().zip(targets)).expect("engines");
    let recording =
        Recording::open_on(Arc::new(storage), &directories, Trust::Durable).expect("two journals");
    let whole = RecordingView::new(recording, Extent::All);
    let verified = verify(&whole);
    assert_eq!((verified.right, verified.damaged_frames, verified.missing_frames()), (200, 0, 0));
    assert_eq!(Scan::of(&whole).read_all(&whole, |_| {}).frames, 200);
}

#[test]
fn a_recording_is_ended_in_order_when_it_is_stopped() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let (lanes, directories) = lanes(directory.path(), 1);
    let stop = Arc::new(AtomicBool::new(true));
    let setup = Setup {
        lanes: lanes_of(lanes.clone(), LaneOptions::default()).expect("threads"),
        engine: Options { kind: EngineKind::Sync, depth: 1, slots: FILE_SLOTS, clock: Clock::start() }.into(),
        slots: 4,
        feed: feed(Delivery::lasting(Pace::AsTaken, Nanos::from_millis(3_600_000))),
        stop,
        allowance: Nanos::from_millis(10),
        hang_after: Nanos::from_millis(60_000),
    };
    let outcome = Recorder::start(setup).expect("nothing is in the way").wait_to_end();
    assert!(!outcome.hung && outcome.faults.is_empty());
    let recording = Recording::open(&directories, Trust::Acknowledged).expect("a journal");
    assert_eq!(recording.index.ended, 1);
}

/// Storage with faults, or that lets nobody in.
#[derive(Debug)]
struct Faulted(Arc<dyn Target>, Option<Rule>);

impl Target for Faulted {
    fn description(&self) -> &TargetDescription {
        self.0.description()
    }
    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        let Some(rule) = self.1 else {
            return Err(EngineError::Unsuitable { engine: "sync", target: "this one", choices: "none" });
        };
        Ok(Box::new(Faulty::new(self.0.engine(options)?, &[rule], Seed(1))))
    }
    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        self.0.space()
    }
    fn chill(&self, name: &str) -> Result<Coldness, TargetError> {
        self.0.chill(name)
    }
    fn traffic(&self) -> Option<DeviceTraffic> {
        self.0.traffic()
    }
    fn clear(&self) -> Result<(), TargetError> {
        self.0.clear()
    }
    fn remove(&self) -> Result<(), TargetError> {
        self.0.remove()
    }
}

#[test]
fn lanes_that_are_ready_end_when_another_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let (mut lanes, _) = lanes(directory.path(), 2);
    lanes[1].0 = Arc::new(Faulted(lanes[1].0.clone(), None));
    let first = lanes[0].0.clone();
    let setup = Setup {
        lanes: lanes_of(lanes, LaneOptions::default()).expect("threads"),
        engine: Options { kind: EngineKind::Sync, depth: 1, slots: FILE_SLOTS, clock: Clock::start() }.into(),
        slots: 4,
        feed: feed(Delivery::lasting(Pace::AsTaken, Nanos(1))),
        stop: Arc::new(AtomicBool::new(false)),
        allowance: Nanos::from_millis(10),
        hang_after: Nanos::from_millis(60_000),
    };
    let error = Recorder::prepare(setup).expect_err("a lane is refused").to_string();
    assert!(error.contains("lane 2"), "{error}");
    // The lane's thread has a part in its target until it ends.
    while Arc::strong_count(&first) > 1 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn what_lanes_acknowledged_before_they_hung_is_stored() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let (mut lanes, directories) = lanes(directory.path(), 2);
    for (target, _) in &mut lanes {
        let hang = Rule { on: Some(OpKind::Write), when: When::FromNth(20), effect: FaultEffect::Hang };
        *target = Arc::new(Faulted(target.clone(), Some(hang)));
    }
    let setup = Setup {
        lanes: lanes_of(lanes, LaneOptions::default()).expect("threads"),
        engine: Options { kind: EngineKind::Sync, depth: 1, slots: FILE_SLOTS, clock: Clock::start() }.into(),
        slots: 200,
        feed: feed(Delivery::lasting(Pace::Due(Schedule::every(Nanos(500_000))), Nanos(100_000_000))),
        stop: Arc::new(AtomicBool::new(false)),
        allowance: Nanos::from_millis(10),
        hang_after: Nanos::from_millis(3000),
    };
    let outcome = Recorder::start(setup).expect("nothing is in the way").wait_to_end();
    assert!(outcome.hung && outcome.endings().all(|(ending, _)| ending == Ending::Hung), "{outcome:?}");
    let recording = Recording::open(&directories, Trust::Acknowledged).expect("two journals");
    let acknowledged = recording.index.frames.len() as u64;
    assert!((1..200).contains(&acknowledged), "{acknowledged} frames are in the journals");
    assert_eq!((outcome.stored(), outcome.unknown()), (acknowledged, 200 - acknowledged));
}

/// Bytes of a packet that are kept, and packets of a block.
const BODY: u64 = 1000;
const PER_BLOCK: u64 = 8;
const PACKETS: u64 = 20_000;

/// Records packets onto two lanes, from a transport in memory.
fn packets_onto(lanes: Lanes, transport: MemoryTransport) -> Setup {
    let text = format!(
        "name = \"raw\"\ntitle = \"t\"\nsource = \"t\"\nshape = [{BODY}]\npixel = \"uint8\"\nframe_rate = \"1 kHz\"\n\
         [packets.format.raw]\npayload = \"{BODY} B\"\n"
    );
    let instrument = Instrument::parse(&text, "raw.toml").expect("valid");
    let packets = instrument.packets.as_ref().expect("it has");
    let format = nilometer_wire::of(packets, &Known::of(&instrument)).expect("it is a format");
    let stream = Stream::new(Format::Raw, format.geometry(), Missing::Filled);
    let lanes = lanes.into_iter().map(|(target, layout)| {
        let head = Head { frame_size: BODY * PER_BLOCK, stride: BODY * PER_BLOCK, ..layout.head };
        let layout =
            RawLayout { durability: Durability::EachFile, ..RawLayout::suited("n_rec".into(), head, false) };
        (target, RawLayout { stream: Some(stream.clone()), ..layout })
    });
    let network = Network {
        ports: vec![Port { transport: Box::new(transport), format }],
        frames_of_block: PER_BLOCK,
        limits: ReorderWindow::default(),
        missing: Missing::Filled,
        until: Until { packets: PACKETS, ..Until::default() },
        cpu: None,
        beside: None,
    };
    Setup {
        lanes: lanes_of(lanes.collect(), LaneOptions::default()).expect("threads"),
        engine: Options { kind: EngineKind::Sync, depth: 1, slots: FILE_SLOTS, clock: Clock::start() }.into(),
        // One for each block: nothing is lost, however slow the machine.
        slots: (PACKETS / PER_BLOCK) as usize + 8,
        feed: Feed::Network(network),
        stop: Arc::new(AtomicBool::new(false)),
        allowance: Nanos::from_millis(10),
        hang_after: Nanos::from_millis(60_000),
    }
}

/// The figures of one answer are of one moment.
fn assert_one_moment(status: &Status) {
    let packets = [status.received_packets, status.acknowledged_packets, status.durable_packets];
    let bytes = [status.received_bytes, status.acknowledged_bytes, status.durable_bytes];
    assert!(packets.is_sorted_by(|more, less| more >= less), "{packets:?}");
    assert!(bytes.is_sorted_by(|more, less| more >= less), "{bytes:?}");
}

#[test]
fn every_answer_has_no_more_stored_than_came() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let (memory, transport) = MemoryTransport::channel();
    let mut recorder = Recorder::start(packets_onto(lanes(directory.path(), 2).0, transport))
        .expect("nothing is in the way");
    let sends = std::thread::spawn(move || {
        for serial in 0..PACKETS {
            let packet = [&serial.to_le_bytes()[..], &[7; BODY as usize]].concat();
            memory.send(packet).expect("it takes them");
            if serial % 100 == 0 {
                // The recording lasts for some looks of the receiver.
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        }
        memory
    });
    let mut between = 0;
    let outcome = loop {
        let status = recorder.status();
        assert_one_moment(&status);
        between += u32::from((1..PACKETS).contains(&status.acknowledged_packets));
        if let Some(outcome) = recorder.wait(Nanos(1000)) {
            break outcome;
        }
    };
    drop(sends.join().expect("it only sends"));
    assert!(between > 0, "no answer came while it recorded");
    let status = recorder.status();
    assert_one_moment(&status);
    assert!(status.durable_packets >= PACKETS, "{status:?}");
    assert_eq!((outcome.faults.len(), outcome.books.lost()), (0, 0), "{outcome:?}");
}
