//! `nilometer record` with real packets over loopback: what a network does to them, and what becomes of the recording.

mod addresses;
mod engines;
mod faults;
mod forged;
mod killed;
mod promises;
mod soak;

use std::{
    collections::BTreeSet,
    fs,
    net::UdpSocket,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Duration,
};

use nilometer_intake::transport::{
    Flow, SendPace, Sender, SendingStation, StreamCourse,
    faults::{FaultCounts, Faults},
    udp::{Sending, UdpOutlet},
};
use nilometer_model::{Frequency, Instrument, Moment, Seed};
use nilometer_recording::instrument::Content;
use nilometer_storage::{Clock, clock::clock_reading};
use nilometer_tests::{
    Ended, FileSystem, Running, address, await_packets, await_some, free_port, may_mount, run, start,
};
use nilometer_wire::{Known, WireFormat, vdif::VdifHeader};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

const SEED: Seed = Seed(5);
/// Long enough for everything on a slow machine.
const LIMIT: Duration = Duration::from_mins(2);
/// A VDIF frame, a second of them, and the second of a year's half in which the first one is due.
const FRAME: usize = 8032;
const RATE: u64 = 2000;
const BEGINS: u64 = 800_000_000;

/// 8000 B of samples behind a VDIF header, 2000 times a second.
fn telescope(port: u16) -> String {
    format!(
        r#"
name = "telescope"
title = "for tests"
source = "none"
shape = [32000]
pixel = "uint2"
frame_rate = "2 kHz"
data = "vlbi"
[packets]
port = {port}
[packets.format.vdif]
payload = "8000 B"
"#
    )
}

/// A stream, and where it is recorded.
struct Lab {
    directory: TempDir,
    to: PathBuf,
    port: u16,
    /// The second since 2000 in which the first frame is due.
    begins: u64,
}

impl Lab {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let to = directory.path().to_owned();
        Lab::onto(directory, to)
    }

    fn onto(directory: TempDir, to: PathBuf) -> Self {
        let port = free_port();
        fs::write(directory.path().join("telescope.toml"), telescope(port)).expect("space");
        Lab { directory, to, port, begins: BEGINS }
    }

    /// The same, recorded elsewhere.
    fn onto_port(lab: Lab, to: PathBuf) -> Self {
        Lab { to, ..lab }
    }

    /// Starts to record; returns when packets may come.
    fn record(&self, more: &[&str]) -> Running {
        let to = self.to.to_str().expect("plain names");
        let mut arguments =
            vec!["record", "telescope.toml", "--name", "scan", "--to", to, "--buffer", "64 MiB"];
        arguments.extend(["--http", "127.0.0.1:0"]);
        arguments.extend(more);
        let mut running = start(self.directory.path(), &arguments);
        running.await_said("recording scan");
        running
    }

    fn instrument(&self) -> Instrument {
        Instrument::parse(&telescope(self.port), "telescope.toml").expect("valid")
    }

    fn format(&self) -> Box<dyn WireFormat> {
        let instrument = self.instrument();
        let packets = instrument.packets.as_ref().expect("it has packets");
        let known = Known { begins: self.begins, serial: 77, ..Known::of(&instrument) };
        nilometer_wire::of(packets, &known).expect("it is a format")
    }

    fn flow(&self, course: StreamCourse, window: u64) -> Flow {
        let Instrument { data, shape, pixel, .. } = self.instrument();
        let content = Content::prepare(&data, &shape, pixel, SEED).expect("it can be made");
        Flow::new(self.format(), content, course, window)
    }

    /// Sends so many packets; what happened to them on the way.
    fn send(&self, packets: u64, rate: f64, faults: Faults, course: StreamCourse) -> FaultCounts {
        let address = ([127, 0, 0, 1], self.port).into();
        let outlet = || UdpOutlet::connect(address, &Sending::default()).expect("loopback is there");
        let flow = self.flow(course, 128);
        let station =
            SendingStation::new(flow, faults, SEED, vec![Box::new(outlet())], Some(Box::new(outlet())));
        let sender = Sender::new(vec![station], SendPace::new(Frequency(rate)), packets);
        sender.run(Clock::start(), &AtomicBool::new(false)).expect("it leaves").counts[0]
    }

    fn file(&self) -> Vec<u8> {
        fs::read(self.to.join("scan/scan.vdif")).expect("the recording")
    }

    fn verify(&self) -> Ended {
        run(&[Path::new("verify"), &self.to.join("scan")])
    }
}

/// Ends a recording as soon as it knows of so many packets.
fn ended_after(running: Running, packets: u64) -> Ended {
    await_packets(address(&running, "http"), packets);
    running.signal(Signal::TERM);
    running.end(LIMIT)
}

/// The number in front of a word in a line of the summary; 0 if it is not there.
fn count(ended: &Ended, key: &str, word: &str) -> u64 {
    let line = ended.stdout.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    let words: Vec<&str> = line.split([' ', ',', ':', ';']).collect();
    let before = |words: &[&str]| words[..words.len() - 1].iter().rev().find_map(|word| word.parse().ok());
    let at = words.windows(2).position(|pair| pair[1] == word).map(|at| at + 2);
    at.and_then(|at| before(&words[..at])).unwrap_or(0)
}

/// What a file should hold: each frame as it was sent, or one in its place that says that it is invalid.
fn assert_frames(lab: &Lab, file: &[u8], frames: u64, missing: &BTreeSet<u64>) {
    assert_frames_from(lab, 0, file, frames, missing);
}

/// What a part of it should hold, from this frame on.
fn assert_frames_from(lab: &Lab, first: u64, file: &[u8], frames: u64, missing: &BTreeSet<u64>) {
    assert_eq!(file.len() as u64, frames * FRAME as u64);
    let mut flow = lab.flow(StreamCourse::default(), 1);
    for (number, frame) in (first..first + frames).zip(file.chunks_exact(FRAME)) {
        let header = VdifHeader::parse(frame).expect("a VDIF header");
        let time = (header.since_2000(), u64::from(header.frame), header.invalid);
        let expected = (lab.begins + number / RATE, number % RATE, missing.contains(&number));
        assert_eq!(time, expected, "frame {number}");
        if !header.invalid {
            let made = flow.make(number);
            assert!(flow.packet(made).body == frame, "frame {number} differs");
        }
    }
}

/// The packets of a stream that do not leave as they should.
fn not_sent(packets: u64, faults: Faults) -> BTreeSet<u64> {
    nilometer_tests::not_sent(packets, faults, FRAME + 8, SEED)
}

#[test]
fn a_stream_is_recorded_byte_for_byte() {
    let lab = Lab::new();
    let running = lab.record(&[]);
    lab.send(4321, 20_000.0, Faults::default(), StreamCourse::default());
    let ended = ended_after(running, 4321);
    assert_eq!((ended.code, count(&ended, "recorded", "packets")), (Some(0), 4321), "{ended:?}");
    assert!(ended.stdout.contains("missing     none"), "{ended:?}");
    assert_frames(&lab, &lab.file(), 4321, &BTreeSet::new());
    let verified = lab.verify();
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[test]
fn a_recording_of_nothing_does_not_end_well() {
    let lab = Lab::new();
    let ended = lab.record(&["--duration", "300 ms"]).end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.lines().any(|line| line == "nilometer: no packet came"), "{ended:?}");
    let summary = fs::read_to_string(lab.to.join("scan/scan.summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(
        (&summary["fault"], &summary["recording"]["ended_by"]),
        (&"no packet came".into(), &"no packet".into())
    );
    // A sender takes seconds to begin: the time after the first packet is no limit for that packet.
    let [begun, over] = ["begun", "ended"].map(|key| {
        let text = summary[key].as_str().expect("a time");
        text.parse::<Moment>().expect("a time").0.seconds()
    });
    assert!(over - begun >= 5.0, "it waited for a first packet from {begun} to {over}");
    let verified = lab.verify();
    assert!(verified.code == Some(1) && verified.stderr.contains("there is nothing in it"), "{verified:?}");
}

#[test]
fn the_rate_of_a_recording_is_that_of_its_packets_and_not_of_the_silence_behind_them() {
    let lab = Lab::new();
    let running = lab.record(&["--silence", "6 s"]);
    // 16 MB/s for a second at the most, also if this machine is slow to send them.
    lab.send(2000, 2000.0, Faults::default(), StreamCourse::default());
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let summary = fs::read_to_string(lab.to.join("scan/scan.summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    let (recording, bytes) = (&summary["recording"], 2000.0 * (FRAME + 8) as f64);
    let mean = recording["came"]["mean_bytes_per_second"].as_f64().expect("a rate");
    let seconds = recording["seconds"].as_f64().expect("a time");
    assert!(seconds > 6.0, "the silence is waited for");
    // What came with the first look is not counted: 64 packets at the most.
    let least = 0.95 * bytes / (seconds - 6.0);
    assert!(mean > least, "{mean} B/s from the first packet to the last; {least} B/s at least");
}

#[test]
fn several_threads_on_processors_of_their_own_record_the_same() {
    let lab = Lab::new();
    let running = lab.record(&["--packets", "20000", "--receive-threads", "2", "--cpus", "0"]);
    lab.send(20_000, 20_000.0, Faults::default(), StreamCourse::default());
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_frames(&lab, &lab.file(), 20_000, &BTreeSet::new());
}

#[test]
fn what_the_network_does_to_packets_is_counted_and_mended() {
    let lab = Lab::new();
    let running = lab.record(&[]);
    let faults = Faults {
        loss: 0.01,
        loss_burst: 3,
        reorder: 0.05,
        distance: 20,
        duplicate: 0.02,
        odd: 0.01,
        foreign: 0.05,
    };
    let (packets, missing) = (10_000, not_sent(10_000, faults));
    let counts = lab.send(packets, 20_000.0, faults, StreamCourse::default());
    assert_eq!(missing.len() as u64, counts.lost + counts.odd);
    let (first, last) = (missing.contains(&0), missing.contains(&(packets - 1)));
    assert!(!first && !last, "the seed loses no packet that nobody can know of");
    let ended = ended_after(running, counts.left + counts.duplicated + counts.odd + counts.foreign);
    assert_eq!(ended.code, Some(1), "packets are missing: {ended:?}");
    assert_eq!(count(&ended, "missing", "packets"), missing.len() as u64, "{ended:?}");
    assert_eq!(count(&ended, "discarded", "odd-sized"), counts.odd, "{ended:?}");
    assert_eq!(count(&ended, "discarded", "twice"), counts.duplicated, "{ended:?}");
    assert_eq!(count(&ended, "recorded", "packets"), counts.left, "{ended:?}");
    assert_eq!(count(&ended, "reordered", "packets"), counts.reordered, "{ended:?}");
    assert_frames(&lab, &lab.file(), packets, &missing);
}

#[test]
fn frames_that_do_not_come_are_left_out_if_asked() {
    let lab = Lab::new();
    let running = lab.record(&["--missing", "leave-out"]);
    let faults = Faults { loss: 0.02, ..Faults::default() };
    let missing = not_sent(3000, faults);
    let counts = lab.send(3000, 20_000.0, faults, StreamCourse::default());
    let ended = ended_after(running, counts.left);
    assert_eq!(count(&ended, "missing", "packets"), missing.len() as u64, "{ended:?}");
    let (file, mut flow) = (lab.file(), lab.flow(StreamCourse::default(), 1));
    let there = (0..3000).filter(|number| !missing.contains(number));
    assert_eq!(file.len(), (3000 - missing.len()) * FRAME);
    for (number, frame) in there.zip(file.chunks_exact(FRAME)) {
        let made = flow.make(number);
        assert!(flow.packet(made).body == frame, "frame {number} differs");
    }
}

#[test]
fn a_restart_of_the_scan_goes_on_in_the_same_recording() {
    let lab = Lab::new();
    let running = lab.record(&[]);
    let course = StreamCourse { restart_after: Some(2500), ..StreamCourse::default() };
    lab.send(7000, 20_000.0, Faults::default(), course);
    let ended = ended_after(running, 7000);
    assert_eq!((ended.code, count(&ended, "recorded", "packets")), (Some(0), 7000), "{ended:?}");
    assert!(ended.stdout.contains("restarted 2 times"), "{ended:?}");
    assert_frames(&lab, &lab.file(), 7000, &BTreeSet::new());
}

#[test]
fn a_recording_that_is_asked_to_stop_is_whole() {
    let lab = Lab::new();
    let running = lab.record(&[]);
    lab.send(1500, 20_000.0, Faults::default(), StreamCourse::default());
    let ended = ended_after(running, 1500);
    assert_eq!((ended.code, count(&ended, "recorded", "packets")), (Some(0), 1500), "{ended:?}");
    assert_frames(&lab, &lab.file(), 1500, &BTreeSet::new());
}

#[test]
fn the_last_block_ends_where_the_stream_does_past_the_cache_too() {
    if !may_mount() {
        return;
    }
    let disk = FileSystem::xfs(400);
    let lab = Lab::onto(tempfile::tempdir().expect("a temporary directory"), disk.path().to_owned());
    let running = lab.record(&["--reserve", "0 B", "--checksums"]);
    lab.send(1001, 20_000.0, Faults::default(), StreamCourse::default());
    let ended = ended_after(running, 1001);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_frames(&lab, &lab.file(), 1001, &BTreeSet::new());
    let verified = lab.verify();
    assert!(verified.code == Some(0) && verified.stdout.contains("checksums of the journal"), "{verified:?}");
}

#[test]
fn space_that_was_reserved_behind_the_end_is_free_again() {
    if !may_mount() {
        return;
    }
    for disk in [FileSystem::ext4(1200), FileSystem::xfs(1200)] {
        let lab = Lab::onto(tempfile::tempdir().expect("a temporary directory"), disk.path().to_owned());
        let running = lab.record(&["--reserve", "0 B"]);
        let sending = std::thread::scope(|scope| {
            let sent = scope.spawn(|| lab.send(4001, 4000.0, Faults::default(), StreamCourse::default()));
            let reserved = await_some("reserved space", || {
                let file = fs::metadata(lab.to.join("scan/scan.vdif")).ok()?;
                // A part at a time; what is read of the file never goes beyond what was written.
                (file.blocks() * 512 >= file.len() + (32 << 20)).then_some(file.len())
            });
            drop(sent.join());
            reserved
        });
        assert!(sending <= 4001 * FRAME as u64);
        let ended = ended_after(running, 4001);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_frames(&lab, &lab.file(), 4001, &BTreeSet::new());
        let file = fs::metadata(lab.to.join("scan/scan.vdif")).expect("the recording");
        let allocated = file.blocks() * 512;
        assert!(
            allocated <= file.len().next_multiple_of(4096) + (1 << 16),
            "{allocated} B of {}",
            file.len()
        );
    }
}

/// As readers of VLBI recordings put chunks together: all that match, in the order of their numbers.
fn united(directories: &[PathBuf]) -> Vec<u8> {
    let mut chunks = Vec::new();
    for directory in directories {
        for entry in fs::read_dir(directory.join("scan")).expect("a lane") {
            let path = entry.expect("an entry").path();
            let number =
                path.extension().and_then(|number| number.to_str()).filter(|number| number.len() == 8);
            chunks.extend(
                number.and_then(|number| number.parse::<u32>().ok()).map(|number| (number, path.clone())),
            );
        }
    }
    chunks.sort();
    let numbers: Vec<u32> = chunks.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..numbers.len() as u32).collect::<Vec<_>>(), "each number once");
    chunks.iter().flat_map(|(_, path)| fs::read(path).expect("a chunk")).collect()
}

#[test]
fn chunks_on_several_disks_are_the_stream_in_order() {
    let lab = Lab::new();
    let disks = ["a", "b", "c"].map(|name| lab.directory.path().join(name));
    for disk in &disks {
        fs::create_dir(disk).expect("space");
    }
    let [_, b, c] = disks.each_ref().map(|disk| disk.to_str().expect("plain names"));
    let lab = Lab::onto_port(lab, disks[0].clone());
    let running = lab.record(&["--to", b, "--to", c, "--chunk-size", "4 MB"]);
    let faults = Faults { loss: 0.01, ..Faults::default() };
    let missing = not_sent(6000, faults);
    let counts = lab.send(6000, 20_000.0, faults, StreamCourse::default());
    let ended = ended_after(running, counts.left);
    assert_eq!(count(&ended, "missing", "packets"), missing.len() as u64, "{ended:?}");
    assert_frames(&lab, &united(&disks), 6000, &missing);
    let lanes = disks.map(|disk| disk.join("scan"));
    let verified = run(&[&[PathBuf::from("verify")][..], &lanes].concat());
    let named = format!("missing     {} frames did not come", missing.len());
    assert!(verified.stdout.contains(&named), "{verified:?}");
}

#[test]
fn bad_input_is_one_message_and_nothing_is_made() {
    let lab = Lab::new();
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let taken = format!("udp://{}", taken.local_addr().expect("it is bound"));
    let to = lab.to.to_str().expect("plain names");
    let cases: [(&[&str], &str); 16] = [
        (&["telescope.toml", "--to", to, "--listen", "127.0.0.1:5"], "udp://HOST:PORT"),
        (&["telescope.toml", "--to", to, "--listen", "udp://192.0.2.1:5"], "name an address of this machine"),
        (&["telescope.toml", "--to", to, "--listen", &taken], "a free port"),
        (&["telescope.toml", "--to", to, "--interface", "127.0.0.1"], "is no group"),
        (&["telescope.toml", "--to", to, "--missing", "guess"], "fill, leave-out"),
        (&["telescope.toml", "--to", to, "--packets", "0"], "more than 0"),
        (&["telescope.toml", "--to", to, "--buffer", "3 MB"], "needs"),
        (&["telescope.toml", "--to", "/nowhere"], "/nowhere"),
        (&["telescope.toml", "--to", to, "--name", "a/b"], "plain name"),
        (&["pilatus-6m", "--to", to], "it has no `packets`"),
        (&["telescope.toml", "--to", to, "--chunk-size", "4 MB"], "name several --to"),
        (&["telescope.toml", "--to", to, "--to", "/dev/shm", "--name", "a.b"], "no name with a dot"),
        (&["telescope.toml", "--to", to, "--keep", "4 MB", "--chunk-size", "4 MB"], "has no chunks"),
        (&["telescope.toml", "--to", to, "--keep", "1 kB"], "or more"),
        (&["telescope.toml", "--to", to, "--keep", "0 B"], "or more"),
        (&["telescope.toml", "--to", to, "--keep", "9000 PB"], "must stay free"),
    ];
    for (arguments, part) in cases {
        let ended = start(lab.directory.path(), &[&["record"], arguments].concat()).end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains(part), "{arguments:?}: {ended:?}");
    }
    let made: Vec<_> = fs::read_dir(&lab.to).expect("readable").collect();
    assert_eq!(made.len(), 1, "only the instrument's file: {made:?}");
}

#[test]
fn a_recording_states_the_clock_of_its_machine() {
    let Some(kernel) = clock_reading() else { return };
    let lab = Lab::new();
    let running = lab.record(&[]);
    lab.send(1000, 20_000.0, Faults::default(), StreamCourse::default());
    assert_eq!(ended_after(running, 1000).code, Some(0));
    let scan = run(&[Path::new("scan"), Path::new("--json"), &lab.to.join("scan")]);
    let scan: Value = serde_json::from_str(&scan.stdout).expect("JSON");
    let summary = fs::read_to_string(lab.to.join("scan/scan.summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    for clock in [&scan[0]["clock"], &summary["clock"]["before"], &summary["clock"]["after"]] {
        assert_eq!(clock["synchronised"], kernel.synchronised, "{clock}");
        assert!(clock["offset_ns"].is_i64() && clock["error_max_ns"].is_u64(), "{clock}");
    }
    let verified = lab.verify();
    let line = verified.stdout.lines().find(|line| line.starts_with("clock       "));
    let line = line.expect("the line of the clock");
    assert_eq!(line.contains("not synchronised"), !kernel.synchronised, "{line}");
}
