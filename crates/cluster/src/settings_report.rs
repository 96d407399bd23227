//! The report of a process on the settings of its machine.

use serde::{Deserialize, Serialize};

/// The work of a process on the settings of its machine. Its lines name the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsReport {
    /// Notes for the record.
    pub notes: Vec<String>,
    /// The reasons why a setting can't be applied or taken back.
    pub failed: Vec<String>,
}

impl SettingsReport {
    /// The same report with the name of the machine before each line.
    #[must_use]
    pub fn on(self, node: &str) -> Self {
        let named = |lines: Vec<String>| lines.into_iter().map(|line| format!("{node}: {line}")).collect();
        SettingsReport { notes: named(self.notes), failed: named(self.failed) }
    }

    /// All reasons of failures as one; none is success.
    pub fn outcome(&self) -> Result<(), String> {
        if self.failed.is_empty() { Ok(()) } else { Err(self.failed.join("; ")) }
    }
}

impl From<Result<(), String>> for SettingsReport {
    fn from(done: Result<(), String>) -> Self {
        SettingsReport { failed: done.err().into_iter().collect(), ..SettingsReport::default() }
    }
}
