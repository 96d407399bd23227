//! The directories and file sizes of a tree that is like a census, in the order in which they are drawn.
//!
//! The counts say how many directories of each depth have directories in them, and how many files. Chance decides
//! which of them is in which directory of the depth above, and which file has which size.

use nilometer_model::{RandomStream, Seed};
use nilometer_plan::{LikeLevel, LikeTree, NamedCensus, ValueClass};

/// Directories and files before they are numbered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DrawnTree {
    /// The parent of each directory, which comes before it; 0 for the first, which has none.
    pub(super) parents: Vec<u32>,
    /// The number of files of each directory.
    pub(super) files: Vec<u64>,
    /// The size of each file in bytes.
    pub(super) sizes: Vec<u64>,
}

/// A directory of a depth.
#[derive(Debug, Clone, Copy)]
struct DrawnDirectory {
    files: u64,
    is_inner: bool,
}

/// Draws a tree with this number of files. The same census and number give the same tree.
pub(super) fn drawn(census: &NamedCensus, files: u32, seed: Seed) -> DrawnTree {
    let LikeTree { sizes, levels } = LikeTree::of(&census.counts, files);
    let mut sizes: Vec<u64> = sizes.into_iter().flat_map(ValueClass::values).collect();
    shuffle(&mut sizes, &mut seed.named("sizes").stream());
    let mut tree = DrawnTree { parents: Vec::new(), files: Vec::new(), sizes };
    let mut stream = seed.named("directories").stream();
    let mut above = vec![0];
    for (depth, level) in levels.iter().enumerate() {
        let below = levels.get(depth + 1).map_or(0, LikeLevel::directories);
        above = tree.add(directories(level, below, &mut stream), &above, &mut stream);
    }
    tree
}

impl DrawnTree {
    /// Adds the directories of a depth in those `above`. Each of these gets one first, and chance places the rest.
    /// Returns the numbers of those that have directories in them.
    fn add(
        &mut self,
        directories: Vec<DrawnDirectory>,
        above: &[u32],
        stream: &mut RandomStream,
    ) -> Vec<u32> {
        let mut inner = Vec::new();
        for (place, DrawnDirectory { files, is_inner }) in directories.into_iter().enumerate() {
            let number = self.parents.len() as u32;
            let chosen = above.get(place).copied();
            self.parents.push(chosen.unwrap_or_else(|| above[stream.below(above.len() as u64) as usize]));
            self.files.push(files);
            inner.extend(is_inner.then_some(number));
        }
        inner
    }
}

/// The directories of a depth in random order. No more of them have directories in them than there are `below`; at
/// least one has, if there are any.
fn directories(level: &LikeLevel, below: u64, stream: &mut RandomStream) -> Vec<DrawnDirectory> {
    let values = |classes: &[ValueClass], is_inner| {
        let values = classes.iter().copied().flat_map(ValueClass::values);
        values.map(move |files| DrawnDirectory { files, is_inner }).collect::<Vec<_>>()
    };
    let mut all = [values(&level.inner, true), values(&level.leaves, false)].concat();
    shuffle(&mut all, stream);
    let mut left = below;
    for directory in all.iter_mut().filter(|directory| directory.is_inner) {
        directory.is_inner = left > 0;
        left = left.saturating_sub(1);
    }
    if left == below && below > 0 {
        all[0].is_inner = true;
    }
    all
}

/// Fisher and Yates: each order is as likely as any other.
fn shuffle<T>(all: &mut [T], stream: &mut RandomStream) {
    for last in (1..all.len()).rev() {
        all.swap(last, stream.below(last as u64 + 1) as usize);
    }
}
