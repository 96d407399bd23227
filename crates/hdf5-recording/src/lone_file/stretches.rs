//! Splits the rows of a dataset into stretches with and without data. The number of stretches does not depend on
//! the size that a file claims.

use std::{collections::BTreeSet, ops::Range};

use super::LoneFile;

/// Consecutive rows of the first dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowStretch {
    /// The rows of the chunks that begin with this row: at least one of these chunks is there.
    There(u64),
    /// Rows without any data.
    Missing(Range<u64>),
}

impl LoneFile {
    /// All rows, in order: at most two stretches per chunk.
    pub(super) fn stretches(&self) -> Box<dyn Iterator<Item = RowStretch> + '_> {
        let dimensions = &self.shape.dimensions;
        let rows = if dimensions.contains(&0) { 0 } else { dimensions[0] };
        let step = self.chunk()[0];
        if self.shape.chunk.is_none() && self.shape.is_there {
            let step = usize::try_from(step).unwrap_or(usize::MAX);
            return Box::new((0..rows).step_by(step).map(RowStretch::There));
        }
        let firsts: BTreeSet<u64> = self.grid_places().map(|begin| begin[0]).collect();
        Box::new(between(firsts.into_iter(), rows, step))
    }

    /// The positions of chunks inside the dataset: an index may contain any position.
    pub(super) fn grid_places(&self) -> impl Iterator<Item = &Vec<u64>> {
        let dimensions = &self.shape.dimensions;
        let chunk = self.chunk();
        self.places.keys().filter(move |begin| {
            let mut sides = begin.iter().zip(dimensions).zip(&chunk);
            begin.len() == dimensions.len() && sides.all(|((at, side), step)| at < side && at % step == 0)
        })
    }

    /// The numbers of the frames that overlap these rows.
    pub(super) fn frames_of(&self, rows: &Range<u64>) -> Range<u64> {
        let of_row = self.lead().iter().skip(1).fold(1_u64, |all, side| all.saturating_mul(*side));
        rows.start.saturating_mul(of_row)..rows.end.saturating_mul(of_row)
    }
}

/// Stretches of `step` rows that begin at these rows, and the gaps between them.
fn between(firsts: impl Iterator<Item = u64>, rows: u64, step: u64) -> impl Iterator<Item = RowStretch> {
    let mut next = 0;
    let there = firsts.flat_map(move |first| {
        let gap = next..first;
        next = first.saturating_add(step);
        let missing = (!gap.is_empty()).then_some(RowStretch::Missing(gap));
        missing.into_iter().chain([RowStretch::There(first)])
    });
    WithLast { there, next: 0, rows, step }
}

/// Adds the rows after the last stretch.
struct WithLast<I> {
    there: I,
    /// The first row not yet in a stretch.
    next: u64,
    rows: u64,
    step: u64,
}

impl<I: Iterator<Item = RowStretch>> Iterator for WithLast<I> {
    type Item = RowStretch;

    fn next(&mut self) -> Option<RowStretch> {
        if let Some(stretch) = self.there.next() {
            self.next = match &stretch {
                RowStretch::There(first) => first.saturating_add(self.step),
                RowStretch::Missing(rows) => rows.end,
            };
            return Some(stretch);
        }
        let rest = self.next..self.rows;
        self.next = self.rows;
        (!rest.is_empty()).then_some(RowStretch::Missing(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(firsts: &[u64], rows: u64, step: u64) -> Vec<RowStretch> {
        between(firsts.iter().copied(), rows, step).collect()
    }

    #[test]
    fn every_row_is_in_one_stretch() {
        use RowStretch::{Missing, There};
        assert_eq!(of(&[], 1 << 62, 1), [Missing(0..1 << 62)]);
        assert_eq!(of(&[], 0, 1), []);
        assert_eq!(of(&[0, 4, 12], 14, 4), [There(0), There(4), Missing(8..12), There(12)]);
        assert_eq!(of(&[8], 100, 4), [Missing(0..8), There(8), Missing(12..100)]);
        assert_eq!(of(&[0, 1, 2], 3, 1), [There(0), There(1), There(2)]);
    }
}
