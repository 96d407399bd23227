//! The rate limit of a workload, which makes its demand on the storage known.

use nilometer_model::{ByteRate, Bytes, Nanos, Phase};
use serde::{Deserialize, Serialize};

use super::{Parameters, Sweep, Work};

/// The longest silence of a worker; a longer one may be taken for a hang.
pub(crate) const PATIENCE: Nanos = Nanos::from_millis(10_000);

/// The rate limit of all workers together. Operations are issued when they are due, as long as the storage
/// keeps up. If it does not, they are late, and the delay is part of their latency.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OfferedRate {
    /// No limit: as fast as the storage takes it.
    #[default]
    None,
    /// Bytes moved.
    Rate(ByteRate),
    /// Operations a second, as phases count them.
    RateIops(u32),
}

impl OfferedRate {
    /// True if there is no limit.
    pub const fn is_none(&self) -> bool {
        matches!(self, OfferedRate::None)
    }

    /// The limit as a number, for comparison with others of its kind; infinite without a limit.
    pub fn amount(self) -> f64 {
        match self {
            OfferedRate::None => f64::INFINITY,
            OfferedRate::Rate(rate) => rate.0,
            OfferedRate::RateIops(count) => f64::from(count),
        }
    }

    /// True if the limit is zero: no load at all.
    pub(super) fn is_zero(self) -> bool {
        match self {
            OfferedRate::None => false,
            OfferedRate::Rate(rate) => rate.0 <= 0.0,
            OfferedRate::RateIops(count) => count == 0,
        }
    }

    /// The limit in words, with a leading preposition; `None` without a limit.
    pub fn phrase(self) -> Option<String> {
        match self {
            OfferedRate::None => None,
            OfferedRate::Rate(rate) => Some(format!("at {rate}")),
            OfferedRate::RateIops(count) => Some(format!("at {count} operations/s")),
        }
    }

    /// Refuses limits that make no sense.
    pub(super) fn check(self, block: Bytes, workers: u32) -> Result<(), String> {
        match self {
            OfferedRate::Rate(rate) if !(1.0..=1e15).contains(&rate.0) => {
                Err(format!("rate = \"{rate}\": write 1 B/s to 1 PB/s, or leave it out"))
            }
            OfferedRate::RateIops(0) => Err("rate_iops = 0: write 1 or more, or leave it out".into()),
            _ if self.interval(block).0 * u64::from(workers) > PATIENCE.0 => Err(format!(
                "{}: each of {workers} workers would wait more than {PATIENCE} between operations: write \
                 more, or fewer workers",
                self.phrase().unwrap_or_default()
            )),
            _ => Ok(()),
        }
    }

    /// Checks that a rate in bytes limits phases that move bytes.
    pub(super) fn check_moved(self, parameters: &dyn Parameters, measured: &[Phase]) -> Result<(), String> {
        let moves_none = |phase: &&Phase| parameters.work(**phase, 1).bytes == 0;
        match (self, measured.iter().find(moves_none)) {
            (OfferedRate::Rate(_), Some(phase)) => {
                Err(format!("rate: `{}` moves no data: write rate_iops, operations a second", phase.name()))
            }
            _ => Ok(()),
        }
    }

    /// The least time in which all this work is offered.
    pub(super) fn least_time(self, work: Work) -> Nanos {
        match self {
            OfferedRate::None => Nanos(0),
            OfferedRate::Rate(rate) => Nanos::from_seconds((work.bytes as f64 / rate.0).min(9e9)),
            OfferedRate::RateIops(count) => {
                Nanos::from_seconds((work.operations as f64 / f64::from(count)).min(9e9))
            }
        }
    }

    /// The time between two operations of this size, over all workers; zero without a limit.
    pub fn interval(self, block: Bytes) -> Nanos {
        match self {
            OfferedRate::None => Nanos(0),
            OfferedRate::Rate(rate) => Nanos::from_seconds(block.0 as f64 / rate.0),
            OfferedRate::RateIops(count) => Nanos::from_seconds(1.0 / f64::from(count)),
        }
    }

    /// Each of `cells` once with each rate in the plan.
    pub(super) fn over<C: Clone>(
        rates: Option<&Sweep<ByteRate>>,
        iops: Option<&Sweep<u32>>,
        cells: Vec<C>,
        set: impl Fn(&mut C, OfferedRate),
    ) -> Result<Vec<C>, String> {
        match (rates, iops) {
            (Some(_), Some(_)) => Err("has a rate and rate_iops: write one of them".into()),
            (Some(rates), None) => Ok(rates.over(cells, |cell, rate| set(cell, OfferedRate::Rate(rate)))),
            (None, Some(iops)) => Ok(iops.over(cells, |cell, count| set(cell, OfferedRate::RateIops(count)))),
            (None, None) => Ok(cells),
        }
    }
}
