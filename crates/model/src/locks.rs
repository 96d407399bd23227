//! The results of processes that take a lock in turn.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Counts of attempts, of all processes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LocksSeen {
    /// Attempts to take it while another process had it.
    pub tries: u64,
    /// Attempts that got it nevertheless: the lock excluded nobody.
    pub broken: u64,
    /// Times that a process released it and the waiting process got it.
    pub passed: u64,
    /// The longest time from a release until the next process had it.
    pub longest: Nanos,
}

impl LocksSeen {
    /// The sum over several processes.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        LocksSeen {
            tries: self.tries + other.tries,
            broken: self.broken + other.broken,
            passed: self.passed + other.passed,
            longest: self.longest.max(other.longest),
        }
    }
}
