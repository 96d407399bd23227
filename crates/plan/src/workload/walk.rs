//! `walk`: the operations of `ls -lR` and `du`.

use nilometer_model::{Bytes, Phase};
use serde::{Deserialize, Serialize};

use super::{
    Access, Shift, TreeLike, TreeShape,
    parameters::{Footprint, Parameters, Work, WorkloadTraits, parameters, scaled_count},
    tree_scale::TreeNumbers,
};

/// The order of walking a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WalkCommand {
    /// Like `ls -lR`: stats all entries of a directory before its subdirectories.
    #[default]
    Ls,
    /// Like `du`: enters a directory as soon as it finds one.
    Du,
}

parameters! {
    /// A tree a worker, made before: list every directory, stat every entry.
    ///
    /// The tree is a regular one of empty files, by `levels`, `branching` and `files`. Or it is one with the
    /// spread of real source trees, by `directories`, `total_files` and `total_size`; the same numbers give
    /// the same tree.
    WalkSweep => WalkCell: Clone {
        /// Make a tree like one that `nilometer census --format json` counted: the file of the census, relative to
        /// the plan. Sizes, depths and files per directory follow it, and directories and bytes too.
        #[serde(default, skip_serializing_if = "TreeLike::is_none")]
        like: TreeLike = TreeLike::None,
        /// Levels of directories below the first, of a regular tree.
        #[without(like)]
        levels: u32 = 0,
        /// Directories in each directory except the lowest, of a regular tree.
        #[without(like)]
        branching: u32 = 1,
        /// Files in each directory of a regular tree.
        #[without(like)]
        files: u32 = 1,
        /// Directories in all, the first included, of a tree like a source tree; with 0 the tree is regular.
        #[serde(default)]
        #[without(like)]
        directories: u32 = 0,
        /// Files in all of a tree like a source tree, or like a census. With 0, as many as the census has.
        #[serde(default)]
        total_files: u32 = 0,
        /// Bytes of all files of a tree like a source tree.
        #[serde(default)]
        #[without(like)]
        total_size: Bytes = Bytes(0),
        /// The order of the walk: that of `ls -lR` or of `du`.
        #[serde(default)]
        command: WalkCommand = WalkCommand::Ls,
        /// Drop this machine's caches before, also of names and inodes. The bytes that the device or the
        /// network then delivers prove it. Needs root; without it, reports say "not provable".
        #[serde(default)]
        cold: bool = true,
        /// The worker whose tree a worker walks: itself, or the worker N further. With `"node"` it is the
        /// worker in the same place on the next node. The client here never saw that tree before
        /// (docs/cluster.md).
        #[serde(default)]
        shift: Shift = Shift::OWN,
    }
}

impl WalkCell {
    /// The tree of a worker.
    pub fn shape(&self) -> TreeShape {
        let WalkCell { levels, branching, files, directories, total_files, total_size, .. } = *self;
        if directories > 0 {
            TreeShape::of(directories, total_files, total_size, &self.like)
        } else {
            TreeShape::Regular { levels, branching, files }
        }
    }
}

impl WalkCell {
    fn tree_numbers(&mut self) -> TreeNumbers<'_> {
        let WalkCell { like, directories, total_files: files, total_size: size, .. } = self;
        TreeNumbers { like, directories, files, size }
    }
}

/// A tree that a file system and this program's memory can be expected to take.
pub(super) fn check_tree(entries: u64, workers: u32) -> Result<(), String> {
    let all = entries.saturating_mul(u64::from(workers));
    if all > 100_000_000 {
        return Err(format!("the trees have {all} entries: at most 100 million"));
    }
    Ok(())
}

/// The phrase in reports if no cache is dropped.
pub(super) fn warm_phrase(cold: bool) -> Option<String> {
    (!cold).then(|| "caches as they are".into())
}

impl Parameters for WalkCell {
    fn phrases(&self) -> Vec<String> {
        let tree = self.shape().phrases().into_iter();
        tree.chain(warm_phrase(self.cold)).chain(self.shift.phrase()).collect()
    }

    fn phases(&self) -> Vec<Phase> {
        match self.command {
            WalkCommand::Ls => vec![Phase::LayOut, Phase::Walk],
            WalkCommand::Du => vec![Phase::LayOut, Phase::DiskUsage],
        }
    }

    fn block_size(&self) -> Bytes {
        Bytes(32 << 10)
    }

    fn access(&self) -> Option<Access> {
        None
    }

    fn traits(&self) -> WorkloadTraits {
        WorkloadTraits {
            shifts_by_node: self.shift == Shift::Node,
            has_workers_apart: self.shift == Shift::OWN,
            ..WorkloadTraits::default()
        }
    }

    fn footprint(&self, workers: u32) -> Footprint {
        self.shape().footprint(workers)
    }

    fn work(&self, phase: Phase, workers: u32) -> Work {
        let operations = self.footprint(workers).entries;
        let bytes = self.shape().size().0.saturating_mul(workers.into());
        if phase == Phase::LayOut { Work { bytes, operations } } else { Work::named(operations) }
    }

    fn drops_caches(&self, phase: Phase) -> bool {
        self.cold && !phase.is_setup()
    }

    fn reads_what_others_wrote(&self, phase: Phase) -> bool {
        self.shift == Shift::Node && !phase.is_setup()
    }

    fn follow_census(&mut self) {
        self.tree_numbers().follow();
    }

    fn scale(&mut self, factor: f64) {
        if self.directories > 0 {
            self.tree_numbers().scale(factor);
        } else {
            self.files = scaled_count(u64::from(self.files), factor) as u32;
        }
    }

    fn check(&self, workers: u32) -> Result<(), String> {
        let of_source = self.total_files > 0 || self.total_size.0 > 0;
        if self.directories == 0 && of_source {
            return Err(
                "total_files and total_size are of a tree like a source tree: write directories too, \
                        or files, which are those of each directory"
                    .into(),
            );
        }
        self.shape().check(workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_names_only_a_shape_is_a_regular_tree_walked_as_it_lies() {
        let cell: WalkCell = serde_json::from_str(r#"{"levels":2,"branching":3,"files":7}"#).expect("a cell");
        assert_eq!(cell.shape(), TreeShape::Regular { levels: 2, branching: 3, files: 7 });
        assert!(!cell.cold && cell.phases() == [Phase::LayOut, Phase::Walk]);
        assert_eq!(cell.phrases(), ["91 files in 13 directories", "caches as they are"]);
    }

    #[test]
    fn a_cold_walk_drops_caches_before_the_walk_and_not_before_it_lays_out() {
        let cell = |cold: bool| {
            let text = format!(r#"{{"levels":2,"branching":3,"files":7,"cold":{cold}}}"#);
            serde_json::from_str::<WalkCell>(&text).expect("a cell")
        };
        let dropped =
            |cold| cell(cold).phases().into_iter().filter(move |&phase| cell(cold).drops_caches(phase));
        assert_eq!(dropped(true).collect::<Vec<_>>(), [Phase::Walk]);
        assert_eq!(dropped(false).next(), None);
    }
}
