//! Verdicts against what is true: how far off, and how often an interval holds the truth.

use std::fmt;

use nilometer_analysis::{Decision, Finding, Verdict, verdicts};
use nilometer_model::Seed;

use nilometer_rehearsal::{StorageCase, StorageKind, results};

/// A verdict beside the truth.
#[derive(Debug)]
pub(super) struct Judged {
    /// The stated rate over the true one, less one.
    pub(super) rate_error: Option<f64>,
    /// The interval of the margin holds the true one.
    pub(super) covered: Option<bool>,
    /// The same of the longest stall and of the buffer that covers it, where there are stalls that the buffer covers.
    pub(super) stall_error: Option<f64>,
    pub(super) buffer_error: Option<f64>,
    /// The interval of what readers cost holds what they do.
    pub(super) cost_covered: Option<bool>,
    pub(super) decision: Decision,
    /// Whether frames must be lost in the long run; none where it is too close to tell.
    pub(super) must_lose: Option<bool>,
}

/// The verdict of a campaign on a storage of which everything is known.
pub(super) fn judged(case: &StorageCase) -> Judged {
    let measured = results(case);
    let verdict = verdicts(&measured).into_iter().next().expect("one instrument was recorded");
    let off = |stated: f64, truth: f64| stated / truth - 1.0;
    let margin = verdict.margins();
    let (stall_error, buffer_error) = stalls(case, &verdict).unzip();
    let change = verdict.read.first().and_then(|beside| beside.change);
    Judged {
        rate_error: verdict.limit.map(|limit| off(limit.rate.0, case.truth().0)),
        covered: margin.map(|margin| margin.low <= case.margin && case.margin <= margin.high),
        stall_error,
        buffer_error,
        cost_covered: change
            .map(|change| change.low <= -case.readers_cost && -case.readers_cost <= change.high),
        decision: verdict.decision(),
        must_lose: case.must_lose(),
    }
}

/// How far the stated stall and buffer are off, where nothing was lost and the truth is known.
fn stalls(case: &StorageCase, verdict: &Verdict) -> Option<(f64, f64)> {
    let Finding::Carried(trial) = &verdict.finding else { return None };
    let known = case.must_lose() == Some(false);
    let (stalls, frames) = (case.stalls?, case.frames_of_stall()?);
    let covering = trial.covering(verdict.rate).0 as f64 / trial.frame_size.0 as f64;
    known.then(|| (trial.longest_stall.seconds() / stalls.length - 1.0, covering / frames - 1.0))
}

/// All verdicts on a kind of storage.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) judged: Vec<Judged>,
}

impl Row {
    /// So many campaigns.
    pub(super) fn of(kind: StorageKind, seeds: u64) -> Row {
        let one = |seed: u64| judged(&StorageCase::new(kind, Seed(seed)));
        Row { name: kind.name(), judged: (0..seeds).map(one).collect() }
    }

    /// 95 % are no further off.
    pub(super) fn error(&self, of: fn(&Judged) -> Option<f64>) -> Option<f64> {
        let mut errors: Vec<f64> = self.judged.iter().filter_map(of).map(f64::abs).collect();
        errors.sort_by(f64::total_cmp);
        errors.get((errors.len() * 95).div_ceil(100).saturating_sub(1)).copied()
    }

    /// The share for which it holds, where it is known.
    pub(super) fn share(&self, of: fn(&Judged) -> Option<bool>) -> Option<f64> {
        let known: Vec<bool> = self.judged.iter().filter_map(of).collect();
        (!known.is_empty()).then(|| known.iter().filter(|holds| **holds).count() as f64 / known.len() as f64)
    }

    fn count(&self, of: impl Fn(&Judged) -> bool) -> usize {
        self.judged.iter().filter(|judged| of(judged)).count()
    }

    /// Carried, it is said, where frames must be lost.
    pub(super) fn false_yes(&self) -> usize {
        self.count(|judged| judged.decision == Decision::Carries && judged.must_lose == Some(true))
    }

    /// Not carried, it is said, where none is lost.
    pub(super) fn false_no(&self) -> usize {
        self.count(|judged| judged.decision == Decision::DoesNotCarry && judged.must_lose == Some(false))
    }

    /// Not decided, as a share of what can be decided.
    pub(super) fn undecided(&self) -> f64 {
        let clear = self.count(|judged| judged.must_lose.is_some());
        let open = self.count(|judged| judged.must_lose.is_some() && judged.decision == Decision::NotDecided);
        open as f64 / clear.max(1) as f64
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{:.1} %", 100.0 * share))
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            self.name,
            self.judged.len(),
            percent(self.error(|judged| judged.rate_error)),
            percent(self.share(|judged| judged.covered)),
            percent(self.error(|judged| judged.stall_error)),
            percent(self.error(|judged| judged.buffer_error)),
            percent(self.share(|judged| judged.cost_covered)),
            self.false_yes(),
            self.false_no(),
            percent(Some(self.undecided())),
        )
    }
}

/// The head of the table.
pub(super) const HEAD: &str = "\
| storage | campaigns | rate off by (95 %) | interval holds the truth | stall off by | buffer off by | readers' cost held | \
carries, falsely | does not, falsely | not decided, though clear |
|---|---|---|---|---|---|---|---|---|---|";
