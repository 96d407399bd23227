//! One dataset of one HDF5 file that several processes write: kept, measured, interrupted, and refused.

use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt, path::Path, time::Duration};

use nilometer_model::{Invalid, Phase, Sample};
use nilometer_plan::{RecordingRun, Results};
use nilometer_tests::{Ended, Mpi, MpiKind, Running, await_some, python, run, run_directories};
use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

/// 200 frames of 10 kB a second.
const CAMERA: &str = "name = \"camera\"\ntitle = \"t\"\nsource = \"none\"\nshape = [50, 100]\npixel = \"uint16\"\n\
                      frame_rate = \"200 Hz\"\ndata = \"diffraction\"\n";

/// Prints whether the dataset of a file is that of another one, with its shape, and the frames that are whole.
const COMPARE: &str = "
import sys, h5py, numpy
one, other = (h5py.File(name, 'r') for name in sys.argv[1:])
a, b = one['entry/data/data'], other['entry/data/data']
assert a.chunks == (1, 50, 100) and not a.is_virtual, (a.chunks, a.is_virtual)
flags = one['entry/instrument/nilometer/flag'][:]
print(a.shape, numpy.array_equal(a[:], b[:]), int((flags == 0).sum()), a.id.get_num_chunks())
";

/// A directory with an instrument.
struct Lab(TempDir);

impl Lab {
    fn new() -> Self {
        let home = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
        fs::create_dir(home.path().join("target")).expect("space");
        fs::write(home.path().join("camera.toml"), CAMERA).expect("space");
        Lab(home)
    }

    fn at(&self) -> &Path {
        self.0.path()
    }

    fn path(&self, name: &str) -> String {
        self.at().join(name).to_str().expect("plain letters").into()
    }

    /// The options of a recording of 200 frames, always the same ones.
    fn simulate<'a>(name: &'a str, options: &[&'a str]) -> Vec<&'a str> {
        let recorded = ["simulate", "camera.toml", "--to", ".", "--name", name, "--format", "hdf5"];
        let same = ["--duration", "1 s", "--seed", "7", "--buffer", "32 MiB"];
        [&recorded[..], &same, options].concat()
    }

    /// The same frames in a file of one process.
    fn alone(&self) -> String {
        let mut command = std::process::Command::new(nilometer_tests::nilometer());
        command.current_dir(self.at()).args(Lab::simulate("alone", &[]));
        let ended = Running::of(command).end(Duration::from_mins(2));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        self.path("alone/alone.h5")
    }
}

/// Compares two files by h5py.
fn compared(one: &str, other: &str) -> Option<String> {
    let mut python = python(&["h5py", "hdf5plugin"])?;
    let script = format!("import hdf5plugin{COMPARE}");
    let output = python.args(["-c", &script, one, other]).output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).trim().into())
}

/// The processes that hold a lock of a directory.
fn lock_holders(directory: &str) -> Vec<i32> {
    let inode = fs::metadata(directory).expect("it is there").ino();
    let locks = fs::read_to_string("/proc/locks").expect("the kernel lists them");
    let holder = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, process, place, ..] = words[..] else { return None };
        let is_it = place.rsplit(':').next() == Some(inode.to_string().as_str());
        process.parse().ok().filter(|_| is_it)
    };
    locks.lines().filter_map(holder).collect()
}

fn verified(directory: &str) -> Ended {
    run(&["verify", directory])
}

#[test]
fn processes_write_one_dataset_that_other_programs_read() {
    for mpi in Mpi::all() {
        let lab = Lab::new();
        let alone = lab.alone();
        for (name, options) in
            [("plain", &[][..]), ("packed", &["--compression", "bslz4", "--chunk", "25x100"])]
        {
            let shared = [&["--storing", "shared"][..], options].concat();
            let ended = mpi.run(3, lab.at(), &Lab::simulate(name, &shared));
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert!(ended.stdout.contains("200 frames of 3 writers in one dataset"), "{ended:?}");
            let directory = lab.path(name);
            let ended = verified(&directory);
            assert_eq!(ended.code, Some(0), "every frame and its place in the index: {ended:?}");
            let whole = run(&["repair", &directory, "--dry-run"]);
            assert!(whole.stdout.contains("whole"), "{whole:?}");
            if options.is_empty() {
                let same = compared(&lab.path("plain/plain.h5"), &alone);
                assert!(same.is_none_or(|same| same == "(200, 50, 100) True 200 200"));
            }
        }
        let exported = |directory: &str| {
            let to = lab.path("exported");
            let ended = run(&["export", directory, "--to", &to]);
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let bytes = fs::read(&to).expect("it is there");
            fs::remove_file(to).expect("it is there");
            bytes
        };
        assert!(exported(&lab.path("packed")) == exported(&lab.path("alone")));
    }
}

#[test]
fn writers_of_one_process_share_a_dataset_too() {
    let lab = Lab::new();
    let alone = lab.alone();
    let mut command = std::process::Command::new(nilometer_tests::nilometer());
    command.current_dir(lab.at()).args(Lab::simulate("two", &["--storing", "shared", "--writers", "2"]));
    let ended = Running::of(command).end(Duration::from_mins(2));
    assert!(ended.stdout.contains("200 frames of 2 writers in one dataset"), "{ended:?}");
    let same = compared(&lab.path("two/two.h5"), &alone);
    assert!(same.is_none_or(|same| same == "(200, 50, 100) True 200 200"));
    assert_eq!(verified(&lab.path("two")).code, Some(0));
}

#[test]
fn a_killed_process_leaves_no_file_that_looks_whole_and_repair_completes_it() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let lab = Lab::new();
    let options = Lab::simulate("cut", &["--storing", "shared"]);
    let options: Vec<_> = options.iter().map(|word| if *word == "1 s" { "10 min" } else { *word }).collect();
    let running = mpi.start(2, lab.at(), &options);
    let file = lab.at().join("cut/cut.h5");
    let journal = |lane: u32| fs::metadata(lab.at().join(format!("cut/cut.{lane}.journal")));
    // Some fifty records behind those that describe the file.
    let has_frames = |lane| journal(lane).is_ok_and(|journal| journal.len() > 16_000);
    await_some("frames of both", || [0, 1].into_iter().all(has_frames).then_some(()));
    let directory = lab.path("cut");
    let processes = [0, 1].map(|rank| await_some("the process", || mpi.worker_of(rank, lab.at())));
    let ids = processes.map(|process| process.as_raw_nonzero().get());
    assert!(ids.iter().all(|id| lock_holders(&directory).contains(id)), "each process holds its lock");
    for refused in [&["repair", &directory][..], &["copy", &directory, "--to", &lab.path("target")]] {
        let ended = run(refused);
        assert!(ended.code != Some(0) && ended.stderr.contains("record"), "{refused:?}: {ended:?}");
    }
    let [_, process] = processes;
    kill_process(process, Signal::KILL).expect("it lives");
    let ended = running.end(Duration::from_mins(2));
    assert!(ended.code != Some(0) && ended.stderr.contains("SIGKILL"), "{ended:?}");
    let first = fs::read(&file).expect("it is there");
    assert!(first[..4096].iter().all(|byte| *byte == 0), "a superblock before the index");
    let before = verified(&directory);
    let told = [before.stdout.as_str(), &before.stderr].concat();
    assert!(before.code == Some(1) && told.contains("cut.h5"), "{before:?}");
    let repaired = run(&["repair", &directory]);
    assert!(repaired.code == Some(0) && repaired.stdout.contains("repaired"), "{repaired:?}");
    let again = run(&["repair", &directory, "--dry-run"]);
    assert!(again.stdout.contains("whole"), "{again:?}");
}

fn plan(processes: &str, more: &str) -> String {
    format!(
        "title = \"p\"\nrepeats = 1\nreserve = \"0 B\"\n[[stage]]\nname = \"one file\"\nprocesses = {processes}\n\
         [stage.ingest]\ninstrument = \"camera.toml\"\nformat = \"hdf5\"\nstoring = \"shared\"\nbuffer = \"32 MiB\"\n\
         keep = \"20 MB\"\n{more}"
    )
}

fn results(lab: &Lab) -> Results {
    nilometer_record::read(&lab.at().join("r.sqlite")).expect("a record")
}

#[test]
fn a_campaign_measures_one_dataset_of_all_processes() {
    for mpi in Mpi::all() {
        let lab = Lab::new();
        let more = "goal = \"pace\"\nduration = \"1 s\"\ncompression = [\"none\", \"bslz4\"]\n";
        fs::write(lab.at().join("plan.toml"), plan("[1, 3]", more)).expect("space");
        let ended =
            mpi.run(3, lab.at(), &["evaluate", "target", "--plan", "plan.toml", "--record", "r.sqlite"]);
        assert!(ended.has_answered(), "{ended:?}");
        let results = results(&lab);
        let samples: Vec<&Sample> = results.samples.iter().map(|measured| &measured.sample).collect();
        assert_eq!(samples.len(), 4, "{ended:?}");
        for sample in samples {
            let ingest = sample.ingest.as_ref().expect("a recording");
            assert!((199..=202).contains(&ingest.due), "{ingest:?}");
            let read: u64 =
                ingest.readers.iter().filter(|reader| reader.after).map(|reader| reader.frames).sum();
            assert_eq!(read, ingest.stored, "each frame was read back: {ingest:?}");
            let why = sample.invalid.as_ref().map(|why| format!("{why:?}")).unwrap_or_default();
            assert!(!why.contains("Refused") && !why.contains("Wrong"), "{why}");
        }
        assert!(run_directories(&lab.at().join("target")).is_empty());
    }
}

/// The pixels of a frame of the camera that each way of reading asks for.
const WAYS: [(&str, u64); 5] =
    [("frames", 5000), ("line", 100), ("region", 13 * 25), ("rows", 5000), ("blocks", 5000)];

/// A sample of a phase, with its cell.
type CellSample<'a> = (&'a RecordingRun, &'a Sample);

fn samples_of(results: &Results, phase: Phase) -> BTreeMap<usize, CellSample<'_>> {
    let of_phase = results.samples.iter().filter(|measured| measured.key.phase == phase);
    let with_cell = of_phase.map(|measured| {
        let cell = results.cells[measured.key.cell].as_recording().expect("a recording");
        (measured.key.cell, (cell, &measured.sample))
    });
    with_cell.collect()
}

#[test]
fn all_processes_read_one_dataset_each_its_part_of_it() {
    for mpi in Mpi::all() {
        let lab = Lab::new();
        let ways = WAYS.map(|(way, _)| format!("\"{way}\"")).join(", ");
        let more = format!(
            "goal = \"pace\"\nduration = \"200 ms\"\nchunk = [\"50x100\", \"10x50\"]\nread = [{ways}]\n"
        );
        fs::write(lab.at().join("plan.toml"), plan("[1, 3]", &more)).expect("space");
        let ended =
            mpi.run(3, lab.at(), &["evaluate", "target", "--plan", "plan.toml", "--record", "r.sqlite"]);
        assert!(ended.has_answered(), "{ended:?}");
        let results = results(&lab);
        let recorded = samples_of(&results, Phase::Ingest);
        let read = samples_of(&results, Phase::Read);
        assert_eq!((recorded.len(), read.len()), (2 * 2 * WAYS.len(), recorded.len()), "{ended:?}");
        for (cell, (run, sample)) in read {
            let stored = recorded[&cell].1.ingest.as_ref().expect("a recording").stored;
            let way = run.read.expect("it is read").name();
            let (_, pixels) = WAYS.into_iter().find(|(name, _)| *name == way).expect("one of the plan's");
            assert!(stored > 0 && sample.bytes == stored * pixels * 2, "{run}: {sample:?}");
            // Files in memory can't be cold.
            assert!(matches!(sample.invalid, None | Some(Invalid::WarmRead)), "{run}: {sample:?}");
            let parts: Vec<u64> = sample.parts.iter().map(|part| part.bytes).collect();
            if run.swept.processes == Some(1) {
                assert!(parts.is_empty(), "one process has read all: {sample:?}");
                continue;
            }
            assert_eq!((parts.len(), parts.iter().sum::<u64>()), (3, sample.bytes), "{run}");
            assert!(parts.iter().all(|bytes| *bytes > 0), "{run}: {parts:?}");
            let is_whole = run.instrument.recording.chunk.is_none_or(|chunk| chunk.to_string() == "50x100");
            let of_row = 100 * 2 * stored;
            match (way, is_whole) {
                ("rows", true) => assert_eq!(parts, [16, 17, 17].map(|rows| rows * of_row)),
                ("rows", false) => assert_eq!(parts, [10, 20, 20].map(|rows| rows * of_row)),
                _ => {}
            }
        }
        assert!(run_directories(&lab.at().join("target")).is_empty());
    }
}

#[test]
fn files_apart_are_not_read_by_several_processes() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let lab = Lab::new();
    let text = plan("[1, 3]", "goal = \"pace\"\nduration = \"200 ms\"\nread = \"rows\"\n");
    fs::write(lab.at().join("plan.toml"), text.replace("\"shared\"", "\"growing\"")).expect("space");
    let ended = mpi.run(3, lab.at(), &["evaluate", "target", "--plan", "plan.toml", "--record", "r.sqlite"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("processes = 3") && ended.stderr.contains("storing = \"shared\""),
        "{ended:?}"
    );
    assert!(!lab.at().join("r.sqlite").exists());
}

/// Bursts of 10 frames, of which three processes get 3 or 4 each: 40 in the first second.
#[test]
fn bursts_that_processes_can_not_share_alike_come_as_the_instrument_delivers_them() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let lab = Lab::new();
    let bursts = "burst = { frames = 10, pause = \"210 ms\" }\n";
    fs::write(lab.at().join("camera.toml"), [CAMERA, bursts].concat()).expect("space");
    let text = plan("[1, 3]", "goal = \"pace\"\nduration = \"1 s\"\n");
    let text = text.replace("storing = \"shared\"", "storing = [\"files\", \"shared\"]");
    fs::write(lab.at().join("plan.toml"), text).expect("space");
    let ended = mpi.run(3, lab.at(), &["evaluate", "target", "--plan", "plan.toml", "--record", "r.sqlite"]);
    assert!(ended.has_answered(), "{ended:?}");
    let results = results(&lab);
    let due: Vec<u64> = results
        .samples
        .iter()
        .filter_map(|measured| measured.sample.ingest.as_ref())
        .map(|ingest| ingest.due)
        .collect();
    assert_eq!(due, [40; 4], "{ended:?}");
}

#[test]
fn a_shared_file_that_can_not_be_is_refused_before_it_begins() {
    let lab = Lab::new();
    let mut two = Lab::simulate("two", &["--storing", "shared"]);
    two.extend(["--to", "target"]);
    let mut command = std::process::Command::new(nilometer_tests::nilometer());
    command.current_dir(lab.at()).args(two);
    let ended = Running::of(command).end(Duration::from_mins(1));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--storing shared: all writers have one HDF5 file"), "{ended:?}");
    assert!(!lab.at().join("two").exists());
}
