//! The workloads that move data through files, with each of their parameters, by the real program on a real directory: what
//! the record then says must be what the plan asked for.

use std::{fs, time::Duration};

use nilometer_model::{Coldness, Invalid, Nanos, Phase, Sample};
use nilometer_plan::{Cell, Event, FileLayout, Results, SyncPolicy, WorkloadCell, WorkloadRun};
use nilometer_tests::{run_directories, start};

const PLAN: &str = r#"
title = "each parameter once"
repeats = 1
reserve = "0 B"

[[stage]]
name = "own"
workers = 2
[stage.workload.stream]
file_size = "256 KiB"
block_size = "64 KiB"
access = "buffered"
files = [1, 3]
sync = ["none", "close", { every = 2 }]
preallocate = [false, true]

[[stage]]
name = "shared"
workers = 3
engine = ["sync", "io_uring", "pool"]
[stage.workload.stream]
file_size = "256 KiB"
block_size = "64 KiB"
access = "best"
layout = ["segmented", "strided"]
preallocate = true

[[stage]]
name = "copies"
engine = "io_uring"
depth = [1, 4]
workers = 2
[stage.workload.stream]
file_size = "512 KiB"
block_size = "64 KiB"
access = "buffered"
files = 2
source = "disk"

[[stage]]
name = "written only"
[stage.workload.stream]
file_size = "64 KiB"
block_size = "4 KiB"
access = "buffered"
read_back = false

[[stage]]
name = "random"
engine = "io_uring"
depth = 4
[stage.workload.random]
file_size = "1 MiB"
block_size = "4 KiB"
access = "best"
operations = 300
mode = ["read", "write", "mix"]
coverage = ["uniform", "full"]
reads = 70

[[stage]]
name = "small"
workers = 2
[stage.workload.small_writes]
total = "100 kB"
way = ["each", "collected", "at_once"]

[[stage]]
name = "waits"
workers = 2
engine = ["sync", "io_uring", "pool"]
[stage.workload.wait]
duration = "20 ms"
operations = 3

[[stage]]
name = "stonewall"
workers = 2
stonewall = true
[stage.workload.stream]
file_size = "8 MiB"
block_size = "4 KiB"
access = "buffered"
layout = "strided"

[[stage]]
name = "limited"
time_limit = "1 s"
rate = "16 MB/s"
[stage.workload.stream]
file_size = "64 MiB"
block_size = "4 KiB"
access = "buffered"
files = 3

[[stage]]
name = "limited tree"
workers = 2
time_limit = "1 s"
rate_iops = 4000
[stage.workload.tree]
levels = 1
branching = 3
items = 750
"#;

const KIB: u64 = 1024;

fn measured() -> Results {
    let home = tempfile::tempdir().expect("a temporary directory");
    let [target, source] = ["target", "source"].map(|name| home.path().join(name));
    for path in [&target, &source] {
        fs::create_dir(path).expect("a directory");
    }
    fs::write(source.join("foreign"), "not ours").expect("space");
    fs::write(home.path().join("plan.toml"), PLAN).expect("space");
    let arguments =
        ["evaluate", "target", "--plan", "plan.toml", "--source", "source", "--record", "r.sqlite"];
    let ended = start(home.path(), &arguments).end(Duration::from_mins(3));
    assert!(ended.has_answered(), "{}\n{}", ended.stdout, ended.stderr);
    for place in [&target, &source] {
        assert!(run_directories(place).is_empty(), "something was left in {}", place.display());
    }
    assert_eq!(fs::read_to_string(source.join("foreign")).expect("untouched"), "not ours");
    nilometer_record::read(&home.path().join("r.sqlite")).expect("a record")
}

/// The samples of a stage, with their cells.
fn of<'a>(results: &'a Results, stage: &str) -> Vec<(WorkloadRun, Phase, &'a Sample)> {
    let with_cell = results
        .samples
        .iter()
        .map(|measured| (&results.cells[measured.key.cell], measured.key.phase, &measured.sample));
    let of_stage = with_cell.filter(|(cell, ..)| cell.stage == stage);
    let run = |cell: &Cell| cell.as_workload().expect("a workload").clone();
    let found: Vec<_> = of_stage.map(|(cell, phase, sample)| (run(cell), phase, sample)).collect();
    assert!(!found.is_empty(), "nothing of {stage} was measured");
    found
}

fn stream(cell: &WorkloadRun) -> nilometer_plan::StreamCell {
    match cell.workload {
        WorkloadCell::Stream(stream) => stream,
        _ => panic!("{cell} is no stream"),
    }
}

#[test]
fn every_parameter_does_what_it_says_on_a_real_directory() {
    let results = measured();
    for measured in &results.samples {
        let name = &results.cells[measured.key.cell];
        assert!(measured.sample.errors.is_empty(), "{name}: {:?}", measured.sample.errors);
    }
    files_of_their_own(&results);
    shared_files(&results);
    copies(&results);
    random(&results);
    small_writes(&results);
    waits(&results);
    limits(&results);
    limited_tree(&results);
    assert_eq!(
        of(&results, "written only").iter().map(|(_, phase, _)| *phase).collect::<Vec<_>>(),
        [Phase::Write]
    );
}

/// Beside the blocks each file is opened, closed, and perhaps reserved and synced.
fn files_of_their_own(results: &Results) {
    for (cell, phase, sample) in of(results, "own") {
        let stream = stream(&cell);
        let files = 2 * u64::from(stream.files);
        assert_eq!(sample.bytes, files * 256 * KIB, "{cell}");
        let more = match (phase, stream.sync) {
            (Phase::Read, _) => 0,
            (_, SyncPolicy::None) => u64::from(stream.preallocate),
            (_, SyncPolicy::Close) => u64::from(stream.preallocate) + 1,
            (_, SyncPolicy::Every(_)) => u64::from(stream.preallocate) + 2,
        };
        assert_eq!(sample.operations, files * (4 + 2 + more), "{} {cell}", phase.name());
        assert_eq!(sample.coldness.is_some(), phase == Phase::Read, "{cell}");
        assert_eq!(sample.workers.len(), 2);
    }
}

fn shared_files(results: &Results) {
    for (cell, phase, sample) in of(results, "shared") {
        assert_eq!(sample.bytes, 3 * 256 * KIB, "{cell}");
        let reserved = u64::from(phase == Phase::Write);
        let each = if phase == Phase::Write { 4 + 3 } else { 4 + 2 };
        assert_eq!(sample.operations, 3 * each + reserved, "{} {cell}", phase.name());
        assert!(
            stream(&cell).layout != FileLayout::Own
                && sample.workers.iter().all(|one| one.bytes == 256 * KIB)
        );
    }
}

/// What a copy reads does not count as moved, and its source was cold.
fn copies(results: &Results) {
    let found = of(results, "copies");
    let phases: Vec<_> = found.iter().map(|(_, phase, _)| *phase).collect();
    for phase in [Phase::Source, Phase::Write, Phase::Read] {
        assert_eq!(phases.iter().filter(|of| **of == phase).count(), 2, "{phases:?}");
    }
    for (cell, phase, sample) in &found {
        assert_eq!(sample.bytes, 4 * 512 * KIB, "{} {cell}", phase.name());
        // A copy opens and closes two files; each block is one operation, the write of it.
        let others = if *phase == Phase::Write { 5 } else { 2 };
        assert_eq!(sample.operations, 4 * (8 + others), "{} {cell}", phase.name());
        assert!(matches!(sample.coldness, Some(Coldness::Proved | Coldness::NotProvable)), "{cell}");
    }
}

fn random(results: &Results) {
    let found = of(results, "random");
    assert_eq!(found.len(), 6);
    for (cell, phase, sample) in found {
        assert_eq!(sample.bytes, 300 * 4 * KIB, "{} {cell}", phase.name());
        let syncs = u64::from(phase != Phase::Read);
        assert_eq!(sample.operations, 300 + 2 + syncs, "{} {cell}", phase.name());
        assert_eq!(sample.coldness.is_some(), phase != Phase::Write, "{} {cell}", phase.name());
    }
}

fn small_writes(results: &Results) {
    let found = of(results, "small");
    let operations: Vec<_> = found.iter().map(|(_, _, sample)| sample.operations).collect();
    assert!(found.iter().all(|(_, _, sample)| sample.bytes == 200_000), "{found:?}");
    // 100 kB are 13 calls of 8 KiB.
    for writes in [1000, 13, 1] {
        assert!(operations.contains(&(2 * (writes + 3))), "{writes} writes a worker: {operations:?}");
    }
}

/// Each time counts once, and none comes before it is due.
fn waits(results: &Results) {
    for (cell, phase, sample) in of(results, "waits") {
        assert_eq!((phase, sample.operations, sample.bytes), (Phase::Wait, 2 * 3, 0), "{cell}");
        let soonest = sample.workers.iter().map(|worker| worker.last_done).min();
        assert!(soonest >= Some(Nanos::from_millis(3 * 20)), "{cell}: {soonest:?}");
    }
}

const NOTHING_ASKED: &str = r#"
title = "nothing is asked"
repeats = 7
[[stage]]
name = "waits"
workers = 2
[stage.workload.wait]
duration = "100 ms"
operations = 5
"#;

/// Measurements until a busy machine has spoilt none of one.
const TRIES: usize = 4;

/// A test of the machine as much as of the program: a margin of 10 % are 50 ms, which no wake-up should be late by. One that is late
/// may leave the question open, and never answers it with a difference.
#[test]
fn two_targets_of_which_nothing_is_asked_are_alike() {
    if !(0..TRIES).any(|_| are_alike()) {
        eprintln!("no answer: this machine was too busy in all of {TRIES} measurements");
    }
}

/// Whether they are found to be alike; if not, nothing is decided, or a sample says that the machine was too busy.
fn are_alike() -> bool {
    let home = tempfile::tempdir().expect("a temporary directory");
    for name in ["a", "b"] {
        fs::create_dir(home.path().join(name)).expect("a directory");
    }
    fs::write(home.path().join("plan.toml"), format!("margin = 10\n{NOTHING_ASKED}")).expect("space");
    let arguments = ["evaluate", "a", "b", "--plan", "plan.toml", "--record", "r.sqlite"];
    let ended = start(home.path(), &arguments).end(Duration::from_mins(3));
    assert!(ended.has_answered(), "{}\n{}", ended.stdout, ended.stderr);
    let report = ["report", "r.sqlite", "--format", "json"];
    let report = start(home.path(), &report).end(Duration::from_mins(1)).stdout;
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let pairs = report["comparisons"].as_array().expect("a list");
    let answers: Vec<_> = pairs.iter().map(|pair| pair["answer"].as_str()).collect();
    assert!(!answers.contains(&Some("faster")) && !answers.contains(&Some("slower")), "{}", ended.stdout);
    if answers == [Some("alike")] {
        assert!(ended.stdout.contains("no difference larger than 10 %"), "{}", ended.stdout);
        return true;
    }
    let results = nilometer_record::read(&home.path().join("r.sqlite")).expect("a record");
    let mut invalid = results.samples.iter().map(|measured| &measured.sample.invalid);
    let is_starved = invalid.any(|invalid| matches!(invalid, Some(Invalid::Starved(_))));
    assert!(is_starved || answers == [Some("undecided")], "{answers:?}: {}", ended.stdout);
    false
}

/// What was not written is not read, and what ends early is still synced and closed.
fn limits(results: &Results) {
    for stage in ["stonewall", "limited"] {
        let found = of(results, stage);
        let bytes = |phase| found.iter().find(|(_, of, _)| *of == phase).expect("measured").2.bytes;
        let (written, read) = (bytes(Phase::Write), bytes(Phase::Read));
        assert!(written > 0 && read > 0, "{stage}: {read} of {written} bytes");
        // What a busy machine spoilt was measured again: then what was read may be of one attempt, and what was written of another.
        let again = results.events.iter().any(|event| event.what.starts_with(Event::AGAIN));
        assert!(again || read <= written, "{stage}: {read} of {written} bytes");
        if stage == "limited" {
            assert!(written < 192 * KIB * KIB, "a second of 16 MB/s is less than 192 MiB: {written}");
        }
    }
}

/// Creation and removal are measured for no longer than that, and done to the end: `measured` sees that nothing is left.
fn limited_tree(results: &Results) {
    let found = of(results, "limited tree");
    let items = 2 * (1 + 3) * 750;
    for phase in [Phase::CreateFiles, Phase::RemoveFiles] {
        let (.., sample) = found.iter().find(|(_, of, _)| *of == phase).expect("measured");
        assert!(sample.wall <= Nanos::from_millis(1000), "{}: {}", phase.name(), sample.wall);
        let done = sample.operations;
        assert!(0 < done && done < items, "{}: {done} of {items} in a second", phase.name());
    }
}
