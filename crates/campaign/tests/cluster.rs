//! Campaigns of several processes, as threads of one: what they measure together is one sample a repeat, none does what is
//! another's, and each cell uses those that it says.

use std::{collections::BTreeMap, sync::Arc, thread};

use nilometer_campaign::{
    Campaign, MeasuredRates, SharedPlaces, Trials, all_present, follow, joined_by_all, make_load_places,
};
use nilometer_cluster::{
    Cluster, MessageCluster,
    testing::{ThreadMessages, thread_ranks},
};
use nilometer_model::{Coldness, Instrument, Invalid, Nanos, Phase, Sample};
use nilometer_plan::{PlannedCampaign, ResolvedPlan, Results, TargetEntry, parse_with};
use nilometer_record::Record;
use nilometer_remote::describe;
use nilometer_storage::{
    Target,
    target::{Posix, probe},
};
use tempfile::TempDir;

const PLAN: &str = r#"
title = "a test"
repeats = 2
reserve = "0 B"
[[stage]]
name = "files"
workers = 2
[stage.workload.stream]
file_size = "1 MiB"
block_size = "256 KiB"
access = "buffered"
layout = ["own", "strided"]
"#;

/// Rank 0 of a campaign of a plan, in a directory, and what all said before it.
fn campaign(place: &TempDir, plan: &str, cluster: Arc<dyn Cluster>) -> Result<Campaign, String> {
    let nodes = all_present(cluster.as_ref());
    let counts = nodes.counts();
    let camera = |_: &str| Instrument::parse(CAMERA, "camera.toml").map_err(|error| error.to_string());
    let plan = parse_with(plan, "test.toml", 1.0, &camera).expect("a valid plan");
    let plan = ResolvedPlan { ranks: cluster.size(), node_ranks: counts, ..plan };
    let description = probe(place.path()).expect("a directory");
    let head =
        Results { targets: vec![TargetEntry::default()], cells: plan.cells.clone(), ..Results::default() };
    let record = Record::create(&place.path().join("r.sqlite"), &head, 0).expect("a new record");
    let target: Arc<dyn Target> = Arc::new(Posix::create(description.clone(), 1).expect("writable"));
    let targets = vec![Some(target)];
    let resolved = PlannedCampaign::new(plan, vec![description]);
    let mut record = record;
    let load_places = make_load_places(&resolved, &[true], &mut record).expect("writable");
    let places = SharedPlaces { targets: &targets, loads: &load_places };
    let ranks = joined_by_all(cluster.as_ref(), "1", places, PATIENCE, nodes)?;
    Ok(Campaign {
        resolved,
        targets,
        archive: None,
        load_places,
        record,
        done: BTreeMap::new(),
        trials: Trials::default(),
        rates: MeasuredRates::default(),
        stop: Arc::default(),
        cluster,
        ranks,
        network: Vec::new(),
    })
}

/// A rank on each of these nodes, with its messages.
fn ranks(nodes: &[&str]) -> Vec<MessageCluster<ThreadMessages>> {
    let ranks = thread_ranks(nodes.len() as u32).into_iter().zip(nodes);
    ranks.map(|(messages, node)| MessageCluster::new(messages.on_node(node))).collect()
}

/// A whole campaign of a plan on these nodes; what is in its record.
fn ran(plan: &str, nodes: &[&str]) -> Results {
    ran_after(plan, nodes, |_| {})
}

/// The same, and something happens before its first phase.
fn ran_after(plan: &str, nodes: &[&str], happens: impl FnOnce(&Campaign)) -> Results {
    let place = tempfile::tempdir().expect("a directory");
    let mut ranks = ranks(nodes);
    let first = ranks.remove(0);
    let follow = |rank| thread::spawn(move || follow(&rank, "1", &describe, &Arc::default()));
    let followers: Vec<_> = ranks.into_iter().map(follow).collect();
    let campaign = campaign(&place, plan, Arc::new(first)).expect("all join");
    happens(&campaign);
    assert_eq!(campaign.run(&mut |_| {}).expect("space").missing, 0);
    for follower in followers {
        let ended = follower.join().expect("it was told that the campaign is over");
        ended.expect("nothing hangs");
    }
    let left =
        std::fs::read_dir(place.path()).expect("readable").map(|entry| entry.expect("readable").path());
    let left: Vec<_> = left.filter(|path| path.is_dir()).collect();
    assert!(left.is_empty(), "no run directory stays, though other ranks had joined it: {left:?}");
    nilometer_record::read(&place.path().join("r.sqlite")).expect("readable")
}

const PATIENCE: Nanos = Nanos::from_millis(60_000);

#[test]
fn what_one_rank_can_not_join_begins_for_none() {
    let place = tempfile::tempdir().expect("a directory");
    let [first, second] = ranks(&["a", "b"]).try_into().expect("two");
    let follower = thread::spawn(move || follow(&second, "2", &describe, &Arc::default()));
    let why = campaign(&place, PLAN, Arc::new(first)).expect_err("the programs are others");
    assert!(why.contains("b: its program is 2, and that of rank 0 is 1"), "{why}");
    let ended = follower.join().expect("it was told that nothing begins");
    ended.expect("nothing hangs");
}

#[test]
fn a_repeat_of_two_ranks_is_one_sample_with_their_parts() {
    let results = ran(PLAN, &["a", "a"]);
    let phases = [Phase::Write, Phase::Read];
    for (cell, repeat, phase) in
        (0..2).flat_map(|cell| (0..2).flat_map(move |repeat| phases.map(|phase| (cell, repeat, phase))))
    {
        let of = |key: nilometer_plan::Key| (key.cell, key.repeat, key.phase) == (cell, repeat, phase);
        let found: Vec<_> = results.samples.iter().filter(|measured| of(measured.key)).collect();
        assert_eq!(found.len(), 1, "one sample of cell {cell}, repeat {repeat}, {phase:?}");
        let sample = &found[0].sample;
        assert!(sample.errors.is_empty(), "{:?}", sample.errors);
        assert_eq!(
            (sample.bytes, sample.workers.len()),
            (4 << 20, 4),
            "two workers of two ranks, a MiB each"
        );
        assert!(sample.workers.iter().all(|worker| worker.bytes == 1 << 20));
        assert_eq!(Some(sample.wall), sample.workers.iter().map(|worker| worker.last_done).max());
        let told: Vec<_> = sample.parts.iter().map(|part| (part.rank, part.bytes, part.workers)).collect();
        assert_eq!(told, [(0, 2 << 20, 2), (1, 2 << 20, 2)]);
        assert!(sample.parts.iter().all(|part| part.began.0 > 0 && part.began < part.last_done));
        assert!(sample.parts[1].clock_uncertainty > 0, "it was compared");
    }
}

/// 20 frames of 600 B in the least time.
const CAMERA: &str = "name = \"camera\"\ntitle = \"t\"\nsource = \"none\"\nshape = [10, 30]\npixel = \"uint16\"\n\
                      frame_rate = \"200 Hz\"\n";

#[test]
fn ranks_read_the_dataset_that_they_have_written_and_others_sleep() {
    let plan = r#"
title = "a test"
repeats = 1
reserve = "0 B"
[[stage]]
name = "one dataset"
processes = [1, 2]
[stage.ingest]
instrument = "camera"
format = "hdf5"
storing = "shared"
duration = "100 ms"
buffer = "1 MiB"
keep = "1 MB"
chunk = "5x30"
read = ["frames", "rows"]
"#;
    let results = ran(plan, &["a", "a", "a"]);
    let of = |phase: Phase| -> Vec<&Sample> {
        let of_phase = results.samples.iter().filter(|measured| measured.key.phase == phase);
        of_phase.map(|measured| &measured.sample).collect()
    };
    let recorded = of(Phase::Ingest);
    let read = of(Phase::Read);
    assert_eq!((recorded.len(), read.len()), (4, 4));
    let mut readers = BTreeMap::<usize, u32>::new();
    for (recorded, read) in recorded.into_iter().zip(read) {
        let stored = recorded.ingest.as_ref().expect("a recording").stored;
        assert!(stored > 0 && read.bytes == stored * 600, "{stored} frames: {read:?}");
        assert!(matches!(read.invalid, None | Some(Invalid::WarmRead)), "{read:?}");
        let ranks: Vec<u32> = read.parts.iter().map(|part| part.rank).collect();
        assert!(ranks.is_empty() || ranks == [0, 1], "{ranks:?}");
        assert!(read.parts.iter().all(|part| part.bytes > 0), "{read:?}");
        *readers.entry(read.parts.len()).or_default() += 1;
    }
    assert_eq!(readers, BTreeMap::from([(0, 2), (2, 2)]), "each way by one process and by two");
}

/// Threads against processes, and one node against two.
const MATRIX: &str = r#"
title = "a test"
repeats = 1
reserve = "0 B"
[[stage]]
name = "files"
nodes = [1, 2]
processes = [1, 2]
workers = [1, 2]
[stage.workload.stream]
file_size = "256 KiB"
block_size = "64 KiB"
access = "buffered"
"#;

#[test]
fn cells_use_the_first_processes_of_the_first_nodes_and_the_others_sleep() {
    // Ranks by turns, as `--map-by node` gives them; the third node is used by none of the cells.
    let results = ran(MATRIX, &["a", "b", "a", "b", "c"]);
    assert_eq!(results.samples.len(), 8 * 2);
    for measured in &results.samples {
        let run = results.cells[measured.key.cell].as_workload().expect("a workload");
        let (nodes, processes) = (run.nodes.expect("it says"), run.processes.expect("it says"));
        let sample = &measured.sample;
        assert_eq!(sample.workers.len() as u32, nodes * processes * run.workers, "{run}");
        assert_eq!(sample.bytes, u64::from(nodes * processes * run.workers) << 18, "{run}");
        let used: Vec<u32> = sample.parts.iter().map(|part| part.rank).collect();
        let expected: &[u32] = match (nodes, processes) {
            (1, 1) => &[],
            (1, _) => &[0, 2],
            (_, 1) => &[0, 1],
            _ => &[0, 1, 2, 3],
        };
        assert_eq!(used, expected, "{run}");
        let starts: Vec<&str> = sample.node_starts.iter().map(|start| start.node.as_str()).collect();
        let expected: &[&str] = match (nodes, processes) {
            (1, 1) => &[],
            (1, _) => &["a"],
            _ => &["a", "b"],
        };
        assert_eq!(starts, expected, "{run}");
        for start in &sample.node_starts {
            assert!(start.load.is_finite() && start.disk_rate().is_some(), "{start:?}");
        }
    }
}

/// A phase of one node, then one of both, or the other way round.
const BY_TURNS: &str = r#"
title = "a test"
repeats = 4
reserve = "0 B"
[[stage]]
name = "waits"
nodes = [1, 2]
[stage.workload.wait]
duration = "30 ms"
"#;

#[test]
fn the_state_just_before_has_no_phase_of_other_processes_in_it() {
    let results = ran(BY_TURNS, &["a", "b"]);
    let samples = || results.samples.iter().map(|measured| &measured.sample);
    let of_both = || samples().filter(|sample| !sample.node_starts.is_empty());
    assert_eq!((samples().count(), of_both().count()), (8, 4));
    for sample in of_both() {
        for phase in samples().filter(|earlier| earlier.started < sample.started) {
            let middle = phase.started + Nanos(phase.wall.0 / 2);
            for start in &sample.node_starts {
                let looked_from = sample.started.since(start.before.over);
                assert!(looked_from > middle, "{start:?} has the phase at {}", phase.started);
            }
        }
    }
}

/// What another one wrote.
const SHIFTED: &str = r#"
title = "a test"
repeats = 1
reserve = "0 B"
[[stage]]
name = "files"
workers = 2
[stage.workload.stream]
file_size = "256 KiB"
block_size = "64 KiB"
access = "buffered"
layout = ["own", "segmented", "strided"]
shift = "node"
[[stage]]
name = "tree"
[stage.workload.tree]
items = 3
levels = 1
branching = 2
file_size = "100 B"
shift = "node"
directories = ["unique", "shared"]
[[stage]]
name = "walk"
[stage.workload.walk]
levels = 1
branching = 2
files = 3
shift = "node"
"#;

#[test]
fn what_the_next_node_wrote_is_read_whole_and_one_client_for_all_nodes_proves_nothing_by_that() {
    for nodes in [&["a", "b"][..], &["a", "b", "a", "b"], &["a", "a", "a"], &["a"]] {
        let results = ran(SHIFTED, nodes);
        for measured in &results.samples {
            let (sample, cell) = (&measured.sample, &results.cells[measured.key.cell]);
            assert!(sample.errors.is_empty(), "{cell} {:?}: {:?}", measured.key.phase, sample.errors);
            // The directory of this test is of one kernel and one mount, whatever the nodes are called.
            assert_ne!(sample.coldness, Some(Coldness::NeverSeen), "{cell}");
            let streams = cell.stage == "files";
            assert!(!streams || sample.bytes == nodes.len() as u64 * (512 << 10), "{cell}");
        }
        assert_eq!(results.samples.len(), 3 * 2 + 2 * 10 + 1);
    }
}

/// What processes see of each other's files.
const VISIBLE: &str = r#"
title = "a test"
repeats = 1
reserve = "0 B"
[[stage]]
name = "files"
[stage.workload.visibility]
rounds = 2
file_size = "10 kB"
notice = ["message", "poll"]
[[stage]]
name = "hot"
workers = 2
[stage.workload.hot_file]
file_size = "256 KiB"
block_size = "64 KiB"
access = "buffered"
"#;

#[test]
fn on_one_file_system_all_see_at_once_what_one_has_closed() {
    let results = ran(VISIBLE, &["a", "b", "a"]);
    let seen: Vec<_> = results.samples.iter().filter_map(|measured| measured.sample.seen.as_ref()).collect();
    assert_eq!(seen.len(), 2);
    for (cell, seen) in results.cells.iter().zip(&seen) {
        // Each of three writes two files, and one of them again, twice; two others look.
        assert_eq!(seen.files, 2 * 3 * 3 * 2, "{cell}");
        assert!(seen.kept_close_to_open() && seen.out_of_order == 0, "{cell}: {seen:?}");
    }
    for measured in results.samples.iter().filter(|measured| measured.sample.seen.is_some()) {
        let sample = &measured.sample;
        assert!(sample.errors.is_empty() && sample.invalid.is_none(), "{sample:?}");
        let told: Vec<_> = sample.parts.iter().map(|part| (part.rank, part.operations)).collect();
        assert_eq!(told, [(0, 12), (1, 12), (2, 12)]);
    }
    let hot: Vec<_> = results.samples.iter().filter(|measured| measured.key.cell == 2).collect();
    assert_eq!(hot.len(), 2, "cold, and again");
    assert!(hot.iter().all(|measured| measured.sample.bytes == 6 * (256 << 10)));
}

/// A lock that is taken in turn.
const LOCKED: &str = r#"
title = "a test"
repeats = 1
reserve = "0 B"
[[stage]]
name = "locks"
[stage.workload.locks]
rounds = 2
hold = "1 ms"
"#;

/// Locks of `fcntl` are a process's: threads of one are not kept out, as on storage that grants a lock to everybody.
#[test]
fn a_lock_that_excludes_nobody_is_found_out() {
    let results = ran(LOCKED, &["a", "b", "a"]);
    let sample = &results.samples[0].sample;
    let locks = sample.locks.as_ref().expect("they were looked at");
    // In each of six turns two others try at the beginning and at the end.
    assert_eq!((locks.tries, locks.broken, locks.passed), (24, 24, 6), "{locks:?}");
    assert_eq!(sample.operations, 6);
}

/// A load of all ranks, whether a cell uses them or not.
const LOADED: &str = r#"
title = "a test"
repeats = 1
reserve = "0 B"
[[stage]]
name = "files"
nodes = [1, 2]
[stage.workload.stream]
file_size = "256 KiB"
block_size = "64 KiB"
access = "buffered"
[stage.background]
workers = [0, 2]
[stage.background.workload.walk]
levels = 1
branching = 2
files = 3
"#;

#[test]
fn a_load_works_at_all_ranks_and_also_at_those_that_a_cell_does_not_use() {
    let results = ran(LOADED, &["a", "b"]);
    let mut beside = Vec::new();
    for measured in &results.samples {
        let cell = &results.cells[measured.key.cell];
        let has_load = cell.background().is_some_and(|load| !load.is_none());
        let done = measured.sample.background;
        assert_eq!(done.is_some(), has_load, "{cell}: {:?}", measured.sample.invalid);
        assert!(measured.sample.errors.is_empty(), "{cell}: {:?}", measured.sample.errors);
        let no_load = matches!(measured.sample.invalid, Some(Invalid::NoBackground(_) | Invalid::Refused(_)));
        assert!(!no_load, "{cell}: {:?}", measured.sample.invalid);
        beside.extend(done.filter(|done| done.wall >= measured.sample.wall).map(|done| done.operations));
    }
    assert_eq!((results.samples.len(), beside.len()), (2 * 2 * 2, 2 * 2), "{results:?}");
    // On a busy machine a load may get no processor during a phase of a millisecond.
    assert!(beside.iter().any(|operations| *operations > 0), "{results:?}");
}

#[test]
fn a_load_that_one_rank_can_not_lay_out_is_the_load_of_none_and_the_machine_is_named() {
    // More files than a directory has room for, on the second machine alone: its place is taken by a file.
    let results = ran_after(LOADED, &["a", "b"], |campaign| {
        let place = campaign.load_places[1][0].as_ref().expect("rank 1 has a place");
        let directory = place.directory().expect("a directory").to_path_buf();
        std::fs::write(directory.join("n_w0"), "in the way").expect("space");
    });
    for measured in &results.samples {
        let cell = &results.cells[measured.key.cell];
        let has_load = cell.background().is_some_and(|load| !load.is_none());
        let why = measured.sample.invalid.as_ref().map(ToString::to_string).unwrap_or_default();
        assert_eq!(why.contains("b: "), has_load, "{cell}: {why}");
    }
}
