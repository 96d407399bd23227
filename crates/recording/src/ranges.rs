//! A set of numbers that arrive nearly in order, kept as ranges: its memory grows with the number of gaps.

use std::{collections::BTreeMap, ops::Range};

/// A set of numbers. Maps the first number of each range to the number after its last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges(BTreeMap<u64, u64>);

impl FromIterator<u64> for Ranges {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let mut ranges = Ranges::default();
        ranges.extend(numbers);
        ranges
    }
}

impl Extend<u64> for Ranges {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, numbers: I) {
        numbers.into_iter().for_each(|number| self.add(number));
    }
}

impl Ranges {
    /// Returns true if the set contains the number.
    pub fn contains(&self, number: u64) -> bool {
        self.at(number).is_some()
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of numbers in the set.
    pub fn count(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    /// The greatest number in the set.
    pub fn last(&self) -> Option<u64> {
        self.0.last_key_value().map(|(_, end)| end - 1)
    }

    /// Returns true if the set contains all these numbers.
    pub fn contains_all(&self, numbers: Range<u64>) -> bool {
        numbers.is_empty() || self.at(numbers.start).is_some_and(|range| range.end >= numbers.end)
    }

    /// Number of ranges.
    pub fn pieces(&self) -> usize {
        self.0.len()
    }

    /// The ranges, in order. No two of them touch.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().map(|(&first, &end)| first..end)
    }

    /// Adds a number.
    pub fn add(&mut self, number: u64) {
        self.add_all(number..number.saturating_add(1));
    }

    /// Adds all these numbers, at the cost of one.
    pub fn add_all(&mut self, numbers: Range<u64>) {
        if numbers.is_empty() {
            return;
        }
        let touched: Vec<_> =
            self.touched_by(&(numbers.start.saturating_sub(1)..numbers.end.saturating_add(1))).collect();
        let Range { mut start, mut end } = numbers;
        for range in touched {
            self.0.remove(&range.start);
            start = start.min(range.start);
            end = end.max(range.end);
        }
        self.0.insert(start, end);
    }

    /// Returns the range that contains the number.
    fn at(&self, number: u64) -> Option<Range<u64>> {
        let (&first, &end) = self.0.range(..=number).next_back()?;
        (number < end).then_some(first..end)
    }

    /// Returns the ranges that overlap with `numbers`.
    fn touched_by(&self, numbers: &Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self.at(numbers.start).map_or(numbers.start, |range| range.start);
        let among = if numbers.is_empty() { first..first } else { first..numbers.end };
        self.0.range(among).map(|(&first, &end)| first..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set_and_neighbours_are_one_range(
            numbers in prop::collection::vec((0..60_u64, 0..9_u64), 0..30),
        ) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (first, count) in numbers {
                ranges.add_all(first..first + count);
                set.extend(first..first + count);
                prop_assert!((0..70).all(|number| ranges.contains(number) == set.contains(&number)));
            }
            prop_assert_eq!((ranges.count(), ranges.last()), (set.len() as u64, set.last().copied()));
            prop_assert_eq!(ranges.is_empty(), set.is_empty());
            let begins = set.iter().filter(|number| number.checked_sub(1).is_none_or(|before| !set.contains(&before)));
            prop_assert_eq!(ranges.pieces(), begins.count());
            let all = |numbers: Range<u64>| numbers.clone().all(|number| set.contains(&number));
            for end in 0..70 {
                prop_assert_eq!(ranges.contains_all(end / 3..end), all(end / 3..end));
            }
        }
    }
}
