//! The acceptance of a target: each criterion of the plan against the measurements. Pure, so that everybody with
//! the record gets the same words.

mod recordings;
mod workloads;

use std::fmt;

use nilometer_model::{Invalid, Sample, statistics::Summary};
use nilometer_plan::{Cell, Criterion, Measured, PlannedCampaign, Results};

use crate::{Reason, reason::reasons};

/// The acceptance of a target, and its price.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptanceVerdict {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// Its price as the user wrote it; `None` without one.
    pub price: Option<String>,
    /// The criteria in the order of the plan.
    pub criteria: Vec<JudgedCriterion>,
}

/// A criterion with its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedCriterion {
    /// The criterion.
    pub criterion: Criterion,
    /// The answer.
    pub answer: CriterionAnswer,
    /// The measured value, or the reason why there is none.
    pub found: String,
}

/// The answer to a criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CriterionAnswer {
    /// The criterion is met.
    Met,
    /// The measurements do not decide.
    Undecided,
    /// The criterion is violated.
    Violated,
}

/// The answer for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptanceAnswer {
    /// All criteria are met.
    Pass,
    /// A criterion is violated.
    Fail,
    /// No criterion is violated, but one is undecided.
    NotDecided,
}

impl AcceptanceAnswer {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            AcceptanceAnswer::Pass => "PASS",
            AcceptanceAnswer::Fail => "FAIL",
            AcceptanceAnswer::NotDecided => "NOT DECIDED",
        }
    }
}

impl CriterionAnswer {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            CriterionAnswer::Met => "met",
            CriterionAnswer::Undecided => "not decided",
            CriterionAnswer::Violated => "not met",
        }
    }
}

impl AcceptanceVerdict {
    /// The answer in one word.
    pub fn answer(&self) -> AcceptanceAnswer {
        match self.criteria.iter().map(|judged| judged.answer).max() {
            Some(CriterionAnswer::Violated) => AcceptanceAnswer::Fail,
            Some(CriterionAnswer::Undecided) | None => AcceptanceAnswer::NotDecided,
            Some(CriterionAnswer::Met) => AcceptanceAnswer::Pass,
        }
    }

    /// The first criterion that prevents a PASS.
    pub fn reason(&self) -> Option<&JudgedCriterion> {
        let worst = self.criteria.iter().map(|judged| judged.answer).max()?;
        let is_reason = |judged: &&JudgedCriterion| judged.answer == worst && worst != CriterionAnswer::Met;
        self.criteria.iter().find(is_reason)
    }
}

impl fmt::Display for JudgedCriterion {
    /// `met: camera for 10 s: nothing is lost: none of 1000 frames in 10 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.answer.name(), self.criterion, self.found)
    }
}

/// The acceptance of each planned target, in order; empty if the plan has no criteria.
pub fn acceptance(results: &Results) -> Vec<AcceptanceVerdict> {
    let Some(campaign) = &results.campaign else { return Vec::new() };
    let accept = &campaign.plan.accept;
    if accept.is_empty() {
        return Vec::new();
    }
    let targets = campaign.named().filter(|target| *target < results.targets.len());
    targets.map(|target| verdict(results, campaign, target)).collect()
}

fn verdict(results: &Results, campaign: &PlannedCampaign, target: usize) -> AcceptanceVerdict {
    let accept = &campaign.plan.accept;
    let judged = |criterion| Evidence { results, campaign, criterion, target }.judged();
    AcceptanceVerdict {
        target,
        price: accept.price.get(target).cloned(),
        criteria: accept.criteria.iter().map(judged).collect(),
    }
}

/// The evidence for a criterion on a target.
#[derive(Clone, Copy)]
struct Evidence<'a> {
    results: &'a Results,
    campaign: &'a PlannedCampaign,
    criterion: &'a Criterion,
    target: usize,
}

/// An answer with its reason.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    answer: CriterionAnswer,
    words: String,
}

impl Found {
    fn met(words: impl Into<String>) -> Self {
        Found { answer: CriterionAnswer::Met, words: words.into() }
    }

    fn undecided(words: impl Into<String>) -> Self {
        Found { answer: CriterionAnswer::Undecided, words: words.into() }
    }

    fn violated(words: impl Into<String>) -> Self {
        Found { answer: CriterionAnswer::Violated, words: words.into() }
    }

    /// Met or violated, according to an interval; undecided if it shows neither.
    fn of(is_met: bool, is_violated: bool, words: impl Into<String>) -> Self {
        let answer = match (is_met, is_violated) {
            (true, _) => CriterionAnswer::Met,
            (_, true) => CriterionAnswer::Violated,
            _ => CriterionAnswer::Undecided,
        };
        Found { answer, words: words.into() }
    }
}

impl<'a> Evidence<'a> {
    fn judged(self) -> JudgedCriterion {
        let found =
            self.cells_of_stage().map(|(cell, of)| self.of_cell(cell, of)).max_by_key(|found| found.answer);
        let Found { answer, words: found } =
            found.unwrap_or_else(|| Found::undecided("nothing of the stage is measured there"));
        JudgedCriterion { criterion: self.criterion.clone(), answer, found }
    }

    /// The cells of the criterion.
    fn cells_of_stage(self) -> impl Iterator<Item = (usize, &'a Cell)> {
        self.results.cells.iter().enumerate().filter(move |(index, cell)| self.is_about(*index, cell))
    }

    /// Cells that differ only in features without an effect on a target are measured once there.
    fn is_about(self, index: usize, cell: &Cell) -> bool {
        if cell.stage != self.criterion.stage {
            return false;
        }
        let goal = recordings::goal(self.criterion.demand);
        let of_goal = cell.as_recording().is_none_or(|run| run.goal == goal);
        let of_phase = self.criterion.phase.is_none_or(|phase| cell.measured_phases().contains(&phase));
        let lacks = !self.campaign.lacking(index, self.target).is_empty();
        of_goal && of_phase && (lacks || self.campaign.applies(index, self.target))
    }

    fn of_cell(self, index: usize, cell: &Cell) -> Found {
        let several = self.cells_of_stage().count() > 1;
        let found = self.hindered(index).unwrap_or_else(|| match cell.as_recording() {
            Some(run) => recordings::found(self, index, run),
            None => workloads::found(self, index),
        });
        if several { Found { words: format!("{cell}: {}", found.words), ..found } } else { found }
    }

    /// Samples of a cell, without warm-up.
    fn samples(self, cell: usize) -> Vec<&'a Measured> {
        let phase =
            |measured: &Measured| self.criterion.phase.is_none_or(|phase| measured.key.phase == phase);
        let is_meant = |measured: &&Measured| {
            measured.key.cell == cell && measured.key.target == self.target && phase(measured)
        };
        self.results.samples.iter().filter(is_meant).collect()
    }

    /// The obstacle or failure of a cell; `None` if its figures are usable.
    fn hindered(self, cell: usize) -> Option<Found> {
        let lacking = self.campaign.lacking(cell, self.target);
        if !lacking.is_empty() {
            let lacking: Vec<_> = lacking.iter().map(|lacking| lacking.name()).collect();
            return Some(Found::violated(format!("not supported there: it lacks {}", lacking.join(", "))));
        }
        let samples = self.samples(cell);
        let sound = |sample: &&Sample| sample.invalid.is_some();
        if let Some(reason) = worst_fault(samples.iter().map(|measured| &measured.sample).filter(sound)) {
            return Some(Found::violated(reason));
        }
        let entry = &self.results.targets[self.target];
        if let Some(why) = &entry.left_out {
            let words = format!("{} was left out: {why}", entry.path);
            return Some(if is_of_commands(why) { Found::undecided(words) } else { Found::violated(words) });
        }
        let recording = self.results.cells[cell].as_recording();
        let planned = recording.map_or(self.results.repeats, |run| run.repeats) as usize;
        let missing = planned.saturating_sub(samples.len());
        if missing > 0 {
            return Some(Found::undecided(format!("{missing} of {planned} repeats were not measured")));
        }
        // An invalid recording may be the one that would have lost frames. For workloads, the other repeats
        // count.
        let spoilt = reasons(samples.iter().map(|measured| &measured.sample));
        let none_left = samples.iter().all(|measured| measured.sample.invalid.is_some());
        let reason = spoilt.first().filter(|_| none_left || recording.is_some())?;
        Some(Found::undecided(format!("INVALID: {reason}")))
    }
}

/// Returns true if a target was left out because a user's command could not be undone: the storage is not at
/// fault.
fn is_of_commands(why: &str) -> bool {
    why.starts_with("condition `") || why.starts_with("setting `")
}

/// The worst fault of the storage; `None` if there was none.
fn worst_fault<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<String> {
    let is_fault =
        |sample: &&Sample| matches!(sample.invalid, Some(Invalid::Errors | Invalid::Wrong | Invalid::Hung));
    reasons(samples.filter(is_fault)).iter().map(Reason::to_string).next()
}

/// Checks that at most `most` processors are kept busy, from the values of repeats.
fn cores_at_most(most: f64, values: &[f64]) -> Found {
    let Some(summary) = Summary::of(values) else { return Found::undecided("nothing was measured") };
    let half = summary.half_width().unwrap_or(0.0);
    let words = match summary.half_width() {
        Some(half) => format!(
            "{:.2} cores ({:.2} to {:.2})",
            summary.mean,
            (summary.mean - half).max(0.0),
            summary.mean + half
        ),
        None => format!("{:.2} cores", summary.mean),
    };
    Found::of(summary.mean + half <= most, summary.mean - half > most, words)
}

#[cfg(test)]
mod tests;
