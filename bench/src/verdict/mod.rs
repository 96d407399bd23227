//! Verdicts held against truths: simulated storages of which everything is known, each judged by a whole campaign of the
//! recorder in virtual time, and real devices with a stated rate. `nilometer-bench verdict` prints the table.

mod devices;
mod plans;
mod truths;

use nilometer_rehearsal::StorageKind;
use plans::{PLANS_HEAD, PlanRow};
use truths::{HEAD, Row};

use crate::contest::Stop;

/// What it is called on the command line.
pub(crate) const NAME: &str = "verdict";

/// Campaigns of each kind of storage.
const SEEDS: u64 = 1000;

/// Recordings of plans on each kind of storage in each way: 10 000 in all.
const PLANS: u64 = 500;

/// Prints the tables; whether the goals are met.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<bool> {
    println!("### {NAME}: verdicts against truths, by simulation\n");
    let mut missed = judged(SEEDS, stop)?;
    println!("\n### {NAME}: recordings of plans against truths, by simulation\n");
    missed.extend(plans(PLANS, stop)?);
    for goal in &missed {
        println!("missed: {goal}");
    }
    println!();
    Ok(devices::run(stop)? && missed.is_empty())
}

/// The table of so many campaigns on each kind of storage, and the goals that are missed.
fn judged(campaigns: u64, stop: &Stop) -> anyhow::Result<Vec<String>> {
    println!("{HEAD}");
    let mut goals = Vec::new();
    let (mut covered, mut all) = (0.0, 0.0);
    for kind in StorageKind::ALL {
        stop.check()?;
        let row = Row::of(kind, campaigns);
        println!("{row}");
        goals.extend(missed(&row));
        covered += row.share(|judged| judged.covered).unwrap_or(0.0);
        all += 1.0;
    }
    println!("intervals that hold the truth, of all: {:.1} %", 100.0 * covered / all);
    if covered / all < COVERED {
        goals.push(format!("intervals that hold the truth, of all: {:.3}, not {COVERED}", covered / all));
    }
    Ok(goals)
}

/// The table of so many recordings of plans on each kind of storage in each way, and the goals that are missed.
fn plans(campaigns: u64, stop: &Stop) -> anyhow::Result<Vec<String>> {
    println!("{PLANS_HEAD}");
    let mut goals = Vec::new();
    for row in PlanRow::all(campaigns) {
        stop.check()?;
        println!("{row}");
        goals.extend(row.missed());
    }
    Ok(goals)
}

/// The goals that a kind of storage misses.
fn missed(row: &Row) -> Vec<String> {
    let at_most = |what: &str, found: Option<f64>, most: f64| {
        found
            .filter(|found| *found > most)
            .map(|found| format!("{}: {what}: {found:.3}, not {most}", row.name))
    };
    let at_least = |what: &str, found: Option<f64>, least: f64| {
        found
            .filter(|found| *found < least)
            .map(|found| format!("{}: {what}: {found:.3}, not {least}", row.name))
    };
    [
        at_most("rate off by", row.error(|judged| judged.rate_error), 0.05),
        at_least("intervals that hold the truth", row.share(|judged| judged.covered), COVERED_OF_KIND),
        at_most("stall off by", row.error(|judged| judged.stall_error), 0.1),
        at_most("buffer off by", row.error(|judged| judged.buffer_error), 0.1),
        at_least("intervals of the readers' cost", row.share(|judged| judged.cost_covered), COVERED_OF_KIND),
        at_most("called carried falsely", Some(row.false_yes() as f64), 0.0),
        at_most("called not carried falsely", Some(row.false_no() as f64), 0.0),
        at_most("not decided", Some(row.undecided()), 0.1),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// How often an interval of 95 % must hold the truth, over all kinds of storage.
const COVERED: f64 = 0.95;
/// And of each kind: drift that lasts as long as a pass is seen by chance, and then the intervals are too narrow.
const COVERED_OF_KIND: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_on_known_storages_are_right() {
        let campaigns = if std::env::var_os("NILOMETER_LONG").is_some() { SEEDS } else { 40 };
        let missed = judged(campaigns, &Stop::default()).expect("nobody stops it");
        assert!(missed.is_empty(), "{missed:#?}");
    }

    #[test]
    fn recordings_of_plans_are_never_judged_falsely() {
        let campaigns = if std::env::var_os("NILOMETER_LONG").is_some() { PLANS } else { 25 };
        let missed = plans(campaigns, &Stop::default()).expect("nobody stops it");
        assert!(missed.is_empty(), "{missed:#?}");
    }
}
