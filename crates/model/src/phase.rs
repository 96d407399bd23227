//! The phases that a cell is measured in.

use serde::{Deserialize, Serialize};

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
