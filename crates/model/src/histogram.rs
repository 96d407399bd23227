//! A log-linear histogram of nanoseconds: 64 buckets an octave, so a bucket is at most 1.6 % wide, as in fio.
//!
//! Its size is fixed: it allocates once, with the first value. Two histograms merge by adding their counts,
//! in memory as in the record. The record stores only the used buckets.

use serde::{Deserialize, Serialize};

const PER_OCTAVE_BITS: u32 = 6;
const PER_OCTAVE: u64 = 1 << PER_OCTAVE_BITS;
const BUCKETS: usize = 1 << 12;

/// Counts by bucket, from 0 ns to 2^63 ns. It allocates nothing before the first value, since a report holds
/// many empty ones.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "UsedBuckets", from = "UsedBuckets")]
pub struct Histogram(Vec<u64>);

/// The serialized form: the used buckets with their counts.
type UsedBuckets = Vec<(u16, u64)>;

impl From<Histogram> for UsedBuckets {
    fn from(histogram: Histogram) -> Self {
        histogram.buckets().collect()
    }
}

impl From<UsedBuckets> for Histogram {
    fn from(buckets: UsedBuckets) -> Self {
        let mut histogram = Histogram::default();
        for (bucket, count) in buckets {
            histogram.add_bucket(bucket, count);
        }
        histogram
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.buckets()).finish()
    }
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn add(&mut self, nanos: u64) {
        let bucket = Self::bucket(nanos);
        match self.0.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.begin(bucket, 1),
        }
    }

    #[cold]
    fn begin(&mut self, bucket: usize, count: u64) {
        self.0 = vec![0; BUCKETS];
        self.0[bucket] = count;
    }

    /// The bucket of a value: one each below 64, then 64 an octave by the six bits behind the leading one.
    #[inline]
    fn bucket(nanos: u64) -> usize {
        if nanos < PER_OCTAVE {
            return nanos as usize;
        }
        let log = nanos.ilog2();
        let octave = log - PER_OCTAVE_BITS + 1;
        let mantissa = (nanos >> (log - PER_OCTAVE_BITS)) & (PER_OCTAVE - 1);
        ((octave << PER_OCTAVE_BITS) as usize + mantissa as usize).min(BUCKETS - 1)
    }

    /// The lowest value of a bucket, in nanoseconds.
    pub fn lowest(bucket: u16) -> u64 {
        let mantissa = u64::from(bucket) & (PER_OCTAVE - 1);
        match u32::from(bucket) >> PER_OCTAVE_BITS {
            0 => mantissa,
            octave => (mantissa | PER_OCTAVE).checked_shl(octave - 1).unwrap_or(u64::MAX),
        }
    }

    /// The used buckets with their counts, lowest first.
    pub fn buckets(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(bucket, &count)| (bucket as u16, count))
    }

    /// Adds a bucket's count; buckets out of range count as the last one.
    pub fn add_bucket(&mut self, bucket: u16, count: u64) {
        let bucket = usize::from(bucket).min(BUCKETS - 1);
        match self.0.get_mut(bucket) {
            Some(sum) => *sum += count,
            None => self.begin(bucket, count),
        }
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        for (bucket, count) in other.buckets() {
            self.add_bucket(bucket, count);
        }
    }

    /// How many values were added.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The lowest value of the bucket in which the `fraction` quantile lies; 0 if nothing was added.
    pub fn quantile(&self, fraction: f64) -> u64 {
        let wanted = (self.count() as f64 * fraction).ceil().max(1.0);
        let mut seen = 0;
        for (bucket, count) in self.buckets() {
            seen += count;
            if seen as f64 >= wanted {
                return Self::lowest(bucket);
            }
        }
        0
    }

    /// The bucket of the `fraction` quantile, from its lowest value to that of the next; empty if nothing was
    /// added.
    pub fn quantile_range(&self, fraction: f64) -> std::ops::Range<u64> {
        let lowest = self.quantile(fraction);
        if self.count() == 0 { 0..0 } else { lowest..Self::lowest(Self::bucket(lowest) as u16 + 1) }
    }

    /// The highest used bucket's lowest value; 0 if nothing was added.
    pub fn max(&self) -> u64 {
        self.buckets().last().map_or(0, |(bucket, _)| Self::lowest(bucket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_holds_its_value_within_a_sixtyfourth(value in 0..u64::MAX / 2) {
            let low = Histogram::lowest(Histogram::bucket(value) as u16);
            let next = Histogram::lowest(Histogram::bucket(value) as u16 + 1);
            prop_assert!(low <= value && value < next, "{low} <= {value} < {next}");
            prop_assert!(value - low <= value / 64);
        }

        #[test]
        fn merging_is_adding(a in prop::collection::vec(0..u64::MAX, 0..50), b in prop::collection::vec(0..u64::MAX, 0..50)) {
            let of = |values: &[u64]| { let mut h = Histogram::default(); for &v in values { h.add(v); } h };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }
    }

    #[test]
    fn quantiles_of_known_values() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile(0.5), histogram.max()), (0, 0));
        (1..=60).for_each(|value| histogram.add(value));
        assert_eq!((histogram.quantile(0.5), histogram.quantile(1.0), histogram.count()), (30, 60, 60));
    }
}
