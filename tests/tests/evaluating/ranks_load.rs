//! Loads of several processes: each has a share, in a place of its own, and the record has their sum.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_model::Invalid;
use nilometer_plan::{Measured, Results};
use nilometer_tests::{Mpi, Running, await_some, camera, may_mount, nilometer, run_directories};

use super::ranks::{EVALUATE, RankLab, as_it_reads, on_two_nodes};

const RANKS: u32 = 4;

/// A workload on one node and on two, and a recording of all processes, beside loads.
const PLAN: &str = r#"
title = "beside loads"
repeats = 3
reserve = "0 B"
[[stage]]
name = "files"
nodes = [1, 2]
rate = "2 MB/s"
[stage.workload.stream]
file_size = "1 MiB"
block_size = "64 KiB"
access = "buffered"
[stage.background]
workers = [0, 1]
phase = "write"
[stage.background.workload.stream]
file_size = "256 KiB"
block_size = "64 KiB"
access = "buffered"
[[stage]]
name = "beside an instrument"
rate = "4 MB/s"
[stage.workload.stream]
file_size = "1 MiB"
block_size = "64 KiB"
access = "buffered"
[stage.background]
count = 2
[stage.background.ingest]
instrument = "./camera.toml"
buffer = "16 MB"
keep = "16 MB"
[[stage]]
name = "images"
[stage.ingest]
instrument = "./camera.toml"
duration = "1 s"
buffer = "64 MB"
keep = "64 MB"
[stage.background]
workers = 1
rate_iops = 200
[stage.background.workload.tree]
levels = 1
branching = 2
items = 20
"#;

/// The run directories with a file of a load: a load's files have no number of a repeat.
fn places_with_a_load(target: &Path) -> impl Iterator<Item = PathBuf> {
    run_directories(target).into_iter().filter(|run| run.join("n_w0").exists())
}

fn of_stage<'a>(results: &'a Results, stage: &str) -> Vec<&'a Measured> {
    let of =
        |measured: &&Measured| measured.key.target == 0 && results.cells[measured.key.cell].stage == stage;
    results.samples.iter().filter(of).collect()
}

#[test]
fn each_process_has_a_share_of_a_load_and_the_record_has_the_load_of_all() {
    if !may_mount() {
        return;
    }
    for mpi in Mpi::all() {
        let lab = RankLab::new(PLAN);
        fs::write(lab.at().join("camera.toml"), camera(20)).expect("space");
        let script = on_two_nodes(&mpi);
        let plan = ["evaluate", "target", "--plan", "./plan.toml", "--record", "r.sqlite"];
        let mut running =
            Running::of(mpi.command(RANKS, lab.at(), &[&["sh", "-c", &script, "sh"], &plan[..]].concat()));
        let target = lab.at().join("target");
        // A load removes its file before it writes it again, so not all are there at the same time.
        let mut seen = BTreeSet::new();
        await_some("the files of all four shares", || {
            seen.extend(places_with_a_load(&target));
            let is_all = seen.len() == RANKS as usize;
            assert!(is_all || !running.is_over(), "it ended: {}", running.stderr());
            (seen.len() == RANKS as usize).then_some(())
        });
        let ended = running.end(Duration::from_mins(5));
        assert!(ended.has_answered(), "{ended:?}");
        lab.assert_target_is_empty();
        let results = lab.results();
        let all = results.samples.iter().filter(|measured| measured.key.target == 0);
        for Measured { key, sample } in all {
            let cell = &results.cells[key.cell];
            let has_load = cell.background().is_some_and(|load| !load.is_none());
            assert_eq!(sample.background.is_some(), has_load, "{cell}");
            assert!(!matches!(sample.invalid, Some(Invalid::Refused(_))), "{cell}: {:?}", sample.invalid);
            assert!(sample.background.is_none_or(|done| done.wall >= sample.wall), "{cell}: {sample:?}");
        }
        let worked = |measured: &&Measured| {
            measured.sample.background.is_some_and(|done| done.operations > 0 && done.errors == 0)
        };
        for stage in ["files", "images"] {
            assert!(of_stage(&results, stage).iter().any(worked), "{stage}: {ended:?}");
        }
        let beside = of_stage(&results, "beside an instrument");
        let frames = beside.iter().filter_map(|measured| measured.sample.background?.frames);
        assert!(frames.map(|frames| frames.due).sum::<u64>() > 0, "{ended:?}");
        let report = as_it_reads(&ended);
        assert!(report.contains("BESIDE A LOAD: write") && report.contains("the load did "), "{report}");
    }
}

#[test]
fn a_rate_that_is_too_low_for_the_workers_of_all_processes_is_refused() {
    for mpi in Mpi::all() {
        let slow = "title = \"t\"\n[[stage]]\nname = \"files\"\n[stage.workload.walk]\nlevels = 1\nbranching = 1\nfiles = 1\n\
                    [stage.background]\nworkers = 4\nrate_iops = 1\n[stage.background.workload.walk]\nlevels = 1\nbranching = 1\n\
                    files = 1\n";
        let lab = RankLab::new(slow);
        let program = nilometer().to_str().expect("a plain name");
        let command = mpi.command(3, lab.at(), &[&[program], &EVALUATE[..]].concat());
        let ended = Running::of(command).end(Duration::from_mins(1));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let said =
            "stage `files`: background: at 1 operations/s: each of 12 workers would wait more than 10 s";
        assert!(ended.stderr.contains(said), "{ended:?}");
        lab.assert_nothing_made(&ended);
    }
}
