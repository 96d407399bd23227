//! A campaign of two processes, as threads of one: what they measure together is one sample a repeat, and neither does what is
//! the other's.

use std::{collections::BTreeMap, sync::Arc, thread};

use nilometer_campaign::{Campaign, Trials, follow, joined_by_all};
use nilometer_cluster::{
    Cluster, MessageCluster,
    testing::{ThreadMessages, thread_ranks},
};
use nilometer_model::{
    Nanos, Results, TargetEntry,
    plan::{Phase, PlannedCampaign, parse},
};
use nilometer_record::Record;
use nilometer_remote::describe;
use nilometer_storage::target::{Posix, probe};
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

/// The campaign of rank 0 in a directory.
fn campaign(place: &TempDir, cluster: Arc<dyn Cluster>) -> Campaign {
    let plan = parse(PLAN, "test.toml", 1.0).expect("a valid plan");
    let description = probe(place.path()).expect("a directory");
    let head =
        Results { targets: vec![TargetEntry::default()], cells: plan.cells.clone(), ..Results::default() };
    let record = Record::create(&place.path().join("r.sqlite"), &head, 0).expect("a new record");
    let target = Posix::create(description.clone(), 1).expect("writable");
    Campaign {
        resolved: PlannedCampaign::new(plan, vec![description]),
        targets: vec![Some(Arc::new(target))],
        archive: None,
        record,
        done: BTreeMap::new(),
        trials: Trials::default(),
        stop: Arc::default(),
        cluster,
    }
}

/// Two ranks, each with its messages.
fn ranks() -> [MessageCluster<ThreadMessages>; 2] {
    let [first, second] = thread_ranks(2).try_into().expect("two");
    [MessageCluster::new(first), MessageCluster::new(second)]
}

const PATIENCE: Nanos = Nanos::from_millis(60_000);

#[test]
fn what_one_rank_can_not_join_begins_for_none() {
    let place = tempfile::tempdir().expect("a directory");
    let [first, second] = ranks();
    let campaign = campaign(&place, Arc::new(first));
    let follower = thread::spawn(move || follow(&second, "2", &describe, &Arc::default()));
    let refused = joined_by_all(campaign.cluster.as_ref(), "1", &campaign.targets, PATIENCE);
    let why = refused.expect_err("the programs are others");
    assert!(why.contains("its program is 2, and that of rank 0 is 1"), "{why}");
    follower.join().expect("it was told that nothing begins");
}

#[test]
fn a_repeat_of_two_ranks_is_one_sample_with_their_parts() {
    let place = tempfile::tempdir().expect("a directory");
    let [first, second] = ranks();
    let campaign = campaign(&place, Arc::new(first));
    let follower = thread::spawn(move || follow(&second, "1", &describe, &Arc::default()));
    let joined = joined_by_all(campaign.cluster.as_ref(), "1", &campaign.targets, PATIENCE);
    assert_eq!(joined, Ok(()));
    let mut parts = Vec::new();
    let ran = campaign.run(&mut |progress| {
        if let nilometer_campaign::Progress::Measured { measured, .. } = progress {
            parts.push(measured.sample.parts.clone());
        }
    });
    assert_eq!(ran.expect("space").missing, 0);
    follower.join().expect("it was told that the campaign is over");
    let left =
        std::fs::read_dir(place.path()).expect("readable").map(|entry| entry.expect("readable").path());
    let left: Vec<_> = left.filter(|path| path.is_dir()).collect();
    assert!(left.is_empty(), "no run directory stays, though another rank had joined it: {left:?}");
    let results = nilometer_record::read(&place.path().join("r.sqlite")).expect("readable");
    let phases = [Phase::Write, Phase::Read];
    for (cell, repeat, phase) in
        (0..2).flat_map(|cell| (0..2).flat_map(move |repeat| phases.map(|phase| (cell, repeat, phase))))
    {
        let of = |key: nilometer_model::Key| (key.cell, key.repeat, key.phase) == (cell, repeat, phase);
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
    }
    assert!(parts.len() >= 8, "{}: what a busy machine spoilt is measured again", parts.len());
    for parts in parts {
        let told: Vec<_> = parts.iter().map(|part| (part.rank, part.bytes, part.workers)).collect();
        assert_eq!(told, [(0, 2 << 20, 2), (1, 2 << 20, 2)]);
    }
}
