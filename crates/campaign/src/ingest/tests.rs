//! Tests recordings on targets made for the purpose.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::*;
use nilometer_cluster::{Alone, CampaignRanks};
use nilometer_model::{
    ByteRate, Bytes, DeviceTraffic, DirectIo, FileSystemSpace, Instrument, TargetDescription,
};
use nilometer_plan::Route;
use nilometer_storage::{
    Clock, Engine, EngineError, OpKind,
    engine::Options,
    target::TargetError,
    testing::Memory,
    testing::wrap::{Cap, Meter, Metered, Throttled},
};

use crate::baseline::Baseline;

/// 10 kB a frame, 500 a second.
const CAMERA: &str = r#"
name = "camera"
title = "a test"
source = "a test"
shape = [100, 100]
pixel = "uint8"
frame_rate = "500 Hz"
"#;

/// Memory that counts its traffic, as a device does.
#[derive(Debug)]
struct Counted(Memory, Arc<Meter>);

impl Counted {
    fn target() -> Arc<dyn Target> {
        Arc::new(Counted(Memory::new(Bytes(1 << 30)), Arc::default()))
    }
}

impl Target for Counted {
    fn description(&self) -> &TargetDescription {
        self.0.description()
    }
    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        Ok(Box::new(Metered::new(self.0.engine(options)?, self.1.clone())))
    }
    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        self.0.space()
    }
    fn traffic(&self) -> Option<DeviceTraffic> {
        let [read, written] = [OpKind::Read, OpKind::Write].map(|kind| self.1.of(kind).bytes);
        Some(DeviceTraffic { read, written, ..DeviceTraffic::default() })
    }
    fn clear(&self) -> Result<(), TargetError> {
        self.0.clear()
    }
    fn remove(&self) -> Result<(), TargetError> {
        self.0.remove()
    }
}

/// Memory that takes a limited number of bytes a second.
#[derive(Debug)]
struct Slow(Memory, ByteRate);

impl Slow {
    fn target(rate: f64) -> Arc<dyn Target> {
        Arc::new(Slow(Memory::new(Bytes(1 << 30)), ByteRate(rate)))
    }
}

impl Target for Slow {
    fn description(&self) -> &TargetDescription {
        self.0.description()
    }
    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        let cap = Cap { bytes: Some(self.1), operations: None };
        Ok(Box::new(Throttled::new(self.0.engine(options)?, cap)))
    }
    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        self.0.space()
    }
    fn clear(&self) -> Result<(), TargetError> {
        self.0.clear()
    }
    fn remove(&self) -> Result<(), TargetError> {
        self.0.remove()
    }
}

/// Storage that hangs from the engine of this number on.
#[derive(Debug)]
struct Stuck(Arc<dyn Target>, AtomicUsize, TargetDescription);

impl Stuck {
    fn from(engine: usize) -> Arc<dyn Target> {
        Stuck::described(engine, |_| {})
    }

    /// Makes storage that reports direct writes.
    fn direct(engine: usize) -> Arc<dyn Target> {
        Stuck::described(engine, |description| description.direct = DirectIo::Real { alignment: 4096 })
    }

    fn described(engine: usize, change: impl FnOnce(&mut TargetDescription)) -> Arc<dyn Target> {
        let memory = Counted::target();
        let mut description = memory.description().clone();
        change(&mut description);
        Arc::new(Stuck(memory, AtomicUsize::new(engine), description))
    }
}

impl Target for Stuck {
    fn description(&self) -> &TargetDescription {
        &self.2
    }
    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        let left = self.1.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        while left.is_err() {
            thread::park();
        }
        self.0.engine(options)
    }
    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        self.0.space()
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

/// 100 frames, by one camera.
fn cell(readers: Readers) -> RecordingRun {
    RecordingRun {
        duration: Nanos::from_millis(200),
        buffer: Bytes(4 << 20),
        keep: Bytes(1 << 30),
        readers,
        ..RecordingRun::new(Instrument::parse(CAMERA, "camera").expect("a valid instrument"))
    }
}

fn recorded_on(target: &Arc<dyn Target>, archive: Option<&Arc<dyn Target>>, cell: RecordingRun) -> Sample {
    let (clock, usual) = (Clock::start(), Baseline::now());
    // The test does not wait until other programs' dirty bytes are written.
    usual.stays(u64::MAX);
    let run =
        Run { clock, hang_after: Nanos::from_millis(4000), stop: Arc::default(), ends: Nanos::MAX, usual };
    let mut surroundings = Surroundings::look(&clock, vec![Vec::new()], Nanos::from_millis(50));
    let cells = [(cell, Seed(1))];
    let ranks = CampaignRanks::alone();
    let together = RecordingRanks { cluster: &Alone, ranks: &ranks, attempt: 0 };
    let job = Job { number: 0, target, archive, cells: &cells, pass: Pass::default(), together };
    let samples = run_ingest(&run, &mut surroundings, &job, &mut Loads::default(), &mut |_| {});
    samples.expect("nobody ends it").remove(0)
}

#[test]
fn what_is_read_back_afterwards_is_in_no_figure_of_the_recording() {
    let sample = recorded_on(&Counted::target(), None, cell(Readers::default()));
    let ingest = sample.ingest.expect("a recording");
    let [after] = ingest.readers[..] else { panic!("{:?}", ingest.readers) };
    assert!(after.after && after.frames == ingest.stored && after.frames > 0, "{after:?}");
    let DeviceTraffic { read, written, .. } = sample.device.expect("it counts");
    assert_eq!(read, 0, "nobody read while it was recorded");
    assert!(written >= ingest.stored * ingest.frame_size.0, "{written}");
    let sample = recorded_on(&Counted::target(), None, cell(Readers { count: 1, ..Readers::default() }));
    let read = sample.device.expect("it counts").read;
    assert!(read > 0, "who follows the recording is a part of it");
}

#[test]
fn a_copy_that_hangs_is_no_fault_of_the_target() {
    let (target, archive) = (Counted::target(), Stuck::from(0));
    let sample = recorded_on(&target, Some(&archive), cell(Readers { copy: true, ..Readers::default() }));
    assert_ne!(sample.invalid, Some(Invalid::Hung));
    let ingest = sample.ingest.expect("a recording");
    let hung: Vec<_> = ingest.readers.iter().filter(|reader| reader.hung).collect();
    assert!(matches!(hung[..], [ReaderTotals { copies: true, frames: 0, .. }]), "{:?}", ingest.readers);
    assert!(ingest.readers.iter().any(|reader| reader.after), "what is kept is read back all the same");
}

#[test]
fn a_reader_that_hangs_is_a_hang_of_the_target() {
    // Two lanes, then the reader.
    let sample = recorded_on(&Stuck::from(2), None, cell(Readers { count: 1, ..Readers::default() }));
    assert_eq!(sample.invalid, Some(Invalid::Hung));
}

#[test]
fn a_target_that_hangs_while_a_recorder_is_set_up_is_hung() {
    // The second lane.
    let sample = recorded_on(&Stuck::from(1), None, cell(Readers::default()));
    assert_eq!(sample.invalid, Some(Invalid::Hung));
    // With direct writes the target is probed before there are lanes.
    let sample = recorded_on(&Stuck::direct(0), None, cell(Readers::default()));
    assert_eq!(sample.invalid, Some(Invalid::Hung));
}

#[test]
fn frames_that_grow_when_they_are_compressed_are_copied() {
    let text = CAMERA.replace("uint8", "int32") + "recording.format = \"cbf\"\ndata = \"incompressible\"\n";
    let instrument = Instrument::parse(&text, "camera").expect("a valid instrument");
    let (target, archive) = (Counted::target(), Counted::target());
    let copied = RecordingRun { instrument, ..cell(Readers { copy: true, ..Readers::default() }) };
    let ingest = recorded_on(&target, Some(&archive), copied).ingest.expect("a recording");
    assert!(ingest.written.0 > ingest.stored * ingest.frame_size.0, "{} B", ingest.written.0);
    let copy = ingest.readers.iter().find(|reader| reader.copies).expect("it was copied");
    assert_eq!((copy.frames, copy.failed), (ingest.stored, 0), "{copy:?}");
    let written = archive.traffic().expect("it counts").written;
    assert!(written >= ingest.written.0, "{written} B of {}", ingest.written.0);
}

/// A telescope of 16 MB/s.
const TELESCOPE: &str = r#"
name = "telescope"
title = "a test"
source = "a test"
shape = [32000]
pixel = "uint2"
frame_rate = "2 kHz"
data = "vlbi"
packets.format.vdif = { payload = "8000 B", threads = [0] }
"#;

fn over_loopback(instrument: &str, duration: Nanos) -> RecordingRun {
    let instrument = Instrument::parse(instrument, "telescope").expect("a valid instrument");
    RecordingRun { instrument, duration, route: Route::Loopback, ..cell(Readers::default()) }
}

#[test]
fn packets_over_loopback_are_recorded_and_are_what_was_sent() {
    let with_reader = Readers { count: 1, ..Readers::default() };
    let telescope = over_loopback(TELESCOPE, Nanos::from_millis(1000));
    let sample = recorded_on(&Counted::target(), None, RecordingRun { readers: with_reader, ..telescope });
    let ingest = sample.ingest.expect("a recording");
    let packets = ingest.packets.expect("it was of packets");
    // 2000 packets come in a second, and a block has 128.
    assert_eq!((packets.size, packets.due, packets.unsent), (Bytes(8040), 15 * 128, 0));
    assert_eq!(packets.stored + packets.lost(), packets.due, "{packets:?}");
    assert_eq!((ingest.frame_size, ingest.stored + ingest.lost), (Bytes(128 * 8032), ingest.due));
    assert!(packets.room.0 > 0 && packets.receiving.0 > 0 && packets.sending.0 > 0, "{packets:?}");
    // A busy machine may lose some packets; all frames stored must be right.
    assert!(
        ingest.readers.iter().all(|reader| reader.wrong == 0 && reader.failed == 0),
        "{:?}",
        ingest.readers
    );
    assert!(ingest.readers.iter().any(|reader| reader.after && reader.frames > 0), "{:?}", ingest.readers);
}

#[test]
fn storage_that_is_too_slow_loses_packets_in_the_ring() {
    let slow = Slow::target(2e6);
    let telescope = over_loopback(TELESCOPE, Nanos::from_millis(1500));
    let sample = recorded_on(&slow, None, telescope);
    let ingest = sample.ingest.expect("a recording");
    let packets = ingest.packets.expect("it was of packets");
    // 24 MB arrived, for a ring of 4 MiB and two lanes that take 2 MB a second each.
    assert!(packets.ring >= 1000 && packets.lost() >= packets.ring, "{packets:?}");
    assert_eq!(ingest.losses(), packets.lost());
    assert!(packets.losses > 0 && packets.longest_loss >= packets.losses, "{packets:?}");
    let read_back: Vec<_> = ingest.readers.iter().filter(|reader| reader.after).collect();
    assert!(
        read_back.iter().all(|reader| reader.wrong == 0),
        "what came stands where it belongs: {read_back:?}"
    );
}

#[test]
fn each_stream_of_packets_has_a_recorder() {
    let two = TELESCOPE.replace("data =", "streams = 2\ndata =");
    let telescope = over_loopback(&two, Nanos::from_millis(500));
    let ingest = recorded_on(&Counted::target(), None, telescope).ingest.expect("a recording");
    let packets = ingest.packets.expect("it was of packets");
    assert_eq!((packets.due, ingest.period), (2 * 7 * 128, Nanos(128 * 1_000_000_000 / 4000)));
    assert_eq!(ingest.readers.len(), 2, "what each stored is read back");
}

#[test]
fn packets_onto_nothing_are_counted_and_not_read_back() {
    let target = Counted::target();
    let telescope = over_loopback(TELESCOPE, Nanos::from_millis(300));
    let sample = recorded_on(&target, None, RecordingRun { onto: Onto::Nothing, ..telescope });
    let ingest = sample.ingest.expect("a recording");
    assert!(ingest.packets.is_some_and(|packets| packets.stored > 0) && ingest.readers.is_empty());
    assert_eq!(target.traffic(), Some(DeviceTraffic::default()));
}
