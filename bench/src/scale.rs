//! A phase of 10 000 processes on 1000 machines, as rank 0 has it in the end: messages with all reports, of which it makes one
//! sample and writes it into the record. How long that takes, how much memory, and how large the record becomes.

use std::{fs, path::Path};

use anyhow::{Context as _, ensure};
use nilometer_cluster::{RankReport, measured_by_all};
use nilometer_model::{Bin, Nanos, Phase, RankSample, Sample, Series, WorkerTotals};
use nilometer_plan::{Key, Results, TargetEntry, parse};
use nilometer_record::Record;

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure, place,
};

const RANKS: u32 = 10_000;
const MACHINES: u32 = 1000;
/// Messages that come to rank 0: its tree has two branches, and what it measured itself.
const BRANCHES: u32 = 2;
const OURS: &str = "nilometer, rank 0";
/// Milliseconds for a phase.
const AT_MOST: f64 = 10_000.0;
/// Memory of this process, with the messages in it.
const MEMORY: u64 = 1 << 30;
/// Phases of a campaign whose record is to be less than this.
const PHASES: u64 = 100;
const RECORD: u64 = 1_000_000_000;

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let home = place::in_memory()?;
    let messages = messages()?;
    let contest = Contest {
        title: format!("scale: the reports of {RANKS} processes on {MACHINES} machines become a sample"),
        quantity: Quantity::WallPerStart,
        phases: &["merge"],
        rounds: 5,
        contestants: vec![Contestant::new(OURS, || {
            let record = home.path().join("scale.sqlite");
            let cost = merged(&messages, &record)?;
            let size = fs::metadata(&record)?.len();
            fs::remove_file(&record)?;
            let most = peak_memory()?;
            println!("  {most} B of memory at the most, {size} B of record a phase");
            ensure!(most < MEMORY, "{most} B of memory: more than {MEMORY}");
            ensure!(PHASES * size < RECORD, "{size} B of record a phase: {PHASES} are more than {RECORD}");
            Ok(vec![cost])
        })],
        bounds: vec![Bound { subject: OURS, peer: OURS, limit: Limit::AtMost(AT_MOST) }],
    };
    contest.run(stop)
}

/// Decodes the messages, makes the sample, and writes it.
fn merged(messages: &[Vec<u8>], record: &Path) -> anyhow::Result<Cost> {
    let mut record = Record::create(record, &head()?, 0)?;
    measure::here(1.0, || {
        let mut all: Vec<(u32, RankReport)> = Vec::new();
        for message in messages {
            all.append(&mut serde_json::from_slice(message)?);
        }
        all.sort_by_key(|(rank, _)| *rank);
        let reports = all.into_iter().map(|(_, report)| report).collect();
        let of_target = measured_by_all(reports).context("all measured")?.remove(0);
        let sample = Sample::united(of_target);
        ensure!(sample.parts.len() == RANKS as usize, "every process has its part");
        let key = Key { target: 0, cell: 0, repeat: 1, phase: Phase::Write };
        record.add(key, &sample)?;
        Ok(())
    })
}

/// What comes to rank 0, with a report as a phase of some seconds leaves it.
fn messages() -> anyhow::Result<Vec<Vec<u8>>> {
    let of_branch = |branch: u32| {
        let ranks = (0..RANKS).filter(|rank| rank % BRANCHES == branch);
        let all: Vec<(u32, RankReport)> = ranks.map(|rank| (rank, report(rank))).collect();
        Ok(serde_json::to_vec(&all)?)
    };
    (0..BRANCHES).map(of_branch).collect()
}

fn report(rank: u32) -> RankReport {
    let work = WorkerTotals {
        bytes: 1 << 30,
        operations: 1 << 10,
        last_done: Nanos::from_millis(4000 + u64::from(rank % 97)),
        ..WorkerTotals::default()
    };
    let mut sample = Sample {
        bytes: 1 << 30,
        operations: 1 << 10,
        wall: work.last_done,
        user: Nanos::from_millis(100),
        system: Nanos::from_millis(700),
        workers: vec![work],
        ..Sample::new(Nanos(0))
    };
    let first = 300 + (rank % 40) as u16;
    (first..first + 60).for_each(|bucket| sample.latency.add_bucket(bucket, 17));
    sample.series = Series::from_bins(Nanos(1 << 24), vec![Bin { operations: 4, bytes: 1 << 22 }; 250]);
    let node = format!("node-{:04}", rank / (RANKS / MACHINES));
    let of_rank =
        RankSample { rank, node, clock_offset: 1000, clock_uncertainty: 500, began: Nanos(20_000), sample };
    RankReport::Measured { whole: true, samples: vec![of_rank], loads: Vec::new() }
}

fn head() -> anyhow::Result<Results> {
    let plan = "title = \"t\"\n[[stage]]\nname = \"s\"\n[stage.workload.stream]\nfile_size = \"1 GiB\"\n\
                block_size = \"1 MiB\"\naccess = \"buffered\"\n";
    Ok(Results {
        title: "A large cluster".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        margin: 5.0,
        repeats: 1,
        targets: vec![TargetEntry {
            path: "/a".into(),
            file_system: "lustre".into(),
            ..TargetEntry::default()
        }],
        cells: parse(plan, "the benchmark's plan", 1.0)?.cells,
        ..Results::default()
    })
}

/// The most memory that this process ever had.
fn peak_memory() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("the kernel tells")?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibibytes << 10)
}
