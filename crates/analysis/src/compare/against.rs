//! Compares records against a baseline: figures that became worse by more than their noise and a threshold.

use nilometer_model::statistics::{CONFIDENCE, Summary, student_at};

use super::{
    AlignedCell, AlignedRecording, AlignedStage, RecordsCompared,
    figures::{
        Held, LeftFigure, OpenFigure, RATE_OF_ZERO, WorseCell, against_bound, below_bound, is_open, open,
        open_by,
    },
    pair::{CellLogs, Unpaired, against_runs, unpaired},
    question::{Asked, Taken},
    recordings::{raised_by_wait, ratio},
};
use crate::{
    CellOutcome, Decision,
    by_round::{LogDifference, RoundLog},
    effect::Effect,
};

/// The result of a comparison against a baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct AgainstBaseline {
    /// The smallest loss that counts, in percent.
    pub threshold: f64,
    /// Number of figures in the baseline: phases of cells, recordings, and network traffic, on each target.
    pub figures: usize,
    /// Number of tests that the decisions count together: figures and means of figures.
    pub tests: usize,
    /// Number of decided figures: they became worse, or a loss would have been visible.
    pub compared: usize,
    /// The figures that became worse, in the order of the plan. Their intervals hold for all tests together.
    pub worse: Vec<WorseCell>,
    /// Undecided figures.
    pub open: Vec<OpenFigure>,
    /// Figures of the baseline that could not be compared.
    pub left: Vec<LeftFigure>,
    /// Further notes: targets that are not in the baseline.
    pub beside: Vec<String>,
    /// The differences between runs; `None` for a single baseline, which does not show them.
    pub spread: Option<RunSpread>,
}

/// The differences between several baselines, and the smallest losses that they allow to be seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunSpread {
    /// Number of baselines.
    pub runs: usize,
    /// The smallest loss of the steadiest figure that would count as worse, in percent.
    pub seen_least: f64,
    /// The smallest such loss of the figure that differs most from run to run.
    pub seen_most: f64,
}

/// A tested difference.
pub(super) struct Tested {
    pub(super) held: Held,
    pub(super) what: String,
    /// True if it is the mean of several figures, and not a figure itself.
    pub(super) is_mean: bool,
    pub(super) difference: LogDifference,
    /// The rates in words: now, and in the baseline.
    pub(super) rates: Option<[String; 2]>,
}

impl RecordsCompared<'_> {
    /// Compares all other records against the baselines. `None` if none of their targets is in a baseline.
    pub fn against(&self, threshold: f64) -> Option<AgainstBaseline> {
        let mut found = FoundAgainst::default();
        let held = self.held(&mut found);
        for pair in &held {
            for stage in &self.stages {
                self.test_stage(*pair, stage, &mut found);
            }
        }
        self.test_networks(&mut found.tested, &mut found.left);
        if held.is_empty() && found.tested.is_empty() {
            return None;
        }
        let recorded = held.iter().flat_map(|pair| self.recordings.iter().map(move |of| (*pair, of)));
        let recorded: Vec<_> = recorded.filter(|(pair, of)| of.has(pair.before)).collect();
        let tested = found.tested.len() + found.bounded.len();
        let tested = tested + recorded.iter().filter(|(pair, of)| of.is_tested(*pair)).count();
        let confidence = 1.0 - (1.0 - CONFIDENCE) / tested.max(1) as f64;
        let test = FigureTest { confidence, threshold };
        let spread = self.spread_of_runs(&found.tested, confidence);
        let figures = found.tested.iter().filter(|one| !one.is_mean).count() + found.left.len();
        let figures = figures + found.stopped.len();
        let mut against = AgainstBaseline {
            threshold,
            figures: figures + found.bounded.len() + recorded.len(),
            tests: tested,
            compared: 0,
            worse: Vec::new(),
            open: found.stopped,
            left: found.left,
            beside: found.beside,
            spread,
        };
        against.add_tested(&found.tested, test);
        against.add_bounded(found.bounded, test);
        for (pair, recording) in recorded {
            against.add_recording(self, pair, recording, test);
        }
        against.compared = against.figures - against.open.len() - against.left.len();
        Some(against)
    }

    /// The targets of a record.
    fn of_record(&self, record: usize) -> Vec<usize> {
        (0..self.subjects.len()).filter(|&subject| self.subjects[subject].record == record).collect()
    }

    /// The target of a baseline that a subject is compared with: the one with the same path, or the only one of
    /// each record under any name.
    fn before(&self, baseline: usize, now: usize) -> Option<usize> {
        let path = |subject: usize| &self.subjects[subject].entry(&self.records).path;
        let candidates = self.of_record(baseline);
        let is_lone = candidates.len() == 1 && self.of_record(self.subjects[now].record).len() == 1;
        candidates.into_iter().find(|&before| is_lone || path(before) == path(now))
    }

    /// The subjects of all baselines that a subject is compared with, in the order of the baselines.
    pub(super) fn runs_before(&self, held: Held) -> Vec<usize> {
        (0..self.baselines).filter_map(|baseline| self.before(baseline, held.now)).collect()
    }

    /// Each target of a record that is no baseline, with its counterpart.
    fn held(&self, found: &mut FoundAgainst) -> Vec<Held> {
        let mut held = Vec::new();
        for now in (self.baselines..self.records.len()).flat_map(|record| self.of_record(record)) {
            match (0..self.baselines).filter_map(|baseline| self.before(baseline, now)).next_back() {
                Some(before) => held.push(Held { now, before }),
                None => found.beside.push(format!("{}: the baseline has no such target", self.name(now))),
            }
        }
        let known: Vec<usize> = held.iter().flat_map(|held| self.runs_before(*held)).collect();
        let baselines = (0..self.baselines).flat_map(|baseline| self.of_record(baseline));
        for gone in baselines.filter(|before| !known.contains(before)) {
            found.left.extend(
                self.figures_of(gone)
                    .into_iter()
                    .map(|what| LeftFigure { what, why: "target not measured now" }),
            );
        }
        held
    }

    /// All figures of a target, in words.
    fn figures_of(&self, subject: usize) -> Vec<String> {
        let rows = self.stages.iter().flat_map(|stage| stage.rows.iter().map(move |row| (stage, row)));
        let rows = rows.filter(|(_, row)| row.outcome(subject).is_some());
        let rows =
            rows.map(|(stage, row)| format!("{}: {}, {}", self.name(subject), stage.name, row.words()));
        let recorded = self.recordings.iter().filter(|of| of.has(subject));
        let recorded = recorded.map(|of| format!("{}: {}", self.name(subject), of.instrument));
        rows.chain(recorded).collect()
    }

    /// The smallest visible loss of each figure, given the differences between several baselines.
    fn spread_of_runs(&self, tested: &[Tested], confidence: f64) -> Option<RunSpread> {
        let seen = tested.iter().map(|one| {
            let effect = one.difference.effect_at(confidence);
            -100.0 * (effect.low - effect.log_ratio).exp_m1()
        });
        let seen: Vec<f64> = seen.collect();
        let seen_least = seen.iter().copied().min_by(f64::total_cmp)?;
        let seen_most = seen.iter().copied().max_by(f64::total_cmp)?;
        (self.baselines > 1).then_some(RunSpread { runs: self.baselines, seen_least, seen_most })
    }

    /// The difference of each cell and over all cells: from the repeats of both, or from the spread of several
    /// baselines.
    fn difference(&self, held: Held, asked: &Asked<'_>, taken: Taken) -> Option<Unpaired> {
        let runs = self.runs_before(held);
        if runs.len() < 2 {
            return unpaired(&asked.cells(held.now, held.before, taken));
        }
        against_runs(&asked.cells_of_runs(held.now, &runs, taken))
    }

    /// Tests the cells of a stage, and each phase over all its cells.
    fn test_stage(&self, held: Held, stage: &AlignedStage<'_>, found: &mut FoundAgainst) {
        for phase in stage.phases() {
            let asked = Asked { subjects: &self.subjects, stage, phase };
            let taken = Taken::Rate(asked.quantity());
            let differences = self.difference(held, &asked, taken);
            let cells = differences.as_ref().map_or(&[][..], |found| &found.cells);
            if let Some(all) = differences.as_ref().filter(|found| found.cells.len() > 1) {
                let what = format!("{}, {} over {} cells", stage.name, phase.name(), cells.len());
                found.tested.push(Tested { held, what, is_mean: true, difference: all.overall, rates: None });
            }
            for (row, difference) in cells {
                let what = format!("{}, {}", stage.name, stage.rows[*row].words());
                let rates = self.rates(held, &asked, *row);
                found.tested.push(Tested { held, what, is_mean: false, difference: *difference, rates });
            }
            let known = |row: &usize| cells.iter().any(|(known, _)| known == row);
            for (row, aligned) in stage.of_phase(phase).filter(|(row, _)| !known(row)) {
                self.add_not_compared(held, &asked, row, aligned, found);
            }
        }
    }

    /// The rates of a cell in words: now, and in the baselines.
    fn rates(&self, held: Held, asked: &Asked<'_>, row: usize) -> Option<[String; 2]> {
        let rate = |subject| {
            let summary = asked.stage.rows[row].outcome(subject)?.summary(asked.quantity())?;
            Some(summary.mean)
        };
        let before = self.runs_before(held).into_iter().filter_map(rate).collect::<Vec<f64>>();
        let before = Summary::of(&before).map(|summary| summary.mean);
        let rates = rate(held.now).zip(before);
        rates.map(|(now, before)| [now, before].map(|rate| asked.quantity().show(rate).trim_end().to_owned()))
    }

    /// Adds a cell of the baseline without a difference: compares it with a lower bound if there is one, else
    /// lists it as left out.
    fn add_not_compared(
        &self,
        held: Held,
        asked: &Asked<'_>,
        row: usize,
        aligned: &AlignedCell<'_>,
        found: &mut FoundAgainst,
    ) {
        let runs = self.runs_before(held);
        let before: Vec<&CellOutcome<'_>> = runs.iter().filter_map(|&run| aligned.outcome(run)).collect();
        if before.is_empty() {
            return;
        }
        let what = format!("{}, {}", asked.stage.name, aligned.words());
        let now = aligned.outcome(held.now);
        let has_stopped = runs.iter().chain([&held.now]).any(|&run| Asked::has_zero(aligned, run));
        if has_stopped && now.is_some() {
            let why = Some(RATE_OF_ZERO);
            return found.stopped.push(OpenFigure { subject: held.now, what, percent: None, why });
        }
        let was_valid = before.iter().any(|outcome| outcome.valid > 0);
        let why = match now {
            None => "not measured now",
            Some(now) if was_valid && now.valid > 0 => "other unit, not compared",
            Some(_) if was_valid => "INVALID now",
            Some(_) => "INVALID in the baseline",
        };
        let bound = before.iter().filter_map(|outcome| outcome.lower_bound(asked.quantity()));
        let bound = bound.max_by(f64::total_cmp).filter(|_| !was_valid);
        let why = if bound.is_some() && now.is_some() { "only a lower bound in the baseline" } else { why };
        let left = LeftFigure { what: format!("{}: {what}", self.name(held.now)), why };
        let logs: Vec<f64> = Asked::logs(&asked.stage.rows[row], held.now, Taken::Rate(asked.quantity()))
            .iter()
            .map(|one| one.log)
            .collect();
        match bound.and_then(|bound| Some((bound, against_bound(&logs, bound)?))) {
            Some((bound, difference)) => {
                let mean =
                    now.and_then(|outcome| outcome.summary(asked.quantity())).map_or(0.0, |rate| rate.mean);
                let shown = [mean, bound].map(|rate| asked.quantity().show(rate).trim_end().to_owned());
                found.bounded.push(Bounded { held, what, difference, shown, left });
            }
            None => found.left.push(left),
        }
    }
}

/// The findings before they are judged.
#[derive(Default)]
struct FoundAgainst {
    tested: Vec<Tested>,
    bounded: Vec<Bounded>,
    /// Figures with a repeat that has moved nothing.
    stopped: Vec<OpenFigure>,
    left: Vec<LeftFigure>,
    beside: Vec<String>,
}

/// A figure of which the baseline has only a lower bound.
struct Bounded {
    held: Held,
    what: String,
    difference: LogDifference,
    /// The rates in words: now, and the bound.
    shown: [String; 2],
    /// The entry for the figure unless it is below the bound.
    left: LeftFigure,
}

/// The limits for judging figures.
#[derive(Debug, Clone, Copy)]
struct FigureTest {
    /// The confidence of all intervals together.
    confidence: f64,
    /// The smallest loss that counts, in percent.
    threshold: f64,
}

impl AgainstBaseline {
    /// The share of decided figures, 0 to 1.
    pub fn share(&self) -> f64 {
        self.compared as f64 / self.figures.max(1) as f64
    }

    fn add_tested(&mut self, tested: &[Tested], test: FigureTest) {
        for one in tested {
            if let Some(worse) = one.worse(test) {
                self.worse.push(worse);
            } else if !one.is_mean && is_open(&one.difference.effect(), test.threshold) {
                self.open.push(open(one.held, &one.what, &one.difference));
            }
        }
    }

    fn add_bounded(&mut self, bounded: Vec<Bounded>, test: FigureTest) {
        for Bounded { held, what, difference, shown, left } in bounded {
            let effect = difference.effect_at(test.confidence);
            if is_worse(&effect, test.threshold) {
                self.worse.push(below_bound(held, what, effect, shown));
            } else {
                self.left.push(left);
            }
        }
    }

    fn add_recording(
        &mut self,
        compared: &RecordsCompared<'_>,
        pair: Held,
        recording: &AlignedRecording,
        test: FigureTest,
    ) {
        let what = format!("{}: {}", compared.name(pair.now), recording.instrument);
        if !recording.has(pair.now) {
            return self.left.push(LeftFigure { what, why: "not recorded now" });
        }
        let runs = compared.runs_before(pair);
        if let Some(worse) = recording.worse(pair, &runs, test.confidence, test.threshold) {
            return self.worse.push(worse);
        }
        let change = recording.change(pair, &runs, CONFIDENCE);
        let is_open = change.is_some_and(|effect| is_open(&effect, test.threshold));
        if is_open || recording.is_undecided(pair) {
            self.open.push(open_by(pair, &recording.instrument, change.filter(|_| is_open).as_ref()));
        } else if !recording.is_tested(pair) {
            self.left.push(LeftFigure { what, why: "not decided in the baseline" });
        } else if recording.is_lower_bound(pair.now) {
            self.left.push(LeftFigure { what, why: "only a lower bound now" });
        } else if recording.is_lower_bound(pair.before) {
            self.left.push(LeftFigure { what, why: "only a lower bound in the baseline" });
        }
    }
}

impl Tested {
    /// Returns the figure if the interval lies on the worse side, and the loss reaches the threshold.
    fn worse(&self, test: FigureTest) -> Option<WorseCell> {
        let effect = self.difference.effect_at(test.confidence);
        is_worse(&effect, test.threshold).then(|| {
            let rates = self.rates.as_ref().map(|[now, before]| format!(": {now}, {before} in the baseline"));
            WorseCell {
                subject: self.held.now,
                what: self.what.clone(),
                words: format!("{}{}", effect.loss_words(), rates.unwrap_or_default()),
                effect: Some(effect),
            }
        })
    }
}

fn is_worse(effect: &Effect, threshold: f64) -> bool {
    effect.high < 0.0 && effect.log_ratio <= (-threshold / 100.0).ln_1p()
}

/// Number of repeats that stands for a normal distribution.
const MANY: f64 = 1e6;

/// The effect at another confidence, with an interval as wide as for a normal distribution.
fn at_confidence(effect: &Effect, confidence: f64) -> Effect {
    let wider = student_at(confidence, MANY) / student_at(CONFIDENCE, MANY);
    let end = |end: f64| effect.log_ratio + (end - effect.log_ratio) * wider;
    Effect { low: end(effect.low), high: end(effect.high), ..*effect }
}

impl AlignedRecording {
    fn has(&self, subject: usize) -> bool {
        self.verdicts.get(subject).is_some_and(Option::is_some)
    }

    fn decision(&self, subject: usize) -> Option<Decision> {
        self.verdicts.get(subject)?.as_ref().map(crate::Verdict::decision)
    }

    /// Returns true if a loss could be found: both verdicts are decided, or there are rates for both.
    fn is_tested(&self, held: Held) -> bool {
        let is_decided =
            |subject| self.decision(subject).is_some_and(|decision| decision != Decision::NotDecided);
        let has_rates = self.limit(held.now).is_some() && self.limit(held.before).is_some();
        has_rates || is_decided(held.now) && is_decided(held.before)
    }

    /// Returns the recording if it is no longer carried, or if its long-term rate fell. With several baselines,
    /// none of them may have failed to carry it, and the spread of their limits counts.
    fn worse(&self, held: Held, runs: &[usize], confidence: f64, threshold: f64) -> Option<WorseCell> {
        let before: Vec<Decision> = runs.iter().filter_map(|&run| self.decision(run)).collect();
        let turned = before.contains(&Decision::Carries)
            && !before.contains(&Decision::DoesNotCarry)
            && self.decision(held.now) == Some(Decision::DoesNotCarry);
        let effect = self.change(held, runs, confidence).filter(|effect| is_worse(effect, threshold));
        let claim = self.verdicts[held.now].as_ref().map(crate::Verdict::claim).unwrap_or_default();
        let slower = effect.map(|effect| format!("sustained rate {}", effect.loss_words()));
        let turned = turned.then(|| format!("not carried any more: {claim}"));
        let words: Vec<String> = turned.into_iter().chain(slower).collect();
        (!words.is_empty()).then(|| WorseCell {
            subject: held.now,
            what: self.instrument.clone(),
            words: words.join("; "),
            effect,
        })
    }

    /// The long-term rate against the baselines.
    fn change(&self, held: Held, runs: &[usize], confidence: f64) -> Option<Effect> {
        if runs.len() < 2 {
            let both = self.limit(held.now).zip(self.limit(held.before));
            return both.map(|(now, before)| at_confidence(&ratio(&now, &before), confidence));
        }
        let effect = self.against_limits(held.now, runs)?.effect_at(confidence);
        let raised = raised_by_wait(&self.limit(held.now)?);
        Some(Effect { high: effect.high + raised, ..effect })
    }

    /// The current limit against those of several runs, each of which counts once.
    fn against_limits(&self, now: usize, runs: &[usize]) -> Option<LogDifference> {
        let log = |subject: usize| Some(self.limit(subject)?.rate.0.ln());
        let before = (0..).zip(runs.iter().filter_map(|&run| log(run)));
        let cell = CellLogs {
            row: 0,
            first: vec![RoundLog { round: 0, log: log(now)? }],
            second: before.map(|(round, log)| RoundLog { round, log }).collect(),
        };
        Some(against_runs(&[cell])?.overall)
    }

    /// Returns true if it was decided before, and is not now.
    fn is_undecided(&self, held: Held) -> bool {
        let is_open = |subject| self.decision(subject) == Some(Decision::NotDecided);
        !is_open(held.before) && is_open(held.now)
    }
}
