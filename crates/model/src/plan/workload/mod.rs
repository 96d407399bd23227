//! The workloads that a stage can name, and the phases that they are measured in. A new workload is a file of parameters
//! beside this one, its lines in the lists here, and a phase if none of these is one of its own.

mod build;
mod frames;
mod hot_file;
mod locks;
mod open_files;
mod random;
mod search;
mod small_writes;
mod source_tree;
mod stream;
mod tree;
mod unpack;
mod visibility;
mod wait;
mod walk;

pub use build::{BuildCell, BuildSweep, FileRole, OBJECT_TIMES};
pub use frames::{FrameFile, FrameRead, FramesCell, FramesSweep, Split};
pub use hot_file::{HotFileCell, HotFileSweep};
pub use locks::{LocksCell, LocksSweep};
pub use open_files::{OpenFilesCell, OpenFilesSweep};
pub use random::{Coverage, Mode, RandomCell, RandomSweep};
pub use search::{SearchCell, SearchSweep};
pub use small_writes::{AT_ONCE_MAX, SmallWritesCell, SmallWritesSweep, Way};
pub use source_tree::TreeShape;
pub use stream::{DataSource, FileLayout, StreamCell, StreamSweep};
pub use tree::{Directories, Items, TreeCell, TreeSweep};
pub use unpack::{FILE_BLOCK, UnpackCell, UnpackSweep};
pub use visibility::{Notice, VisibilityCell, VisibilitySweep};
pub use wait::{WaitCell, WaitSweep};
pub use walk::{WalkCell, WalkCommand, WalkSweep};

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    Access, MpiIoCalls, PlanKey, Shift, Sweep, SyncPolicy, parameters, parameters::Parameters, reference,
};
use crate::Capability;

macro_rules! phases {
    ($($(#[$doc:meta])* $name:ident = $word:literal needs [$($need:ident),*],)*) => {
        /// A part of a cell that is measured by itself, with a barrier before it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Phase {
            $($(#[$doc])* $name,)*
        }

        impl Phase {
            /// Every phase, in the order in which reports show them.
            pub const ALL: &'static [Phase] = &[$(Phase::$name),*];

            /// The word in the record and in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Phase::$name => $word,)* }
            }

            /// What a target must be able to do for it, whatever the workload.
            pub const fn needs(self) -> &'static [Capability] {
                match self { $(Phase::$name => &[$(Capability::$need),*],)* }
            }
        }
    };
}

phases! {
    /// What a later phase needs is made; not reported.
    LayOut = "lay out" needs [Write],
    /// The source of a copy is read by itself, cold: the ceiling of the copy.
    Source = "source" needs [Keep, Read],
    /// Data are written.
    Write = "write" needs [Write],
    /// They are written once more, into the same files in the same order, by the same workers.
    Rewrite = "rewrite" needs [WriteAnywhere],
    /// They are read, cold.
    Read = "read" needs [Read],
    /// They are read once more, by the same workers, and nothing is dropped from a cache.
    ReadAgain = "read again" needs [Read],
    /// Reads and writes of existing data, mixed.
    Mix = "mix" needs [Read, WriteAnywhere],
    /// Every directory is listed, every entry is looked at: all of a directory, and then those below.
    Walk = "ls -lR" needs [Keep, List],
    /// The same, but a directory is entered when it is come upon.
    DiskUsage = "du" needs [Keep, List],
    /// A tree of directories and files is made and filled. An operation is a file, from its open (which creates it) to its close.
    Unpack = "untar" needs [Write, Directories],
    /// All files of a tree are found, read whole and searched. An operation is a file, from its open to its close.
    Search = "grep" needs [Keep, Read, List],
    /// Random files of a tree are opened, and their first and last bytes are read. An operation is a file, from its open to its
    /// close.
    OpenFiles = "open" needs [Keep, Read],
    /// Sources and headers are read, objects written and renamed, and all of them made one file. An operation is a file, from its
    /// open to its close.
    Build = "make" needs [Keep, Read, Directories, Rename],
    /// The directories of the tree, which hold the items, are made. An operation is a directory.
    MakeTree = "tree creation" needs [Directories],
    /// Directories are made in them. An operation is a directory, as in the next two.
    MakeDirectories = "directory creation" needs [Directories],
    /// Directories are looked at.
    StatDirectories = "directory stat" needs [List],
    /// Directories are removed.
    RemoveDirectories = "directory removal" needs [Remove],
    /// Files are made and filled. An operation is a file, from its open (which creates it) to its close.
    CreateFiles = "file creation" needs [Write],
    /// Files are looked at. An operation is a file.
    StatFiles = "file stat" needs [List],
    /// Files are opened and read to their end. An operation is a file, from its open to its close. Nothing is dropped from a
    /// cache before: no claim is made where the data come from, and what this machine wrote it may find in its memory.
    ReadFiles = "file read" needs [Read],
    /// Files get another name in the same directory. An operation is a file.
    RenameFiles = "file rename" needs [Rename],
    /// Files are removed. An operation is a file.
    RemoveFiles = "file removal" needs [Remove],
    /// The directories of the tree are removed. An operation is a directory.
    RemoveTree = "tree removal" needs [Remove],
    /// Processes look for what another one wrote. An operation is a file that one of them saw whole, and its latency the time
    /// since the file was closed.
    Visibility = "visibility" needs [Keep, Read, WriteAnywhere],
    /// Processes lock a file in turn. An operation is a lock that one of them had waited for, and its latency the time since
    /// it was given back.
    Locks = "locks" needs [Keep, Write],
    /// Given times are waited for. An operation is one of them, and asks nothing of the storage.
    Wait = "wait" needs [],
    /// A figure that another program or a publication gives, of a task as a whole. An operation is such a task, or what the
    /// source counts.
    Given = "given" needs [],
    /// The recorder takes an instrument's frames.
    Ingest = "ingest" needs [Write],
}

impl Phase {
    /// The opposite of [`Phase::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Phase::ALL.iter().copied().find(|phase| phase.name() == name)
    }

    /// It may be done again and again with what is there.
    pub const fn is_repeatable(self) -> bool {
        matches!(
            self,
            Phase::Read
                | Phase::ReadAgain
                | Phase::Rewrite
                | Phase::Mix
                | Phase::Walk
                | Phase::DiskUsage
                | Phase::Search
                | Phase::OpenFiles
                | Phase::StatDirectories
                | Phase::StatFiles
                | Phase::ReadFiles
                | Phase::Wait
        )
    }

    /// It only makes what a later phase needs, and is reported only if it fails.
    pub const fn is_setup(self) -> bool {
        matches!(self, Phase::LayOut)
    }
}

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
            pub fn reference() -> Vec<(&'static str, String, Vec<PlanKey>)> {
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
    /// One file that all read at the same time.
    HotFile(HotFileSweep, HotFileCell) = "hot_file",
    /// What mdtest does.
    Tree(TreeSweep, TreeCell) = "tree",
    /// What `ls -lR` and `du` do.
    Walk(WalkSweep, WalkCell) = "walk",
    /// What `tar -x` does: a tree of many small files.
    Unpack(UnpackSweep, UnpackCell) = "unpack",
    /// What recursive grep does: all files of a tree are read and searched.
    Search(SearchSweep, SearchCell) = "search",
    /// Random files of a tree are opened, their first and last bytes read.
    OpenFiles(OpenFilesSweep, OpenFilesCell) = "open_files",
    /// What `make -j` asks of the storage.
    Build(BuildSweep, BuildCell) = "build",
    /// What one process writes, and when the others see it.
    Visibility(VisibilitySweep, VisibilityCell) = "visibility",
    /// A file that processes lock in turn.
    Locks(LocksSweep, LocksCell) = "locks",
    /// Nothing but waiting until given times: what the tool and its machine do to a figure.
    Wait(WaitSweep, WaitCell) = "wait",
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
