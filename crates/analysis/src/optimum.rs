//! The result of a matrix of parameters, for each target and phase. It consists of the best cell, the influence
//! of each parameter on the rates, and the least sufficient value of each.
//!
//! The influence of a parameter is a ratio of two sums of squares of the logarithms of rates: between its values,
//! and of all repeats around their mean. It is the eta squared of a one-way analysis of variance. In a complete
//! matrix, the shares of parameters add up to their separate effects. The rest of the cells' share is their
//! interaction, and the remainder is the scatter of repeats.
//!
//! If cells are missing, or have different numbers of repeats, the shares of parameters overlap. Parameters are
//! then taken one after the other, the most influential first, and each counts only the part that earlier ones do
//! not explain (`additive_fit.rs`).

use std::collections::BTreeMap;

use nilometer_model::{Phase, statistics::Summary};
use nilometer_plan::{Requirement, Results};

use crate::{
    CellOutcome, Quantity, StudyStage, Value,
    additive_fit::{CellMean, added_squares},
    parameters::{AT_WORK, plain, words},
};

/// The result of a matrix on a target in a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct StageOptimum {
    /// The part of the workload.
    pub phase: Phase,
    /// Index into [`Results::targets`].
    pub target: usize,
    /// The quantity of the rates.
    pub quantity: Quantity,
    /// The varying parameters of the best cell, in words.
    pub best: String,
    /// Its rate.
    pub rate: Summary,
    /// Number of ranked cells.
    pub cells: usize,
    /// Number of cells that can't be ranked: too few valid repeats, or times from a table.
    pub left_out: usize,
    /// The share of all differences that each parameter adds to those before it. They are ordered by the share
    /// that each explains alone, the greatest first.
    pub shares: Vec<ExplainedShare>,
    /// True if cells are missing, so that shares overlap: a common part counts for the first parameter.
    pub overlap: bool,
    /// The share of all cells together; the rest is the scatter of repeats.
    pub explained: f64,
    /// The sufficient value of each parameter that is a number.
    pub sufficient: Vec<SufficientValue>,
    /// The best cell with each value of the parameter that explains most, in the order of the plan.
    pub by_value: Vec<ValueRate>,
}

/// The best cell with a value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueRate {
    /// `workers 4`.
    pub label: String,
    /// Its rate.
    pub rate: Summary,
    /// Its repeats.
    pub repeats: Vec<f64>,
    /// It is the best of all cells.
    pub is_best: bool,
}

/// The influence of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedShare {
    /// Its name.
    pub parameter: String,
    /// The share of the total sum of squares, 0 to 1.
    pub share: f64,
}

/// The least value of a parameter that reaches a goal.
#[derive(Debug, Clone, PartialEq)]
pub struct SufficientValue {
    /// Its name.
    pub parameter: String,
    /// The least value.
    pub value: Value,
    /// The greatest value measured.
    pub most: Value,
    /// The rate reached, at the best of the other parameters.
    pub rate: f64,
    /// The rate that the plan demands; `None` if the goal is the best rate less the margin.
    pub goal: Option<f64>,
}

/// Fewer cells are no matrix.
const CELLS_LEAST: usize = 3;
/// Fewer repeats of a cell show nothing of their scatter.
const REPEATS_LEAST: usize = 2;
/// Smaller shares are invisible.
const SHOWN_LEAST: f64 = 0.005;

/// The results for each phase and target with enough cells. Cells without repeats are not ranked, because their
/// scatter is unknown. Times from a table are not ranked either: they may come from different work.
pub(crate) fn optima(results: &Results, stage: &StudyStage<'_>) -> Vec<StageOptimum> {
    let names = stage.varying.names().into_iter().filter(|name| *name != AT_WORK);
    let names: Vec<&String> = names.collect();
    // A lone worker is no combination that anybody would choose.
    let is_lone =
        |cell: usize| results.cells[cell].as_workload().is_some_and(|run| run.lone_worker.is_some());
    let mut optima = Vec::new();
    for question in &stage.questions {
        for target in stage.targets() {
            let outcomes: Vec<&CellOutcome<'_>> = stage
                .outcomes
                .iter()
                .filter(|outcome| outcome.phase == question.phase && outcome.target == target)
                .filter(|outcome| !is_lone(outcome.cell))
                .filter(|outcome| {
                    outcome.summary(question.quantity).is_some_and(|summary| summary.mean > 0.0)
                })
                .collect();
            let all = outcomes.len();
            let is_ranked =
                |outcome: &&CellOutcome<'_>| outcome.valid >= REPEATS_LEAST && !is_time(results, outcome);
            let outcomes: Vec<_> = outcomes.into_iter().filter(is_ranked).collect();
            let left_out = all - outcomes.len();
            let quantity = question.quantity;
            let matrix = Matrix { results, stage, names: &names, quantity, outcomes, left_out };
            optima.extend(matrix.optimum(question.phase, target));
        }
    }
    optima
}

/// Returns true for a time from a table, measured once.
fn is_time(results: &Results, outcome: &CellOutcome<'_>) -> bool {
    results.cells[outcome.cell].as_imported().is_some()
        && outcome.samples.iter().all(|measured| measured.sample.operations == 1)
}

struct Matrix<'a> {
    results: &'a Results,
    stage: &'a StudyStage<'a>,
    names: &'a [&'a String],
    quantity: Quantity,
    outcomes: Vec<&'a CellOutcome<'a>>,
    left_out: usize,
}

impl Matrix<'_> {
    fn optimum(&self, phase: Phase, target: usize) -> Option<StageOptimum> {
        if self.outcomes.len() < CELLS_LEAST || self.names.is_empty() {
            return None;
        }
        let mean =
            |outcome: &&&CellOutcome<'_>| outcome.summary(self.quantity).map_or(0.0, |summary| summary.mean);
        let best = self.outcomes.iter().max_by(|a, b| mean(a).total_cmp(&mean(b)))?;
        let rate = best.summary(self.quantity)?;
        let label =
            self.stage.cell(best.cell).map(|cell| words(&cell.parameters, self.names.iter().copied()));
        let alone = self.explained_alone();
        let shares = self.beside_those_before(&alone);
        let differs =
            |(one, other): (&ExplainedShare, &ExplainedShare)| (one.share - other.share).abs() > SHOWN_LEAST;
        let overlap = alone.iter().zip(&shares).any(differs);
        let strongest = shares.first().map(|share| share.parameter.clone());
        Some(StageOptimum {
            phase,
            target,
            quantity: self.quantity,
            best: label.unwrap_or_default(),
            rate,
            cells: self.outcomes.len(),
            left_out: self.left_out,
            shares,
            overlap,
            explained: self.explained_by(|cell| cell.to_string()),
            sufficient: self.names.iter().filter_map(|name| self.sufficient(name, phase, &rate)).collect(),
            by_value: strongest.map(|name| self.by_value(&name, best.cell)).unwrap_or_default(),
        })
    }

    /// The share of each parameter as if there were no others, the greatest first.
    fn explained_alone(&self) -> Vec<ExplainedShare> {
        let share = |name: &&String| self.explained_by(|cell| self.value(name, cell));
        let of = |name: &&String| ExplainedShare { parameter: (*name).clone(), share: share(name) };
        let mut shares: Vec<ExplainedShare> = self.names.iter().map(of).collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares
    }

    /// The shares in that order, each with only its addition.
    fn beside_those_before(&self, alone: &[ExplainedShare]) -> Vec<ExplainedShare> {
        let logs: Vec<Vec<f64>> = self.outcomes.iter().map(|outcome| self.logs(outcome)).collect();
        let count = |logs: &Vec<f64>| logs.len() as f64;
        let mean = |logs: &Vec<f64>| logs.iter().sum::<f64>() / count(logs).max(1.0);
        let cells: Vec<CellMean> =
            logs.iter().map(|logs| CellMean { log: mean(logs), count: count(logs) }).collect();
        let values: Vec<Vec<usize>> = alone.iter().map(|of| self.numbered(&of.parameter)).collect();
        let whole = cells.iter().map(|cell| cell.count * cell.log).sum::<f64>()
            / cells.iter().map(|cell| cell.count).sum::<f64>().max(1.0);
        let total: f64 = logs.iter().flatten().map(|log| (log - whole).powi(2)).sum();
        let added = added_squares(&cells, &values).into_iter();
        let share = |added: f64| if total > 0.0 { added / total } else { 0.0 };
        let named = alone.iter().zip(added);
        named.map(|(of, added)| ExplainedShare { share: share(added), ..of.clone() }).collect()
    }

    /// The number of each cell's value of a parameter.
    fn numbered(&self, name: &str) -> Vec<usize> {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut number = |value: String| {
            let next = known.len();
            *known.entry(value).or_insert(next)
        };
        self.outcomes.iter().map(|outcome| number(self.value(name, outcome.cell))).collect()
    }

    /// The logarithms of a cell's rates.
    fn logs(&self, outcome: &CellOutcome<'_>) -> Vec<f64> {
        let rates = outcome.usable().map(|measured| self.quantity.of(&measured.sample));
        rates.filter(|rate| *rate > 0.0).map(f64::ln).collect()
    }

    /// The best cell with each value of a parameter.
    fn by_value(&self, name: &str, best: usize) -> Vec<ValueRate> {
        let mut found: Vec<(String, &CellOutcome<'_>)> = Vec::new();
        let mean = |outcome: &CellOutcome<'_>| outcome.summary(self.quantity).map_or(0.0, |rate| rate.mean);
        for outcome in &self.outcomes {
            let value = self.value(name, outcome.cell);
            match found.iter_mut().find(|(known, _)| *known == value) {
                Some((_, known)) if mean(outcome) > mean(known) => *known = outcome,
                Some(_) => {}
                None => found.push((value, outcome)),
            }
        }
        let rows = found.into_iter().filter_map(|(value, outcome)| {
            let repeats = outcome.usable().map(|measured| self.quantity.of(&measured.sample));
            Some(ValueRate {
                label: format!("{} {value}", plain(name)),
                rate: outcome.summary(self.quantity)?,
                repeats: repeats.collect(),
                is_best: outcome.cell == best,
            })
        });
        rows.collect()
    }

    fn value(&self, name: &str, cell: usize) -> String {
        self.stage
            .cell(cell)
            .and_then(|cell| cell.parameters.get(name))
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    /// The share of the sum of squares between groups of cells.
    fn explained_by(&self, group: impl Fn(usize) -> String) -> f64 {
        let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for outcome in &self.outcomes {
            groups.entry(group(outcome.cell)).or_default().extend(self.logs(outcome));
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let all: Vec<f64> = groups.values().flatten().copied().collect();
        let whole = mean(&all);
        let total: f64 = all.iter().map(|log| (log - whole).powi(2)).sum();
        let between: f64 =
            groups.values().map(|group| group.len() as f64 * (mean(group) - whole).powi(2)).sum();
        if total > 0.0 { between / total } else { 0.0 }
    }

    /// The least value of a parameter that reaches the demanded rate, or almost the best. The parameter must have
    /// at least three numbers.
    fn sufficient(&self, name: &str, phase: Phase, best: &Summary) -> Option<SufficientValue> {
        let mut values: Vec<(f64, Value, f64, f64)> = Vec::new();
        for outcome in &self.outcomes {
            let value = self.stage.cell(outcome.cell)?.parameters.get(name)?;
            let summary = outcome.summary(self.quantity)?;
            let low = summary.mean - summary.half_width().unwrap_or(summary.mean);
            values.push((value.number()?, value.clone(), summary.mean, low));
        }
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let distinct = values.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()).count();
        let goal = self.goal(phase);
        let enough = |(_, _, mean, low): &(f64, Value, f64, f64)| match goal {
            Some(goal) => *low >= goal,
            None => *mean >= best.mean * (1.0 - self.results.margin / 100.0),
        };
        let first = values.iter().find(|value| enough(value))?;
        // The best cell with this value.
        let rate = values.iter().filter(|value| value.0.total_cmp(&first.0).is_eq()).map(|value| value.2);
        let rate = rate.max_by(f64::total_cmp)?;
        let most = values.last()?;
        let is_less = distinct >= CELLS_LEAST && first.0 < most.0;
        is_less.then(|| SufficientValue {
            parameter: name.to_owned(),
            value: first.1.clone(),
            most: most.1.clone(),
            rate,
            goal,
        })
    }

    /// The rate that the plan demands of the stage, if it demands one in this quantity.
    fn goal(&self, phase: Phase) -> Option<f64> {
        let criteria = &self.results.campaign.as_ref()?.plan.accept.criteria;
        let of_stage = criteria
            .iter()
            .filter(|criterion| criterion.stage == self.stage.name && criterion.phase == Some(phase));
        of_stage.into_iter().find_map(|criterion| match (criterion.demand, self.quantity) {
            (Requirement::Rate(rate), Quantity::Bytes) => Some(rate.0),
            (Requirement::Operations(rate), Quantity::Operations | Quantity::Time) => Some(rate),
            _ => None,
        })
    }
}

impl StageOptimum {
    /// The share that parameters explain only by interaction.
    pub fn together(&self) -> f64 {
        let alone: f64 = self.shares.iter().map(|of| of.share).sum();
        (self.explained - alone).max(0.0)
    }

    /// The result in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let half = self.rate.half_width();
        let interval = half.map(|half| {
            let low = (self.rate.mean - half).max(0.0);
            let high = self.rate.mean + half;
            let [least, most] = self.quantity.show_range(low, high);
            format!(" ({} to {})", least.trim_end(), most.trim_end())
        });
        let left_out = match self.left_out {
            0 => String::new(),
            1 => "; one more has a single valid repeat".to_owned(),
            more => format!("; {more} more have a single valid repeat"),
        };
        let best = format!(
            "the best of {} cells is {}: {}{}{left_out}",
            self.cells,
            self.best,
            self.quantity.show(self.rate.mean).trim_end(),
            interval.unwrap_or_default()
        );
        let shares: Vec<String> =
            self.shares.iter().map(|of| format!("{} {}", plain(&of.parameter), percent(of.share))).collect();
        let together = self.together();
        let joined = if self.shares.len() > 1 {
            format!(", their interactions {}", percent(together))
        } else {
            String::new()
        };
        let overlap = if self.overlap {
            "; some cells are missing, so shares overlap: each counts only differences that earlier \
             parameters do not explain"
        } else {
            ""
        };
        let explained = format!(
            "causes of differences in rate: {}{joined}, how repeats of a cell differ {}{overlap}",
            shares.join(", "),
            percent(1.0 - self.explained)
        );
        let mut sentences = vec![best, explained];
        sentences.extend(self.sufficient.iter().map(|value| self.suffices(value)));
        sentences
    }

    fn suffices(&self, of: &SufficientValue) -> String {
        let SufficientValue { parameter, value, most, rate, goal } = of;
        let rate = self.quantity.show(*rate).trim_end().to_owned();
        let name = plain(parameter);
        match goal {
            Some(goal) => {
                let goal = self.quantity.show(*goal).trim_end().to_owned();
                format!("{name} {value} is the least that reaches the {goal} of the plan: {rate}")
            }
            None => {
                format!(
                    "{name} {value} reaches {rate}, the best within the margin (up to {most} was measured)"
                )
            }
        }
    }
}

/// `97 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Study, made_up::stage};
    use nilometer_model::{Invalid, Nanos, Sample};
    use nilometer_plan::{Cell, ImportedRun, Key, Measured};

    /// Workers 1, 2, 4, 8 by two block sizes; the rate depends on the workers up to 4, and a little on the block.
    fn results() -> Results {
        let text = "workers = [1, 2, 4, 8]\n[stage.workload.stream]\nfile_size = \"64 MiB\"\nblock_size = [\"128 KiB\", \"1 MiB\"]\naccess = \"best\"\n";
        let cells = stage("files", text);
        let mut samples = Vec::new();
        for (cell, entry) in cells.iter().enumerate() {
            let run = entry.as_workload().expect("a workload");
            let blocks = if run.block_size().0 > 1 << 19 { 1050 } else { 1000 };
            for repeat in 0..4 {
                let key = Key { target: 0, cell, repeat, phase: Phase::Write };
                let beyond = if run.workers > 4 { 998 } else { 1000 };
                let workers = u64::from(run.workers.min(4));
                let sample = Sample {
                    bytes: 100 * workers * beyond * blocks * (1000 + u64::from(repeat)) / 1000,
                    operations: 100,
                    wall: Nanos(1_000_000_000),
                    ..Sample::new(Nanos(0))
                };
                samples.push(Measured { key, sample });
            }
        }
        Results { cells, samples, margin: 5.0, repeats: 4, ..Results::default() }
    }

    #[test]
    fn the_best_cell_what_explains_it_and_what_suffices_are_found() {
        let results = results();
        let study = Study::of(&results);
        let [optimum] = study.stages[0].optima.as_slice() else { panic!("one phase on one target") };
        assert!(optimum.best.contains("block size 1 MiB") && optimum.rate.mean > 4.2e8, "{optimum:?}");
        assert_eq!(optimum.shares[0].parameter, "workers");
        assert!(optimum.shares[0].share > 0.98 && optimum.explained > 0.999, "{optimum:?}");
        let [workers] = optimum.sufficient.as_slice() else { panic!("of workers only: {optimum:?}") };
        assert_eq!((workers.parameter.as_str(), workers.value.number()), ("workers", Some(4.0)));
        let by_workers: Vec<(&str, bool)> =
            optimum.by_value.iter().map(|of| (of.label.as_str(), of.is_best)).collect();
        let expected =
            [("workers 1", false), ("workers 2", false), ("workers 4", true), ("workers 8", false)];
        assert_eq!(by_workers, expected);
        assert!(optimum.by_value.iter().all(|of| of.repeats.len() == 4), "{optimum:?}");
        let told = optimum.sentences();
        assert!(
            told[0].starts_with("the best of 8 cells is workers 4, block size 1 MiB: 421 MB/s"),
            "{}",
            told[0]
        );
        assert!(told[1].contains("workers 100 %, block size 0 %"), "{}", told[1]);
        assert!(told[2].starts_with("workers 4 reaches"), "{}", told[2]);
    }

    #[test]
    fn cells_without_repeats_are_not_ranked() {
        let mut once = results();
        once.samples.retain(|measured| measured.key.repeat == 0);
        assert_eq!(Study::of(&once).stages[0].optima, []);
        // The fastest has one valid repeat.
        let mut spoilt = results();
        let best = |measured: &&mut Measured| measured.key.repeat > 0 && measured.sample.bytes > 419_000_000;
        spoilt.samples.iter_mut().filter(best).for_each(|measured| {
            measured.sample.invalid = Some(Invalid::WarmRead);
        });
        let study = Study::of(&spoilt);
        let [optimum] = study.stages[0].optima.as_slice() else { panic!("one phase on one target") };
        let told = &optimum.sentences()[0];
        assert!(
            told.starts_with("the best of 6 cells is ") && told.contains("; 2 more have a single"),
            "{told}"
        );
    }

    #[test]
    fn times_of_who_knows_how_much_work_are_not_ranked() {
        let run = |size: &str| ImportedRun {
            source: "t.csv".into(),
            task: "copy".into(),
            parameters: vec![("size".into(), size.into())],
            figure: String::new(),
        };
        let cells: Vec<Cell> = ["4GB", "8GB", "16GB"].map(|size| Cell::imported("copy", run(size))).into();
        let samples = (0..6).map(|number| {
            let key = Key { target: 0, cell: number / 2, repeat: number as u32 % 2, phase: Phase::Given };
            let wall = Nanos(1_000_000_000 * (100 + number as u64));
            Measured { key, sample: Sample { operations: 1, wall, ..Sample::new(Nanos(0)) } }
        });
        let results = Results { samples: samples.collect(), cells, ..Results::default() };
        assert_eq!(Study::of(&results).stages[0].optima, []);
    }

    /// Cells are missing so that few workers have small blocks and many workers large ones: both seem to explain
    /// nearly everything.
    #[test]
    fn where_cells_are_missing_shares_are_those_of_one_after_the_other() {
        let mut ragged = results();
        let has = |measured: &Measured| measured.key.cell;
        // Blocks vary faster than workers, or slower: by their values.
        let values: Vec<(u32, u64)> = ragged
            .cells
            .iter()
            .filter_map(|cell| cell.as_workload().map(|run| (run.workers, run.block_size().0)))
            .collect();
        ragged.samples.retain(|measured| {
            let (workers, block) = values[has(measured)];
            (workers <= 2) == (block < 1 << 19) || workers == 4
        });
        let study = Study::of(&ragged);
        let [optimum] = study.stages[0].optima.as_slice() else { panic!("one phase on one target") };
        let sum: f64 = optimum.shares.iter().map(|of| of.share).sum();
        assert!(optimum.overlap && sum <= optimum.explained + 1e-9, "{optimum:?}");
        assert!(optimum.shares[0].parameter == "workers" && optimum.shares[0].share > 0.9, "{optimum:?}");
        let told = optimum.sentences();
        assert!(
            told[1].ends_with("each counts only differences that earlier parameters do not explain"),
            "{}",
            told[1]
        );
        let whole = results();
        let study = Study::of(&whole);
        assert!(!study.stages[0].optima[0].overlap, "nothing is missing");
    }

    #[test]
    fn two_cells_are_no_matrix() {
        let mut few = results();
        few.samples.retain(|measured| measured.key.cell < 2);
        assert!(Study::of(&few).stages[0].optima.is_empty());
    }
}
