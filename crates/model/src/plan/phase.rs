//! The parts of a cell that are measured by themselves, with a barrier before each.

use serde::{Deserialize, Serialize};

macro_rules! phases {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
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
        }
    };
}

phases! {
    /// What a later phase needs is made; not reported.
    LayOut = "lay out",
    /// The source of a copy is read by itself, cold: the ceiling of the copy.
    Source = "source",
    /// Data are written.
    Write = "write",
    /// They are read, cold.
    Read = "read",
    /// Reads and writes of existing data, mixed.
    Mix = "mix",
    /// Every directory is listed, every entry is looked at.
    Walk = "walk",
    /// The directories that hold the items are made.
    MakeTree = "tree creation",
    /// Directories are made in them.
    MakeDirectories = "directory creation",
    /// Directories are looked at.
    StatDirectories = "directory stat",
    /// Directories are removed.
    RemoveDirectories = "directory removal",
    /// Files are made.
    CreateFiles = "file creation",
    /// Files are looked at.
    StatFiles = "file stat",
    /// Files are opened and read.
    ReadFiles = "file read",
    /// Files get another name.
    RenameFiles = "file rename",
    /// Files are removed.
    RemoveFiles = "file removal",
    /// The directories that held the items are removed.
    RemoveTree = "tree removal",
    /// The recorder takes an instrument's frames.
    Ingest = "ingest",
}

impl Phase {
    /// The opposite of [`Phase::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Phase::ALL.iter().copied().find(|phase| phase.name() == name)
    }

    /// It only makes what a later phase needs, and is reported only if it fails.
    pub const fn is_setup(self) -> bool {
        matches!(self, Phase::LayOut)
    }
}
