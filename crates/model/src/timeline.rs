//! A quantity over time, in at most 600 bins of equal width. When all are full, neighbours join, which
//! doubles the width.

use serde::{Deserialize, Serialize};

use crate::Nanos;

const MOST: usize = 600;
/// 2^20 ns, about a millisecond.
const NARROWEST: u32 = 20;

/// The content of a bin.
pub trait Joined: Copy {
    /// Joins two bins.
    #[must_use]
    fn joined(self, other: Self) -> Self;

    /// The content of a bin without events that follows this one.
    #[must_use]
    fn after(self) -> Self;
}

/// Bins of equal width from a start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline<T> {
    start: Nanos,
    shift: u32,
    bins: Vec<T>,
}

impl<T: Joined + Default> Default for Timeline<T> {
    fn default() -> Self {
        Timeline::new(Nanos(0))
    }
}

impl<T: Joined + Default> Timeline<T> {
    /// An empty timeline from `start`. It takes its memory with the first value, once.
    pub fn new(start: Nanos) -> Self {
        Timeline { start, shift: NARROWEST, bins: Vec::new() }
    }

    /// A timeline from stored bins.
    pub fn from_bins(width: Nanos, bins: Vec<T>) -> Self {
        Timeline { start: Nanos(0), shift: width.0.max(1).ilog2(), bins }
    }

    /// Adds an event at `at` to its bin.
    #[inline]
    pub fn join(&mut self, at: Nanos, what: T) {
        let mut bin = (at.since(self.start).0 >> self.shift) as usize;
        if bin >= self.bins.len() {
            bin = self.reach(at);
        }
        self.bins[bin] = self.bins[bin].joined(what);
    }

    #[cold]
    fn reach(&mut self, at: Nanos) -> usize {
        while at.since(self.start).0 >> self.shift >= MOST as u64 {
            self.widen();
        }
        let bin = (at.since(self.start).0 >> self.shift) as usize;
        if bin >= self.bins.len() {
            self.bins.reserve_exact(MOST - self.bins.len());
            let between = self.bins.last().map_or(T::default(), |last| last.after());
            self.bins.resize(bin + 1, between);
        }
        bin
    }

    fn widen(&mut self) {
        let both = |pair: &[T]| pair[1..].iter().fold(pair[0], |all, &one| all.joined(one));
        self.bins = self.bins.chunks(2).map(both).collect();
        self.shift += 1;
    }

    /// Adds another timeline with the same start.
    pub fn merge(&mut self, other: Self) {
        self.merge_by(other, T::joined);
    }

    /// Merges with a `join` of its own: events at the same time may join in another way than successive ones.
    pub fn merge_by(&mut self, mut other: Self, join: impl Fn(T, T) -> T) {
        while self.shift < other.shift {
            self.widen();
        }
        while other.shift < self.shift {
            other.widen();
        }
        self.bins.resize(self.bins.len().max(other.bins.len()), T::default());
        for (mine, theirs) in self.bins.iter_mut().zip(other.bins) {
            *mine = join(*mine, theirs);
        }
    }

    /// Its start.
    pub fn start(&self) -> Nanos {
        self.start
    }

    /// The width of a bin.
    pub fn width(&self) -> Nanos {
        Nanos(1 << self.shift)
    }

    /// The bins in order.
    pub fn bins(&self) -> &[T] {
        &self.bins
    }
}
