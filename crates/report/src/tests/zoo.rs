//! All kinds of campaigns: each finding of a study has at least one of them.

use nilometer_model::{
    Activity, BackgroundDone, ByteRate, CampaignMachine, FileSystemKind, Histogram, Invalid, Nanos,
    NetworkLink, Phase, RankPart, Sample, WorkerTotals,
};
use nilometer_plan::{Cell, Event, Group, Key, Measured, PLANS, PlannedCampaign, Results, parse};

use nilometer_analysis::{
    Study,
    made_up::{
        LinkedElements, MadeUpServer, described, measured_in_turn, network_stage, packets, stage, writes,
    },
    observed::CorrectedLog,
};

use super::{SECOND, WICKED, recorded, results, studied, target};

/// A campaign with the machines observed during it.
pub(super) struct Specimen {
    pub(super) name: &'static str,
    pub(super) results: Results,
    logs: Vec<CorrectedLog>,
}

impl Specimen {
    /// The study with all findings of a report.
    pub(super) fn study(&self) -> Study<'_> {
        studied(&self.results).with_papers().with_observed(&self.logs)
    }
}

/// All kinds of campaigns.
pub(super) fn zoo() -> Vec<Specimen> {
    let unobserved = |(name, results)| Specimen { name, results, logs: Vec::new() };
    plain().into_iter().chain(special()).map(unobserved).chain([observed()]).collect()
}

pub(super) fn sweep() -> Vec<Cell> {
    let blocks = ["4096 B", "65536 B", "1048576 B", "4194304 B"];
    blocks.iter().flat_map(|block| [1, 2].map(|workers| writes(WICKED, block, workers))).collect()
}

pub(super) const TREE: [Phase; 10] = [
    Phase::MakeTree,
    Phase::MakeDirectories,
    Phase::StatDirectories,
    Phase::RemoveDirectories,
    Phase::CreateFiles,
    Phase::StatFiles,
    Phase::ReadFiles,
    Phase::RenameFiles,
    Phase::RemoveFiles,
    Phase::RemoveTree,
];

/// Campaigns of workloads, recordings and the network, by name.
fn plain() -> Vec<(&'static str, Results)> {
    let one = || vec![writes("one", "1048576 B", 1)];
    let mut invalid = results(2, one(), &[Phase::Write], 3);
    invalid.samples.iter_mut().for_each(|m| m.sample.invalid = Some(Invalid::Refused(WICKED.into())));
    let mut zero = results(2, one(), &[Phase::Write, Phase::Read], 3);
    for measured in &mut zero.samples {
        measured.sample = Sample::new(Nanos(0));
    }
    let mut eventful = results(3, sweep(), &[Phase::Write], 2);
    eventful.repeats = 6;
    eventful.targets[1].left_out = Some(WICKED.into());
    eventful.events = vec![Event { at: Nanos(SECOND), what: WICKED.into() }];
    eventful.samples[0].sample.before =
        Activity { over: Nanos(SECOND), busy: Nanos(5 * SECOND), disk_read: 1 << 40, ..Activity::default() };
    let mut foreign = results(1, sweep(), &[Phase::Write], 1);
    foreign.campaign = None;
    foreign.targets.iter_mut().for_each(|target| target.description = None);
    let mut lost = results(2, one(), &[Phase::Write], 1);
    lost.cells.clear();
    lost.targets.clear();
    vec![
        ("empty", Results::default()),
        ("one repeat", results(1, one(), &[Phase::Write], 1)),
        ("two targets", results(2, one(), &[Phase::Write, Phase::Read], 6)),
        ("a sweep", results(3, sweep(), &[Phase::Write, Phase::Read], 4)),
        ("a sweep on one target", results(1, sweep(), &[Phase::Read], 3)),
        ("a tree", results(4, one(), &TREE, 3)),
        ("many targets", results(30, one(), &[Phase::Write], 2)),
        ("many of both", results(30, sweep(), &[Phase::Write], 2)),
        ("a copy", results(2, one(), &[Phase::Source, Phase::Write], 6)),
        ("all invalid", invalid),
        ("zero rates", zero),
        ("eventful", eventful),
        ("foreign", foreign),
        ("without cells and targets", lost),
        ("elements", LinkedElements::alike(4, 1e8, 2.5e8).results()),
        (
            "elements that spread",
            LinkedElements { noise: 0.9, ..LinkedElements::alike(12, 1e8, 5e10) }.results(),
        ),
        ("elements, once", LinkedElements { repeats: 1, ..LinkedElements::alike(3, 1e8, 2e8) }.results()),
        ("recorded", recorded(results(1, one(), &[Phase::Write], 2))),
        ("recorded only", recorded(results(1, Vec::new(), &[], 0))),
        ("the network only", Results { network: vec![network_stage(5)], ..results(1, Vec::new(), &[], 0) }),
    ]
}

/// Campaigns with findings that a plan or the machine has to provide.
fn special() -> Vec<(&'static str, Results)> {
    vec![
        ("an offer", offer()),
        ("packets", of_packets()),
        ("a published study", of_study()),
        ("siblings", siblings()),
        ("beside a load", beside_load()),
        ("a migration", migration()),
        ("several machines", of_machines()),
        ("a full speed only", full_speed()),
        ("a ceiling", with_ceiling()),
        ("behind a network", behind_network()),
    ]
}

/// Two machines observed while a target is measured.
fn observed() -> Specimen {
    let servers = [MadeUpServer::new(WICKED, 150_000_000, 990), MadeUpServer::new("oss2", 50_000_000, 300)];
    let logs = servers.map(|server| CorrectedLog { log: server.log(90, 200), offset: 0 });
    let mut results = results(2, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 3);
    measured_in_turn(&mut results.samples, 5);
    Specimen { name: "observed", results, logs: logs.into() }
}

const OFFER: &str = r#"
title = "an offer"
repeats = 4
[[stage]]
name = "files"
[stage.workload.stream]
file_size = "64 MiB"
block_size = "1 MiB"
access = "best"
[accept]
price = ["184 000 EUR"]
[[accept.stage]]
name = "files"
phase = "write"
rate = "200 MB/s"
p99 = "1 ms"
"#;

/// An offer that meets the first of two criteria.
fn offer() -> Results {
    let plan = parse(OFFER, "t.toml", 1.0).expect("a valid plan");
    let samples =
        (0..4).map(|repeat| measured(0, repeat, in_a_second(250_000_000 + u64::from(repeat) * 1_000_000)));
    let mut latency = Histogram::default();
    (0..1000).for_each(|_| latency.add(3_000_000));
    let group = Group { cell: 0, phase: Phase::Write, target: 0 };
    Results {
        samples: samples.collect(),
        cells: plan.cells.clone(),
        latencies: [(group, latency)].into(),
        repeats: 4,
        margin: 5.0,
        campaign: Some(PlannedCampaign::new(plan, vec![described(WICKED)])),
        targets: vec![target(WICKED)],
        ..Results::default()
    }
}

/// Packets of two sizes at two rates; half of the small ones are lost at the higher rate.
fn of_packets() -> Results {
    let at = |size, rate, lost| packets::measured(1, size, rate, lost, None);
    let samples = vec![at(8000, 1e8, 0), at(8000, 2e8, 0), at(1000, 1e8, 0), at(1000, 2e8, 100_000)];
    Results { targets: vec![target(WICKED)], ..packets::results(samples) }
}

/// A thousandth of the copies of a published study.
fn of_study() -> Results {
    let text = PLANS.iter().find(|plan| plan.name == "nus").expect("it is built in").text;
    let plan = parse(text, "nus", 0.001).expect("a valid plan");
    let copied = |cell| measured(cell, 0, Sample { user: Nanos(SECOND / 2), ..in_a_second(1) });
    Results {
        title: "copies".into(),
        samples: (0..plan.cells.len()).map(copied).collect(),
        cells: plan.cells.clone(),
        targets: vec![target("/data")],
        campaign: Some(PlannedCampaign::new(plan, vec![described("/data")])),
        ..Results::default()
    }
}

const SIBLINGS: &str = "siblings = \"targets\"\n[stage.workload.stream]\nfile_size = \"64 MiB\"\n\
                        block_size = \"1 MiB\"\naccess = \"buffered\"\n";

/// Four targets that should be alike; the third has half the rate of the others.
fn siblings() -> Results {
    let cells = stage("equals", SIBLINGS);
    let mut samples = Vec::new();
    for (cell, repeat) in (0..cells.len()).flat_map(|cell| (0..6).map(move |repeat| (cell, repeat))) {
        for (target, share) in [1.0, 0.98, 0.5, 1.01].into_iter().enumerate() {
            let noise = 1.0 + 0.01 * f64::from((repeat * 5 + target as u32) % 3) + 0.1 * f64::from(repeat);
            let last_done = Nanos::from_seconds(noise / share);
            let worker =
                WorkerTotals { bytes: 100_000_000, operations: 100, last_done, ..WorkerTotals::default() };
            let sample = Sample { wall: last_done, workers: vec![worker], ..in_a_second(100_000_000) };
            let key = Key { target, cell, repeat, phase: Phase::Write };
            samples.push(Measured { key, sample });
        }
    }
    let targets = (0..4).map(|index| target(&format!("/data/{index}"))).collect();
    Results { cells, samples, targets, margin: 5.0, repeats: 6, ..Results::default() }
}

const BESIDE: &str = "[stage.workload.stream]\nfile_size = \"64 MiB\"\nblock_size = \"1 MiB\"\naccess = \"best\"\n\
                      [stage.background]\nworkers = [0, 1, 2]\n[stage.background.workload.stream]\n\
                      file_size = \"64 MiB\"\nblock_size = \"1 MiB\"\naccess = \"best\"\n";

/// A copy beside users who feel it.
fn migration() -> Results {
    let text = BESIDE.replace(
        "[stage.background.workload.stream]\nfile_size = \"64 MiB\"\nblock_size = \"1 MiB\"\naccess = \"best\"\n",
        "[stage.background.workload.unpack]\nsource = \"disk\"\ndirectories = 2\nfiles = 300\nsize = \"300 MB\"\n",
    );
    assert_ne!(text, BESIDE);
    Results { cells: stage(WICKED, &text), ..beside_load() }
}

/// A workload that is slower beside the second level of a load.
fn beside_load() -> Results {
    let mut samples = Vec::new();
    for (cell, bytes) in [1_000_000_000_u64, 990_000_000, 700_000_000].into_iter().enumerate() {
        for repeat in 0..10 {
            let done = BackgroundDone {
                wall: Nanos(SECOND),
                bytes: 300_000_000,
                operations: 300,
                latency_sum: Nanos(900_000_000),
                ..BackgroundDone::default()
            };
            let background = (cell > 0).then_some(done);
            let noise = 1_000_000 * u64::from((repeat * 7 + cell as u32 * 3) % 5);
            samples.push(measured(cell, repeat, Sample { background, ..in_a_second(bytes + noise) }));
        }
    }
    let cells = stage("files", BESIDE);
    Results { cells, samples, margin: 5.0, repeats: 10, targets: vec![target("/data")], ..Results::default() }
}

/// A figure of four processes on two machines.
fn of_machines() -> Results {
    let mut results = results(1, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 3);
    for measured in &mut results.samples {
        let part = |rank: u32| RankPart {
            rank,
            node: format!("node{}", rank / 2),
            bytes: 100_000_000,
            operations: 100,
            last_done: Nanos(SECOND / 2),
            ..RankPart::default()
        };
        measured.sample.parts = (0..4).map(part).collect();
    }
    results
}

/// An instrument that was recorded at full speed, and not at its own pace.
fn full_speed() -> Results {
    let mut results = recorded(results(1, Vec::new(), &[], 0));
    results.samples.truncate(2);
    results
}

/// A stage whose rate is near the tool's own.
fn with_ceiling() -> Results {
    let mut results = results(1, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 3);
    results.ceilings = vec![measured(0, 0, in_a_second(1_050_000_000))];
    results
}

/// Storage on servers, by a machine with a link of 10 Gbit/s.
fn behind_network() -> Results {
    let mut results = results(1, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 3);
    if let Some(description) = &mut results.targets[0].description {
        description.profile.kind = FileSystemKind::Nfs;
    }
    let speed = Some(ByteRate(1.25e9));
    let link = NetworkLink { name: WICKED.into(), is_card: true, speed, ..NetworkLink::default() };
    results.machines = vec![CampaignMachine { name: WICKED.into(), facts: Vec::new(), links: vec![link] }];
    results
}

fn measured(cell: usize, repeat: u32, sample: Sample) -> Measured {
    Measured { key: Key { target: 0, cell, repeat, phase: Phase::Write }, sample }
}

/// `bytes` by 100 operations in a second.
fn in_a_second(bytes: u64) -> Sample {
    Sample { bytes, operations: 100, wall: Nanos(SECOND), ..Sample::new(Nanos(0)) }
}
