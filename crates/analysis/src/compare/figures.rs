//! The outcome for each figure of a baseline: held, worse, undecided, or not comparable.

use nilometer_model::statistics::{CONFIDENCE, Summary};

use crate::{by_round::LogDifference, effect::Effect};

/// A figure that became worse.
#[derive(Debug, Clone, PartialEq)]
pub struct WorseCell {
    /// Index into the subjects.
    pub subject: usize,
    /// The measurement, in words.
    pub what: String,
    /// The loss, in words.
    pub words: String,
    /// The loss as a logarithm, with its interval at a confidence that holds for all together; `None` if a
    /// verdict changed.
    pub effect: Option<Effect>,
}

/// A subject, with the subject of the baseline that it is compared with: of several baselines, the last one that
/// has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) now: usize,
    pub(super) before: usize,
}

/// A figure of the baseline that could not be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftFigure {
    /// The target, the stage and the cell.
    pub what: String,
    /// The reason, such as `INVALID in the baseline` or `not measured now`.
    pub why: &'static str,
}

impl LeftFigure {
    /// The figure, then the reason.
    pub fn words(&self) -> String {
        format!("{}: {}", self.what, self.why)
    }
}

/// An undecided figure, which may have become worse.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenFigure {
    /// Index into the subjects.
    pub subject: usize,
    /// The measurement, in words.
    pub what: String,
    /// The change in percent, with its interval; `None` without a rate.
    pub percent: Option<[f64; 3]>,
    /// The reason without a change in percent; `None` if no more is to say.
    pub why: Option<&'static str>,
}

/// The reason of a figure whose repeats include one at a rate of zero.
pub(super) const RATE_OF_ZERO: &str = "a repeat has a rate of 0, and no ratio to others";

impl OpenFigure {
    /// `-30 % (-68 to +54 %)`.
    pub fn change(&self) -> String {
        self.percent.map_or_else(
            || self.why.unwrap_or("not decided now").into(),
            |[mean, low, high]| {
                if low.is_finite() && high.is_finite() && high < PERCENT_SHOWN_MOST {
                    format!("{mean:+.0} % ({low:+.0} to {high:+.0} %)")
                } else {
                    format!("{mean:+.0} %, but its interval is too wide to show")
                }
            },
        )
    }
}

/// Wider intervals are meaningless.
const PERCENT_SHOWN_MOST: f64 = 1e4;

/// A figure is held if no loss was found, although one of this many thresholds would have been.
const SEEN_TIMES: f64 = 2.0;

/// Returns true if the figure may have become worse. `threshold` is in percent.
pub(super) fn is_open(effect: &Effect, threshold: f64) -> bool {
    let loss = |times: f64| (-(times * threshold / 100.0).min(0.99)).ln_1p();
    effect.low <= loss(SEEN_TIMES) || effect.log_ratio <= loss(1.0) && effect.log_ratio < 0.0
}

pub(super) fn open(held: Held, what: &str, difference: &LogDifference) -> OpenFigure {
    let effect = difference.effect_at(CONFIDENCE);
    open_by(held, what, Some(&effect))
}

pub(super) fn open_by(held: Held, what: &str, effect: Option<&Effect>) -> OpenFigure {
    let percent =
        effect.map(|effect| [effect.log_ratio, effect.low, effect.high].map(|log| 100.0 * log.exp_m1()));
    OpenFigure { subject: held.now, what: what.to_owned(), percent, why: None }
}

/// The logarithms of repeats against a lower bound, which is exact. `None` for a single repeat.
pub(super) fn against_bound(logs: &[f64], bound: f64) -> Option<LogDifference> {
    let summary = Summary::of(logs)?;
    Some(LogDifference {
        mean: summary.mean - bound.ln(),
        error: summary.sem?,
        freedom: Some((logs.len() - 1) as f64),
        repeats: logs.len(),
    })
}

/// A figure that is certainly below a lower bound of the baseline.
pub(super) fn below_bound(held: Held, what: String, effect: Effect, shown: [String; 2]) -> WorseCell {
    let [now, bound] = shown;
    let words = format!("{}: {now}, at least {bound} in the baseline", effect.loss_words());
    WorseCell { subject: held.now, what, words, effect: Some(effect) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(percent: [f64; 3]) -> Effect {
        let [log_ratio, low, high] = percent.map(|percent| (percent / 100.0_f64).ln_1p());
        Effect { log_ratio, low, high, pairs: 6 }
    }

    #[test]
    fn a_figure_is_held_if_a_loss_would_have_been_seen() {
        assert!(!is_open(&effect([0.0, -4.0, 4.0]), 5.0));
        assert!(!is_open(&effect([20.0, -4.0, 44.0]), 5.0), "no loss is hidden in a gain");
        assert!(is_open(&effect([-2.0, -40.0, 60.0]), 5.0), "too little was seen");
        assert!(is_open(&effect([-6.0, -9.0, 1.0]), 5.0), "a loss was found, and may be chance");
        assert!(!is_open(&effect([-6.0, -9.0, 1.0]), 10.0));
        assert!(!is_open(&effect([0.1, 0.05, 0.2]), 0.0));
    }

    #[test]
    fn what_is_open_says_how_far_it_reaches() {
        let held = Held { now: 1, before: 0 };
        let figure = open_by(held, "write", Some(&effect([-30.0, -68.0, 54.0])));
        assert_eq!(figure.change(), "-30 % (-68 to +54 %)");
        let lone = Effect { low: f64::NEG_INFINITY, high: f64::INFINITY, ..effect([-30.0, 0.0, 0.0]) };
        let figure = open_by(held, "write", Some(&lone));
        assert_eq!(figure.change(), "-30 %, but its interval is too wide to show");
    }

    #[test]
    fn a_bound_is_known_exactly() {
        let logs = [900.0_f64, 910.0, 905.0].map(f64::ln);
        let difference = against_bound(&logs, 13_100.0).expect("repeats");
        let effect = difference.effect_at(0.999);
        assert!(
            effect.high < (0.1_f64).ln() && (effect.log_ratio - (905.0_f64 / 13_100.0).ln()).abs() < 1e-4
        );
        assert_eq!(against_bound(&logs[..1], 13_100.0), None);
    }
}
