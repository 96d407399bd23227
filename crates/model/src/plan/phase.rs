//! The parts of a cell that are measured by themselves, with a barrier before each.

use serde::{Deserialize, Serialize};

use crate::Capability;

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
    /// The directories of the tree, which hold the items, are made. An operation is a directory.
    MakeTree = "tree creation",
    /// Directories are made in them. An operation is a directory, as in the next two.
    MakeDirectories = "directory creation",
    /// Directories are looked at.
    StatDirectories = "directory stat",
    /// Directories are removed.
    RemoveDirectories = "directory removal",
    /// Files are made and filled. An operation is a file, from its open (which creates it) to its close.
    CreateFiles = "file creation",
    /// Files are looked at. An operation is a file.
    StatFiles = "file stat",
    /// Files are opened and read to their end. An operation is a file, from its open to its close. Nothing is dropped from a
    /// cache before: no claim is made where the data come from, and what this machine wrote it may find in its memory.
    ReadFiles = "file read",
    /// Files get another name in the same directory. An operation is a file.
    RenameFiles = "file rename",
    /// Files are removed. An operation is a file.
    RemoveFiles = "file removal",
    /// The directories of the tree are removed. An operation is a directory.
    RemoveTree = "tree removal",
    /// The recorder takes an instrument's frames.
    Ingest = "ingest",
}

impl Phase {
    /// The opposite of [`Phase::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Phase::ALL.iter().copied().find(|phase| phase.name() == name)
    }

    /// What a target must be able to do for it, whatever the workload.
    pub const fn needs(self) -> &'static [Capability] {
        match self {
            Phase::LayOut | Phase::Write | Phase::CreateFiles => &[Capability::Write],
            Phase::Source => &[Capability::Keep, Capability::Read],
            Phase::Read | Phase::ReadFiles => &[Capability::Read],
            Phase::Mix => &[Capability::Read, Capability::WriteAnywhere],
            Phase::Walk => &[Capability::Keep, Capability::List],
            Phase::MakeTree | Phase::MakeDirectories => &[Capability::Directories],
            Phase::StatDirectories | Phase::StatFiles => &[Capability::List],
            Phase::RemoveDirectories | Phase::RemoveFiles | Phase::RemoveTree => &[Capability::Remove],
            Phase::RenameFiles => &[Capability::Rename],
            Phase::Ingest => &[Capability::WriteAnywhere, Capability::Sync],
        }
    }

    /// It only makes what a later phase needs, and is reported only if it fails.
    pub const fn is_setup(self) -> bool {
        matches!(self, Phase::LayOut)
    }
}
