//! Copies of trees from a target to other storage beside users. It finds the rate of each level, its cost to the
//! users, and the time of a whole move.

mod forecast;

use std::{collections::BTreeMap, fmt};

use nilometer_model::{Bytes, Nanos, Phase, statistics::Summary};
use nilometer_plan::{BackgroundLoad, Cell, Measured, Results, UnpackCell, WorkloadCell};

use crate::{effect::Effect, facts::fact, interference::Interference};
use forecast::CopiedPart;
pub use forecast::{CopyCosts, MoveAmount, MoveForecast};

/// Copies from a target beside the same users.
#[derive(Debug, Clone, PartialEq)]
pub struct Migration {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// The stage of the users.
    pub stage: String,
    /// Their work.
    pub phase: Phase,
    /// The amount of the forecasts.
    pub amount: MoveAmount,
    /// The levels of the copy, in the order of the plan.
    pub levels: Vec<CopyLevel>,
    /// Limits of the forecast, in words.
    pub cautions: Vec<String>,
}

/// A copy with this number of workers and this limit.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyLevel {
    /// `4 workers at 50 MB/s`.
    pub load: String,
    /// Each copied tree.
    pub trees: Vec<CopiedTreeRate>,
    /// The time of the whole move; `None` without a valid repeat.
    pub forecast: Option<MoveForecast>,
}

/// The rate at which a tree was copied.
#[derive(Debug, Clone, PartialEq)]
pub struct CopiedTreeRate {
    /// The tree, in words.
    pub tree: String,
    /// Bytes a second, over valid repeats.
    pub bytes: Summary,
    /// Files a second, over valid repeats.
    pub files: Summary,
    /// The users' rate beside it against their rate alone; `None` without pairs.
    pub users: Option<Effect>,
}

/// The cells with the same users.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Users {
    target: usize,
    /// The first cell of these users, which gives the order.
    first: usize,
    phase: Phase,
}

/// A tree at a level, with the work of each valid repeat, by round.
struct TreeAtLevel<'a> {
    cell: usize,
    load: &'a BackgroundLoad,
    tree: &'a UnpackCell,
    repeats: BTreeMap<u32, CopiedPart>,
}

/// The copies of a campaign, with these costs of its loads. The forecasts are of this amount. If it is `None`, they
/// are of the census that the tree is like, or of 1 TB.
pub(crate) fn migrations(
    results: &Results,
    interferences: &[&Interference],
    amount: Option<MoveAmount>,
) -> Vec<Migration> {
    let mut groups: BTreeMap<Users, BTreeMap<usize, TreeAtLevel<'_>>> = BTreeMap::new();
    for measured in results.samples.iter().filter(|measured| measured.sample.invalid.is_none()) {
        let Some((users, found)) = copied(results, measured) else { continue };
        let trees = groups.entry(users).or_default();
        let tree = trees.entry(measured.key.cell).or_insert(found);
        tree.repeats.extend(part_of(measured).map(|part| (measured.key.repeat, part)));
    }
    let of_group = |(users, trees): (Users, BTreeMap<usize, TreeAtLevel<'_>>)| {
        migration(results, interferences, &users, trees.into_values().collect(), amount)
    };
    groups.into_iter().map(of_group).collect()
}

/// The users of a sample beside a copy, and the copy without its repeats; `None` for another sample.
fn copied<'a>(results: &'a Results, measured: &Measured) -> Option<(Users, TreeAtLevel<'a>)> {
    let key = measured.key;
    let cell = results.cells.get(key.cell)?;
    let load = cell.background().filter(|load| load.migrates())?;
    let Some(WorkloadCell::Unpack(tree)) = load.workload() else { return None };
    let same = |other: &Cell| other.stage == cell.stage && without_load(other) == without_load(cell);
    let first = results.cells.iter().position(same)?;
    let users = Users { target: key.target, first, phase: key.phase };
    Some((users, TreeAtLevel { cell: key.cell, load, tree, repeats: BTreeMap::new() }))
}

/// The measured work of a cell without its load, in words.
fn without_load(cell: &Cell) -> Vec<String> {
    let load = cell.background().map(ToString::to_string);
    cell.phrases().into_iter().filter(|phrase| Some(phrase) != load.as_ref()).collect()
}

/// The copy in a repeat; `None` if it is unknown, or had no time.
fn part_of(measured: &Measured) -> Option<CopiedPart> {
    let done = measured.sample.background.filter(|done| done.wall.0 > 0)?;
    Some(CopiedPart { files: done.operations as f64, bytes: done.bytes as f64, seconds: done.wall.seconds() })
}

fn migration(
    results: &Results,
    interferences: &[&Interference],
    users: &Users,
    trees: Vec<TreeAtLevel<'_>>,
    amount: Option<MoveAmount>,
) -> Migration {
    let amount = amount.or_else(|| of_census(&trees)).unwrap_or(UNKNOWN);
    let cautions = cautions(results, &trees);
    let mut levels: Vec<(String, Vec<TreeAtLevel<'_>>)> = Vec::new();
    for tree in trees {
        let load = LevelWords(tree.load).to_string();
        match levels.iter_mut().find(|(known, _)| *known == load) {
            Some((_, trees)) => trees.push(tree),
            None => levels.push((load, vec![tree])),
        }
    }
    let effect = |cell: usize| users_effect(interferences, users, cell);
    Migration {
        target: users.target,
        stage: results.cells[users.first].stage.clone(),
        phase: users.phase,
        amount,
        levels: levels.into_iter().map(|(load, trees)| level(load, &trees, amount, &effect)).collect(),
        cautions,
    }
}

/// The amount of a forecast that nobody asked for.
const UNKNOWN: MoveAmount = MoveAmount { bytes: Bytes(1_000_000_000_000), files: None };

/// The bytes and files of the census that the first tree is like.
fn of_census(trees: &[TreeAtLevel<'_>]) -> Option<MoveAmount> {
    let census = trees.first()?.tree.like.counts()?;
    Some(MoveAmount { bytes: Bytes(census.bytes()), files: Some(census.files()) })
}

/// The effect of the copy in this cell on the users.
fn users_effect(interferences: &[&Interference], users: &Users, cell: usize) -> Option<Effect> {
    let mut here = interferences.iter().filter(|of| (of.target, of.phase) == (users.target, users.phase));
    here.find_map(|of| of.levels.iter().find(|level| level.cell == cell)?.effect)
}

fn level(
    load: String,
    trees: &[TreeAtLevel<'_>],
    amount: MoveAmount,
    effect: &dyn Fn(usize) -> Option<Effect>,
) -> CopyLevel {
    let rounds = trees.first().into_iter().flat_map(|tree| tree.repeats.keys());
    let whole = |round: &u32| trees.iter().map(|tree| tree.repeats.get(round).copied()).collect();
    let repeats: Vec<Vec<CopiedPart>> = rounds.filter_map(whole).collect();
    CopyLevel {
        load,
        trees: trees.iter().filter_map(|tree| tree.rate(effect(tree.cell))).collect(),
        forecast: MoveForecast::of(amount, &repeats),
    }
}

/// Shorter repeats say more about the beginning of a copy than about its rate.
const SECONDS_LEAST: f64 = 1.0;

/// The limits of the forecast.
fn cautions(results: &Results, trees: &[TreeAtLevel<'_>]) -> Vec<String> {
    let parts = || trees.iter().flat_map(|tree| tree.repeats.values());
    let most = parts().map(|part| part.bytes).fold(0.0, f64::max);
    #[expect(clippy::cast_sign_loss, reason = "bytes are not negative")]
    let moved = Bytes(most as u64);
    let memory = fact(results, "memory").and_then(kibibytes).filter(|memory| moved < *memory);
    let is_synced = trees.iter().all(|tree| tree.tree.durable);
    let mut cautions = Vec::new();
    if trees.iter().any(|tree| tree.repeats.len() < 2) {
        cautions.push("a single repeat has no spread: the forecast has no interval".into());
    }
    let shortest = parts().map(|part| part.seconds).fold(f64::INFINITY, f64::min);
    if shortest < SECONDS_LEAST {
        cautions.push(format!(
            "the copy was watched for only {} in a repeat: give the users work for some seconds",
            Nanos::from_seconds(shortest)
        ));
    }
    if parts().any(|part| part.files == 0.0) {
        cautions.push("no whole file was copied in a repeat: the time of a file is unknown".into());
    }
    match (memory, is_synced) {
        (Some(memory), false) => cautions.push(format!(
            "no repeat moved more than {moved}, and none was synced: the memory of this machine ({memory}) may have \
             taken them"
        )),
        (None, false) => {
            cautions.push("the copies were not synced: the memory of this machine may have taken a part".into());
        }
        (Some(memory), true) => cautions.push(format!(
            "no repeat moved more than {moved}, and the machine has {memory} of memory: caches of the storage may \
             have taken them"
        )),
        (None, true) => {}
    }
    cautions.push("the forecast assumes that storage and users stay as they were".into());
    cautions
}

/// `16 kB` of /proc/meminfo, which are KiB.
fn kibibytes(text: &str) -> Option<Bytes> {
    let count: u64 = text.strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(count.saturating_mul(1024)))
}

impl TreeAtLevel<'_> {
    /// Its rate over repeats; `None` without a valid one.
    fn rate(&self, users: Option<Effect>) -> Option<CopiedTreeRate> {
        let over = |of: fn(&CopiedPart) -> f64| {
            Summary::of(&self.repeats.values().map(|part| of(part) / part.seconds).collect::<Vec<_>>())
        };
        let bytes = over(|part| part.bytes)?;
        let files = over(|part| part.files)?;
        Some(CopiedTreeRate { tree: self.words(), bytes, files, users })
    }

    /// `5000 files, 500 MB in all, synced`.
    fn words(&self) -> String {
        let UnpackCell { files, size, durable, .. } = self.tree;
        let synced = if *durable { ", synced" } else { "" };
        format!("{files} files, {size} in all{synced}")
    }
}

/// The level of a load, without its work.
struct LevelWords<'a>(&'a BackgroundLoad);

impl fmt::Display for LevelWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BackgroundLoad { workers, offered, .. } = self.0;
        let noun = if *workers == 1 { "worker" } else { "workers" };
        let rate = offered.phrase().unwrap_or_else(|| "at full speed".into());
        write!(f, "{workers} {noun} {rate}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Study, made_up::stage};
    use nilometer_model::{BackgroundDone, Sample};
    use nilometer_plan::Key;

    const TEXT: &str = "[stage.workload.wait]\nduration = \"1 s\"\n[stage.background]\nrate = [\"0 MB/s\", \"50 MB/s\", \"1 TB/s\"]\n[stage.background.workload.unpack]\nsource = \"disk\"\ndurable = true\ndirectories = 1\nfiles = [1000, 10]\nsize = \"1 GB\"\n";

    /// Copies at 100 us a file and 10 ns a byte, or at the limit, for 10 s each; the last repeat is slower.
    fn results() -> Results {
        let cells = stage("nobody", TEXT);
        let mut samples = Vec::new();
        for (cell, planned) in cells.iter().enumerate() {
            let load = planned.background().expect("a load");
            let Some(WorkloadCell::Unpack(tree)) = load.workload() else { panic!("a tree") };
            for repeat in 0..3 {
                let of_a_file = 1e-4 + 1e-8 * 1e9 / f64::from(tree.files);
                let seconds = of_a_file * if repeat == 2 { 1.1 } else { 1.0 };
                let limited = load.offered.amount() * 10.0 * f64::from(tree.files) / 1e9;
                let files = (10.0 / seconds).min(limited);
                #[expect(clippy::cast_sign_loss, reason = "counts are positive")]
                let done = BackgroundDone {
                    wall: Nanos(10_000_000_000),
                    bytes: (files * 1e9 / f64::from(tree.files)) as u64,
                    operations: files as u64,
                    ..BackgroundDone::default()
                };
                let background = (!load.is_none()).then_some(done);
                let key = Key { target: 0, cell, repeat, phase: Phase::Wait };
                let sample = Sample { operations: 10, wall: done.wall, background, ..Sample::new(Nanos(0)) };
                samples.push(Measured { key, sample });
            }
        }
        let environment = vec![("memory".into(), "1000000000 kB".into())];
        Results { cells, samples, margin: 5.0, repeats: 3, environment, ..Results::default() }
    }

    #[test]
    fn levels_have_rates_of_both_trees_and_a_forecast() {
        let results = results();
        let amount = MoveAmount { bytes: Bytes(340_000_000_000_000), files: Some(100_000_000) };
        let found = Study::of(&results).with_move(amount);
        let [migration] = found.migrations.as_slice() else { panic!("{:?}", found.migrations) };
        let loads: Vec<&str> = migration.levels.iter().map(|level| level.load.as_str()).collect();
        assert_eq!(loads, ["1 worker at 50 MB/s", "1 worker at full speed"]);
        let slow = &migration.levels[0];
        assert!(slow.trees.iter().all(|tree| (tree.bytes.mean - 5e7).abs() < 1e6), "{slow:?}");
        // At the limit the bytes decide: 340 TB at 50 MB/s are 78.7 days.
        let forecast = slow.forecast.expect("valid repeats");
        assert!((forecast.expected.0 / 86_400.0 - 78.7).abs() < 1.0, "{forecast:?}");
        // 1e8 files x 100 us + 3.4e14 bytes x 10 ns are 3 410 000 s, and 1/30 more with the slow repeat.
        let full = migration.levels[1].forecast.expect("valid repeats");
        assert!((full.expected.0 / 3_523_667.0 - 1.0).abs() < 0.02, "{full:?}");
        let (low, high) = full.interval.expect("three repeats");
        assert!(low < full.expected.0 && full.expected.0 < high, "{full:?}");
        let said = migration.cautions.join("\n");
        assert!(said.contains("caches of the storage may have taken them"), "{said}");
    }

    #[test]
    fn a_copy_of_milliseconds_or_without_a_whole_file_is_named() {
        let mut results = results();
        let said = |results: &Results| Study::of(results).migrations[0].cautions.join("\n");
        assert!(!said(&results).contains("in a repeat"), "{}", said(&results));
        let done = results.samples.iter_mut().find_map(|measured| measured.sample.background.as_mut());
        let done = done.expect("a copy");
        *done = BackgroundDone { wall: Nanos(5_550_000), operations: 0, ..*done };
        let said = said(&results);
        assert!(said.contains("watched for only 5.55 ms in a repeat"), "{said}");
        assert!(said.contains("no whole file was copied in a repeat"), "{said}");
    }

    #[test]
    fn without_an_amount_the_forecast_is_for_a_terabyte() {
        let results = results();
        let study = Study::of(&results);
        assert_eq!(study.migrations[0].amount, UNKNOWN);
        let full = study.migrations[0].levels[1].forecast.expect("valid repeats");
        assert!(full.costs.is_none() && full.expected.0 < full.expected.1, "one estimate a tree: {full:?}");
    }
}
