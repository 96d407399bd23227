//! Instruments that several processes record together: parts of one, on one machine and on three.

mod by_ports;
mod kept;
mod ports_faults;
mod series_shared;

use std::{collections::BTreeSet, fs, path::Path, process::Command, time::Duration};

use nilometer_model::{Goal, Sample};
use nilometer_plan::Results;
use nilometer_tests::{Ended, Mpi, MpiKind, Running, Testbed, nilometer, run_directories};
use tempfile::TempDir;

/// Bytes of the journals in a directory.
fn journals(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let journals = entries.filter(|entry| entry.path().extension().is_some_and(|is| is == "journal"));
    journals.filter_map(|journal| journal.metadata().ok()).map(|journal| journal.len()).sum()
}

/// 2 MB/s, in frames of 10 kB.
const CAMERA: &str = "name = \"camera\"\ntitle = \"t\"\nsource = \"none\"\nshape = [50, 100]\npixel = \"uint16\"\n\
                      frame_rate = \"200 Hz\"\ndata = \"diffraction\"\n";
/// Two streams of VDIF of 4.1 MB/s each.
const TELESCOPE: &str = "name = \"telescope\"\ntitle = \"t\"\nsource = \"none\"\nshape = [2_048_000]\npixel = \"uint2\"\n\
                         frame_rate = \"8 Hz\"\nstreams = 2\ndata = \"vlbi\"\n[packets.format.vdif]\n\
                         payload = \"8000 B\"\nthreads = [0]\n";

/// A directory with instruments, a target and a record.
struct Together {
    home: TempDir,
}

impl Together {
    fn new() -> Self {
        // In memory: how fast a disk is, and how long it writes behind, is not asked here.
        let home = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
        fs::create_dir(home.path().join("target")).expect("space");
        for (name, text) in [("camera.toml", CAMERA), ("telescope.toml", TELESCOPE)] {
            fs::write(home.path().join(name), text).expect("space");
        }
        Together { home }
    }

    fn at(&self) -> &Path {
        self.home.path()
    }

    fn results(&self) -> Results {
        nilometer_record::read(&self.at().join("r.sqlite")).expect("a record")
    }

    fn assert_nothing_made(&self, ended: &Ended, said: &str) {
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(said), "{said}: {ended:?}");
        assert!(!self.at().join("r.sqlite").exists(), "{ended:?}");
        assert!(run_directories(&self.at().join("target")).is_empty());
    }
}

/// The names of what is in a directory, in their order.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there").flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn asked<'a>(target: &'a str, instrument: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    let evaluate = ["evaluate", target, "--plan", "none", "--record", "r.sqlite", "--for", instrument];
    let buffer: &[&str] = if options.contains(&"--buffer") { &[] } else { &["--buffer", "128 MiB"] };
    [&evaluate[..], &["--duration", "2 s", "--keep", "20 MB"], buffer, options].concat()
}

/// The samples of a goal.
fn samples(results: &Results, goal: Goal) -> Vec<&Sample> {
    let samples = results.samples.iter().map(|measured| &measured.sample);
    samples.filter(|sample| sample.ingest.as_ref().is_some_and(|ingest| ingest.goal == goal)).collect()
}

fn ranks(sample: &Sample) -> Vec<u32> {
    sample.parts.iter().map(|part| part.rank).collect()
}

#[test]
fn frames_are_dealt_out_to_all_processes_and_are_one_recording() {
    for mpi in Mpi::all() {
        let lab = Together::new();
        let ended = mpi.run(3, lab.at(), &asked("target", "camera.toml", &[]));
        assert!(ended.has_answered(), "{ended:?}");
        assert!(
            ended.stdout.contains("frames in turn are dealt out to 3 processes on one machine"),
            "{ended:?}"
        );
        let results = lab.results();
        let [paced] = samples(&results, Goal::Pace)[..] else { panic!("{ended:?}") };
        let ingest = paced.ingest.as_ref().expect("a recording");
        assert_eq!((ranks(paced), ingest.count), (vec![0, 1, 2], 1), "{ended:?}");
        // What comes in two seconds, whoever recorded it; of each part it may be a frame more.
        assert!((400..=403).contains(&ingest.due), "{ingest:?}");
        assert_eq!(ingest.due, ingest.stored + ingest.lost, "{ingest:?}");
        assert_eq!(paced.parts.iter().map(|part| part.operations).sum::<u64>(), ingest.stored);
        let read_back: u64 =
            ingest.readers.iter().filter(|reader| reader.after).map(|reader| reader.frames).sum();
        assert_eq!(read_back, ingest.stored, "all of it is kept, read and found right: {ingest:?}");
        let limits = samples(&results, Goal::Limit);
        assert!(limits.len() == 3 && limits.iter().all(|limit| ranks(limit) == [0, 1, 2]), "{ended:?}");
        assert!(run_directories(&lab.at().join("target")).is_empty());
    }
}

#[test]
fn streams_of_packets_come_to_as_many_processes_as_there_are() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let lab = Together::new();
    let ended = mpi.run(3, lab.at(), &asked("target", "telescope.toml", &[]));
    assert!(ended.has_answered(), "{ended:?}");
    assert!(ended.stdout.contains("streams are dealt out to 2 processes"), "{ended:?}");
    let results = lab.results();
    for sample in samples(&results, Goal::Pace).into_iter().chain(samples(&results, Goal::Limit)) {
        assert_eq!(ranks(sample), [0, 1], "the third has no part in it: {ended:?}");
    }
    let [paced] = samples(&results, Goal::Pace)[..] else { panic!("{ended:?}") };
    let packets = paced.ingest.as_ref().and_then(|ingest| ingest.packets).expect("packets");
    // 512 packets a second of each stream.
    assert!(packets.due == 2048 && packets.stored > 0, "{packets:?}");
}

#[test]
fn numbers_of_processes_are_compared_in_the_rounds_of_one_plan() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let lab = Together::new();
    let plan = "title = \"p\"\nrepeats = 2\nreserve = \"0 B\"\n[[stage]]\nname = \"camera\"\nprocesses = [1, 2]\n\
                [stage.ingest]\ninstrument = \"camera.toml\"\nduration = \"500 ms\"\ngoal = \"limit\"\n\
                keep = \"10 MB\"\n";
    fs::write(lab.at().join("plan.toml"), plan).expect("space");
    let ended = mpi.run(2, lab.at(), &["evaluate", "target", "--plan", "plan.toml", "--record", "r.sqlite"]);
    assert!(ended.has_answered(), "{ended:?}");
    let results = lab.results();
    let by_cell = |cell| {
        let of_cell = results.samples.iter().filter(move |measured| measured.key.cell == cell);
        of_cell.map(|measured| measured.sample.parts.len()).collect::<Vec<_>>()
    };
    assert_eq!((by_cell(0), by_cell(1)), (vec![0, 0], vec![2, 2]), "one process has no parts: {ended:?}");
    assert!(ended.stderr.contains("camera, 2 processes a node at full speed"), "{ended:?}");
}

#[test]
fn what_can_not_be_recorded_together_is_refused_before_it_begins() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let lab = Together::new();
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let copies = elsewhere.path().to_str().expect("a plain name");
    for (instrument, options, said) in [
        ("telescope.toml", &["--over-network"][..], "there is one machine: start more with mpirun"),
        ("camera.toml", &["--nodes", "2"], "asks for nodes = 2: there are 2 processes on 1 node"),
        ("telescope.toml", &["--processes", "3"], "asks for processes = 3: there are 2 processes"),
        ("camera.toml", &["--buffer", "30 kB"], "a buffer of 30 kB is 15 kB for each of 2 processes"),
        ("camera.toml", &["--copy-to", copies], "write --nodes 1 --processes 1"),
        ("telescope.toml", &["--find-limit", "--trial", "2 s"], "they share its streams"),
        ("camera.toml", &["--over-network"], "the network format of camera is unknown"),
        ("camera.toml", &["--processes", "0"], "write a number from 1 to 65536"),
        ("camera.toml", &["--network", "10.0.0.0/8"], "--over-network"),
    ] {
        let ended = mpi.run(2, lab.at(), &asked("target", instrument, options));
        lab.assert_nothing_made(&ended, said);
    }
    let mut alone = Command::new(nilometer());
    alone.args(asked("target", "telescope.toml", &["--over-network"])).current_dir(lab.at());
    lab.assert_nothing_made(&Running::of(alone).end(Duration::from_mins(1)), "there is one machine");
}

/// Of two streams that two nodes record the packets come from the third, of what all three record from the next.
#[test]
fn an_instrument_is_recorded_by_several_nodes_and_its_packets_come_from_another() {
    let Some(testbed) = Testbed::of(&["moosefs", "nodes"]) else { return };
    let mount = testbed.folder().join("nodes/mount/moosefs/goal-2");
    let mount = mount.to_str().expect("plain letters").to_owned();
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let lab = Together::new();
    let asked = asked(&mount, "telescope.toml", &["--over-network"]);
    let command = mpi.command_on(&testbed, &[1, 2, 3], lab.at(), &asked);
    let ended = Running::of(command).end(Duration::from_mins(5));
    assert!(ended.has_answered(), "{ended:?}");
    assert!(ended.stdout.contains("streams are dealt out to 2 processes on 2 machines"), "{ended:?}");
    assert!(ended.stderr.contains("over the network"), "{ended:?}");
    let results = lab.results();
    let [paced] = samples(&results, Goal::Pace)[..] else { panic!("{ended:?}") };
    let nodes: BTreeSet<_> = paced.parts.iter().map(|part| part.node.as_str()).collect();
    assert_eq!(nodes, BTreeSet::from(["node-1", "node-2"]), "{ended:?}");
    let packets = paced.ingest.as_ref().and_then(|ingest| ingest.packets).expect("packets");
    assert_eq!((packets.due, packets.unsent), (2048, 0), "what the third sent is known: {packets:?}");
    assert!(packets.stored > 0 && packets.sending.0 > 0, "{packets:?}");
    assert!(run_directories(&testbed.folder().join("moosefs/mount/goal-2")).is_empty());
}
