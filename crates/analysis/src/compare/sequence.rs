//! The sequence of runs of a phase: a figure per run, the steps among them, and a trend.
//!
//! The unit is the run: repeats of a run share the conditions of that day, and do not show the differences
//! between days.

use nilometer_model::{
    Moment, Phase, Seed,
    statistics::{CONFIDENCE, student, student_at},
};

use super::{
    ChangePoint, ChangeTest, NamedRecord, Subject,
    change_point::change_points,
    question::{Asked, Taken},
};
use crate::{
    Quantity,
    by_round::{CellRounds, round_means},
    comparison::SEED,
    effect::{Answer, Effect, pooled_variance},
};

/// The runs of a phase of a stage.
#[derive(Debug, Clone)]
pub struct RunSequence {
    /// The stage.
    pub stage: String,
    /// The phase.
    pub phase: Phase,
    /// The quantity of the rates.
    pub quantity: Quantity,
    /// Number of cells that all of these runs have, and that a point covers.
    pub cells: usize,
    /// Points in chronological order, without runs that lack more than half of the cells.
    pub points: Vec<RunPoint>,
    /// The steps.
    pub steps: Vec<NamedStep>,
    /// The last run against the first, by a straight line through all. `None` if the change may be within the
    /// margin, or there is a step.
    pub trend: Option<Effect>,
}

/// A run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunPoint {
    /// Index into the subjects.
    pub subject: usize,
    /// The mean over cells of the rate's logarithm.
    pub log: f64,
    /// Half the width of its interval, from the repeats of this run; `None` for single ones.
    pub half: Option<f64>,
}

/// A step between two runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NamedStep {
    /// The last run before it: index into the subjects.
    pub before: usize,
    /// The first run after it.
    pub after: usize,
    /// The logarithm of the mean rate before it, since the step before that.
    pub level: f64,
    /// The level after the step against that before it, up to the next steps; its interval comes from the other
    /// differences between runs.
    pub effect: Effect,
    /// Its p-value, over all sequences tested.
    pub p: f64,
    /// The test that gave the p-value.
    pub test: ChangeTest,
    /// True if only one run follows it.
    pub is_last: bool,
}

impl RunPoint {
    /// The rate: the geometric mean over cells.
    pub fn rate(&self) -> f64 {
        self.log.exp()
    }

    /// The interval of the rate.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.half.map(|half| ((self.log - half).exp(), (self.log + half).exp()))
    }
}

impl NamedStep {
    /// The mean rate before it.
    pub fn rate_before(&self) -> f64 {
        self.level.exp()
    }

    /// The mean rate after it.
    pub fn rate_after(&self) -> f64 {
        (self.level + self.effect.log_ratio).exp()
    }
}

/// The runs of one target in a phase, without steps and trend. `None` if no cell is in enough of them.
pub(super) fn sequence(asked: &Asked<'_>, runs: &[usize]) -> Option<RunSequence> {
    let quantity = asked.quantity();
    let taken = Taken::Rate(quantity);
    let rows: Vec<_> = asked.stage.of_phase(asked.phase).map(|(_, row)| row).collect();
    let has = |subject: usize, row: usize| !Asked::logs(rows[row], subject, taken).is_empty();
    let table: Vec<Vec<bool>> =
        runs.iter().map(|&run| (0..rows.len()).map(|row| has(run, row)).collect()).collect();
    let count = |has: &[bool]| has.iter().filter(|has| **has).count();
    let most = table.iter().map(|has| count(has)).max().unwrap_or(0);
    let kept: Vec<usize> =
        (0..runs.len()).filter(|&run| most > 0 && 2 * count(&table[run]) >= most).collect();
    let shared: Vec<usize> = (0..rows.len()).filter(|&row| kept.iter().all(|&run| table[run][row])).collect();
    if shared.is_empty() || kept.len() < RUNS_LEAST {
        return None;
    }
    let point = |&run: &usize| {
        let logs = |&row: &usize| CellRounds { row, values: Asked::logs(rows[row], runs[run], taken) };
        point(runs[run], &shared.iter().map(logs).collect::<Vec<_>>())
    };
    Some(RunSequence {
        stage: asked.stage.name.to_owned(),
        phase: asked.phase,
        quantity,
        cells: shared.len(),
        points: kept.iter().filter_map(point).collect(),
        steps: Vec::new(),
        trend: None,
    })
}

/// Fewer runs are no history.
pub(super) const RUNS_LEAST: usize = 3;

/// The mean over cells, with its interval from repeats.
fn point(subject: usize, cells: &[CellRounds]) -> Option<RunPoint> {
    let overall = round_means(cells)?.overall.difference();
    let half = overall.freedom.map(|freedom| student_at(CONFIDENCE, freedom) * overall.error);
    Some(RunPoint { subject, log: overall.mean, half })
}

impl RunSequence {
    /// Finds steps and a trend; `sequences` is the number of all sequences tested.
    pub(super) fn look(
        &mut self,
        records: &[NamedRecord<'_>],
        subjects: &[Subject],
        sequences: usize,
        margin: f64,
    ) {
        let logs: Vec<f64> = self.points.iter().map(|point| point.log).collect();
        let seed: Seed = SEED.named(&self.stage).named(self.phase.name());
        let found = change_points(&logs, sequences, seed);
        let steps = (0..found.len()).map(|step| self.step(&logs, &found, step));
        let counts = |effect: &Effect| matches!(effect.answer(margin), Answer::Faster | Answer::Slower);
        self.steps = steps.filter(|step| counts(&step.effect)).collect();
        if found.is_empty() {
            let times: Option<Vec<f64>> =
                self.points.iter().map(|point| days(records, &subjects[point.subject])).collect();
            let found = times.and_then(|times| trend(&times, &logs, sequences));
            self.trend = found.filter(counts);
        }
    }

    fn step(&self, logs: &[f64], found: &[ChangePoint], step: usize) -> NamedStep {
        let ends: Vec<usize> = found.iter().map(|point| point.at).chain([logs.len()]).collect();
        let begins: Vec<usize> = std::iter::once(0).chain(found.iter().map(|point| point.at)).collect();
        let parts: Vec<&[f64]> = begins.iter().zip(&ends).map(|(from, to)| &logs[*from..*to]).collect();
        let (variance, freedom) = pooled_variance(parts.iter().copied());
        let before = parts[step];
        let after = parts[step + 1];
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let log_ratio = mean(after) - mean(before);
        let error = (variance * (1.0 / before.len() as f64 + 1.0 / after.len() as f64)).sqrt();
        let half = if freedom == 0 { f64::INFINITY } else { student(freedom) * error };
        let ChangePoint { at, p, test } = found[step];
        NamedStep {
            before: self.points[at - 1].subject,
            after: self.points[at].subject,
            level: mean(before),
            effect: Effect { log_ratio, low: log_ratio - half, high: log_ratio + half, pairs: logs.len() },
            p,
            test,
            is_last: at + 1 == logs.len(),
        }
    }
}

/// The start of a run, in days since 1970.
pub(super) fn days(records: &[NamedRecord<'_>], subject: &Subject) -> Option<f64> {
    let moment: Moment = records[subject.record].results.started.parse().ok()?;
    Some(moment.0.seconds() / 86_400.0)
}

/// The last time against the first by a straight line of least squares, if it certainly rises or falls over all
/// sequences.
fn trend(times: &[f64], logs: &[f64], sequences: usize) -> Option<Effect> {
    let count = logs.len() as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
    let time = mean(times);
    let log = mean(logs);
    let squares: f64 = times.iter().map(|at| (at - time).powi(2)).sum();
    if squares <= 0.0 || logs.len() < RUNS_LEAST {
        return None;
    }
    let pairs = times.iter().zip(logs);
    let slope = pairs.clone().map(|(at, value)| (at - time) * (value - log)).sum::<f64>() / squares;
    let residual: f64 = pairs.map(|(at, value)| (value - log - slope * (at - time)).powi(2)).sum();
    let freedom = count - 2.0;
    let span = times.last()? - times.first()?;
    let error = (residual / freedom / squares).sqrt() * span;
    let confidence = 1.0 - (1.0 - CONFIDENCE) / sequences.max(1) as f64;
    let half = student_at(confidence, freedom) * error;
    let log_ratio = slope * span;
    let effect = Effect { log_ratio, low: log_ratio - half, high: log_ratio + half, pairs: logs.len() };
    (half < log_ratio.abs()).then_some(effect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_the_runs_is_told_where_it_surely_falls() {
        let times: Vec<f64> = (0..12).map(f64::from).collect();
        let wobble = [0.004, -0.003, 0.001, -0.004];
        let falling: Vec<f64> =
            times.iter().zip(wobble.iter().cycle()).map(|(at, wobble)| wobble - 0.01 * at).collect();
        let found = trend(&times, &falling, 1).expect("it falls");
        assert!((found.log_ratio + 0.11).abs() < 0.01 && found.high < -0.09, "{found:?}");
        let level: Vec<f64> = wobble.iter().cycle().take(12).copied().collect();
        assert_eq!(trend(&times, &level, 1), None);
        assert_eq!(trend(&[1.0; 12], &falling, 1), None, "all at one time");
    }
}
