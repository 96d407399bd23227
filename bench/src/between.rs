//! What passes between two phases of a campaign when there is next to nothing to do in them: the sample is committed, what
//! the cell left is removed, the machine is looked at, threads are started.
//!
//! The real program runs a plan of tiny cells, and its record says when each phase began, how long it took and how long
//! the machine was left to settle before; the rest is counted.

use std::{path::Path, process::Command};

use nilometer_model::Nanos;
use nilometer_plan::{Measured, Results};
use tempfile::TempDir;

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure, place,
};

/// Two phases a cell.
const PLAN: &str = r#"
title = "tiny cells"
repeats = 20
reserve = "0 B"
[[stage]]
name = "tiny"
workers = [1, 2]
[stage.workload.stream]
file_size = "4 KiB"
block_size = "4 KiB"
access = "buffered"
"#;

const IN_MEMORY: &str = "nilometer, target and record in memory";
const ON_DISK: &str = "nilometer, target and record on a disk";

/// In milliseconds.
const AT_MOST: f64 = 5.0;

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let (memory, disk) = (place::in_memory()?, place::on_disk()?);
    let bound = |subject| Bound { subject, peer: subject, limit: Limit::AtMost(AT_MOST) };
    let contest = Contest {
        title: "between: from the end of a phase to the start of the next, settling apart".into(),
        quantity: Quantity::WallPerGap,
        phases: &["between"],
        rounds: 7,
        contestants: vec![
            Contestant::new(IN_MEMORY, || gaps(&memory)),
            Contestant::new(ON_DISK, || gaps(&disk)),
        ],
        bounds: vec![bound(IN_MEMORY), bound(ON_DISK)],
    };
    contest.run(stop)
}

fn gaps(place: &TempDir) -> anyhow::Result<Vec<Cost>> {
    let program = place::program()?;
    let home = tempfile::tempdir_in(place.path())?;
    let (plan, record) = (home.path().join("plan.toml"), home.path().join("r.sqlite"));
    std::fs::write(&plan, PLAN)?;
    let mut command = Command::new(&program);
    command.arg("evaluate").arg(home.path()).arg("--plan").arg(&plan).arg("--record").arg(&record);
    let (cost, _) = measure::child(1.0, &mut command)?;
    let (count, wall) = between(&read(&record)?);
    Ok(vec![Cost { amount: count, wall: wall.seconds(), ..cost }])
}

fn read(record: &Path) -> anyhow::Result<Results> {
    let results = nilometer_record::read(record)?;
    anyhow::ensure!(results.samples.len() == 2 * 2 * 20, "{} samples", results.samples.len());
    Ok(results)
}

/// How many gaps there are between phases, and how long all of them are without settling.
fn between(results: &Results) -> (f64, Nanos) {
    let gap = |pair: &[Measured]| {
        let [last, next] = pair else { return Nanos(0) };
        let ended = last.sample.started + last.sample.wall + next.sample.settling;
        next.sample.started.since(ended)
    };
    let sum = results.samples.windows(2).map(gap).fold(Nanos(0), |sum, gap| sum + gap);
    ((results.samples.len() - 1) as f64, sum)
}
