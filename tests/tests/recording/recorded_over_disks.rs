//! One recording over several targets of a campaign, beside a recording on each: planned, made in the same rounds, told, gone on
//! with and removed, by the real program on real directories.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_model::Phase;
use nilometer_plan::{Key, Results};
use nilometer_tests::{Ended, Mpi, Running, await_let_go, await_some, camera, run_directories, start};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

/// Long enough for a machine that is busy with other things.
const LIMIT: Duration = Duration::from_mins(5);

/// Directories with a plan of one stage, in which a camera is recorded.
struct Disks {
    home: TempDir,
    targets: Vec<PathBuf>,
}

impl Disks {
    fn new(count: usize, stage: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let targets: Vec<PathBuf> =
            (0..count).map(|number| home.path().join(format!("disk{number}"))).collect();
        for target in &targets {
            fs::create_dir(target).expect("space");
        }
        let disks = Disks { home, targets };
        disks.plan(stage);
        disks
    }

    fn plan(&self, stage: &str) {
        let home = self.home.path();
        let plan = format!("title = \"disks\"\nreserve = \"0 B\"\n{stage}");
        fs::write(home.join("plan.toml"), plan).expect("space");
        fs::write(home.join("camera.toml"), camera(100)).expect("space");
    }

    fn begin(&self) -> Running {
        let mut arguments: Vec<PathBuf> =
            ["evaluate", "--plan", "./plan.toml", "--record", "r.sqlite"].map(PathBuf::from).to_vec();
        arguments.extend(self.targets.iter().cloned());
        start(self.home.path(), &arguments)
    }

    fn ended(&self) -> Ended {
        let ended = self.begin().end(LIMIT);
        assert!(ended.has_answered(), "{}{}", ended.stdout, ended.stderr);
        assert_eq!(self.left_behind(), Vec::<PathBuf>::new());
        ended
    }

    fn resumed(&self) -> Ended {
        start(self.home.path(), &["evaluate", "--resume", "--record", "r.sqlite"]).end(LIMIT)
    }

    fn record(&self) -> PathBuf {
        self.home.path().join("r.sqlite")
    }

    fn results(&self) -> Results {
        nilometer_record::read(&self.record()).expect("a record is valid whenever it is read")
    }

    fn left_behind(&self) -> Vec<PathBuf> {
        self.targets.iter().flat_map(|target| run_directories(target)).collect()
    }
}

/// A second of 10 MB/s, so that each recording is short.
fn stage(volumes: &str, more: &str) -> String {
    format!(
        "repeats = 2\n[[stage]]\nname = \"disks\"\nvolumes = {volumes}\n[stage.ingest]\ninstrument = \"./camera.toml\"\n\
         rate = \"10 Hz\"\nduration = \"2 s\"\nbuffer = \"64 MB\"\nkeep = \"64 MB\"\n{more}\n"
    )
}

/// Keys of a recording on so many targets, twice.
fn keys(targets: usize) -> BTreeSet<Key> {
    let of = |target| (0..2).map(move |repeat| Key { target, cell: 0, repeat, phase: Phase::Ingest });
    (0..targets).flat_map(of).collect()
}

fn made(results: &Results) -> BTreeSet<Key> {
    results.samples.iter().map(|measured| measured.key).collect()
}

#[test]
fn a_recording_over_several_is_made_in_the_same_rounds_and_has_a_verdict() {
    let disks = Disks::new(3, &stage("[\"alone\", 2]", ""));
    let said = disks.ended().stdout;
    let results = disks.results();
    let names: Vec<&str> = results.targets.iter().map(|target| target.path.as_str()).collect();
    let [first, second, _, both] = names[..] else {
        panic!("three targets, and two of them as one: {names:?}")
    };
    assert_eq!(both, format!("{first} + {second}"));
    assert_eq!(made(&results), keys(4));
    for measured in &results.samples {
        let ingest = measured.sample.ingest.as_ref().expect("a recording");
        assert!(ingest.stored > 0, "{:?}", measured.key);
        let read_back: u64 =
            ingest.readers.iter().filter(|reader| reader.after).map(|reader| reader.frames).sum();
        let wrong: u64 = ingest.readers.iter().map(|reader| reader.wrong + reader.failed).sum();
        assert!(read_back > 0 && wrong == 0, "{:?}: {:?}", measured.key, ingest.readers);
    }
    assert!(said.contains(both), "{said}");
    let report = start(disks.home.path(), &["report", "r.sqlite", "--format", "json"]).end(LIMIT);
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let verdicts = report["verdicts"].as_array().map(Vec::len);
    assert_eq!(verdicts, Some(4), "one for each, and one for both: {}", report["verdicts"]);
    for format in ["html", "markdown", "csv"] {
        let shown = start(disks.home.path(), &["report", "r.sqlite", "--format", format]).end(LIMIT);
        assert_eq!(shown.code, Some(0), "{format}: {}", shown.stderr);
    }
    let check = start(disks.home.path(), &["check", "r.sqlite"]).end(LIMIT);
    assert_eq!(check.code, Some(0), "{}{}", check.stdout, check.stderr);
    let resumed = disks.resumed();
    assert!(resumed.has_answered(), "nothing is missing: {}{}", resumed.stdout, resumed.stderr);
    assert_eq!(made(&disks.results()), keys(4), "and nothing is measured twice");
}

#[test]
fn a_campaign_that_was_killed_while_it_recorded_over_both_goes_on() {
    let stage = stage("\"together\"", "readers = { count = 1 }");
    let disks = Disks::new(2, &stage.replace("repeats = 2", "repeats = 2\nhang_after = \"20 s\""));
    let running = disks.begin();
    // Nothing else is recorded: files of frames on both are of one recording.
    let has_frames = |target: &PathBuf| {
        let runs = run_directories(target).into_iter();
        let files = runs.flat_map(|run| fs::read_dir(run).into_iter().flatten().flatten());
        files.filter_map(|file| file.metadata().ok()).any(|metadata| metadata.len() > 1 << 20)
    };
    await_some("frames on both", || disks.targets.iter().all(has_frames).then_some(()));
    let runs = disks.left_behind();
    running.signal(Signal::KILL);
    running.end(LIMIT);
    for run in &runs {
        await_let_go(run);
    }
    let resumed = disks.resumed();
    assert!(resumed.has_answered(), "{}{}", resumed.stdout, resumed.stderr);
    assert_eq!(disks.left_behind(), Vec::<PathBuf>::new());
    let results = disks.results();
    let both: BTreeSet<Key> = keys(3).into_iter().filter(|key| key.target == 2).collect();
    assert_eq!(made(&results), both, "on each alone nothing was asked for");
    let read = |measured: &nilometer_plan::Measured| {
        let ingest = measured.sample.ingest.as_ref().expect("a recording");
        ingest.readers.iter().filter(|reader| !reader.after).map(|reader| reader.frames).sum::<u64>()
    };
    assert!(results.samples.iter().all(|measured| read(measured) > 0), "a reader finds frames on both");
}

#[test]
fn what_can_not_be_recorded_over_several_is_refused() {
    let refused = |count: usize, stage: &str, part: &str| {
        let disks = Disks::new(count, stage);
        let ended = disks.begin().end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains(part), "{part}: {}", ended.stderr);
        assert!(!disks.record().exists(), "nothing is started");
    };
    refused(1, &stage("\"together\"", ""), "needs 2 directories that can be recorded onto");
    refused(2, &stage("3", ""), "needs 3 directories");
    refused(2, &stage("\"together\"", "format = \"hdf5\""), "HDF5 files lie on one target");
    refused(2, &stage("2", "onto = \"nothing\""), "nothing is stored");
    let beside = "[stage.background]\n[stage.background.workload.tree]\nlevels = 1\nbranching = 2\nitems = 2";
    refused(2, &stage("2", beside), "no load works beside it");
    let disks = Disks::new(1, &stage("[\"alone\", \"together\"]", ""));
    disks.ended();
    assert_eq!(made(&disks.results()), keys(1), "one target alone has nothing beside it");
}

/// Recordings of a plan follow `--repeats`, and so does what is gone on with when the plan is named again.
#[test]
fn recordings_of_a_plan_are_made_as_often_as_is_said() {
    let disks = Disks::new(1, &stage("\"alone\"", ""));
    let evaluate = ["evaluate", "--plan", "./plan.toml", "--record", "r.sqlite", "--repeats", "3", "disk0"];
    let ended = start(disks.home.path(), &evaluate).end(LIMIT);
    assert!(ended.has_answered(), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(made(&disks.results()).len(), 3);
    let again = ["evaluate", "--resume", "--record", "r.sqlite", "--plan", "./plan.toml"];
    let resumed = start(disks.home.path(), &again).end(LIMIT);
    assert!(resumed.has_answered(), "it is the same campaign: {}{}", resumed.stdout, resumed.stderr);
    let other = start(disks.home.path(), &[&again[..], &["--repeats", "4"]].concat()).end(LIMIT);
    assert!(other.code == Some(2) && other.stderr.contains("another campaign"), "{other:?}");
}

#[test]
fn several_processes_make_no_recording_over_several() {
    for mpi in Mpi::all() {
        let disks = Disks::new(2, &stage("[\"alone\", 2]", ""));
        let arguments = ["evaluate", "disk0", "disk1", "--plan", "./plan.toml", "--record", "r.sqlite"];
        let ended = mpi.run(2, Path::new(disks.home.path()), &arguments);
        assert!(ended.code != Some(0) && ended.stderr.contains("one process makes a recording"), "{ended:?}");
    }
}
