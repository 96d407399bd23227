//! The workloads that a stage can name. A new one is a file of parameters beside this one and a line in the list.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    FramesCell, FramesSweep, Phase, RandomCell, RandomSweep, SmallWritesCell, SmallWritesSweep, StreamCell,
    StreamSweep, TreeCell, TreeSweep, WalkCell, WalkSweep, parameters::Parameters,
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
                        sweep.cells().into_iter().map(WorkloadCell::$name).collect()
                    })*
                }
            }
        }

        impl WorkloadCell {
            /// The workload's word in plans and reports.
            pub const fn name(&self) -> &'static str {
                match self { $(WorkloadCell::$name(_) => $word,)* }
            }

            /// Every workload: its word, what it is, its parameters.
            pub fn reference() -> Vec<(&'static str, String, Vec<super::PlanKey>)> {
                vec![$(($word, [$($doc),*].join(" ").trim().to_owned(), $cell::keys()),)*]
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
    /// What mdtest does.
    Tree(TreeSweep, TreeCell) = "tree",
    /// What `ls -lR` does.
    Walk(WalkSweep, WalkCell) = "walk",
}

impl WorkloadCell {
    /// Data come from files in the plan's source directory.
    pub fn copies(&self) -> bool {
        self.parameters().phases().contains(&Phase::Source)
    }
}

impl fmt::Display for WorkloadCell {
    /// The parameters, as reports name the cell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parameters().phrases().join(", "))
    }
}
