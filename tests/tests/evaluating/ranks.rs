//! Campaigns of several processes, as MPI's launchers start them: by Open MPI and by MPICH.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use nilometer_model::Sample;
use nilometer_plan::{Measured, Results};
use nilometer_tests::{
    Ended, FaultyDisk, Mpi, MpiKind, Running, await_some, may_have_faulty_disks, may_mount, nilometer,
    run_directories,
};
use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

const RANKS: u32 = 3;

/// Two cells that files of their own and a shared one are written and read in.
const PLAN: &str = r#"
title = "ranks"
repeats = 2
reserve = "0 B"
[[stage]]
name = "files"
workers = 2
[stage.workload.stream]
file_size = "2 MiB"
block_size = "256 KiB"
access = "buffered"
layout = ["own", "strided"]
[[stage]]
name = "tree"
[stage.workload.tree]
items = 20
levels = 1
branching = 2
"#;

/// A directory that is a target, a plan beside it, and where the record goes.
pub(super) struct RankLab {
    home: TempDir,
}

impl RankLab {
    pub(super) fn new(plan: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(home.path().join("target")).expect("space");
        fs::write(home.path().join("plan.toml"), plan).expect("space");
        RankLab { home }
    }

    pub(super) fn at(&self) -> &Path {
        self.home.path()
    }

    pub(super) fn record(&self) -> PathBuf {
        self.at().join("r.sqlite")
    }

    /// Everything that was measured.
    pub(super) fn results(&self) -> Results {
        nilometer_record::read(&self.record()).expect("a record")
    }

    /// Nothing stays on the target.
    pub(super) fn assert_target_is_empty(&self) {
        let left = fs::read_dir(self.at().join("target")).expect("it is there").count();
        assert_eq!(left, 0, "what stays on the target");
    }

    /// No record, and nothing on the target.
    pub(super) fn assert_nothing_made(&self, ended: &Ended) {
        self.assert_target_is_empty();
        assert!(!self.record().exists(), "{ended:?}");
    }
}

pub(super) const EVALUATE: [&str; 6] = ["evaluate", "target", "--plan", "plan.toml", "--record", "r.sqlite"];

/// Every figure is that of all ranks together: their parts are all of it.
fn assert_of_all_ranks(measured: &Measured, ranks: u32) {
    let sample = &measured.sample;
    let numbers: Vec<u32> = sample.parts.iter().map(|part| part.rank).collect();
    assert!(numbers.into_iter().eq(0..ranks), "{:?}", sample.parts);
    assert_eq!(sample.parts.iter().map(|part| part.bytes).sum::<u64>(), sample.bytes);
    assert_eq!(sample.parts.iter().map(|part| part.operations).sum::<u64>(), sample.operations);
    assert_eq!(sample.parts.iter().map(|part| part.last_done).max(), Some(sample.wall));
}

#[test]
fn a_campaign_of_three_processes_is_one_record_of_all_of_them() {
    for mpi in Mpi::all() {
        let lab = RankLab::new(PLAN);
        let ended = mpi.run(RANKS, lab.at(), &EVALUATE);
        assert!(ended.has_answered(), "{ended:?}");
        lab.assert_target_is_empty();
        let results = lab.results();
        assert!(!results.samples.is_empty());
        let mut repeats: BTreeMap<_, u32> = BTreeMap::new();
        let on_target = |measured: &&Measured| measured.key.target == 0;
        for measured in results.samples.iter().filter(on_target) {
            assert_of_all_ranks(measured, RANKS);
            *repeats.entry((measured.key.cell, measured.key.phase)).or_default() += 1;
        }
        assert!(repeats.values().all(|count| *count == 2), "{repeats:?}");
        let written = results.samples.iter().filter(on_target).map(|measured| measured.sample.bytes);
        assert!(written.clone().any(|bytes| bytes == u64::from(RANKS) * (4 << 20)), "files of their own");
        // One process writes no results of another.
        assert_eq!(ended.stdout.matches("Record: ").count(), 1, "{ended:?}");
        assert!(ended.stdout.contains("3 processes on one machine"), "{ended:?}");
    }
}

#[test]
fn without_an_adapter_nothing_begins_and_how_to_make_one_is_said() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let lab = RankLab::new(PLAN);
    let program = nilometer().to_str().expect("a plain name");
    let mut command = mpi.command(2, lab.at(), &[&[program], &EVALUATE[..]].concat());
    command.env("NILOMETER_MPI", lab.at().join("none.so"));
    let ended = Running::of(command).end(std::time::Duration::from_mins(1));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("nilometer generate mpi | mpicc"), "{ended:?}");
    assert!(ended.stderr.contains("OMPI_COMM_WORLD_SIZE=2"), "{ended:?}");
    lab.assert_nothing_made(&ended);
}

#[test]
fn what_is_asked_wrongly_is_said_once_and_ends_all() {
    for mpi in Mpi::all() {
        let lab = RankLab::new(PLAN);
        let ended = mpi.run(RANKS, lab.at(), &["evaluate", "nowhere", "--plan", "plan.toml"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert_eq!(ended.stderr.matches("nilometer: ").count(), 1, "{ended:?}");
        lab.assert_nothing_made(&ended);
    }
}

/// Scaling over nodes and processes; what the next node wrote; what others see; one file for all.
const OVER_NODES: &str = r#"
title = "over nodes"
repeats = 1
reserve = "0 B"
[[stage]]
name = "scaling"
nodes = [1, 2]
processes = [1, 2]
[stage.workload.stream]
file_size = "256 KiB"
block_size = "64 KiB"
access = "buffered"
shift = "node"
[[stage]]
name = "tree"
[stage.workload.tree]
items = 5
levels = 1
branching = 2
file_size = "1 kB"
shift = "node"
[[stage]]
name = "visibility"
[stage.workload.visibility]
rounds = 2
file_size = "10 kB"
notice = ["message", "poll"]
[[stage]]
name = "locks"
[stage.workload.locks]
rounds = 2
hold = "2 ms"
[[stage]]
name = "hot"
[stage.workload.hot_file]
file_size = "256 KiB"
block_size = "64 KiB"
access = "buffered"
"#;

/// A program that gives ranks 2 and 3 the name of another machine.
pub(super) fn on_two_nodes(mpi: &Mpi) -> String {
    let variable = mpi.kind().rank_variable();
    let program = nilometer().display();
    format!(
        "if [ \"${variable}\" -ge 2 ]; then exec unshare --uts sh -c 'hostname other; exec \"$0\" \"$@\"' {program} \"$@\"; \
         fi; exec {program} \"$@\""
    )
}

/// What is printed, whatever the width of its lines and their colours.
pub(super) fn as_it_reads(ended: &Ended) -> String {
    let plain = ended.stdout.replace("\u{1b}[0m", "").replace("\u{1b}[2m", "");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs it, with these options.
fn evaluated(mpi: &Mpi, lab: &RankLab, ranks: u32, program: &[&str]) -> Ended {
    let command = mpi.command(ranks, lab.at(), &[program, &EVALUATE[..]].concat());
    Running::of(command).end(std::time::Duration::from_mins(2))
}

/// Words that a report of four processes on two nodes has, however busy the machine is.
const SAID_OF_ALL: [&str; 3] = [
    "nodes 2, processes 1",
    "of 72 files were whole and right",
    "none of 48 attempts got it while another process had it",
];

/// Words by which a report describes the machines of its valid samples. A busy machine makes samples INVALID.
fn said_of_machines<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<&'static str> {
    let valid = samples.filter(|sample| sample.invalid.is_none() && sample.parts.len() > 1);
    let machines: BTreeSet<usize> = valid.map(|sample| sample.node_starts.len()).collect();
    let said = [
        (1, "on the one machine just before"),
        (2, " processes on 2 machines"),
        (2, "of the agreed start (clocks known to"),
        (2, " a machine just before"),
    ];
    said.into_iter().filter(|(count, _)| machines.contains(count)).map(|(_, said)| said).collect()
}

#[test]
fn nodes_and_processes_are_dimensions_of_a_plan_and_what_another_node_wrote_is_read() {
    if !may_mount() {
        return;
    }
    for mpi in Mpi::all() {
        let lab = RankLab::new(OVER_NODES);
        let ended = evaluated(&mpi, &lab, 4, &["sh", "-c", &on_two_nodes(&mpi), "sh"]);
        assert!(ended.has_answered(), "{ended:?}");
        lab.assert_target_is_empty();
        let results = lab.results();
        let on_target = results.samples.iter().filter(|measured| measured.key.target == 0);
        for measured in
            on_target.clone().filter(|measured| results.cells[measured.key.cell].stage == "scaling")
        {
            let cell = &results.cells[measured.key.cell];
            let run = cell.as_workload().expect("a workload");
            let (nodes, processes) = (run.nodes.expect("it says"), run.processes.expect("it says"));
            assert_eq!(measured.sample.bytes, u64::from(nodes * processes) << 18, "{cell}");
            let mut used: Vec<&str> = measured.sample.parts.iter().map(|part| part.node.as_str()).collect();
            used.dedup();
            assert_eq!(used.len() as u32, if nodes * processes == 1 { 0 } else { nodes }, "{cell}");
            let starts = measured.sample.node_starts.iter().map(|start| start.node.as_str());
            assert_eq!(starts.collect::<Vec<_>>(), used, "{cell}");
            assert!(measured.sample.node_starts.iter().all(|start| start.disk_rate().is_some()), "{cell}");
        }
        let seen = on_target.clone().filter_map(|measured| measured.sample.seen.as_ref());
        let kept: Vec<bool> = seen.map(|seen| seen.files == 72 && seen.kept_close_to_open()).collect();
        assert_eq!(kept, [true, true], "{ended:?}");
        let locks: Vec<_> = on_target.clone().filter_map(|measured| measured.sample.locks.as_ref()).collect();
        // In each of eight turns three others try at the beginning and at the end.
        let told: Vec<_> = locks.iter().map(|locks| (locks.tries, locks.broken, locks.passed)).collect();
        assert_eq!(told, [(48, 0, 8)], "{ended:?}");
        let errors: usize = on_target.clone().map(|measured| measured.sample.errors.len()).sum();
        assert_eq!(errors, 0, "{ended:?}");
        let report = as_it_reads(&ended);
        let samples = on_target.map(|measured| &measured.sample);
        for said in said_of_machines(samples).into_iter().chain(SAID_OF_ALL) {
            assert!(report.contains(said), "{said}: {report}");
        }
        let too_few = RankLab::new(OVER_NODES);
        let program = nilometer().to_str().expect("a plain name");
        let ended = evaluated(&mpi, &too_few, 2, &[program]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let said = "stage `scaling` asks for nodes = 2, processes = 1: there are 2 processes on 1 node";
        assert!(ended.stderr.contains(said), "{ended:?}");
        too_few.assert_nothing_made(&ended);
    }
}

/// A program that gives one process another file system at the target: as a node on which a mount is missing.
fn on_another(mpi: &Mpi) -> String {
    let variable = mpi.kind().rank_variable();
    let program = nilometer().display();
    format!(
        "if [ \"${variable}\" = 1 ]; then exec unshare --mount --uts sh -c 'hostname lost; mount -t ramfs none target; \
         exec \"$0\" \"$@\"' {program} \"$@\"; fi; exec {program} \"$@\""
    )
}

#[test]
fn a_process_that_sees_another_file_system_is_named_and_nothing_begins() {
    if !may_mount() {
        return;
    }
    for mpi in Mpi::all() {
        let lab = RankLab::new(PLAN);
        let script = on_another(&mpi);
        let command = mpi.command(RANKS, lab.at(), &[&["sh", "-c", &script, "sh"], &EVALUATE[..]].concat());
        let ended = Running::of(command).end(std::time::Duration::from_mins(1));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let said = "target is ramfs here and ";
        assert!(ended.stderr.contains("lost: ") && ended.stderr.contains(said), "{ended:?}");
        lab.assert_nothing_made(&ended);
    }
}

#[test]
fn the_time_limit_ends_a_phase_of_all_processes() {
    let endless = r#"
title = "endless"
repeats = 1
reserve = "0 B"
time_limit = "3 s"
[[stage]]
name = "synced"
[stage.workload.stream]
file_size = "128 MiB"
block_size = "4 KiB"
access = "buffered"
sync = { every = 1 }
"#;
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    if !may_have_faulty_disks() {
        return;
    }
    // On which it takes some minutes.
    let slow = FaultyDisk::ext4(500, std::time::Duration::from_millis(5));
    let lab = RankLab::new(endless);
    let target = slow.path().join("target");
    fs::create_dir(&target).expect("space");
    let target = target.to_str().expect("a plain name");
    let ended = mpi.run(2, lab.at(), &["evaluate", target, "--plan", "plan.toml", "--record", "r.sqlite"]);
    assert!(ended.stdout.contains("the time limit of 3 s was reached"), "{ended:?}");
    assert!(run_directories(Path::new(target)).is_empty());
}

#[test]
fn a_process_that_is_killed_ends_the_campaign_and_it_goes_on_from_its_record() {
    let long = PLAN.replace("repeats = 2", "repeats = 12");
    for mpi in Mpi::all() {
        let lab = RankLab::new(&long);
        let running = mpi.start(RANKS, lab.at(), &EVALUATE);
        let some = || nilometer_record::read(&lab.record()).is_ok_and(|results| results.samples.len() > 20);
        await_some("some samples", || some().then_some(()));
        let victim = mpi.worker_of(1, lab.at()).expect("it runs");
        kill_process(victim, Signal::KILL).expect("it runs");
        let ended = running.end(std::time::Duration::from_mins(1));
        assert_ne!(ended.code, Some(0), "{ended:?}");
        let before = lab.results().samples.len();
        let again = ["evaluate", "--resume", "--record", "r.sqlite"];
        let alone = Command::new(nilometer()).args(again).current_dir(lab.at()).output().expect("it starts");
        let said = String::from_utf8_lossy(&alone.stderr).into_owned();
        assert!(alone.status.code() == Some(2) && said.contains("ranks is 3 there and 1 here"), "{said}");
        let ended = mpi.run(RANKS, lab.at(), &again);
        assert!(ended.has_answered(), "{ended:?}");
        let results = lab.results();
        assert!(results.samples.len() > before);
        let on_target = results.samples.iter().filter(|measured| measured.key.target == 0);
        let mut repeats: BTreeMap<_, u32> = BTreeMap::new();
        for measured in on_target {
            assert_of_all_ranks(measured, RANKS);
            *repeats.entry((measured.key.cell, measured.key.phase)).or_default() += 1;
        }
        assert!(repeats.values().all(|count| *count == 12), "{repeats:?}");
        assert!(run_directories(&lab.at().join("target")).is_empty());
    }
}

#[test]
fn a_stage_of_the_network_is_refused_on_one_machine() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let lab = RankLab::new("title = \"t\"\n[[stage]]\nname = \"between\"\n[stage.network]\n");
    let alone = Command::new(nilometer()).args(EVALUATE).current_dir(lab.at()).output().expect("it starts");
    let said = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert_eq!(alone.status.code(), Some(2), "{said}");
    assert!(said.contains("there is one process on one machine: start it on several, as `mpirun"), "{said}");
    let ended = mpi.run(2, lab.at(), &EVALUATE);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("there are 2 processes on one machine"), "{ended:?}");
    lab.assert_nothing_made(&ended);
}

#[test]
fn one_machine_has_no_network_between_machines() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    let ended = mpi.run(2, home.path(), &["network"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("all processes are on one machine"), "{ended:?}");
}
