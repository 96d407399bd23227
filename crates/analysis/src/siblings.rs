//! Finds siblings that are not alike: the targets of a stage, each alone and all together, or the workers of a
//! cell. One is odd if it is certainly slower than the median of the others in the same rounds, by the threshold
//! for elements.

use std::collections::BTreeMap;

use nilometer_model::{Phase, RankPart, WorkerTotals, statistics::Summary};
use nilometer_plan::{Results, Siblings, Volumes, WorkloadRun};

use crate::{
    CellOutcome, OddElement, Quantity, Question, StageFigures,
    effect::Effect,
    growth::{EQUALS_LEAST, ODD, ResidualSpread, RoundRates, differences, odd},
    letter,
    parameters::{AT_WORK, words},
};

/// Siblings in a phase of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct SiblingGroup {
    /// The kind of siblings.
    pub siblings: Siblings,
    /// The parameters that tell the workload from others of its stage, in words; empty for a single one.
    pub workload: String,
    /// The phase.
    pub phase: Phase,
    /// The quantity of the rates.
    pub quantity: Quantity,
    /// True if they work at the same time.
    pub together: bool,
    /// The target of the workers; `None` if targets are the siblings.
    pub target: Option<usize>,
    /// The members with their mean rates, in order; a member without a valid repeat has none.
    pub members: Vec<SiblingRate>,
    /// The odd members; their `target` is an index into the members.
    pub odd: Vec<OddElement>,
    /// The first against the second, if there are exactly two: neither can be called odd.
    pub pair: Option<Effect>,
}

/// A sibling with its rate.
#[derive(Debug, Clone, PartialEq)]
pub struct SiblingRate {
    /// `B`, `worker 3 (process 1 on node-2)`.
    pub name: String,
    /// The mean rate over valid repeats.
    pub rate: Option<Summary>,
}

/// A member's rates by round, with its name.
struct NamedRow {
    name: String,
    rates: RoundRates,
}

/// All groups of a stage.
pub(crate) fn sibling_groups(results: &Results, stage: &StageFigures<'_>) -> Vec<SiblingGroup> {
    let mut groups = Vec::new();
    for question in &stage.questions {
        for cell in &stage.cells {
            let Some(run) = results.cells[cell.index].as_workload() else { continue };
            let outcomes =
                stage.outcomes.iter().filter(|of| (of.cell, of.phase) == (cell.index, question.phase));
            let outcomes: Vec<&CellOutcome<'_>> = outcomes.collect();
            let names = stage.varying.names().into_iter();
            let names = names.filter(|name| ![VOLUMES, AT_WORK].contains(&name.as_str()));
            let workload = words(&cell.parameters, names);
            let lone = lone_workers(results, stage, question, run);
            let found = of_cell(run, question.quantity, &outcomes).into_iter().chain(lone);
            groups.extend(found.map(|group| SiblingGroup {
                workload: workload.clone(),
                phase: question.phase,
                ..group
            }));
        }
    }
    groups
}

/// The parameter for the number of targets at once.
const VOLUMES: &str = "volumes";

/// The groups of workers measured one by one, one group per target, if this cell is the first of them.
fn lone_workers(
    results: &Results,
    stage: &StageFigures<'_>,
    question: &Question,
    first: &WorkloadRun,
) -> Vec<SiblingGroup> {
    if first.lone_worker != Some(0) {
        return Vec::new();
    }
    let is_like = |cell: usize| results.cells[cell].as_workload().is_some_and(|run| is_like(run, first));
    let outcomes = stage.outcomes.iter().filter(|of| of.phase == question.phase && is_like(of.cell));
    let mut by_target: BTreeMap<usize, Vec<NamedRow>> = BTreeMap::new();
    for outcome in outcomes {
        let lone = results.cells[outcome.cell].as_workload().and_then(|run| run.lone_worker);
        let lone = lone.map(|worker| LoneWorker { worker, of: first.workers });
        let mut rows = of_workers(outcome, question.quantity, lone);
        if rows.is_empty() {
            // It was measured, but no repeat is valid.
            rows.push(NamedRow { name: worker_name(0, &[], lone), rates: RoundRates::new() });
        }
        by_target.entry(outcome.target).or_default().extend(rows);
    }
    let groups = by_target
        .into_iter()
        .filter_map(|(target, rows)| group(question.quantity, Siblings::Workers, false, Some(target), &rows));
    groups.collect()
}

/// Returns true if it is the same workload, by one worker alone.
fn is_like(run: &WorkloadRun, first: &WorkloadRun) -> bool {
    run.lone_worker.is_some() && WorkloadRun { lone_worker: first.lone_worker, ..run.clone() } == *first
}

fn of_cell(run: &WorkloadRun, quantity: Quantity, outcomes: &[&CellOutcome<'_>]) -> Vec<SiblingGroup> {
    let group =
        |siblings, together, target, rows: Vec<NamedRow>| group(quantity, siblings, together, target, &rows);
    match run.siblings {
        Some(Siblings::Targets) => {
            let rows = outcomes.iter().map(|outcome| NamedRow {
                name: letter(outcome.target),
                rates: of_target(outcome, quantity),
            });
            let together = run.volumes != Volumes::Alone;
            group(Siblings::Targets, together, None, rows.collect()).into_iter().collect()
        }
        Some(Siblings::Workers) if run.lone_worker.is_some() => Vec::new(),
        Some(Siblings::Workers) => {
            let groups = outcomes.iter().filter_map(|outcome| {
                group(Siblings::Workers, true, Some(outcome.target), of_workers(outcome, quantity, None))
            });
            groups.collect()
        }
        None => Vec::new(),
    }
}

fn of_target(outcome: &CellOutcome<'_>, quantity: Quantity) -> RoundRates {
    let rates = outcome.usable().map(|measured| (measured.key.repeat, quantity.of(&measured.sample)));
    rates.filter(|(_, rate)| *rate > 0.0).collect()
}

/// The single active worker of a process.
#[derive(Debug, Clone, Copy)]
struct LoneWorker {
    /// Its number, from 0.
    worker: u32,
    /// Number of workers per process.
    of: u32,
}

/// The rate of each worker until it finished; for a lone worker, its rate in each process.
fn of_workers(outcome: &CellOutcome<'_>, quantity: Quantity, lone: Option<LoneWorker>) -> Vec<NamedRow> {
    let mut rows: BTreeMap<usize, NamedRow> = BTreeMap::new();
    for measured in outcome.usable() {
        for (index, worker) in measured.sample.workers.iter().enumerate() {
            let row = rows.entry(index).or_insert_with(|| NamedRow {
                name: worker_name(index, &measured.sample.parts, lone),
                rates: RoundRates::new(),
            });
            row.rates.extend(rate_of(worker, quantity).map(|rate| (measured.key.repeat, rate)));
        }
    }
    rows.into_values().collect()
}

fn rate_of(worker: &WorkerTotals, quantity: Quantity) -> Option<f64> {
    let amount = match quantity {
        Quantity::Bytes => worker.bytes,
        Quantity::Operations | Quantity::Time => worker.operations,
    };
    (amount > 0 && worker.last_done.0 > 0).then(|| amount as f64 / worker.last_done.seconds())
}

/// Workers are numbered from 1, in the order of their processes.
fn worker_name(index: usize, parts: &[RankPart], lone: Option<LoneWorker>) -> String {
    // A lone worker has its number among all workers of the process.
    let number = lone.map_or(index, |LoneWorker { worker, of }| index * of as usize + worker as usize);
    let mut before = 0;
    for part in parts {
        before += part.workers as usize;
        if index < before {
            return format!("worker {} (process {} on {})", number + 1, part.rank, part.node);
        }
    }
    format!("worker {}", number + 1)
}

/// `None` for fewer than two siblings.
fn group(
    quantity: Quantity,
    siblings: Siblings,
    together: bool,
    target: Option<usize>,
    rows: &[NamedRow],
) -> Option<SiblingGroup> {
    if rows.len() < 2 {
        return None;
    }
    let by_index: BTreeMap<usize, RoundRates> =
        rows.iter().enumerate().map(|(index, row)| (index, row.rates.clone())).collect();
    let summary = |row: &NamedRow| Summary::of(&row.rates.values().copied().collect::<Vec<_>>());
    let members = rows.iter().map(|row| SiblingRate { name: row.name.clone(), rate: summary(row) });
    Some(SiblingGroup {
        siblings,
        workload: String::new(),
        phase: Phase::Write,
        quantity,
        together,
        target,
        members: members.collect(),
        odd: odd(&by_index),
        pair: pair(rows),
    })
}

fn pair(rows: &[NamedRow]) -> Option<Effect> {
    let [first, second] = rows else { return None };
    let spread = ResidualSpread::of(&[&first.rates, &second.rates]);
    spread.effect(&differences(&first.rates, |round| second.rates.get(&round).copied()))
}

impl SiblingGroup {
    /// `write, targets alone`.
    pub fn heading(&self) -> String {
        let who = self.siblings.name();
        let how = if self.together { "together" } else { "alone" };
        let on = self.target.map(|target| format!(" on {}", letter(target))).unwrap_or_default();
        let workload = if self.workload.is_empty() { String::new() } else { format!(" ({})", self.workload) };
        format!("{}{workload}, {who} {how}{on}", self.phase.name())
    }

    /// The odd siblings, or that there is none, then the slowest and the fastest.
    pub fn sentences(&self, margin: f64) -> Vec<String> {
        let mut sentences: Vec<String> = self.odd.iter().map(|odd| self.odd_one(odd, margin)).collect();
        if let Some(effect) = &self.pair {
            let words = effect.words(margin, &self.members[0].name, &self.members[1].name);
            sentences.push(format!("neither of two is the odd one: {words}"));
        } else if self.odd.is_empty() {
            sentences.push(self.none_odd());
        }
        sentences.extend(self.range());
        sentences
    }

    fn odd_one(&self, odd: &OddElement, margin: f64) -> String {
        let name = &self.members[odd.target].name;
        format!("{name} is the odd one: {}", odd.effect.words(margin, name, "the median of the others"))
    }

    fn none_odd(&self) -> String {
        let known =
            self.members.iter().filter(|member| member.rate.is_some_and(|rate| rate.count > 1)).count();
        if known < EQUALS_LEAST {
            let least = EQUALS_LEAST;
            return format!("not decided: {known} of them have two valid repeats, and {least} are needed");
        }
        format!("none of {known} is significantly slower (by {ODD:.0} %) than the median of the others")
    }

    fn range(&self) -> Option<String> {
        let rate = |member: &&SiblingRate| member.rate.map_or(0.0, |rate| rate.mean);
        let known = || self.members.iter().filter(|member| member.rate.is_some());
        let slowest = known().min_by(|one, other| rate(one).total_cmp(&rate(other)))?;
        let fastest = known().max_by(|one, other| rate(one).total_cmp(&rate(other)))?;
        let told = |member: &SiblingRate| {
            let shown = member.rate.map(|rate| self.quantity.show(rate.mean)).unwrap_or_default();
            format!("{} ({})", shown.trim(), member.name)
        };
        Some(format!("from {} to {}", told(slowest), told(fastest)))
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Nanos, Sample};
    use nilometer_plan::{Key, Measured, TargetEntry};

    use super::*;
    use crate::{Study, made_up::stage};

    const WORK: &str =
        "[stage.workload.stream]\nfile_size = \"64 MiB\"\nblock_size = \"1 MiB\"\naccess = \"buffered\"\n";

    /// Six rounds with a drift, in which each target, and each worker on it, has this share of the others' rate.
    fn results(text: &str, shares: &[f64]) -> Results {
        let cells = stage("equals", &format!("{text}\n{WORK}"));
        let mut samples = Vec::new();
        for (cell, run) in cells.iter().enumerate() {
            let run = run.as_workload().expect("stages of workloads");
            for (target, repeat) in
                (0..shares.len()).flat_map(|target| (0..6).map(move |repeat| (target, repeat)))
            {
                let noise =
                    1.0 + 0.01 * f64::from((repeat * 5 + target as u32) % 3) + 0.1 * f64::from(repeat);
                let wall = Nanos::from_seconds(noise / shares[target]);
                let key = Key { target, cell, repeat, phase: Phase::Write };
                let of_worker = |worker: usize| WorkerTotals {
                    bytes: 1_000_000,
                    operations: 1,
                    last_done: Nanos::from_seconds(noise / shares[worker % shares.len()]),
                    ..WorkerTotals::default()
                };
                let workers = match run.lone_worker {
                    Some(worker) => vec![of_worker(worker as usize)],
                    None => (0..run.workers as usize).map(of_worker).collect(),
                };
                let sample =
                    Sample { bytes: 100_000_000, operations: 100, wall, workers, ..Sample::new(Nanos(0)) };
                samples.push(Measured { key, sample });
            }
        }
        let targets = shares.iter().map(|_| TargetEntry::default()).collect();
        Results { cells, samples, targets, margin: 5.0, repeats: 6, ..Results::default() }
    }

    fn told(results: &Results) -> Vec<(String, String)> {
        let study = Study::of(results);
        let groups = study.stages[0].siblings.iter();
        groups.map(|group| (group.heading(), group.sentences(5.0).join("; "))).collect()
    }

    #[test]
    fn the_odd_target_is_named_alone_and_together_with_its_interval() {
        let told = told(&results("siblings = \"targets\"", &[1.0, 0.98, 0.5, 1.01]));
        let headings: Vec<&str> = told.iter().map(|(heading, _)| heading.as_str()).collect();
        assert_eq!(headings, ["write, targets alone", "write, targets together"]);
        for (_, words) in &told {
            let named = "C is the odd one: the median of the others is 2.0 times as fast as C (";
            assert!(words.starts_with(named) && !words.contains("; C is"), "{words}");
            assert!(words.contains("from ") && words.contains("(C) to "), "{words}");
        }
    }

    #[test]
    fn where_all_are_alike_none_is_named_and_of_two_neither() {
        let alike = told(&results("siblings = \"targets\"", &[1.0, 0.98, 0.99]));
        assert!(alike[0].1.starts_with("none of 3 is significantly slower (by 25 %)"), "{alike:?}");
        let two = told(&results("siblings = \"targets\"", &[1.0, 0.5]));
        assert!(
            two[0].1.starts_with("neither of two is the odd one: A is 2.0 times as fast as B"),
            "{two:?}"
        );
        let mut few = results("siblings = \"targets\"", &[1.0, 0.5, 1.0]);
        few.samples.retain(|measured| measured.key.repeat == 0);
        assert!(told(&few)[0].1.starts_with("not decided: 0 of them have two valid repeats"), "{few:?}");
    }

    #[test]
    fn the_odd_worker_is_named_with_the_machine_that_it_is_on() {
        let mut results = results("siblings = \"workers\"\nworkers = 4", &[1.0, 0.6, 1.0, 1.0]);
        results.samples.retain(|measured| measured.key.target == 0);
        results.targets.truncate(1);
        for measured in results.samples.iter_mut().filter(|measured| measured.sample.workers.len() == 4) {
            let part =
                |rank, node: &str| RankPart { rank, node: node.into(), workers: 2, ..RankPart::default() };
            measured.sample.parts = vec![part(0, "n1"), part(1, "n2")];
        }
        let told = told(&results);
        let headings: Vec<&str> = told.iter().map(|(heading, _)| heading.as_str()).collect();
        assert_eq!(headings, ["write, workers alone on A", "write, workers together on A"]);
        assert!(told[0].1.starts_with("worker 2 is the odd one: the median of the others"), "{told:?}");
        assert!(told[1].1.starts_with("worker 2 (process 0 on n1) is the odd one: the median"), "{told:?}");
    }
}
