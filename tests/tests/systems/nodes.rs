//! Campaigns over three nodes, each with a network, a host name and mounts of its own of one `GlusterFS` and one `MooseFS`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_model::{Coldness, NetworkProtocol, Phase};
use nilometer_plan::{NetworkTrials, Results};
use nilometer_tests::{Ended, Mpi, MpiKind, Running, Testbed, await_some, run_directories};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const NODES: [u32; 3] = [1, 2, 3];

/// Files of each process and one of all of them, and a tree.
const PLAN: &str = r#"
title = "nodes"
repeats = 2
reserve = "0 B"
[[stage]]
name = "files"
[stage.workload.stream]
file_size = "2 MiB"
block_size = "256 KiB"
access = "buffered"
layout = ["own", "strided"]
[[stage]]
name = "tree"
[stage.workload.tree]
items = 10
levels = 1
branching = 2
"#;

/// A file that all processes write, by POSIX and by MPI-IO.
const BY_MPI_IO: &str = r#"
title = "one file by MPI-IO"
repeats = 1
reserve = "0 B"
[[stage]]
name = "N-to-1"
engine = ["sync", "mpi_io"]
[stage.mpi_io]
calls = ["independent", "collective"]
[stage.workload.stream]
file_size = "512 KiB"
block_size = "64 KiB"
access = "buffered"
layout = "segmented"
"#;

/// What only several nodes can ask.
const BETWEEN_NODES: &str = r#"
title = "between nodes"
repeats = 1
reserve = "0 B"
[[stage]]
name = "scaling"
nodes = [2, 3]
[stage.workload.stream]
file_size = "1 MiB"
block_size = "256 KiB"
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
name = "walk"
[stage.workload.walk]
levels = 1
branching = 2
files = 5
shift = "node"
[[stage]]
name = "hand-over"
[stage.workload.visibility]
rounds = 2
file_size = "10 kB"
notice = ["message", "poll"]
[[stage]]
name = "locks"
[stage.workload.locks]
rounds = 2
hold = "5 ms"
[[stage]]
name = "hot"
[stage.workload.hot_file]
file_size = "1 MiB"
block_size = "256 KiB"
access = "buffered"
"#;

/// Three nodes with their storage, and a directory for the record.
struct NodesLab {
    testbed: Testbed,
    home: TempDir,
}

impl NodesLab {
    fn new() -> Option<Self> {
        let testbed = Testbed::of(&["gluster", "moosefs", "nodes"])?;
        Some(NodesLab { testbed, home: tempfile::tempdir().expect("a temporary directory") })
    }

    fn plan(&self, text: &str) {
        fs::write(self.home.path().join("plan.toml"), text).expect("space");
    }

    /// Where a volume is mounted on every node.
    fn mount(&self, volume: &str) -> String {
        let mount = self.testbed.folder().join("nodes/mount").join(volume);
        mount.to_str().expect("plain letters").to_owned()
    }

    fn start(&self, mpi: &Mpi, arguments: &[&str]) -> Running {
        Running::of(mpi.command_on(&self.testbed, &NODES, self.home.path(), arguments))
    }

    fn run(&self, mpi: &Mpi, arguments: &[&str]) -> Ended {
        self.start(mpi, arguments).end(Duration::from_mins(5))
    }

    fn record(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn results(&self, name: &str) -> Results {
        nilometer_record::read(&self.record(name)).expect("a record")
    }

    /// Nothing of a campaign is left on a volume, as it is seen from outside of the nodes.
    fn assert_left_nothing(&self, seen: &str) {
        let place = self.testbed.folder().join(seen);
        let left = run_directories(&place);
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Each sample on a target is of all nodes, each cell and phase was measured so often.
fn assert_of_all_nodes(results: &Results, target: usize, wanted: u32) {
    let all: BTreeSet<_> = NODES.into_iter().map(|node| format!("node-{node}")).collect();
    let mut repeats: BTreeMap<_, u32> = BTreeMap::new();
    for measured in results.samples.iter().filter(|measured| measured.key.target == target) {
        let nodes: BTreeSet<_> = measured.sample.parts.iter().map(|part| part.node.clone()).collect();
        assert_eq!(nodes, all, "{:?}", measured.key);
        *repeats.entry((measured.key.cell, measured.key.phase)).or_default() += 1;
    }
    assert!(!repeats.is_empty() && repeats.values().all(|count| *count == wanted), "{repeats:?}");
}

#[test]
fn campaigns_over_three_nodes() {
    let Some(lab) = NodesLab::new() else { return };
    for mpi in Mpi::all() {
        a_campaign_is_one_record_of_all_nodes(&lab, &mpi);
        a_file_of_all_nodes_is_written_by_mpi_io(&lab, &mpi);
    }
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    a_campaign_over_two_systems_is_one_record_too(&lab, &mpi);
    what_another_node_wrote_was_never_seen_here(&lab, &mpi);
    a_node_that_is_lost_ends_a_campaign_which_goes_on(&lab, &mpi);
    a_node_without_the_mount_is_named(&lab, &mpi);
}

fn a_campaign_is_one_record_of_all_nodes(lab: &NodesLab, mpi: &Mpi) {
    let record = format!("{:?}.sqlite", mpi.kind());
    lab.plan(PLAN);
    let arguments =
        ["evaluate", &lab.mount("gluster-replicated"), "--plan", "plan.toml", "--record", &record];
    let ended = lab.run(mpi, &arguments);
    assert!(ended.has_answered(), "{ended:?}");
    assert!(ended.stdout.contains("3 processes on 3 machines"), "{ended:?}");
    assert_of_all_nodes(&lab.results(&record), 0, 2);
    lab.assert_left_nothing("gluster/mount/replicated");
}

/// Files that each process has for itself on both; one that all write on `GlusterFS` alone: `MooseFS` fails to open a file
/// that several nodes create at once (EEXIST), which is in the record then, and not the same in each run.
fn a_campaign_over_two_systems_is_one_record_too(lab: &NodesLab, mpi: &Mpi) {
    let of_both = "both.sqlite";
    lab.plan(&PLAN.replace(r#"layout = ["own", "strided"]"#, ""));
    let targets = [lab.mount("gluster-dispersed"), lab.mount("moosefs/goal-2")];
    let arguments = ["evaluate", &targets[0], &targets[1], "--plan", "plan.toml", "--record", of_both];
    let ended = lab.run(mpi, &arguments);
    assert!(ended.has_answered(), "{ended:?}");
    for target in 0..2 {
        assert_of_all_nodes(&lab.results(of_both), target, 2);
    }
    lab.assert_left_nothing("gluster/mount/dispersed");
    lab.assert_left_nothing("moosefs/mount/goal-2");
}

/// In independent and in collective calls, beside POSIX in the same rounds: what each process wrote is what it reads.
fn a_file_of_all_nodes_is_written_by_mpi_io(lab: &NodesLab, mpi: &Mpi) {
    let record = format!("mpi-io-{:?}.sqlite", mpi.kind());
    lab.plan(BY_MPI_IO);
    let target = lab.mount("gluster-replicated");
    let ended = lab.run(mpi, &["evaluate", &target, "--plan", "plan.toml", "--record", &record]);
    assert!(ended.has_answered(), "{ended:?}");
    let results = lab.results(&record);
    assert_of_all_nodes(&results, 0, 1);
    let on_target: Vec<_> = results.samples.iter().filter(|measured| measured.key.target == 0).collect();
    let cells: BTreeSet<_> = on_target.iter().map(|measured| measured.key.cell).collect();
    assert_eq!(
        (cells.len(), on_target.len()),
        (3, 6),
        "POSIX and two kinds of calls, written and read: {ended:?}"
    );
    for measured in on_target {
        let cell = &results.cells[measured.key.cell];
        assert!(measured.sample.errors.is_empty(), "{cell}: {:?}", measured.sample.errors);
        assert_eq!(measured.sample.bytes, 3 << 19, "{cell}");
    }
    lab.assert_left_nothing("gluster/mount/replicated");
}

/// Every node has a client of its own: what it reads of another is cold without anything being dropped. Whether what is closed is
/// seen at once is for each storage to say: `GlusterFS` keeps contents and sizes for a second by default.
fn what_another_node_wrote_was_never_seen_here(lab: &NodesLab, mpi: &Mpi) {
    lab.plan(BETWEEN_NODES);
    let targets = [lab.mount("gluster-replicated"), lab.mount("moosefs/goal-2")];
    let arguments =
        ["evaluate", &targets[0], &targets[1], "--plan", "plan.toml", "--record", "between.sqlite"];
    let ended = lab.run(mpi, &arguments);
    assert!(ended.has_answered(), "{ended:?}");
    let results = lab.results("between.sqlite");
    for measured in results.samples.iter().filter(|measured| measured.key.target < 2) {
        let sample = &measured.sample;
        let cell = &results.cells[measured.key.cell];
        assert!(sample.errors.is_empty(), "{cell}: {:?}", sample.errors);
        let shifts = ["scaling", "walk"].contains(&cell.stage.as_str());
        let reads = matches!(measured.key.phase, Phase::Read | Phase::Walk);
        assert_eq!(sample.coldness == Some(Coldness::NeverSeen), shifts && reads, "{cell}");
        let run = cell.as_workload().expect("a workload");
        assert_eq!(sample.parts.len() as u32, run.nodes.unwrap_or(3), "{cell}");
        if let Some(seen) = &sample.seen {
            assert_eq!((seen.files, seen.never, seen.out_of_order), (36, 0, 0), "{cell}: {ended:?}");
        }
        if let Some(locks) = &sample.locks {
            assert_eq!((locks.tries, locks.broken, locks.passed), (24, 0, 6), "{cell}: {ended:?}");
        }
    }
    lab.assert_left_nothing("gluster/mount/replicated");
    lab.assert_left_nothing("moosefs/mount/goal-2");
}

fn a_node_that_is_lost_ends_a_campaign_which_goes_on(lab: &NodesLab, mpi: &Mpi) {
    lab.plan(&PLAN.replace("repeats = 2", "repeats = 6"));
    let target = lab.mount("gluster-replicated");
    let running = lab.start(mpi, &["evaluate", &target, "--plan", "plan.toml", "--record", "lost.sqlite"]);
    let record = lab.record("lost.sqlite");
    let some = || nilometer_record::read(&record).is_ok_and(|results| results.samples.len() > 10);
    await_some("some samples", || some().then_some(()));
    let victim = mpi.worker_of(1, lab.home.path()).expect("it runs");
    kill_process(victim, Signal::KILL).expect("it runs");
    let ended = running.end(Duration::from_mins(2));
    assert_ne!(ended.code, Some(0), "{ended:?}");
    let before = lab.results("lost.sqlite").samples.len();
    let ended = lab.run(mpi, &["evaluate", "--resume", "--record", "lost.sqlite"]);
    assert!(ended.has_answered(), "{ended:?}");
    let results = lab.results("lost.sqlite");
    assert!(results.samples.len() > before);
    assert_of_all_nodes(&results, 0, 6);
    lab.assert_left_nothing("gluster/mount/replicated");
}

/// The usual case of several nodes: what lies below the mount point is there, and is another file system.
fn a_node_without_the_mount_is_named(lab: &NodesLab, mpi: &Mpi) {
    lab.plan(PLAN);
    let target = lab.mount("gluster-sharded");
    lab.testbed.must("node", &["3", "umount", "--lazy", &target]);
    let ended = lab.run(mpi, &["evaluate", &target, "--plan", "plan.toml", "--record", "none.sqlite"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("node-3: ") && ended.stderr.contains("is it mounted here?"), "{ended:?}");
    assert!(!lab.record("none.sqlite").exists(), "{ended:?}");
    lab.assert_left_nothing("gluster/mount/sharded");
}

/// Neighbours alone and all at once in four rounds, and a walk in each.
const WITH_NETWORK: &str = r#"
title = "with the network"
repeats = 4
reserve = "0 B"
[[stage]]
name = "between"
[stage.network]
protocol = ["tcp", "udp"]
pattern = ["ring", "all_to_all"]
flows = 1
duration = "500 ms"
[[stage]]
name = "trees"
[stage.workload.walk]
levels = 1
branching = 2
files = 3
"#;

/// A node is lost between two trials, and the campaign goes on with the next one.
#[test]
fn the_network_is_measured_in_the_rounds_of_a_campaign_and_kept_in_its_record() {
    let Some(testbed) = Testbed::of(&["nodes"]) else { return };
    for mpi in Mpi::all() {
        let home = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(home.path().join("target")).expect("space");
        fs::write(home.path().join("plan.toml"), WITH_NETWORK).expect("space");
        let record = home.path().join("r.sqlite");
        let start =
            |arguments: &[&str]| Running::of(mpi.command_on(&testbed, &NODES, home.path(), arguments));
        let running_on;
        let running = start(&["evaluate", "target", "--plan", "plan.toml", "--record", "r.sqlite"]);
        // MPICH's launcher waits for the others when a process on another machine is gone.
        if mpi.kind() == MpiKind::OpenMpi {
            is_killed(&mpi, home.path(), &record);
            let ended = running.end(Duration::from_mins(2));
            assert_ne!(ended.code, Some(0), "{ended:?}");
            let before = nilometer_record::read(&record).map_or(0, |results| network_samples(&results));
            assert!(before < 4 * 4, "it was over before: {before} trials");
            running_on = start(&["evaluate", "--resume", "--record", "r.sqlite"]);
        } else {
            running_on = running;
        }
        let ended = running_on.end(Duration::from_mins(5));
        assert!(has_ended_in_order(&ended), "{ended:?}");
        let results = nilometer_record::read(&record).expect("a record");
        has_all_trials_and_machines(&results);
        for said in ["BETWEEN: THE NETWORK BETWEEN MACHINES", "node-3 to node-1", "no packet lost at"] {
            assert!(ended.stdout.contains(said), "{said}: {ended:?}");
        }
        shows_the_network(&record);
    }
}

/// On a busy machine a sender may get no processor for as long as a trial lasts. That trial has failed then, and nothing else has.
const NO_PACKET: &str = "receiving failed: no packet came";

fn has_ended_in_order(ended: &Ended) -> bool {
    let sent_nothing = format!("trials of the network failed: {NO_PACKET}");
    ended.has_answered() || ended.code == Some(1) && ended.stderr.trim_end().ends_with(&sent_nothing)
}

/// One of the processes, after a few trials.
fn is_killed(mpi: &Mpi, home: &Path, record: &Path) {
    let samples = || nilometer_record::read(record).map_or(0, |results| network_samples(&results));
    await_some("some trials", || (samples() > 5).then_some(()));
    let victim = mpi.worker_of(1, home).expect("it runs");
    kill_process(victim, Signal::KILL).expect("it runs");
}

fn network_samples(results: &Results) -> usize {
    results.network.iter().map(|stage| stage.results.samples.len()).sum()
}

fn has_all_trials_and_machines(results: &Results) {
    let stage = &results.network[0].results;
    assert_eq!((stage.names().len(), stage.cells.len()), (3, 4 + 3));
    assert_eq!((NetworkTrials::planned(stage, 4), NetworkTrials::made(stage)), (4 * 4 + 3, 4 * 4 + 3));
    for (number, cell) in stage.cells.iter().enumerate() {
        let mut repeats: Vec<u32> = stage.of_cell(number).map(|sample| sample.repeat).collect();
        let made = repeats.len();
        repeats.sort_unstable();
        assert!(repeats.into_iter().eq(0..made as u32), "each once: {cell:?}");
        for sample in stage.of_cell(number) {
            if cell.protocol == NetworkProtocol::Udp && sample.failed() == Some(NO_PACKET) {
                continue;
            }
            assert_eq!(sample.failed(), None, "{cell:?}");
            assert!(sample.flows.iter().all(|flow| flow.received.bytes > 0), "{cell:?}");
        }
    }
    let walks = results.samples.iter().filter(|measured| measured.key.phase == Phase::Walk);
    assert_eq!(walks.count(), 4);
    let machines: Vec<_> = results.machines.iter().map(|machine| machine.name.as_str()).collect();
    assert_eq!(machines, ["node-1", "node-2", "node-3"]);
    for machine in &results.machines {
        let link = machine.links.iter().find(|link| link.name == "eth0").expect("it is up");
        assert!(link.mtu.is_some_and(|mtu| mtu.0 >= 1500) && !link.is_card, "{link:?}");
    }
    assert!(results.machines[2].facts.iter().any(|(key, value)| key == "host" && value == "node-3"));
}

/// Every report has it, and what was concluded of it follows from the record.
fn shows_the_network(record: &Path) {
    let path = record.to_str().expect("a plain name");
    for (format, said) in [
        ("markdown", "## between: the network between machines"),
        ("html", "<h2>between: the network between machines</h2>"),
        ("json", "\"network_shares\""),
        ("figures-csv", "between,\"node-1 to node-2, TCP, one flow\",network,"),
        ("csv", "between,\"node-1 to node-2, TCP, one flow\",network,,,0,"),
    ] {
        let shown = nilometer_tests::run(&["report", path, "--format", format, "--output", "-"]);
        assert!(shown.code == Some(0) && shown.stdout.contains(said), "{format}: {shown:?}");
    }
    let checked = nilometer_tests::run(&["check", path]);
    assert!(checked.code == Some(0) && checked.stdout.contains("agrees   4 conclusions"), "{checked:?}");
}

/// Measurements until a busy machine makes no other sender slow.
const TRIES: usize = 3;

/// One link is made slow on purpose: what a machine sends, not what it receives.
#[test]
fn the_network_between_three_nodes_and_the_slow_link_in_it() {
    let Some(testbed) = Testbed::of(&["nodes"]) else { return };
    let shape = ["2", "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "80mbit", "burst", "64kb"];
    testbed.must("node", &[&shape[..], &["latency", "50ms"]].concat());
    let home = tempfile::tempdir().expect("a temporary directory");
    for mpi in Mpi::all() {
        let arguments = ["network", "--flows", "1", "--duration", "300 ms", "--udp", "--json"];
        let said =
            |more: &[&str]| network_said(&mpi, &testbed, home.path(), &[&arguments[..], more].concat());
        let only_slow = (0..TRIES).any(|_| names_the_slow_sender(&said(&[])));
        assert!(only_slow, "others than the slow sender were named in each of {TRIES} measurements");
        let paced = ["--pattern", "ring", "--repeats", "2", "--udp-rate", "40 Mbit/s"];
        sends_packets_at(5_000_000, &said(&paced));
    }
}

/// What the program says of the network, measured again where a trial failed because its sender had no processor.
fn network_said(mpi: &Mpi, testbed: &Testbed, home: &Path, arguments: &[&str]) -> Value {
    for _ in 0..TRIES {
        let command = mpi.command_on(testbed, &NODES, home, arguments);
        let ended = Running::of(command).end(Duration::from_mins(5));
        if ended.code == Some(0) {
            return serde_json::from_str(&ended.stdout).expect("JSON");
        }
        assert!(has_ended_in_order(&ended), "{ended:?}");
    }
    panic!("a sender had no processor in each of {TRIES} measurements");
}

/// Each of three neighbours twice, at so many bytes a second, which also the slow link carries.
fn sends_packets_at(rate: u64, said: &Value) {
    let samples = said["samples"].as_array().expect("a list");
    let paced: Vec<&Value> = samples.iter().filter(|sample| sample["asked"] == rate).collect();
    assert_eq!((samples.len(), paced.len()), (2 * 3 + 2 * 3, 2 * 3), "{said}");
    let packets = |sample: &Value, end: &str| sample["flows"][0][end]["packets"]["packets"].as_u64();
    // A receiver that has no processor loses some, or all of a trial.
    assert!(paced.iter().any(|sample| packets(sample, "received") > Some(0)), "{said}");
    for sample in paced {
        assert!(packets(sample, "sent") >= packets(sample, "received"), "{sample}");
    }
}

/// The slow sender is named, and has the figures of one; whether no other is named.
fn names_the_slow_sender(said: &Value) -> bool {
    let figures = said["figures"].as_array().expect("a list");
    assert_eq!(figures.len(), 6 + 3 + 3 + 3 + 1, "{figures:?}");
    for figure in figures {
        assert!(figure["bytes_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{figure}");
        // A sender that has no processor for a whole trial fails in it, and the figure says so.
        assert!(figure["repeats"] == 3 || figure["failed"].is_string(), "{figure}");
    }
    let odd: BTreeSet<_> =
        said["odd_links"].as_array().expect("a list").iter().map(|odd| odd["from"].as_str()).collect();
    assert!(odd.contains(&Some("node-2")), "{said}");
    let from_slow = figures.iter().filter(|figure| figure["pair"]["from"] == "node-2");
    for figure in from_slow {
        let rate = figure["bytes_per_second"].as_f64().expect("a rate");
        assert!(rate < 10.5e6, "more than the link carries: {figure}");
    }
    let loss_free = said["loss_free"].as_array().expect("a list");
    let found = loss_free.iter().filter(|found| found["from"] == "node-2");
    let most = found.filter_map(|found| found["loss_free_bytes_per_second"].as_f64()).fold(0.0, f64::max);
    assert!(loss_free.len() == 6 && most < 12e6, "{loss_free:?}");
    odd.len() == 1
}
