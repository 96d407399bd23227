//! How long the report of a large campaign takes: 100 000 samples, read from their record and written as a page.

use std::{path::Path, process::Command};

use anyhow::Context as _;
use nilometer_model::{Bin, Nanos, Phase, RandomStream, Sample, Seed, Series, WorkerTotals};
use nilometer_plan::{Cell, Key, Results, TargetEntry, parse};
use nilometer_record::Record;

use crate::{
    contest::{Bound, Contest, Contestant, Limit, Outcome, Quantity, Stop},
    measure, place,
};

const TARGETS: usize = 4;
const STAGES: u32 = 10;
/// Cells of a stage: block sizes from 4 KiB on with numbers of workers.
const CELLS: u32 = 25;
const ROUNDS: u32 = 100;

const TRUE: &str = "true";
const OURS: &str = "nilometer report --format html";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let program = place::program()?;
    let home = place::in_memory()?;
    let (record, page) = (home.path().join("large.sqlite"), home.path().join("large.html"));
    write(&record).context("the record can't be made")?;
    let contest = Contest {
        title: "report: a page of a campaign with 100 000 samples".into(),
        quantity: Quantity::WallPerStart,
        phases: &["report"],
        rounds: 5,
        contestants: vec![
            Contestant::new(TRUE, || Ok(vec![measure::child(1.0, &mut Command::new("true"))?.0])),
            Contestant::new(OURS, || {
                let mut command = Command::new(&program);
                command.arg("report").arg(&record).args(["--format", "html", "--output"]).arg(&page);
                Ok(vec![measure::child(1.0, &mut command)?.0])
            }),
        ],
        bounds: vec![Bound { subject: OURS, peer: TRUE, limit: Limit::More(2000.0) }],
    };
    contest.run(stop)
}

/// A record as a campaign leaves it: every repeat of every cell on every target, with its distribution and its series.
pub(crate) fn write(path: &Path) -> anyhow::Result<()> {
    let mut cells = Vec::new();
    for number in 0..STAGES {
        cells.extend(stage(number)?);
    }
    let target = |name: &&str| TargetEntry {
        path: (*name).into(),
        file_system: "ext4".into(),
        ..TargetEntry::default()
    };
    let head = Results {
        title: "A large campaign".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        margin: 5.0,
        repeats: ROUNDS,
        targets: ["/a", "/b", "/c", "/d"].iter().map(target).collect(),
        cells,
        ..Results::default()
    };
    let mut record = Record::create(path, &head, 0)?;
    let mut stream = Seed(1).stream();
    for repeat in 0..ROUNDS {
        for cell in 0..(STAGES * CELLS) as usize {
            for target in 0..TARGETS {
                let phase = if cell.is_multiple_of(2) { Phase::Write } else { Phase::Read };
                record.add(Key { target, cell, repeat, phase }, &sample(&mut stream, cell, target))?;
            }
        }
    }
    Ok(())
}

/// A stage as plans have it: blocks of twelve sizes, by one worker to several.
fn stage(stage: u32) -> anyhow::Result<Vec<Cell>> {
    let workers: Vec<u32> = (1..=CELLS.div_ceil(12)).collect();
    let blocks: Vec<String> = (0..12).map(|power| format!("\"{} B\"", 4096_u64 << power)).collect();
    let plan = format!(
        "title = \"t\"\n[[stage]]\nname = \"stage {stage}\"\nworkers = {workers:?}\n[stage.workload.stream]\n\
         file_size = \"64 MiB\"\nblock_size = [{}]\naccess = \"direct\"\n",
        blocks.join(", ")
    );
    let mut cells = parse(&plan, "the benchmark's plan", 1.0)?.cells;
    cells.truncate(CELLS as usize);
    Ok(cells)
}

/// Some 60 buckets of latency and 20 bins of the series, as a phase of a tenth of a second leaves them.
fn sample(stream: &mut RandomStream, cell: usize, target: usize) -> Sample {
    let rate = 1e8 * (1.0 + 0.1 * cell as f64) * (1.0 + 0.2 * target as f64) * (0.9 + 0.2 * stream.unit());
    let mut sample = Sample {
        bytes: 1 << 26,
        operations: 1 << 14,
        wall: Nanos::from_seconds(f64::from(1 << 26) / rate),
        user: Nanos::from_millis(10),
        system: Nanos::from_millis(30),
        machine: Nanos::from_millis(50),
        workers: vec![WorkerTotals {
            bytes: 1 << 26,
            last_done: Nanos::from_millis(99),
            ..WorkerTotals::default()
        }],
        ..Sample::new(Nanos(0))
    };
    let first = 300 + stream.below(40) as u16;
    (first..first + 60).for_each(|bucket| sample.latency.add_bucket(bucket, 1 + stream.below(500)));
    let bin = Bin { operations: 1 << 10, bytes: 1 << 22 };
    sample.series = Series::from_bins(Nanos(1 << 22), vec![bin; 20]);
    sample
}
