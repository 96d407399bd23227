//! The result of a matrix of parameters, for each target and phase. It consists of the best cell, the influence
//! of each parameter on the rates, and the least sufficient value of each.

mod matrix;

use nilometer_model::{Phase, statistics::Summary};
use nilometer_plan::Results;

use crate::{
    CellOutcome, Quantity, StageFigures, Value,
    parameters::{AT_WORK, plain},
};
use matrix::Matrix;

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

/// Fewer repeats of a cell show nothing of their scatter.
const REPEATS_LEAST: usize = 2;

/// The results for each phase and target with enough cells. Cells without repeats are not ranked, because their
/// scatter is unknown. Times from a table are not ranked either: they may come from different work.
pub(crate) fn optima(results: &Results, stage: &StageFigures<'_>) -> Vec<StageOptimum> {
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
