//! The decision: from the recording at the instrument's pace and from the passes at full speed to a word, and why.

use std::fmt;

use nilometer_model::{Bytes, Nanos, sustained::Margin};
use nilometer_plan::{DURATION_LEAST, FRAMES_LEAST};

use super::{Finding, Hidden, TrialVerdict, Verdict, words::decimal};

/// The answer in one word: what exit codes and tables go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It carries the instrument.
    Carries,
    /// Frames are lost, or would be.
    DoesNotCarry,
    /// The data don't say.
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

/// Why nothing is decided although no frame was lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Doubt {
    /// Too short a recording, or too few frames.
    TooLittle { frames: u64, duration: Nanos },
    /// The buffer was still filling, and it is not known what the storage takes in the long run.
    Filling,
    /// Memory on the way may hold all of it, or enough that nobody would see the storage fall behind.
    Hidden { hidden: Hidden, least: Option<Nanos> },
    /// So much went to the storage at full speed, and a page cache of this size may hold most of it.
    Cached { came: Bytes, cache: Bytes },
    /// The passes at full speed were too short, or all invalid.
    NoRate,
    /// The rate at full speed still rose or fell by this share.
    Changing(f64),
    /// The interval of the margin holds one, and the margin is near it.
    Close(Margin),
    /// The interval of the margin holds one because it is wide.
    Imprecise(Margin),
    /// At full speed it took less than the instrument delivers, but the buffer did not go on filling.
    Contradiction,
}

/// Who would have to record for longer learns more from a pass at full speed.
const RECORDED_MOST: Nanos = Nanos::from_millis(3_600_000);

/// A margin is near one if it differs by less.
const NEAR: f64 = 0.1;

/// A rate that falls is enough if it would be after falling so many times as much again.
const FALLS_ON: f64 = 2.0;

impl Verdict {
    /// The answer in one word: by itself, and in all company in which it was recorded too.
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

    /// The answer for the instrument by itself.
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

    /// In which company it was recorded, and what that came to: beside readers, together with others, in a condition.
    pub(super) fn besides(&self) -> Vec<(String, &Finding)> {
        let read = self.read.iter().map(|beside| (format!("beside {}", beside.who()), &beside.finding));
        let together = self.together.iter();
        let together = together.map(|of| (format!("together with the others ({})", of.company), &of.finding));
        let under = self.under.iter().map(|of| (of.place(), &of.finding));
        read.chain(together).chain(under).collect()
    }

    /// At full speed the storage surely takes less than the instrument delivers. Where the buffer was filling, that is why:
    /// it only hid it.
    fn is_too_slow(&self) -> bool {
        let rises = self.limit.and_then(|limit| limit.trend).is_some_and(|trend| trend > 0.0);
        !rises && self.margins().is_some_and(|margin| margin.high < 1.0)
    }

    /// What speaks against calling a recording without loss carried; none if nothing does.
    pub(super) fn doubt(&self, trial: &TrialVerdict) -> Option<Doubt> {
        let TrialVerdict { due, duration, filling, .. } = *trial;
        if due < FRAMES_LEAST || duration < DURATION_LEAST {
            return Some(Doubt::TooLittle { frames: due, duration });
        }
        if filling {
            return Some(Doubt::Filling);
        }
        let Some(margin) = self.margins() else {
            return if self.limit_tried { Some(Doubt::NoRate) } else { trial.may_be_hidden() };
        };
        let trend = self.limit.and_then(|limit| limit.trend);
        // What rises is at least what it was; what falls may go on falling.
        let falls_on = trend.map_or(0.0, |trend| FALLS_ON * (-trend).max(0.0));
        if margin.low * (1.0 - falls_on) >= 1.0 {
            // Where a cache was found to be full, what came behind it is the storage's.
            let cached = self.limit_cached.filter(|_| self.cache.is_none());
            return cached.map(|(came, cache)| Doubt::Cached { came, cache });
        }
        Some(match trend {
            Some(trend) => Doubt::Changing(trend),
            None if margin.high < 1.0 => Doubt::Contradiction,
            None if (margin.times - 1.0).abs() < NEAR => Doubt::Close(margin),
            None => Doubt::Imprecise(margin),
        })
    }
}

impl fmt::Display for Doubt {
    /// Behind `not decided: `.
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
                    _ => f.write_str("; record it as fast as the storage takes frames, too (goal = \"limit\")"),
                }
            }
            Doubt::Cached { came, cache } => write!(
                f,
                "at full speed the storage was given {}, most of which {} of page cache may hold, so its own rate is not known; \
                 record longer, or past the cache",
                decimal(*came),
                decimal(*cache)
            ),
            Doubt::NoRate => f.write_str(
                "what the storage takes in the long run is not known: the recordings at full speed were too short or INVALID",
            ),
            Doubt::Changing(trend) => {
                let moves = if *trend > 0.0 { "rose" } else { "fell" };
                let percent = 100.0 * trend.abs();
                write!(f, "at full speed its rate still {moves} by {percent:.0} % within a recording; record longer")
            }
            Doubt::Close(Margin { low, high, .. }) => write!(
                f,
                "what it takes in the long run, {low:.2} to {high:.2} times the rate, is too close to the instrument's; \
                 record longer"
            ),
            Doubt::Imprecise(Margin { low, high, .. }) => write!(
                f,
                "what it takes in the long run is not known well enough: {low:.2} to {high:.2} times the rate, since its \
                 passes at full speed differ; record longer"
            ),
            Doubt::Contradiction => f.write_str(
                "at full speed it took less than the instrument delivers, and yet its buffer did not go on filling; record longer",
            ),
        }
    }
}
