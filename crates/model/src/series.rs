//! Work over time, and the fill level of a ring over time.

use serde::{Deserialize, Serialize};

use crate::{
    Nanos,
    timeline::{Joined, Timeline},
};

/// Operations and bytes that finished in one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bin {
    /// Operations finished.
    pub operations: u64,
    /// Bytes that they moved.
    pub bytes: u64,
}

impl Joined for Bin {
    fn joined(self, other: Bin) -> Bin {
        Bin { operations: self.operations + other.operations, bytes: self.bytes + other.bytes }
    }

    fn after(self) -> Bin {
        Bin::default()
    }
}

/// Work over time.
pub type Series = Timeline<Bin>;

/// The fill level of a ring in one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Level {
    /// The most slots in use.
    pub most: u64,
    /// Slots in use at the end of the bin.
    pub last: u64,
    /// Frames lost.
    pub lost: u64,
}

impl Joined for Level {
    fn joined(self, later: Level) -> Level {
        Level { most: self.most.max(later.most), last: later.last, lost: self.lost + later.lost }
    }

    fn after(self) -> Level {
        Level { most: self.last, last: self.last, lost: 0 }
    }
}

/// The fill level of a ring over time.
pub type Levels = Timeline<Level>;

impl Levels {
    /// Sets the number of slots in use from `at` on.
    #[inline]
    pub fn set(&mut self, at: Nanos, in_use: u64) {
        self.join(at, Level { most: in_use, last: in_use, lost: 0 });
    }

    /// Counts a lost frame with the slots in use at that time.
    pub fn lose(&mut self, at: Nanos, in_use: u64) {
        self.join(at, Level { most: in_use, last: in_use, lost: 1 });
    }
}

impl Series {
    /// The end of the last operation, to the width of a bin; zero if there was none.
    pub fn last_work(&self) -> Nanos {
        let last = self.bins().iter().rposition(|bin| bin.operations > 0);
        last.map_or(Nanos(0), |last| Nanos((last as u64 + 1) * self.width().0))
    }

    /// Counts an operation that finished at `at`.
    #[inline]
    pub fn add(&mut self, at: Nanos, bytes: u64) {
        self.join(at, Bin { operations: 1, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_level_lasts_until_it_changes_and_its_peak_is_kept() {
        let mut levels = Levels::new(Nanos(0));
        let width = levels.width().0;
        for (bin, in_use) in [(0, 7), (0, 3), (4, 5), (4, 1)] {
            levels.set(Nanos(bin * width), in_use);
        }
        levels.lose(Nanos(5 * width), 2);
        let bins: Vec<_> = levels.bins().iter().map(|level| (level.most, level.last, level.lost)).collect();
        assert_eq!(bins, [(7, 3, 0), (3, 3, 0), (3, 3, 0), (3, 3, 0), (5, 1, 0), (2, 2, 1)]);
        levels.set(Nanos(600 * width), 9);
        let joined: Vec<_> =
            levels.bins()[..3].iter().map(|level| (level.most, level.last, level.lost)).collect();
        assert_eq!((joined, levels.bins().len()), (vec![(7, 3, 0), (3, 3, 0), (5, 2, 1)], 301));
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
            prop_assert!(whole.bins().len() <= 600);
            prop_assert_eq!(whole.bins().iter().map(|b| b.bytes).sum::<u64>(), 3 * times.len() as u64);
            prop_assert_eq!(even.bins().iter().map(|b| b.operations).sum::<u64>(), times.len() as u64);
            prop_assert_eq!(even.width(), whole.width());
        }
    }
}
