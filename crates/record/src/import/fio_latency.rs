//! Latencies of fio: bins of a histogram (`json+`), or some percentiles of it.

use std::collections::BTreeMap;

use nilometer_model::Histogram;
use serde::Deserialize;

#[derive(Deserialize, Default)]
pub(super) struct Latency {
    #[serde(default, rename = "N")]
    count: u64,
    #[serde(default)]
    max: u64,
    #[serde(default)]
    percentile: BTreeMap<String, u64>,
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

impl Latency {
    pub(super) fn has_distribution(&self) -> bool {
        !self.bins.is_empty() || !self.percentile.is_empty()
    }

    /// Adds the latencies in nanoseconds. `unit` is the number of nanoseconds in fio's unit; `operations` is
    /// their count if fio does not give it.
    pub(super) fn add_to(&self, histogram: &mut Histogram, unit: u64, operations: u64) -> Option<()> {
        for (value, count) in &self.bins {
            add_many(histogram, value.parse::<u64>().ok()?.saturating_mul(unit), *count);
        }
        if self.bins.is_empty() {
            self.add_percentiles(histogram, unit, if self.count > 0 { self.count } else { operations });
        }
        Some(())
    }

    /// Gives all values between two percentiles the value of the upper one.
    fn add_percentiles(&self, histogram: &mut Histogram, unit: u64, operations: u64) {
        let share = |(percent, value): (&String, &u64)| Some((percent.parse::<f64>().ok()?, *value));
        let mut shares: Vec<(f64, u64)> = self.percentile.iter().filter_map(share).collect();
        // fio 2 fills its table up with percentiles of zero.
        shares.retain(|(percent, _)| *percent > 0.0 && *percent <= 100.0);
        shares.sort_by(|one, other| one.0.total_cmp(&other.0));
        if !shares.is_empty() {
            shares.push((100.0, self.max));
        }
        let mut below = 0;
        for (percent, value) in shares {
            #[expect(clippy::cast_sign_loss, reason = "it is at least zero")]
            let up_to = (operations as f64 * percent / 100.0).round() as u64;
            add_many(histogram, value.saturating_mul(unit), up_to.saturating_sub(below));
            below = below.max(up_to);
        }
    }
}

fn add_many(histogram: &mut Histogram, value: u64, count: u64) {
    if count == 0 {
        return;
    }
    let mut one = Histogram::default();
    one.add(value);
    for (bucket, _) in one.buckets() {
        histogram.add_bucket(bucket, count);
    }
}
