//! A campaign of two processes, as threads of one: what they measure together is one sample a repeat, and neither does what is
//! the other's.

use std::{
    collections::BTreeMap,
    sync::{Arc, Barrier, Mutex},
    thread,
};

use nilometer_campaign::{Alone, Campaign, Cluster, ClusterDecision, RankReport, Trials, follow};
use nilometer_model::{
    Nanos, Results, TargetEntry,
    plan::{Phase, PlannedCampaign, parse},
};
use nilometer_record::Record;
use nilometer_storage::{
    Clock,
    target::{Posix, probe},
};
use tempfile::TempDir;

const RANKS: u32 = 2;

/// What the ranks share.
#[derive(Debug)]
struct Shared {
    here: Barrier,
    reports: Mutex<Vec<(u32, RankReport)>>,
    decision: Mutex<Option<ClusterDecision>>,
    start: Mutex<Option<Nanos>>,
    /// The time of the start is on this one; each rank has a clock of its own.
    clock: Clock,
}

/// One rank.
#[derive(Debug)]
struct Threads {
    rank: u32,
    shared: Arc<Shared>,
}

impl Threads {
    fn all() -> [Threads; RANKS as usize] {
        let shared = Arc::new(Shared {
            here: Barrier::new(RANKS as usize),
            reports: Mutex::default(),
            decision: Mutex::default(),
            start: Mutex::default(),
            clock: Clock::start(),
        });
        [0, 1].map(|rank| Threads { rank, shared: shared.clone() })
    }

    /// What rank 0 gives, for all.
    fn told<T: Clone>(&self, place: &Mutex<Option<T>>, given: Option<T>) -> T {
        if let Some(given) = given {
            *place.lock().expect("not poisoned") = Some(given);
        }
        self.barrier();
        let told = place.lock().expect("not poisoned").clone();
        self.barrier();
        told.expect("rank 0 has given it")
    }
}

impl Cluster for Threads {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        RANKS
    }

    fn node(&self) -> String {
        Alone.node()
    }

    fn clock_offset(&self) -> i64 {
        0
    }

    fn barrier(&self) {
        self.shared.here.wait();
    }

    fn agree_start(&self, clock: &Clock) -> Nanos {
        let common = &self.shared.clock;
        let soon = (self.rank == 0).then(|| common.now() + Nanos::from_millis(20));
        let start = self.told(&self.shared.start, soon);
        clock.now() + start.since(common.now())
    }

    fn gather(&self, mine: RankReport) -> Vec<RankReport> {
        self.shared.reports.lock().expect("not poisoned").push((self.rank, mine));
        self.barrier();
        let mut all = Vec::new();
        if self.rank == 0 {
            all = std::mem::take(&mut *self.shared.reports.lock().expect("not poisoned"));
        }
        self.barrier();
        all.sort_by_key(|(rank, _)| *rank);
        all.into_iter().map(|(_, report)| report).collect()
    }

    fn broadcast(&self, decision: Option<ClusterDecision>) -> ClusterDecision {
        assert_eq!(decision.is_some(), self.rank == 0, "only rank 0 decides");
        self.told(&self.shared.decision, decision)
    }
}

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

/// The campaign of rank 0 in a directory, and what another rank needs to join it.
fn campaign(place: &TempDir, cluster: Threads) -> (Campaign, Posix) {
    let plan = parse(PLAN, "test.toml", 1.0).expect("a valid plan");
    let description = probe(place.path()).expect("a directory");
    let head =
        Results { targets: vec![TargetEntry::default()], cells: plan.cells.clone(), ..Results::default() };
    let record = Record::create(&place.path().join("r.sqlite"), &head, 0).expect("a new record");
    let target = Posix::create(description.clone(), 1).expect("writable");
    let shared = target.share().expect("writable");
    let joined = Posix::join(description.clone(), &shared).expect("it is shared");
    let campaign = Campaign {
        resolved: PlannedCampaign::new(plan, vec![description]),
        targets: vec![Some(Arc::new(target))],
        archive: None,
        record,
        done: BTreeMap::new(),
        trials: Trials::default(),
        stop: Arc::default(),
        cluster: Arc::new(cluster),
    };
    (campaign, joined)
}

#[test]
fn a_repeat_of_two_ranks_is_one_sample_with_their_parts() {
    let place = tempfile::tempdir().expect("a directory");
    let [first, second] = Threads::all();
    let (campaign, joined) = campaign(&place, first);
    let follower = thread::spawn(move || {
        follow(&second, vec![Some(Arc::new(joined))], Nanos::from_millis(60_000));
    });
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
