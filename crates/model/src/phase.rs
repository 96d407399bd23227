//! The phases of the measurement of a cell.

use serde::{Deserialize, Serialize};

use crate::Capability;

macro_rules! phases {
    ($($(#[$doc:meta])* $name:ident = $word:literal needs [$($need:ident),*],)*) => {
        /// A part of a cell that Nilometer measures by itself, after a barrier.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Phase {
            $($(#[$doc])* $name,)*
        }

        impl Phase {
            /// Every phase, in the order in which reports show them.
            pub const ALL: &'static [Phase] = &[$(Phase::$name),*];

            /// Its word in the record and in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Phase::$name => $word,)* }
            }

            /// The capabilities that a target must have for it, in any workload.
            pub const fn needs(self) -> &'static [Capability] {
                match self { $(Phase::$name => &[$(Capability::$need),*],)* }
            }
        }
    };
}

phases! {
    /// Makes the data that a later phase needs; reports leave it out.
    LayOut = "lay out" needs [Write],
    /// Reads the source of a copy by itself, cold: the ceiling of the copy.
    Source = "source" needs [Keep, Read],
    /// Writes the data.
    Write = "write" needs [Write],
    /// Writes the data once more, into the same files in the same order, by the same workers.
    Rewrite = "rewrite" needs [WriteAnywhere],
    /// Reads the data, cold.
    Read = "read" needs [Read],
    /// Reads the data once more, by the same workers, and drops nothing from a cache.
    ReadAgain = "read again" needs [Read],
    /// Mixes reads and writes of existing data.
    Mix = "mix" needs [Read, WriteAnywhere],
    /// Lists every directory and stats every entry: all of a directory before its subdirectories.
    Walk = "ls -lR" needs [Keep, List],
    /// Lists and stats like `ls -lR`, but enters a directory as soon as it finds one.
    DiskUsage = "du" needs [Keep, List],
    /// Makes and fills a tree of directories and files. An operation is a file, from its open (which creates
    /// it) to its close.
    Unpack = "untar" needs [Write, Directories],
    /// Finds all files of a tree, reads them whole and searches them. An operation is a file, from its open
    /// to its close.
    Search = "grep" needs [Keep, Read, List],
    /// Opens random files of a tree and reads their first and last bytes. An operation is a file, from its
    /// open to its close.
    OpenFiles = "open" needs [Keep, Read],
    /// Reads sources and headers, writes and renames objects, and links them into one file. An operation is a
    /// file, from its open to its close.
    Build = "make" needs [Keep, Read, Directories, Rename],
    /// Makes the directories of the tree that hold the items. An operation is a directory.
    MakeTree = "tree creation" needs [Directories],
    /// Makes directories in the tree. An operation is a directory.
    MakeDirectories = "directory creation" needs [Directories],
    /// Stats the directories. An operation is a directory.
    StatDirectories = "directory stat" needs [List],
    /// Removes the directories. An operation is a directory.
    RemoveDirectories = "directory removal" needs [Remove],
    /// Creates and fills files. An operation is a file, from its open (which creates it) to its close.
    CreateFiles = "file creation" needs [Write],
    /// Stats the files. An operation is a file.
    StatFiles = "file stat" needs [List],
    /// Opens files and reads them to their end. An operation is a file, from its open to its close. Caches
    /// are not dropped before, so data that this machine wrote may come from its memory.
    ReadFiles = "file read" needs [Read],
    /// Renames files within their directory. An operation is a file.
    RenameFiles = "file rename" needs [Rename],
    /// Removes the files. An operation is a file.
    RemoveFiles = "file removal" needs [Remove],
    /// Removes the directories of the tree. An operation is a directory.
    RemoveTree = "tree removal" needs [Remove],
    /// Processes look for files of another process. An operation is a file that one of them saw whole. Its
    /// latency is the time since the close of the file.
    Visibility = "visibility" needs [Keep, Read, WriteAnywhere],
    /// Processes lock a file in turn. An operation is a lock that a process had waited for. Its latency is
    /// the time since the release.
    Locks = "locks" needs [Keep, Write],
    /// Waits for given times. An operation is one of them, and does nothing on the storage.
    Wait = "wait" needs [],
    /// A figure of a whole task from another program or a publication. An operation is such a task, or the
    /// unit that the source counts.
    Given = "given" needs [],
    /// The recorder takes an instrument's frames.
    Ingest = "ingest" needs [Write],
}

impl Phase {
    /// The opposite of [`Phase::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Phase::ALL.iter().copied().find(|phase| phase.name() == name)
    }

    /// True if it can run again and again on the same data.
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

    /// True if it only makes the data for a later phase; reports show it only if it fails.
    pub const fn is_setup(self) -> bool {
        matches!(self, Phase::LayOut)
    }
}
