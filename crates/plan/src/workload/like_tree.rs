//! A tree with a given number of files, like one that a census counted. File j of n has the size that stands at the
//! quantile (j + 1/2) / n of the census. Files are at the depths, and in directories with as many files, as there.

use std::collections::BTreeMap;

use nilometer_model::PowerCount;

use super::{
    quantiles::{BoundedShare, by_quantiles, rounded, within_bounds},
    tree_census::{LevelRanges, TreeCensus},
};

/// The counts of a tree that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikeTree {
    /// Files by their sizes, the smallest first.
    pub sizes: Vec<ValueClass>,
    /// The directories of each depth; one at depth 0, and at least one at each.
    pub levels: Vec<LikeLevel>,
}

/// The directories of one depth, by the number of files in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LikeLevel {
    /// Directories without directories in them.
    pub leaves: Vec<ValueClass>,
    /// Directories with directories in them.
    pub inner: Vec<ValueClass>,
}

/// Values in a range, with their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueClass {
    /// The least value.
    pub least: u64,
    /// The greatest value.
    pub most: u64,
    /// The number of values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
}

impl LikeTree {
    /// The tree with this many files.
    pub fn of(census: &TreeCensus, files: u32) -> Self {
        LikeTree { sizes: sizes(census, files.into()), levels: levels(census, files.into()) }
    }

    /// Directories, the first included.
    pub fn directories(&self) -> u64 {
        self.levels.iter().fold(0, |all, level| all.saturating_add(level.directories()))
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.sizes.iter().fold(0, |all, class| all.saturating_add(class.sum))
    }

    /// The class of the file in the middle. `None` without files.
    pub fn median(&self) -> Option<ValueClass> {
        let all: u64 = self.sizes.iter().map(|class| class.count).sum();
        let mut before = 0;
        self.sizes.iter().copied().find(|class| {
            before += class.count;
            2 * before >= all
        })
    }
}

impl LikeLevel {
    /// Directories of both kinds.
    pub fn directories(&self) -> u64 {
        self.leaves.iter().chain(&self.inner).fold(0, |all, class| all.saturating_add(class.count))
    }
}

impl ValueClass {
    fn of(range: &PowerCount, count: u64, sum: u64) -> Self {
        ValueClass { least: range.from, most: range.most(), count, sum }
    }

    /// The values, the least first. They lie at equal distances, as far from their mean as the range allows.
    /// Three values from 8 to 15 with the sum 30 are 8, 10 and 12. Without such values, because the sum is too
    /// small, they are as equal as can be.
    pub fn values(self) -> impl Iterator<Item = u64> {
        let [least, most, count, sum] = [self.least, self.most, self.count, self.sum].map(u128::from);
        let is_possible = (count * least..=count * most).contains(&sum);
        let width = if is_possible {
            (2 * (sum - count * least)).min(2 * (count * most - sum)) / count.max(1)
        } else {
            0
        };
        // The sum of the first `number` values of a line from `mean - width / 2` to `mean + width / 2`.
        let first = move |number: u128| (2 * sum * number - width * number * (count - number)) / (2 * count);
        (0..count).map(move |number| (first(number + 1) - first(number)) as u64)
    }
}

fn sizes(census: &TreeCensus, files: u64) -> Vec<ValueClass> {
    let counts: Vec<u64> = census.sizes.iter().map(|range| range.count).collect();
    let made = by_quantiles(&counts, files);
    let pairs = census.sizes.iter().zip(made).filter(|(_, count)| *count > 0);
    pairs.map(|(range, count)| scaled_class(range, count)).collect()
}

/// Values of the range with the same mean, `count` of them.
fn scaled_class(range: &PowerCount, count: u64) -> ValueClass {
    let sum = rounded(range.sum, count, range.count);
    let [least, most] = [range.from, range.most()].map(|value| value.saturating_mul(count));
    ValueClass::of(range, count, sum.clamp(least, most))
}

/// Directories of one depth and kind, with as many files in each.
#[derive(Debug, Clone, Copy)]
struct AlikeDirectories {
    depth: usize,
    is_inner: bool,
    counted: PowerCount,
}

fn levels(census: &TreeCensus, files: u64) -> Vec<LikeLevel> {
    let by_files = alike_directories(census);
    let of_first = census.levels.first().map_or(0, LevelRanges::files);
    let sums = by_files.values().map(|alike| alike.iter().map(|of| of.counted.sum).sum());
    let sums: Vec<u64> = std::iter::once(of_first).chain(sums).collect();
    let shares = by_quantiles(&sums, files);
    let mut levels = vec![LikeLevel::default(); census.levels.len()];
    levels[0].leaves.push(ValueClass { least: 0, most: shares[0], count: 1, sum: shares[0] });
    for (alike, share) in by_files.values().zip(&shares[1..]) {
        let count = directories_for(alike, *share, files, census.files());
        place(alike, count, *share, &mut levels);
    }
    close_gaps(levels)
}

/// The directories below the first, by the least number of files in each.
fn alike_directories(census: &TreeCensus) -> BTreeMap<u64, Vec<AlikeDirectories>> {
    let mut by_files: BTreeMap<u64, Vec<AlikeDirectories>> = BTreeMap::new();
    for (depth, level) in census.levels.iter().enumerate().skip(1) {
        for (is_inner, ranges) in [(false, &level.leaves), (true, &level.inner)] {
            for counted in ranges {
                let alike = AlikeDirectories { depth, is_inner, counted: *counted };
                by_files.entry(counted.from).or_default().push(alike);
            }
        }
    }
    by_files
}

/// The number of directories for `share` files, with as many in each as in the census. One, if these are fewer
/// files than such a directory has. Empty directories are as many as follow from all files.
fn directories_for(alike: &[AlikeDirectories], share: u64, files: u64, all_files: u64) -> u64 {
    let count = alike.iter().map(|of| of.counted.count).sum();
    let Some(range) = alike.first().map(|of| of.counted) else { return 0 };
    if range.from == 0 {
        return rounded(count, files, all_files);
    }
    if share == 0 {
        return 0;
    }
    let sum = alike.iter().map(|of| of.counted.sum).sum();
    let [fewest, most] = [share.div_ceil(range.most()), share / range.from];
    rounded(share, count, sum).clamp(fewest, most.max(fewest))
}

/// Shares directories, and the files in them, among the depths and kinds of the census.
fn place(alike: &[AlikeDirectories], count: u64, files: u64, levels: &mut [LikeLevel]) {
    let counts: Vec<u64> = alike.iter().map(|of| of.counted.count).collect();
    let placed = by_quantiles(&counts, count);
    let bounds = |(of, &count): (&AlikeDirectories, &u64)| BoundedShare {
        weight: ((u128::from(of.counted.sum) * u128::from(count)) << 8) / u128::from(of.counted.count),
        least: of.counted.from.saturating_mul(count),
        most: of.counted.most().saturating_mul(count),
    };
    let bounds: Vec<BoundedShare> = alike.iter().zip(&placed).map(bounds).collect();
    for ((of, count), sum) in alike.iter().zip(placed).zip(within_bounds(files, &bounds)) {
        if count > 0 {
            let level = &mut levels[of.depth];
            let kind = if of.is_inner { &mut level.inner } else { &mut level.leaves };
            kind.push(ValueClass::of(&of.counted, count, sum));
        }
    }
}

/// A small tree lacks depths at which the census has few directories. Each such depth above others gets a directory
/// without files.
fn close_gaps(mut levels: Vec<LikeLevel>) -> Vec<LikeLevel> {
    let used = levels.iter().rposition(|level| level.directories() > 0).map_or(1, |deepest| deepest + 1);
    levels.truncate(used);
    for level in levels.iter_mut().filter(|level| level.directories() == 0) {
        level.inner.push(ValueClass { least: 0, most: 0, count: 1, sum: 0 });
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{CENSUS_VERSION, Census, CountedDirectory, CountedEntry, CountedKind};
    use proptest::prelude::*;

    /// The census of a tree: the first directory with `first` files, and below it directories of one depth each.
    fn census(first: u64, levels: &[&[u64]], bytes: &[u64]) -> TreeCensus {
        let mut census = Census { directories: 1, ..Census::default() };
        let mut sizes = bytes.iter().cycle();
        let all = std::iter::once(vec![first]).chain(levels.iter().map(|level| level.to_vec()));
        let all: Vec<Vec<u64>> = all.collect();
        for (level, directories) in all.iter().enumerate() {
            for (number, &files) in directories.iter().enumerate() {
                for _ in 0..files {
                    let bytes = *sizes.next().expect("sizes");
                    let kind =
                        CountedKind::File { bytes, allocated: 0, age: 0, is_linked: false, is_sparse: false };
                    census.add(&CountedEntry { kind, depth: level, user: 0, group: 0 });
                }
                let is_inner = number == 0 && level + 1 < all.len();
                census.directories += u64::from(level > 0);
                census.leave(CountedDirectory { level, entries: files, files, is_inner });
            }
        }
        let mut json = serde_json::json!(census);
        json["census_version"] = CENSUS_VERSION.into();
        let ranges = |of: &nilometer_model::PowerCounts| of.ranges().copied().collect::<Vec<_>>();
        json["sizes"] = serde_json::json!(ranges(&census.sizes));
        let levels = census.levels.iter().map(
            |level| serde_json::json!({ "leaves": ranges(&level.leaves), "inner": ranges(&level.inner) }),
        );
        json["levels"] = levels.collect();
        TreeCensus::parse(&json.to_string()).expect("a census")
    }

    fn values(classes: &[ValueClass]) -> Vec<u64> {
        classes.iter().flat_map(|class| class.values()).collect()
    }

    #[test]
    fn values_of_a_class_are_as_far_apart_as_it_allows_and_have_its_sum() {
        let class =
            |least, most, count, sum| ValueClass { least, most, count, sum }.values().collect::<Vec<u64>>();
        assert_eq!(class(8, 15, 3, 30), [8, 10, 12], "from 8 to 12");
        assert_eq!(class(8, 15, 3, 45), [15, 15, 15]);
        assert_eq!(class(0, 0, 2, 0), [0, 0]);
        assert_eq!(class(512, 1023, 1, 3), [3], "fewer files than such a directory has");
        assert_eq!(class(512, 1023, 0, 0), [0_u64; 0]);
    }

    #[test]
    fn as_many_files_as_the_census_have_its_counts_exactly() {
        let counted = census(3, &[&[5, 0, 700, 2, 2], &[1, 1, 40], &[0]], &[0, 10, 3000, 70_000, 5_000_000]);
        let made = LikeTree::of(&counted, 754);
        assert_eq!((made.directories(), counted.files()), (10, 754));
        let sizes: Vec<PowerCount> = made.sizes.iter().map(counts).collect();
        assert_eq!(sizes, counted.sizes);
        for (made, counted) in made.levels.iter().zip(&counted.levels).skip(1) {
            assert_eq!(made.leaves.iter().map(counts).collect::<Vec<_>>(), counted.leaves);
            assert_eq!(made.inner.iter().map(counts).collect::<Vec<_>>(), counted.inner);
        }
    }

    fn counts(class: &ValueClass) -> PowerCount {
        PowerCount { from: class.least, count: class.count, sum: class.sum }
    }

    #[test]
    fn fewer_files_keep_the_quantiles_and_the_depths() {
        let counted = census(0, &[&[100; 50], &[10; 500], &[0; 50]], &[100, 100, 3000, 70_000]);
        let made = LikeTree::of(&counted, 1000);
        let sizes: Vec<(u64, u64)> = made.sizes.iter().map(|class| (class.least, class.count)).collect();
        assert_eq!(sizes, [(64, 500), (2048, 250), (65_536, 250)]);
        assert_eq!(made.bytes(), 500 * 100 + 250 * 3000 + 250 * 70_000);
        let directories: Vec<u64> = made.levels.iter().map(LikeLevel::directories).collect();
        assert_eq!(directories, [1, 5, 50, 5]);
        let files =
            made.levels.iter().map(|level| values(&level.leaves).iter().chain(&values(&level.inner)).sum());
        assert_eq!(files.collect::<Vec<u64>>(), [0, 500, 500, 0]);
        assert_eq!(made.median().map(|class| class.least), Some(64));
    }

    #[test]
    fn a_directory_that_is_too_large_for_the_tree_has_all_files_that_would_be_in_such_ones() {
        let counted = census(0, &[&[9000, 500], &[500]], &[1]);
        let made = LikeTree::of(&counted, 100);
        let files: Vec<Vec<u64>> = made.levels.iter().map(|level| values(&level.inner)).collect();
        assert_eq!(files[1], [90], "90 % of all");
        assert_eq!(made.levels.iter().flat_map(|level| values(&level.leaves)).sum::<u64>(), 10);
    }

    proptest! {
        #[test]
        fn no_number_of_files_loses_one_or_leaves_a_depth_empty(
            levels in prop::collection::vec(prop::collection::vec(0..40_u64, 1..20), 0..6),
            sizes in prop::collection::vec(0..1_u64 << 40, 1..20),
            files in 1..3000_u32,
        ) {
            let levels: Vec<&[u64]> = levels.iter().map(Vec::as_slice).collect();
            let counted = census(1, &levels, &sizes);
            let made = LikeTree::of(&counted, files);
            prop_assert_eq!(values(&made.sizes).len(), files as usize);
            prop_assert_eq!(values(&made.sizes).iter().sum::<u64>(), made.bytes());
            let of_level = |level: &LikeLevel| [values(&level.leaves), values(&level.inner)].concat();
            let all: Vec<u64> = made.levels.iter().flat_map(of_level).collect();
            prop_assert_eq!((all.iter().sum::<u64>(), all.len() as u64), (files.into(), made.directories()));
            prop_assert!(made.levels.iter().all(|level| level.directories() > 0));
            prop_assert_eq!(made.levels[0].directories(), 1);
            for class in &made.sizes {
                prop_assert!(class.values().all(|value| (class.least..=class.most).contains(&value)));
            }
        }
    }
}
