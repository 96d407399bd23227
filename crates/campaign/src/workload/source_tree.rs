//! Trees of directories and files as users have them. They have the spread of real source trees or of a census.
//! They follow from a seed, and have exact numbers of directories, files and bytes. The trees that workloads unpack,
//! list, search and build are laid out here, and nowhere else.
//!
//! Directories are numbered depth first, as in an archive: each comes after its parent and before its next
//! sibling. Files are numbered in the order of their directories:
//!
//! ```text
//! number   0        1         2      3            directories
//!          n_w0  >  n_d1   >  n_d2
//!                >  n_d3
//! files    0..2     2..3      3..7   7..8
//! ```
//!
//! The spread is that of real files. `/usr/include` of Debian 12 has 22 920 files in 2083 directories, with a
//! mean of 11 kB and a median of 3.2 kB. The logarithms of their sizes have a deviation of 1.3. The sources of
//! 400 crates of Rust have a mean of 24 kB, a median of 4.2 kB and a deviation of 2.1.
//!
//! Here the deviation is 1.5, and the median a third of the mean. In these, and here, most directories are
//! three to six levels below the first. The numbers of files in directories spread with a deviation of 1.1.

use nilometer_model::{RandomStream, Seed};
use nilometer_plan::TreeShape;

use super::like_census::{DrawnTree, drawn};

/// The same numbers give the same tree everywhere and at any time, so that records can be compared.
const TREES: Seed = Seed(28_619);
/// Deviation of the logarithm of a file's bytes.
const SIZE_SPREAD: f64 = 1.5;
/// Deviation of the logarithm of the number of files in a directory.
const FILES_SPREAD: f64 = 1.1;
/// Levels below the first directory of a tree like a source tree, at the most.
const LEVELS_MAX: u32 = 12;

/// The directories and the file sizes of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceTree {
    directories: Vec<TreeDirectory>,
    /// The size of each file in bytes; empty if all files are.
    sizes: Vec<u64>,
    files: u32,
}

/// A directory of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeDirectory {
    /// The number of its parent; 0 for the first directory, which has none.
    pub parent: u32,
    /// The depth below the first directory, whose level is 0.
    pub level: u32,
    /// The number of its first file, if it has one.
    pub first_file: u32,
}

impl SourceTree {
    /// The tree of this shape.
    pub fn of(shape: TreeShape) -> Self {
        match shape {
            TreeShape::Regular { levels, branching, files } => Self::regular(levels, branching, files),
            TreeShape::Source { directories, files, size } => {
                let stream = |purpose| TREES.named(purpose).stream();
                let mut tree = SourceTree {
                    directories: numbered(&parents(directories, &mut stream("directories"))).directories,
                    sizes: shares(size.0, files, SIZE_SPREAD, &mut stream("sizes")),
                    files,
                };
                tree.fill(shares(files.into(), directories, FILES_SPREAD, &mut stream("files")).into_iter());
                tree
            }
            TreeShape::Like { files, census, .. } => {
                let DrawnTree { parents, files: counts, sizes } = drawn(&census, files, TREES.named("like"));
                let DepthFirst { directories, drawn } = numbered(&parents);
                let mut tree = SourceTree { directories, sizes, files };
                tree.fill(drawn.into_iter().map(|number| counts[number]));
                tree
            }
        }
    }

    /// Gives each directory as many files, in the order of the directories.
    fn fill(&mut self, counts: impl Iterator<Item = u64>) {
        let mut first = 0;
        for (directory, count) in self.directories.iter_mut().zip(counts) {
            directory.first_file = first;
            first += count as u32;
        }
    }

    fn regular(levels: u32, branching: u32, files: u32) -> Self {
        let mut directories = vec![TreeDirectory { parent: 0, level: 0, first_file: 0 }];
        // Directories that still get children, with the number of these: the deepest last.
        let mut open = vec![(0, branching)];
        while let Some((parent, left)) = open.pop() {
            let level = directories[parent as usize].level + 1;
            if left == 0 || level > levels {
                continue;
            }
            open.push((parent, left - 1));
            let number = directories.len() as u32;
            directories.push(TreeDirectory { parent, level, first_file: number * files });
            open.push((number, branching));
        }
        let files = directories.len() as u32 * files;
        SourceTree { directories, sizes: Vec::new(), files }
    }

    /// The number of directories, the first included.
    pub fn directories(&self) -> u32 {
        self.directories.len() as u32
    }

    /// The number of files.
    pub fn files(&self) -> u32 {
        self.files
    }

    /// The directory of this number.
    pub fn directory(&self, number: u32) -> TreeDirectory {
        self.directories[number as usize]
    }

    /// The numbers of the files in this directory.
    pub fn files_of(&self, directory: u32) -> std::ops::Range<u32> {
        let next = self.directories.get(directory as usize + 1);
        self.directory(directory).first_file..next.map_or(self.files, |next| next.first_file)
    }

    /// The directory of a file.
    pub fn directory_of(&self, file: u32) -> u32 {
        // A directory without files has the `first_file` of the next one; the last directory with this number
        // has the file.
        let behind = self.directories.partition_point(|directory| directory.first_file <= file);
        behind as u32 - 1
    }

    /// The size of a file in bytes.
    pub fn size(&self, file: u32) -> u64 {
        self.sizes.get(file as usize).copied().unwrap_or(0)
    }

    /// The level of the deepest directories.
    pub fn levels(&self) -> u32 {
        self.directories.iter().map(|directory| directory.level).max().unwrap_or(0)
    }

    /// The directory at `level` on the way down to this one.
    pub fn ancestor(&self, directory: u32, level: u32) -> u32 {
        let mut at = directory;
        while self.directory(at).level > level {
            at = self.directory(at).parent;
        }
        at
    }
}

/// For each directory except the first, its parent, in the order in which they are drawn. Each takes the
/// shallower of two draws: a tree of thousands is then about eight levels deep, as real ones are.
fn parents(directories: u32, stream: &mut RandomStream) -> Vec<u32> {
    let mut parents = vec![0];
    let mut levels = vec![0_u32];
    for number in 1..directories {
        let [one, other] = [0, 1].map(|_| stream.below(number.into()) as usize);
        let shallower = if levels[one] <= levels[other] { one } else { other };
        let parent = if levels[shallower] < LEVELS_MAX { shallower } else { 0 };
        parents.push(parent as u32);
        levels.push(levels[parent] + 1);
    }
    parents
}

/// Directories numbered depth first.
struct DepthFirst {
    directories: Vec<TreeDirectory>,
    /// The number of each before.
    drawn: Vec<usize>,
}

/// The same directories numbered depth first.
fn numbered(parents: &[u32]) -> DepthFirst {
    let mut below = vec![Vec::new(); parents.len()];
    for (number, &parent) in parents.iter().enumerate().skip(1) {
        below[parent as usize].push(number);
    }
    let mut directories = Vec::with_capacity(parents.len());
    let mut order = Vec::with_capacity(parents.len());
    let mut to_visit = vec![(0, TreeDirectory { parent: 0, level: 0, first_file: 0 })];
    while let Some((drawn, directory)) = to_visit.pop() {
        let parent = directories.len() as u32;
        directories.push(directory);
        order.push(drawn);
        let child = TreeDirectory { parent, level: directory.level + 1, first_file: 0 };
        to_visit.extend(below[drawn].iter().rev().map(|&drawn| (drawn, child)));
    }
    DepthFirst { directories, drawn: order }
}

/// Shares `total` among `count`, by weights whose logarithms have the deviation `spread`. It rounds the ends of
/// shares, and not the shares, so that nothing is lost. With weights 1, 2 and 4, shares of 10 end at 1.4, 4.3
/// and 10, and are 1, 3 and 6.
fn shares(total: u64, count: u32, spread: f64, stream: &mut RandomStream) -> Vec<u64> {
    if total == 0 {
        return Vec::new();
    }
    let weights: Vec<f64> = (0..count).map(|_| (spread * normal(stream)).exp()).collect();
    let all: f64 = weights.iter().sum();
    let mut weight_so_far = 0.0;
    let mut given = 0;
    let mut shares = Vec::with_capacity(weights.len());
    for (number, weight) in weights.into_iter().enumerate() {
        weight_so_far += weight;
        let end = whole_part(total as f64 * (weight_so_far / all)).clamp(given, total);
        let end = if number + 1 == count as usize { total } else { end };
        shares.push(end - given);
        given = end;
    }
    shares
}

#[expect(clippy::cast_sign_loss, reason = "weights are above zero")]
fn whole_part(share: f64) -> u64 {
    share as u64
}

/// A nearly normal number of mean 0 and deviation 1: the sum of twelve numbers from 0 to 1, less 6.
fn normal(stream: &mut RandomStream) -> f64 {
    (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::Bytes;
    use nilometer_plan::{LikeTree, NamedCensus};
    use proptest::prelude::*;

    fn source(directories: u32, files: u32, size: u64) -> SourceTree {
        SourceTree::of(TreeShape::Source { directories, files, size: Bytes(size) })
    }

    /// Checks every property that a tree promises.
    fn check(tree: &SourceTree, files: u32, size: u64) {
        assert_eq!(tree.files(), files);
        assert_eq!((0..files).map(|file| tree.size(file)).sum::<u64>(), size);
        let mut next = 0;
        for number in 0..tree.directories() {
            let TreeDirectory { parent, level, .. } = tree.directory(number);
            assert_eq!(tree.files_of(number).start, next, "files are in the order of their directories");
            next = tree.files_of(number).end;
            for file in tree.files_of(number) {
                assert_eq!(tree.directory_of(file), number);
            }
            if number > 0 {
                assert!(parent < number && tree.directory(parent).level + 1 == level);
                let before = tree.directory(number - 1);
                assert!(level <= before.level + 1, "depth first: {number}");
                assert_eq!(tree.ancestor(number - 1, level - 1), parent, "siblings stand together");
            }
        }
        assert_eq!(next, files);
    }

    #[test]
    fn a_tree_of_a_study_has_its_numbers_exactly_and_looks_like_a_source_tree() {
        let tree = source(1814, 28_619, 400_000_000);
        assert_eq!(tree.directories(), 1814);
        check(&tree, 28_619, 400_000_000);
        let mut sizes: Vec<u64> = (0..tree.files()).map(|file| tree.size(file)).collect();
        sizes.sort_unstable();
        let [mean, median] = [400_000_000 / sizes.len() as u64, sizes[sizes.len() / 2]];
        assert!((2 * median..5 * median).contains(&mean), "mean {mean}, median {median}");
        let levels: Vec<u32> = (0..1814).map(|number| tree.directory(number).level).collect();
        let mean = f64::from(levels.iter().sum::<u32>()) / 1814.0;
        assert!(
            (3.0..7.0).contains(&mean) && tree.levels() <= LEVELS_MAX,
            "{mean} levels, {}",
            tree.levels()
        );
        let most = (0..1814).map(|number| tree.files_of(number).len()).max().expect("directories");
        assert!((100..2000).contains(&most), "{most} files in one directory");
    }

    #[test]
    fn the_same_numbers_are_the_same_tree_for_ever() {
        let tree = source(100, 1000, 1_000_000);
        assert_eq!(tree, source(100, 1000, 1_000_000));
        let first: Vec<u64> = (0..5).map(|file| tree.size(file)).collect();
        let levels: Vec<u32> = (0..8).map(|number| tree.directory(number).level).collect();
        assert_eq!((first, levels), (GOLDEN_SIZES.to_vec(), GOLDEN_LEVELS.to_vec()));
    }

    const GOLDEN_SIZES: [u64; 5] = [258, 644, 95, 1169, 10_044];
    const GOLDEN_LEVELS: [u32; 8] = [0, 1, 2, 3, 4, 5, 3, 2];

    #[test]
    fn a_regular_tree_has_the_same_everywhere() {
        let tree = SourceTree::of(TreeShape::Regular { levels: 2, branching: 3, files: 7 });
        assert_eq!((tree.directories(), tree.levels()), (13, 2));
        check(&tree, 91, 0);
        assert!((0..13).all(|number| tree.files_of(number).len() == 7));
        let flat = SourceTree::of(TreeShape::Regular { levels: 1, branching: 0, files: 2 });
        assert_eq!((flat.directories(), flat.files()), (1, 2));
    }

    /// 110 files in 2 directories at depth 1, with 10 in each on average, and 18 at depth 2, with 5 in each.
    const COUNTS: &str = r#"{
        "sizes": [{"from": 0, "count": 10, "sum": 0}, {"from": 1024, "count": 100, "sum": 150000}],
        "levels": [
            {"leaves": [], "inner": [{"from": 0, "count": 1, "sum": 0}]},
            {"leaves": [], "inner": [{"from": 8, "count": 2, "sum": 20}]},
            {"leaves": [{"from": 4, "count": 18, "sum": 90}], "inner": []}
        ]
    }"#;

    fn like(files: u32) -> SourceTree {
        let counts = serde_json::from_str(COUNTS).expect("a census");
        let census = NamedCensus { path: "c.json".into(), sha256: "0".into(), counts };
        let numbers = LikeTree::of(&census.counts, files);
        let [directories, size] = [numbers.directories(), numbers.bytes()];
        let tree =
            SourceTree::of(TreeShape::Like { directories: 0, files, size: Bytes(0), census: census.into() });
        assert_eq!(u64::from(tree.directories()), directories, "as the plan said before");
        check(&tree, files, size);
        tree
    }

    #[test]
    fn a_tree_like_a_census_has_its_counts_and_is_the_same_for_ever() {
        let tree = like(110);
        assert_eq!(tree, like(110));
        let levels: Vec<u32> = (0..21).map(|number| tree.directory(number).level).collect();
        let depths = [0, 1, 2].map(|depth| levels.iter().filter(|level| **level == depth).count());
        assert_eq!(depths, [1, 2, 18]);
        for number in 0..21 {
            let files = tree.files_of(number).len();
            let below = (0..21).filter(|&child| child > 0 && tree.directory(child).parent == number).count();
            match tree.directory(number).level {
                0 => assert_eq!((files, below), (0, 2)),
                1 => assert!((9..=11).contains(&files) && below > 0, "{files} files, {below} directories"),
                _ => assert!((4..=6).contains(&files) && below == 0, "{files} files, {below} directories"),
            }
        }
        let mut sizes: Vec<u64> = (0..110).map(|file| tree.size(file)).collect();
        assert!(sizes[..10].iter().any(|&size| size > 0), "sizes are in random order");
        sizes.sort_unstable();
        assert_eq!((sizes[9], sizes[10], sizes[109]), (0, 1028, 1972));
    }

    #[test]
    fn trees_of_any_number_of_files_are_whole() {
        for files in [1, 2, 3, 11, 37, 109, 111, 5000] {
            like(files);
        }
    }

    proptest! {
        #[test]
        fn no_numbers_lose_anything(directories in 1..300_u32, files in 1..2000_u32, size in 0..1_u64 << 40) {
            let tree = source(directories, files, size);
            prop_assert_eq!(tree.directories(), directories);
            check(&tree, files, size);
        }
    }
}
