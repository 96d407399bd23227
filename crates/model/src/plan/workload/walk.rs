//! `walk`: what `ls -lR` does.

use super::{
    Access, Phase, Shift,
    parameters::{Footprint, Parameters, Work, parameters, scaled_count},
};
use crate::Bytes;

parameters! {
    /// A tree of empty files a worker, made before: list every directory, stat every entry.
    WalkSweep => WalkCell {
        /// Levels of directories below the first.
        levels: u32,
        /// Directories in each directory but the lowest.
        branching: u32,
        /// Files in each directory.
        files: u32,
        /// Whose tree a worker walks: its own, that of the worker N further, or with `"node"` that of the worker in the same
        /// place on the next node, which the client here never saw before (docs/cluster.md).
        #[serde(default)]
        shift: Shift = Shift::OWN,
    }
}

impl WalkCell {
    /// Directories of a worker's tree, the first included.
    pub fn directories(&self) -> u64 {
        directories(self.levels, self.branching)
    }

    /// Files of a worker's tree.
    pub fn all_files(&self) -> u64 {
        self.directories().saturating_mul(u64::from(self.files))
    }
}

/// Directories of a tree, the first included.
pub(super) fn directories(levels: u32, branching: u32) -> u64 {
    // Above 64 levels of 2 the sum is at its limit; a tree of 1 has as many directories as levels.
    let counted = if branching > 1 { levels.min(64) } else { levels };
    (0..=counted).map(|level| u64::from(branching).saturating_pow(level)).fold(0, u64::saturating_add)
}

/// A tree that a file system and this program's memory can be expected to take.
pub(super) fn check_tree(entries: u64, workers: u32) -> Result<(), String> {
    let all = entries.saturating_mul(u64::from(workers));
    if all > 100_000_000 {
        return Err(format!("the trees have {all} entries: at most 100 million"));
    }
    Ok(())
}

impl Parameters for WalkCell {
    fn phrases(&self) -> Vec<String> {
        let files = format!("{} files in {} directories", self.all_files(), self.directories());
        std::iter::once(files).chain(self.shift.phrase()).collect()
    }

    fn phases(&self) -> Vec<Phase> {
        vec![Phase::LayOut, Phase::Walk]
    }

    fn block_size(&self) -> Bytes {
        Bytes(32 << 10)
    }

    fn access(&self) -> Option<Access> {
        None
    }

    fn footprint(&self, workers: u32) -> Footprint {
        let entries = self.all_files().saturating_add(self.directories()).saturating_mul(u64::from(workers));
        Footprint { bytes: Bytes(entries.saturating_mul(4096)), entries }
    }

    fn work(&self, _phase: Phase, workers: u32) -> Work {
        Work::named(self.footprint(workers).entries)
    }

    fn shifts_by_node(&self) -> bool {
        self.shift == Shift::Node
    }

    fn reads_what_others_wrote(&self, phase: Phase) -> bool {
        self.shift == Shift::Node && phase == Phase::Walk
    }

    fn scale(&mut self, factor: f64) {
        self.files = scaled_count(u64::from(self.files), factor) as u32;
    }

    fn check(&self, workers: u32) -> Result<(), String> {
        check_tree(self.all_files().saturating_add(self.directories()), workers)
    }
}
