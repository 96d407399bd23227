//! The criteria for accepting storage, fixed before any measurement. docs/acceptance.md is the manual.

mod written;

pub use written::{AcceptTerms, InstrumentDemands, StageDemands};

use std::{fmt, str::FromStr};

use nilometer_model::{ByteRate, Nanos, Phase, statistics::poisson_upper};
use serde::{Deserialize, Deserializer, Serialize, de};

/// All criteria of a plan: each must be met.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Acceptance {
    /// The price of each target, in their order, as in the plan; empty without prices.
    pub price: Vec<String>,
    /// The criteria, in the order of the plan.
    pub criteria: Vec<Criterion>,
}

/// A criterion for a stage of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Criterion {
    /// The stage's name.
    pub stage: String,
    /// The phase of it; of recordings none.
    pub phase: Option<Phase>,
    /// The requirement.
    pub demand: Requirement,
}

/// A requirement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requirement {
    /// No more frames, or packets, are lost than this.
    Lost(LossLimit),
    /// The least bytes a second: for a recording the long-run rate, for a workload the mean of its repeats.
    Rate(ByteRate),
    /// The least operations a second.
    Operations(f64),
    /// No time in which frames wait and none is acknowledged is longer.
    LongestStall(Nanos),
    /// This share of frames, 0.99, is durable so soon after it was due.
    Durable(Nanos),
    /// This share of operations takes no longer.
    Latency {
        /// The share: 0.99, or 0.999.
        share: f64,
        /// The time.
        most: Nanos,
    },
    /// No more processors are kept busy.
    Cores {
        /// The processes that count.
        of: CoresOf,
        /// The most cores.
        most: f64,
    },
    /// Each sync flushes the device's cache.
    SyncFlushes,
}

/// The owner of the processor time that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoresOf {
    /// This program: the recorder, or the workers.
    Process,
    /// The file system client on this machine: kernel threads, its daemon.
    Client,
    /// The whole machine, above its idle level.
    Machine,
}

/// The limit on lost frames.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossLimit {
    /// None, in the recording that is made.
    #[default]
    None,
    /// The most losses in a time, at a confidence of 95 %.
    AtMost {
        /// The number of frames, above 0.
        count: f64,
        /// The time in which they may be lost, above 0.
        within: Nanos,
    },
}

/// The share of frames that a demand on durability is about.
pub const DURABLE_SHARE: f64 = 0.99;

impl Acceptance {
    /// True if there are no criteria.
    pub fn is_empty(&self) -> bool {
        self.criteria.is_empty()
    }

    /// Adds the name of the plan to each stage.
    pub(super) fn named(&mut self, plan: &str) {
        for criterion in &mut self.criteria {
            criterion.stage = format!("{plan}: {}", criterion.stage);
        }
    }

    /// Adds the demands of another plan. Prices are those of the first plan that has some.
    pub(super) fn and(mut self, other: Acceptance) -> Self {
        if self.price.is_empty() {
            self.price = other.price;
        }
        self.criteria.extend(other.criteria);
        self
    }
}

impl LossLimit {
    /// The shortest recording that can show it: one in which nothing is lost.
    pub fn least_duration(self) -> Option<Nanos> {
        match self {
            LossLimit::None => None,
            LossLimit::AtMost { count, within } => {
                Some(Nanos::from_seconds((poisson_upper(0) / count * within.seconds()).ceil()))
            }
        }
    }
}

const SECOND: u64 = 1_000_000_000;
/// The times for a number of lost frames, by word.
const TIMES: [(&str, Nanos); 5] = [
    ("second", Nanos(SECOND)),
    ("minute", Nanos(60 * SECOND)),
    ("hour", Nanos(3600 * SECOND)),
    ("day", Nanos(86_400 * SECOND)),
    ("week", Nanos(7 * 86_400 * SECOND)),
];

impl FromStr for LossLimit {
    type Err = String;

    /// `none`, `1 a day`, `3 in 10 h`.
    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("`{text}`: write \"none\", or a number in a time, as in \"1 a day\" or \"3 in 10 h\"");
        if text.trim() == "none" {
            return Ok(LossLimit::None);
        }
        let (count, time) = text.trim().split_once(' ').ok_or_else(refused)?;
        let count: f64 =
            count.parse().ok().filter(|count| *count > 0.0 && *count < 1e12).ok_or_else(refused)?;
        let within = match time.trim().split_once(' ') {
            Some(("a" | "an", word)) => {
                TIMES.iter().find(|(name, _)| *name == word.trim()).map(|(_, time)| *time)
            }
            Some(("in", time)) => time.parse().ok(),
            _ => None,
        };
        let within = within.filter(|within| within.0 > 0).ok_or_else(refused)?;
        Ok(LossLimit::AtMost { count, within })
    }
}

impl fmt::Display for LossLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            LossLimit::None => f.write_str("none"),
            LossLimit::AtMost { count, within } => match TIMES.iter().find(|(_, time)| *time == within) {
                Some((word, _)) => write!(f, "{count} {} {word}", if *word == "hour" { "an" } else { "a" }),
                None => write!(f, "{count} in {within}"),
            },
        }
    }
}

impl<'de> Deserialize<'de> for LossLimit {
    /// Reads a text in the form of a plan, or the form of records.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Recorded {
            AtMost { count: f64, within: Nanos },
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Text(String),
            Recorded(Recorded),
        }
        match Either::deserialize(deserializer)? {
            Either::Text(text) => text.parse().map_err(de::Error::custom),
            Either::Recorded(Recorded::AtMost { count, within }) => Ok(LossLimit::AtMost { count, within }),
        }
    }
}

impl CoresOf {
    /// The words after `cores of`.
    pub const fn words(self) -> &'static str {
        match self {
            CoresOf::Process => "this program",
            CoresOf::Client => "the file system's client",
            CoresOf::Machine => "the whole machine",
        }
    }
}

impl fmt::Display for Requirement {
    /// The criterion in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requirement::Lost(LossLimit::None) => f.write_str("nothing is lost"),
            Requirement::Lost(limit) => write!(f, "at most {limit} is lost (95 %)"),
            Requirement::Rate(rate) => write!(f, "at least {rate}"),
            Requirement::Operations(rate) => write!(f, "at least {rate} operations a second"),
            Requirement::LongestStall(most) => write!(f, "no stall longer than {most}"),
            Requirement::Durable(most) => {
                write!(f, "{} % of frames durable within {most}", percent(DURABLE_SHARE))
            }
            Requirement::Latency { share, most } => {
                write!(f, "{} % of operations within {most}", percent(*share))
            }
            Requirement::Cores { of, most } => {
                let cores = if (*most - 1.0).abs() < f64::EPSILON { "core" } else { "cores" };
                write!(f, "at most {most} {cores} of {}", of.words())
            }
            Requirement::SyncFlushes => f.write_str("the device flushes synced data"),
        }
    }
}

/// A share in percent, with all its digits.
fn percent(share: f64) -> String {
    format!("{:.4}", 100.0 * share).trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Criterion { stage, phase, demand } = self;
        match phase {
            Some(phase) => write!(f, "{stage}, {}: {demand}", phase.name()),
            None => write!(f, "{stage}: {demand}"),
        }
    }
}

#[cfg(test)]
mod tests;
