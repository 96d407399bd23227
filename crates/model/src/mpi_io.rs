//! What carried out MPI-IO, and with which hints.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// What carries out MPI-IO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MpiIoImplementation {
    /// That of Open MPI.
    Ompio,
    /// That of MPICH and of what is made of it, which Open MPI has too.
    Romio,
}

/// What a file is opened with, by key: `MPI_Info`.
pub type MpiIoHints = BTreeMap<String, String>;

/// What a file was really opened by and with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MpiIoInForce {
    /// What carried it out.
    pub implementation: MpiIoImplementation,
    /// The MPI that it belongs to, in its own words.
    pub library: String,
    /// All hints that the library says to go by.
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

    /// The word in plans and reports.
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
