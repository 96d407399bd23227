//! The decision: one word and its reason, from the recording at the instrument's rate and from the passes at full
//! speed.

use std::fmt;

use nilometer_model::{
    Bytes, Nanos,
    sustained::{Margin, RecorderWait},
};
use nilometer_plan::{DURATION_LEAST, FRAMES_LEAST};

use super::{Finding, Hidden, TrialVerdict, Verdict};
use crate::rate_unit::decimal;

/// The answer in one word, the basis of exit codes and tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The target carries the instrument.
    Carries,
    /// Frames are lost, or would be.
    DoesNotCarry,
    /// The data do not decide.
    NotDecided,
}

impl Decision {
    /// The words in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Decision::Carries => "carries",
            Decision::DoesNotCarry => "does not carry",
            Decision::NotDecided => "not decided",
        }
    }
}

/// Reasons for no decision although no frame was lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Doubt {
    /// The recording is too short, or has too few frames.
    TooLittle { frames: u64, duration: Nanos },
    /// The buffer was still filling, and the long-term rate of the storage is unknown.
    Filling,
    /// Memory on the way may hold the whole recording, or enough of it to hide slow storage.
    Hidden { hidden: Hidden, least: Option<Nanos> },
    /// Bytes written at full speed, and a page cache of a size that may hold most of them.
    Cached { came: Bytes, cache: Bytes },
    /// The passes at full speed were too short, or all invalid.
    NoRate,
    /// The passes at full speed were too slow, or too different, but the recorder waited for a processor: without
    /// that the storage may take enough.
    RecorderWaited(RecorderWait),
    /// The rate at full speed was still rising or falling by this share.
    Changing(f64),
    /// The interval of the margin contains one, and the margin is close to it.
    Close(Margin),
    /// The interval of the margin contains one because it is wide.
    Imprecise(Margin),
    /// At full speed, the storage was slower than the instrument, but the buffer did not keep filling.
    Contradiction,
}

/// The longest recording to ask for: beyond it, a pass at full speed shows more.
const RECORDED_MOST: Nanos = Nanos::from_millis(3_600_000);

/// A margin is close to one if it differs by less.
const NEAR: f64 = 0.1;

/// A falling rate is enough if it still is after it has fallen by this many times the observed fall.
const FALLS_ON: f64 = 2.0;

impl Verdict {
    /// The answer in one word: for the instrument alone, and in every company in which it was recorded.
    pub fn decision(&self) -> Decision {
        let besides = self.besides();
        let worst = if besides.iter().any(|(_, finding)| matches!(finding, Finding::Lost(_))) {
            Decision::DoesNotCarry
        } else if besides.iter().any(|(_, finding)| matches!(finding, Finding::Undecided(_))) {
            Decision::NotDecided
        } else {
            Decision::Carries
        };
        match self.decision_alone() {
            Decision::Carries => worst,
            _ if worst == Decision::DoesNotCarry => worst,
            decision => decision,
        }
    }

    /// The answer for the instrument alone.
    pub fn decision_alone(&self) -> Decision {
        match &self.finding {
            Finding::Lost(_) => Decision::DoesNotCarry,
            Finding::Undecided(_) => Decision::NotDecided,
            Finding::Carried(trial) => match self.doubt(trial) {
                None => Decision::Carries,
                Some(Doubt::Filling) if self.is_too_slow() => Decision::DoesNotCarry,
                Some(_) => Decision::NotDecided,
            },
        }
    }

    /// The findings with company: beside readers, together with others, in a condition.
    pub(super) fn besides(&self) -> Vec<(String, &Finding)> {
        let read = self.read.iter().map(|beside| (format!("beside {}", beside.readers), &beside.finding));
        let together = self.together.iter();
        let together = together.map(|of| (format!("together with the others ({})", of.company), &of.finding));
        let under = self.under.iter().map(|of| (of.place(), &of.finding));
        read.chain(together).chain(under).collect()
    }

    /// Returns true if the storage is certainly slower at full speed than the instrument. A filling buffer would
    /// only have hidden that.
    fn is_too_slow(&self) -> bool {
        let rises = self.limit.and_then(|limit| limit.trend).is_some_and(|trend| trend > 0.0);
        !rises && self.most_times().is_some_and(|most| most < 1.0)
    }

    /// The recorder's wait for a processor at full speed, if the storage may take enough without it.
    fn held_back(&self) -> Option<RecorderWait> {
        let limit = self.limit?;
        let margin = limit.margin(self.rate);
        let hides_enough = margin.high < 1.0 && self.most_times().is_none_or(|most| most >= 1.0);
        let is_open = limit.is_lower_bound() && margin.low < 1.0;
        (hides_enough || is_open).then_some(limit.waited)
    }

    /// The reason not to call a recording without loss carried; `None` if there is none.
    pub(super) fn doubt(&self, trial: &TrialVerdict) -> Option<Doubt> {
        let TrialVerdict { due, duration, filling, .. } = *trial;
        if due < FRAMES_LEAST || duration < DURATION_LEAST {
            return Some(Doubt::TooLittle { frames: due, duration });
        }
        if filling {
            return Some(self.held_back().map_or(Doubt::Filling, Doubt::RecorderWaited));
        }
        let Some(margin) = self.margins() else {
            return if self.limit_tried { Some(Doubt::NoRate) } else { trial.may_be_hidden() };
        };
        let trend = self.limit.and_then(|limit| limit.trend);
        // A rising rate stays at least as high; a falling one may fall further.
        let falls_on = trend.map_or(0.0, |trend| FALLS_ON * (-trend).max(0.0));
        if margin.low * (1.0 - falls_on) >= 1.0 {
            // If a cache was seen to be full, the rate after it is that of the storage.
            let cached = self.limit_cached.filter(|_| self.cache.is_none());
            return cached.map(|(came, cache)| Doubt::Cached { came, cache });
        }
        if let Some(waited) = self.held_back() {
            return Some(Doubt::RecorderWaited(waited));
        }
        Some(match trend {
            Some(trend) => Doubt::Changing(trend),
            None if margin.high < 1.0 => Doubt::Contradiction,
            None if (margin.times - 1.0).abs() < NEAR => Doubt::Close(margin),
            None => Doubt::Imprecise(margin),
        })
    }
}

/// Passes at full speed of an evaluation have a length of their own, which `--duration` doesn't change.
const LONGER_PASSES: &str = "record longer at full speed (a plan with goal = \"limit\" and its own duration)";

impl fmt::Display for Doubt {
    /// The text after `not decided: `.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::TooLittle { frames, duration } => {
                write!(f, "{frames} frames in {duration} are too few; record longer")
            }
            Doubt::Filling => f.write_str("the buffer was still filling when the recording ended; record longer"),
            Doubt::Hidden { hidden, least } => {
                write!(f, "{hidden}")?;
                match least {
                    Some(least) if *least <= RECORDED_MOST => {
                        write!(f, "; record at least {:.0} s", least.seconds().ceil())
                    }
                    _ => f.write_str("; record it at full speed too (goal = \"limit\")"),
                }
            }
            Doubt::Cached { came, cache } => write!(
                f,
                "at full speed {} of page cache may hold most of the {} written: the storage's rate is unknown; \
                 {LONGER_PASSES}, or record past the cache",
                decimal(*cache),
                decimal(*came)
            ),
            Doubt::NoRate => f.write_str(
                "the storage's sustained rate is unknown: the recordings at full speed were too short or INVALID",
            ),
            Doubt::RecorderWaited(waited) => {
                write!(f, "{waited} at full speed, so the storage may be faster; record again with a processor free")
            }
            Doubt::Changing(trend) => {
                let moves = if *trend > 0.0 { "rose" } else { "fell" };
                let percent = 100.0 * trend.abs();
                write!(f, "at full speed its rate still {moves} by {percent:.0} % within a recording; {LONGER_PASSES}")
            }
            Doubt::Close(Margin { low, high, .. }) => write!(
                f,
                "its sustained rate, {low:.2} to {high:.2} times the instrument's, is too close to decide; \
                 {LONGER_PASSES}"
            ),
            Doubt::Imprecise(Margin { low, high, .. }) => write!(
                f,
                "its passes at full speed differ too much to decide: they sustained {low:.2} to {high:.2} times \
                 the instrument's rate; {LONGER_PASSES}"
            ),
            Doubt::Contradiction => f.write_str(
                "at full speed the storage took less than the instrument delivers, yet the buffer stopped filling; record longer",
            ),
        }
    }
}

impl TrialVerdict {
    /// The objection to a recording without a rate from full speed.
    fn may_be_hidden(&self) -> Option<Doubt> {
        let hidden = self.hidden;
        let needed = hidden.least();
        if needed.is_some_and(|needed| hidden.came > needed) {
            return self.grows.then_some(Doubt::Filling);
        }
        let so_many_times = needed.map(|needed| needed.0 as f64 / hidden.came.0.max(1) as f64);
        let least = so_many_times.map(|times| Nanos::from_seconds(times * self.duration.seconds()));
        Some(Doubt::Hidden { hidden, least })
    }
}
