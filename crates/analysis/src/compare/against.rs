//! Against a baseline: what got worse by more than its noise and a threshold.

use nilometer_model::{
    plan::Phase,
    statistics::{CONFIDENCE, Summary, student_at},
};

use super::{
    AlignedRecording, AlignedStage, RecordsCompared,
    pair::{CellLogs, Unpaired, against_runs, unpaired},
    question::{Asked, Taken},
    recordings::ratio,
};
use crate::{
    Decision,
    by_round::{LogDifference, RoundLog},
    effect::Effect,
};

/// What became of the cells of a baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct AgainstBaseline {
    /// No loss smaller than this counts, in percent.
    pub threshold: f64,
    /// How many cells, phases and recordings were compared: all their intervals hold together.
    pub compared: usize,
    /// What got worse, in the order of the plan.
    pub worse: Vec<WorseCell>,
    /// What could not be compared, in words.
    pub left: Vec<String>,
    /// How much runs differ; none if there is one baseline, which does not show it.
    pub spread: Option<RunSpread>,
}

/// How far several baselines differ from each other, and what that hides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunSpread {
    /// How many baselines.
    pub runs: usize,
    /// The loss from which on the steadiest figure would have been called worse, in percent.
    pub seen_least: f64,
    /// The same of the figure that differs most from run to run.
    pub seen_most: f64,
}

/// Something that got worse.
#[derive(Debug, Clone, PartialEq)]
pub struct WorseCell {
    /// Index into the subjects.
    pub subject: usize,
    /// What was measured, in words.
    pub what: String,
    /// How much, in words.
    pub words: String,
    /// The same as a logarithm with its interval at a confidence that holds for all together; none where a verdict turned.
    pub effect: Option<Effect>,
}

/// A subject with the one of the baseline that it is held against: of several baselines the one of the last that has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) now: usize,
    pub(super) before: usize,
}

/// A difference with what it is of.
pub(super) struct Tested {
    pub(super) held: Held,
    pub(super) what: String,
    pub(super) difference: LogDifference,
    /// As they are shown: now, and in the baseline.
    pub(super) rates: Option<[String; 2]>,
}

impl RecordsCompared<'_> {
    /// All records but the baselines, against these. None if no target of them is in a baseline.
    pub fn against(&self, threshold: f64) -> Option<AgainstBaseline> {
        let mut left = Vec::new();
        let held = self.held(&mut left);
        let mut tested = Vec::new();
        for pair in &held {
            for stage in &self.stages {
                self.test_stage(*pair, stage, &mut tested, &mut left);
            }
        }
        self.test_networks(&mut tested, &mut left);
        if held.is_empty() && tested.is_empty() {
            return None;
        }
        let recorded = held.iter().flat_map(|pair| self.recordings.iter().map(move |of| (*pair, of)));
        let recorded: Vec<_> = recorded.filter(|(pair, of)| of.has(pair.before)).collect();
        let gone = recorded.iter().filter(|(pair, of)| !of.has(pair.now));
        left.extend(
            gone.map(|(pair, of)| format!("{}: {}: not recorded now", self.name(pair.now), of.instrument)),
        );
        let recorded: Vec<_> = recorded.into_iter().filter(|(pair, of)| of.has(pair.now)).collect();
        let spread = |confidence| self.spread_of_runs(&tested, confidence);
        let compared = tested.len() + recorded.iter().filter(|(pair, of)| of.is_tested(*pair)).count();
        let confidence = 1.0 - (1.0 - CONFIDENCE) / compared.max(1) as f64;
        let mut worse: Vec<WorseCell> =
            tested.iter().filter_map(|one| one.worse(confidence, threshold)).collect();
        let spread = spread(confidence);
        for (pair, recording) in recorded {
            let runs = self.runs_before(pair);
            worse.extend(recording.worse(pair, &runs, confidence, threshold));
            left.extend(recording.undecided(pair).map(|what| format!("{}: {what}", self.name(pair.now))));
        }
        Some(AgainstBaseline { threshold, compared, worse, left, spread })
    }

    /// The targets of a record.
    fn of_record(&self, record: usize) -> Vec<usize> {
        (0..self.subjects.len()).filter(|&subject| self.subjects[subject].record == record).collect()
    }

    /// The target of a baseline that a subject is held against: the one of the same path, or the only one of each record,
    /// whatever they are called.
    fn before(&self, baseline: usize, now: usize) -> Option<usize> {
        let path = |subject: usize| &self.subjects[subject].entry(&self.records).path;
        let candidates = self.of_record(baseline);
        let is_lone = candidates.len() == 1 && self.of_record(self.subjects[now].record).len() == 1;
        candidates.into_iter().find(|&before| is_lone || path(before) == path(now))
    }

    /// The subjects of all baselines that a subject is held against, in the order of the baselines.
    pub(super) fn runs_before(&self, held: Held) -> Vec<usize> {
        (0..self.baselines).filter_map(|baseline| self.before(baseline, held.now)).collect()
    }

    /// Each target of a record that is no baseline, with the one that it is held against.
    fn held(&self, left: &mut Vec<String>) -> Vec<Held> {
        let mut held = Vec::new();
        for now in (self.baselines..self.records.len()).flat_map(|record| self.of_record(record)) {
            match (0..self.baselines).filter_map(|baseline| self.before(baseline, now)).next_back() {
                Some(before) => held.push(Held { now, before }),
                None => left.push(format!("{}: the baseline has no such target", self.name(now))),
            }
        }
        let known: Vec<usize> = held.iter().flat_map(|held| self.runs_before(*held)).collect();
        let baselines = (0..self.baselines).flat_map(|baseline| self.of_record(baseline));
        let gone = baselines.filter(|before| !known.contains(before));
        left.extend(gone.map(|before| format!("{}: in the baseline only", self.name(before))));
        held
    }

    /// What hides in the spread of several baselines: how large a loss of each figure would have had to be.
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

    /// The difference of each cell and over all cells: by the repeats of both, or by the spread of several baselines.
    fn difference(&self, held: Held, asked: &Asked<'_>, taken: Taken) -> Option<Unpaired> {
        let runs = self.runs_before(held);
        if runs.len() < 2 {
            return unpaired(&asked.cells(held.now, held.before, taken));
        }
        against_runs(&asked.cells_of_runs(held.now, &runs, taken))
    }

    /// The cells of a stage, and each phase over all its cells.
    fn test_stage(
        &self,
        held: Held,
        stage: &AlignedStage<'_>,
        tested: &mut Vec<Tested>,
        left: &mut Vec<String>,
    ) {
        for phase in stage.phases() {
            let asked = Asked { subjects: &self.subjects, stage, phase };
            let taken = Taken::Rate(asked.quantity());
            let found = self.difference(held, &asked, taken);
            let cells = found.as_ref().map_or(&[][..], |found| &found.cells);
            if let Some(found) = found.as_ref().filter(|found| found.cells.len() > 1) {
                let what = format!("{}, {} over {} cells", stage.name, phase.name(), cells.len());
                tested.push(Tested { held, what, difference: found.overall, rates: None });
            }
            for (row, difference) in cells {
                let aligned = &stage.rows[*row];
                let what = format!("{}, {}", stage.name, aligned.words());
                let rate = |subject| {
                    let summary = aligned.outcome(subject)?.summary(asked.quantity())?;
                    Some(summary.mean)
                };
                let before = self.runs_before(held).into_iter().filter_map(rate).collect::<Vec<f64>>();
                let before = Summary::of(&before).map(|summary| summary.mean);
                let rates = rate(held.now).zip(before);
                let rates = rates.map(|(now, before)| [now, before].map(|rate| asked.quantity().show(rate)));
                tested.push(Tested { held, what, difference: *difference, rates });
            }
            left.extend(self.not_compared(held, stage, phase, cells));
        }
    }

    /// Cells that the baseline has, and that can't be held against it.
    fn not_compared(
        &self,
        held: Held,
        stage: &AlignedStage<'_>,
        phase: Phase,
        cells: &[(usize, LogDifference)],
    ) -> Vec<String> {
        let was_valid = |subject: usize, row: usize| {
            stage.rows[row].outcome(subject).is_some_and(|outcome| outcome.valid > 0)
        };
        let rows = stage.of_phase(phase).map(|(row, _)| row);
        let runs = self.runs_before(held);
        let was_measured = |row: usize| runs.iter().any(|&run| was_valid(run, row));
        let gone = rows.filter(|row| was_measured(*row) && cells.iter().all(|(known, _)| known != row));
        let why = |row: usize| match stage.rows[row].outcome(held.now) {
            Some(_) => "INVALID",
            None => "not measured",
        };
        let words = |row: usize| {
            let cell = stage.rows[row].words();
            format!("{}: {}, {cell}: {} now", self.name(held.now), stage.name, why(row))
        };
        gone.map(words).collect()
    }
}

impl Tested {
    /// The interval lies on the side of worse, and the loss is as large as the threshold.
    fn worse(&self, confidence: f64, threshold: f64) -> Option<WorseCell> {
        let effect = self.difference.effect_at(confidence);
        is_worse(&effect, threshold).then(|| {
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

/// Of many repeats, and with an interval at the usual confidence.
const MANY: f64 = 1e6;

/// The same with an interval at another confidence, as wide as a normal distribution has it.
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

    /// Something of it could have got worse: it was decided then and is now, or its rates are known.
    fn is_tested(&self, held: Held) -> bool {
        let is_decided =
            |subject| self.decision(subject).is_some_and(|decision| decision != Decision::NotDecided);
        let has_rates = self.limit(held.now).is_some() && self.limit(held.before).is_some();
        has_rates || is_decided(held.now) && is_decided(held.before)
    }

    /// It was carried and is not, or the storage takes less of it in the long run.
    /// Of several baselines none may have failed to carry it, and the spread of their limits counts.
    fn worse(&self, held: Held, runs: &[usize], confidence: f64, threshold: f64) -> Option<WorseCell> {
        let before: Vec<Decision> = runs.iter().filter_map(|&run| self.decision(run)).collect();
        let turned = before.contains(&Decision::Carries)
            && !before.contains(&Decision::DoesNotCarry)
            && self.decision(held.now) == Some(Decision::DoesNotCarry);
        let effect = if runs.len() < 2 {
            let both = self.limit(held.now).zip(self.limit(held.before));
            both.map(|(now, before)| at_confidence(&ratio(&now, &before), confidence))
        } else {
            self.against_limits(held.now, runs).map(|difference| difference.effect_at(confidence))
        };
        let effect = effect.filter(|effect| is_worse(effect, threshold));
        let claim = self.verdicts[held.now].as_ref().map(crate::Verdict::claim).unwrap_or_default();
        let slower = effect.map(|effect| format!("in the long run {}", effect.loss_words()));
        let turned = turned.then(|| format!("not carried any more: {claim}"));
        let words: Vec<String> = turned.into_iter().chain(slower).collect();
        (!words.is_empty()).then(|| WorseCell {
            subject: held.now,
            what: self.instrument.clone(),
            words: words.join("; "),
            effect,
        })
    }

    /// The limit now against those of several runs, each of which counts once.
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

    /// It was decided, and is not.
    fn undecided(&self, held: Held) -> Option<String> {
        let was = self.decision(held.before)? != Decision::NotDecided;
        let is_now = self.decision(held.now)? != Decision::NotDecided;
        (was && !is_now).then(|| format!("{}: not decided now", self.instrument))
    }
}
