//! The workloads that a stage can use, and their phases. To add a workload, write a file of parameters beside
//! this one. Then add its lines to the lists here, and a new phase if none fits.

mod build;
mod frames;
mod hot_file;
mod like;
mod like_tree;
mod locks;
mod open_files;
mod quantiles;
mod random;
mod search;
mod small_writes;
mod source_tree;
mod stream;
mod tree;
mod tree_census;
mod tree_scale;
mod unpack;
mod visibility;
mod wait;
mod walk;

pub use build::{BuildCell, BuildSweep, FileRole, OBJECT_TIMES};
pub use frames::{FrameFile, FrameRead, FramesCell, FramesSweep, Split};
pub use hot_file::{HotFileCell, HotFileSweep};
pub use like::{CensusText, NamedCensus, TreeLike};
pub use like_tree::{LikeLevel, LikeTree, ValueClass};
pub use locks::{LocksCell, LocksSweep};
pub use open_files::{OpenFilesCell, OpenFilesSweep};
pub use random::{Coverage, Mode, RandomCell, RandomSweep};
pub use search::{SearchCell, SearchSweep};
pub use small_writes::{AT_ONCE_MAX, SmallWritesCell, SmallWritesSweep, Way};
pub use source_tree::TreeShape;
pub use stream::{DataSource, FileLayout, StreamCell, StreamSweep};
pub use tree::{Directories, Items, TreeCell, TreeSweep};
pub use tree_census::{LevelRanges, TreeCensus};
pub use unpack::{FILE_BLOCK, UnpackCell, UnpackSweep};
pub use visibility::{Notice, VisibilityCell, VisibilitySweep};
pub use wait::{WaitCell, WaitSweep};
pub use walk::{WalkCell, WalkCommand, WalkSweep};

use std::fmt;

use nilometer_model::Phase;
use serde::{Deserialize, Serialize};

use super::{
    Access, KeyValue, MpiIoCalls, Shift, Sweep, SyncPolicy, ValueKind,
    parameters::{self, KeyRule, Parameters},
};

macro_rules! workloads {
    ($($(#[doc = $doc:literal])* $name:ident($sweep:ident, $cell:ident) = $word:literal,)*) => {
        /// A workload with its parameters, each of which may be a list.
        #[derive(Debug, Clone, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum WorkloadSweep {
            $($(#[doc = $doc])* $name($sweep),)*
        }

        /// One combination of a workload's parameters.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum WorkloadCell {
            $($(#[doc = $doc])* $name($cell),)*
        }

        impl WorkloadSweep {
            /// The matrix of the workload's own parameters.
            pub(super) fn cells(&self) -> Vec<WorkloadCell> {
                match self {
                    $(WorkloadSweep::$name(sweep) => {
                        let cells = sweep.cells().into_iter().map(following_census);
                        cells.map(WorkloadCell::$name).collect()
                    })*
                }
            }

            /// The first rule about keys that the plan breaks.
            pub(super) fn broken_rule(&self) -> Option<KeyRule> {
                let (written, rules) = match self {
                    $(WorkloadSweep::$name(sweep) => (sweep.written(), $sweep::RULES),)*
                };
                rules.iter().copied().find(|rule| rule.is_broken_by(&written))
            }
        }

        impl KeyValue for WorkloadSweep {
            fn kind() -> ValueKind {
                ValueKind::OneOf(vec![$(($word, [$($doc),*].join(" ").trim().to_owned(), $cell::keys()),)*])
            }
        }

        impl WorkloadCell {
            /// The workload's word in plans and reports.
            pub const fn name(&self) -> &'static str {
                match self { $(WorkloadCell::$name(_) => $word,)* }
            }

            /// Its parameters.
            pub fn parameters(&self) -> &dyn Parameters {
                match self { $(WorkloadCell::$name(cell) => cell,)* }
            }

            pub(super) fn parameters_mut(&mut self) -> &mut dyn Parameters {
                match self { $(WorkloadCell::$name(cell) => cell,)* }
            }
        }
    };
}

workloads! {
    /// Sequential write of files, then a cold sequential read.
    Stream(StreamSweep, StreamCell) = "stream",
    /// Aligned random reads, writes or both.
    Random(RandomSweep, RandomCell) = "random",
    /// One large amount as tiny writes, against the same amount at once.
    SmallWrites(SmallWritesSweep, SmallWritesCell) = "small_writes",
    /// Two-dimensional frames into one file of three dimensions or one each, then a cold read.
    Frames(FramesSweep, FramesCell) = "frames",
    /// One file that all read at the same time.
    HotFile(HotFileSweep, HotFileCell) = "hot_file",
    /// The operations of mdtest on a tree of files and directories.
    Tree(TreeSweep, TreeCell) = "tree",
    /// The operations of `ls -lR` and `du`.
    Walk(WalkSweep, WalkCell) = "walk",
    /// The operations of `tar -x`: a tree of many small files.
    Unpack(UnpackSweep, UnpackCell) = "unpack",
    /// The operations of recursive grep: read and search all files of a tree.
    Search(SearchSweep, SearchCell) = "search",
    /// Opens random files of a tree, and reads their first and last bytes.
    OpenFiles(OpenFilesSweep, OpenFilesCell) = "open_files",
    /// The storage operations of `make -j`.
    Build(BuildSweep, BuildCell) = "build",
    /// Files that one process writes, and the time until others see them.
    Visibility(VisibilitySweep, VisibilityCell) = "visibility",
    /// A file that processes lock in turn.
    Locks(LocksSweep, LocksCell) = "locks",
    /// Waits until given times, and uses no storage. Shows the effect of the tool and its machine.
    Wait(WaitSweep, WaitCell) = "wait",
}

/// The same cell with the numbers of its census, if it has one.
fn following_census<T: Parameters>(mut cell: T) -> T {
    cell.follow_census();
    cell
}

impl WorkloadSweep {
    /// The trees that its tree resembles, if it has a tree and a plan says so.
    pub(super) fn likes(&mut self) -> Option<&mut Sweep<TreeLike>> {
        match self {
            WorkloadSweep::Walk(sweep) => sweep.like.as_mut(),
            WorkloadSweep::Unpack(sweep) => sweep.like.as_mut(),
            WorkloadSweep::Search(sweep) => sweep.like.as_mut(),
            WorkloadSweep::OpenFiles(sweep) => sweep.like.as_mut(),
            WorkloadSweep::Build(sweep) => sweep.like.as_mut(),
            _ => None,
        }
    }
}

impl WorkloadCell {
    /// True if data come from files on another storage system.
    pub fn copies(&self) -> bool {
        self.parameters().phases().contains(&Phase::Source) || self.migrates()
    }

    /// True if it copies a tree from the target to other storage, which only a load does.
    pub fn migrates(&self) -> bool {
        matches!(self, WorkloadCell::Unpack(cell) if cell.is_copied())
    }
}

impl fmt::Display for WorkloadCell {
    /// The parameters, as reports name the cell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parameters().phrases().join(", "))
    }
}
