//! The implementation of MPI-IO in use, and its hints.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// An implementation of MPI-IO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MpiIoImplementation {
    /// The one of Open MPI.
    Ompio,
    /// The one of MPICH and its derivatives; Open MPI has it too.
    Romio,
}

/// Hints for opening a file, by key: `MPI_Info`.
pub type MpiIoHints = BTreeMap<String, String>;

/// The implementation and hints that were really in force for a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MpiIoInForce {
    /// The implementation.
    pub implementation: MpiIoImplementation,
    /// The MPI that it belongs to, as the library describes itself.
    pub library: String,
    /// All hints that the library reports to follow.
    pub hints: MpiIoHints,
}

impl fmt::Display for MpiIoInForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MpiIoInForce { implementation, library, hints } = self;
        write!(f, "{implementation} ({library})")?;
        let mut said = hints.iter().map(|(key, value)| format!("{key} = {value}"));
        said.try_for_each(|hint| write!(f, ", {hint}"))
    }
}

impl MpiIoImplementation {
    /// All of them, in the order in which reports show them.
    pub const ALL: [MpiIoImplementation; 2] = [MpiIoImplementation::Ompio, MpiIoImplementation::Romio];

    /// Its word in plans and reports.
    pub const fn name(self) -> &'static str {
        match self {
            MpiIoImplementation::Ompio => "ompio",
            MpiIoImplementation::Romio => "romio",
        }
    }
}

impl fmt::Display for MpiIoImplementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
