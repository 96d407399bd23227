//! A set of numbers that come nearly in order, kept as ranges: as small as there are gaps.

use std::collections::BTreeMap;

/// By first number: the number behind the last.
#[derive(Debug, Default)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(super) fn contains(&self, number: u64) -> bool {
        self.before(number).is_some_and(|(_, end)| number < end)
    }

    pub(super) fn add(&mut self, number: u64) {
        if self.contains(number) {
            return;
        }
        let end = self.0.remove(&(number + 1)).unwrap_or(number + 1);
        let first = self.before(number).filter(|&(_, end)| end == number).map_or(number, |(first, _)| first);
        self.0.insert(first, end);
    }

    /// The last range that begins at the number or before it.
    fn before(&self, number: u64) -> Option<(u64, u64)> {
        self.0.range(..=number).next_back().map(|(&first, &end)| (first, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set_and_neighbours_are_one_range(numbers in prop::collection::vec(0..60_u64, 0..80)) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for number in numbers {
                ranges.add(number);
                set.insert(number);
                prop_assert!((0..62).all(|number| ranges.contains(number) == set.contains(&number)));
            }
            let begins = set.iter().filter(|number| number.checked_sub(1).is_none_or(|before| !set.contains(&before)));
            prop_assert_eq!(ranges.0.len(), begins.count());
        }
    }
}
