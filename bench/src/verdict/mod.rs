//! Verdicts held against truths: simulated storages of which everything is known, each judged by a whole campaign of the
//! recorder in virtual time, and real devices with a stated rate. `nilometer-bench verdict` prints the table.

mod campaign;
mod devices;
mod storage;
mod truths;

use storage::Kind;
use truths::{HEAD, Row};

/// What it is called on the command line.
pub(crate) const NAME: &str = "verdict";

/// Campaigns of each kind of storage.
const SEEDS: u64 = 1000;

/// Prints the table; whether the goals are met.
pub(crate) fn run() -> bool {
    println!("### {NAME}: verdicts against truths, by simulation\n\n{HEAD}");
    let mut met = true;
    for kind in Kind::ALL {
        let row = Row::of(kind, SEEDS);
        println!("{row}");
        met &= missed(&row).is_empty();
    }
    println!();
    devices::run() && met
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
        at_least("intervals that hold the truth", row.share(|judged| judged.covered), COVERED),
        at_most("stall off by", row.error(|judged| judged.stall_error), 0.1),
        at_most("buffer off by", row.error(|judged| judged.buffer_error), 0.1),
        at_least("intervals of the readers' cost", row.share(|judged| judged.cost_covered), COVERED),
        at_most("called carried falsely", Some(row.false_yes() as f64), 0.0),
        at_most("called not carried falsely", Some(row.false_no() as f64), 0.0),
        at_most("not decided", Some(row.undecided()), 0.1),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// How often an interval of 95 % must hold the truth: as few campaigns as a test has scatter by 2 %.
const COVERED: f64 = 0.92;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_on_known_storages_are_right() {
        let campaigns = if std::env::var_os("NILOMETER_LONG").is_some() { SEEDS } else { 80 };
        let mut all = Vec::new();
        println!("{HEAD}");
        for kind in Kind::ALL {
            let row = Row::of(kind, campaigns);
            println!("{row}");
            all.extend(missed(&row));
        }
        assert!(all.is_empty(), "{all:#?}");
    }
}
