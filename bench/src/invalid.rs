//! How often a sample is INVALID on a machine that nobody else uses: `nilometer-bench invalid`. The real program measures
//! many short phases; the record says which the program itself had spoilt, and which of these are INVALID still after they
//! were measured again. The latter are what a user sees, and are bounded.
//!
//! It says nothing on a busy machine: there samples are to be INVALID. So the load stands beside it, and with more than a
//! little of it nothing is decided.

use std::{fmt, path::Path, process::Command};

use nilometer_plan::{Event, Results};
use nilometer_storage::process;
use tempfile::TempDir;

use crate::{contest::Stop, measure, place};

/// What chooses this instead of comparisons.
pub(crate) const NAME: &str = "invalid";

/// Phases of some 1 to 100 ms: short ones are spoilt most easily. Two a cell.
const PLAN: &str = r#"
title = "short phases"
repeats = 50
reserve = "0 B"
[[stage]]
name = "files"
workers = [1, 2]
[stage.workload.stream]
file_size = ["1 MiB", "64 MiB"]
block_size = "256 KiB"
access = "best"
"#;
const CELLS: usize = 4;
const REPEATS: usize = 50;

/// So many samples that stayed INVALID are named in each place.
const TOLD_MOST: usize = 3;
/// Of all samples.
const SHARE_MOST: f64 = 0.01;
/// A processor is idle at less than this load.
const LOAD_MOST: f64 = 0.25;

/// What was counted in one place.
#[derive(Debug)]
struct Count {
    place: &'static str,
    samples: usize,
    /// Repeats of cells, and those that were measured again.
    attempts: usize,
    /// Of these, spoilt.
    spoilt: usize,
    /// What the samples say that are INVALID in the record.
    why: Vec<String>,
    /// Load average over the last minute before each sample: the mean.
    load: f64,
}

/// What was counted, and on which machine.
#[derive(Debug)]
struct Found {
    counts: Vec<Count>,
    /// Load average before anything was done.
    load: f64,
    processors: usize,
}

/// Prints what is found; whether the bound is met.
pub(crate) fn check(stop: &Stop) -> anyhow::Result<bool> {
    let found = measured(stop)?;
    println!("{found}");
    Ok(found.is_met())
}

fn measured(stop: &Stop) -> anyhow::Result<Found> {
    let load = process::load_average();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (memory, disk) = (place::in_memory()?, place::on_disk()?);
    let in_memory = count("in memory", &memory)?;
    stop.check()?;
    let counts = vec![in_memory, count("on a disk", &disk)?];
    Ok(Found { counts, load, processors })
}

fn count(place: &'static str, home: &TempDir) -> anyhow::Result<Count> {
    let program = place::program()?;
    let (plan, record) = (home.path().join("plan.toml"), home.path().join("r.sqlite"));
    std::fs::write(&plan, PLAN)?;
    let mut command = Command::new(&program);
    command.arg("evaluate").arg(home.path()).arg("--plan").arg(&plan).arg("--record").arg(&record);
    measure::child(1.0, &mut command)?;
    counted(place, &read(&record)?)
}

fn read(record: &Path) -> anyhow::Result<Results> {
    let results = nilometer_record::read(record)?;
    anyhow::ensure!(results.samples.len() == 2 * CELLS * REPEATS, "{} samples", results.samples.len());
    Ok(results)
}

/// Each repetition stands for an attempt that was spoilt; the last attempt of a cell's repeat may be spoilt, too.
fn counted(place: &'static str, results: &Results) -> anyhow::Result<Count> {
    anyhow::ensure!(!results.samples.is_empty(), "nothing was measured");
    let again = results.events.iter().filter(|event| event.what.starts_with(Event::AGAIN)).count();
    let spoilt = results.samples.iter().filter_map(|measured| {
        let why = measured.sample.invalid.as_ref().filter(|why| why.is_spoilt())?;
        Some(((measured.key.cell, measured.key.repeat), why.to_string()))
    });
    let (mut left, why): (Vec<_>, Vec<_>) = spoilt.unzip();
    left.sort_unstable();
    left.dedup();
    let load = results.samples.iter().map(|measured| measured.sample.load).sum::<f64>();
    Ok(Count {
        place,
        samples: results.samples.len(),
        attempts: results.samples.len() / 2 + again,
        spoilt: again + left.len(),
        why,
        load: load / results.samples.len() as f64,
    })
}

impl Count {
    fn share(&self) -> f64 {
        self.why.len() as f64 / self.samples as f64
    }
}

impl Found {
    /// Nothing but the program itself had work.
    fn is_idle(&self) -> bool {
        self.load <= LOAD_MOST * self.processors as f64
    }

    /// Whether few enough samples were INVALID, as far as this machine can say.
    fn is_met(&self) -> bool {
        self.is_idle() && self.counts.iter().all(|count| count.share() <= SHARE_MOST)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "### invalid: short phases that the tool itself spoilt\n")?;
        writeln!(
            f,
            "| place | attempts | spoilt | samples | INVALID | share | mean load |\n|---|---|---|---|---|---|---|"
        )?;
        for count in &self.counts {
            let Count { place, samples, attempts, spoilt, why, load } = count;
            let (invalid, share) = (why.len(), 100.0 * count.share());
            writeln!(
                f,
                "| {place} | {attempts} | {spoilt} | {samples} | {invalid} | {share:.2} % | {load:.2} |"
            )?;
        }
        writeln!(f)?;
        for why in self.counts.iter().flat_map(|count| count.why.iter().take(TOLD_MOST)) {
            writeln!(f, "- still INVALID: {why}")?;
        }
        let word = match (self.is_idle(), self.is_met()) {
            (false, _) => "UNDECIDED, the machine is busy",
            (true, true) => "met",
            (true, false) => "MISSED",
        };
        let (load, processors, most) = (self.load, self.processors, 100.0 * SHARE_MOST);
        writeln!(f, "- bound {most} %, load {load:.2} on {processors} processors before: {word}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{Invalid, Nanos, Phase, Sample};
    use nilometer_plan::{Key, Measured};

    fn measured(repeat: u32, phase: Phase, invalid: Option<Invalid>) -> Measured {
        let key = Key { target: 0, cell: 0, repeat, phase };
        Measured { key, sample: Sample { invalid, ..Sample::new(Nanos(0)) } }
    }

    #[test]
    fn what_was_measured_again_had_been_spoilt() {
        let both = |repeat| [Phase::Write, Phase::Read].map(|phase| measured(repeat, phase, None)).to_vec();
        let spoilt = [Phase::Write, Phase::Read]
            .map(|phase| measured(1, phase, Some(Invalid::Starved(None))))
            .to_vec();
        let event = |what: &str| Event { at: Nanos(0), what: what.into() };
        let events = vec![event("measured again: /a: c, round 1: busy"), event("the clock was set")];
        let results = Results { samples: [both(0), spoilt, both(2)].concat(), events, ..Results::default() };
        let count = counted("here", &results).expect("samples");
        assert_eq!((count.attempts, count.spoilt, count.why.len()), (4, 2, 2));
        let found =
            |load| Found { counts: vec![counted("here", &results).expect("samples")], load, processors: 2 };
        assert!(found(0.1).to_string().contains("MISSED") && !found(0.1).is_met());
        assert!(found(3.0).to_string().contains("UNDECIDED"));
    }
}
