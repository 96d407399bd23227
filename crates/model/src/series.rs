//! What was done over time, in at most 600 bins: when they are full, neighbours join and the bins are twice as wide.

use crate::{ByteRate, Nanos};

const MOST: usize = 600;
/// 2^20 ns, about a millisecond.
const NARROWEST: u32 = 20;

/// Operations and bytes that finished in one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bin {
    /// Operations finished.
    pub operations: u64,
    /// Bytes moved by them.
    pub bytes: u64,
}

/// Bins of equal width from a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    start: Nanos,
    shift: u32,
    bins: Vec<Bin>,
}

impl Series {
    /// An empty series from `start`. It takes its memory with the first value, once.
    pub fn new(start: Nanos) -> Self {
        Series { start, shift: NARROWEST, bins: Vec::new() }
    }

    /// A stored series.
    pub fn from_bins(width: Nanos, bins: Vec<Bin>) -> Self {
        Series { start: Nanos(0), shift: width.0.max(1).ilog2(), bins }
    }

    /// Counts an operation that finished at `at`.
    #[inline]
    pub fn add(&mut self, at: Nanos, bytes: u64) {
        let mut bin = (at.since(self.start).0 >> self.shift) as usize;
        if bin >= self.bins.len() {
            bin = self.reach(at);
        }
        self.bins[bin].operations += 1;
        self.bins[bin].bytes += bytes;
    }

    #[cold]
    fn reach(&mut self, at: Nanos) -> usize {
        while at.since(self.start).0 >> self.shift >= MOST as u64 {
            self.widen();
        }
        let bin = (at.since(self.start).0 >> self.shift) as usize;
        if bin >= self.bins.len() {
            self.bins.reserve_exact(MOST - self.bins.len());
            self.bins.resize(bin + 1, Bin::default());
        }
        bin
    }

    fn widen(&mut self) {
        let join = |pair: &[Bin]| Bin {
            operations: pair.iter().map(|bin| bin.operations).sum(),
            bytes: pair.iter().map(|bin| bin.bytes).sum(),
        };
        self.bins = self.bins.chunks(2).map(join).collect();
        self.shift += 1;
    }

    /// Adds another series of the same start.
    pub fn merge(&mut self, mut other: Series) {
        while self.shift < other.shift {
            self.widen();
        }
        while other.shift < self.shift {
            other.widen();
        }
        self.bins.resize(self.bins.len().max(other.bins.len()), Bin::default());
        for (mine, theirs) in self.bins.iter_mut().zip(&other.bins) {
            mine.operations += theirs.operations;
            mine.bytes += theirs.bytes;
        }
    }

    /// Bytes a second over the last third of the time in which anything was done; none if nothing was. The last bin is
    /// left out where there are others, since it is not over.
    pub fn last_third(&self) -> Option<ByteRate> {
        let whole = self.bins.len().saturating_sub(1).max(1).min(self.bins.len());
        let last = &self.bins[whole - whole.div_ceil(3)..whole];
        let bytes = last.iter().map(|bin| bin.bytes).sum();
        (!last.is_empty()).then(|| ByteRate::of(bytes, Nanos(self.width().0 * last.len() as u64)))
    }

    /// The width of a bin.
    pub fn width(&self) -> Nanos {
        Nanos(1 << self.shift)
    }

    /// The bins in order.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_third_is_behind_the_cache() {
        let mut series = Series::new(Nanos(0));
        let width = series.width().0;
        for bin in 0..10 {
            series.add(Nanos(bin * width), if bin < 6 { 1000 } else { 10 });
        }
        let (found, expected) = (series.last_third().expect("ten bins"), ByteRate::of(10, series.width()));
        assert!((found.0 / expected.0 - 1.0).abs() < 1e-9, "{found} and {expected}");
        assert_eq!(Series::new(Nanos(0)).last_third(), None);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_the_size_is_bounded(times in prop::collection::vec(0..1_u64 << 45, 1..200)) {
            let mut whole = Series::new(Nanos(0));
            let (mut even, mut odd) = (whole.clone(), whole.clone());
            for (i, &t) in times.iter().enumerate() {
                whole.add(Nanos(t), 3);
                if i % 2 == 0 { even.add(Nanos(t), 3) } else { odd.add(Nanos(t), 3) }
            }
            even.merge(odd);
            prop_assert!(whole.bins().len() <= MOST);
            prop_assert_eq!(whole.bins().iter().map(|b| b.bytes).sum::<u64>(), 3 * times.len() as u64);
            prop_assert_eq!(even.bins().iter().map(|b| b.operations).sum::<u64>(), times.len() as u64);
            prop_assert_eq!(even.width(), whole.width());
        }
    }
}
