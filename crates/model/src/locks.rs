//! What processes saw of a lock that they took in turn.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Counts of attempts, of all processes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LocksSeen {
    /// Attempts to take it while another process had it.
    pub tries: u64,
    /// Of these, those that got it: the lock excluded nobody.
    pub broken: u64,
    /// Times that it was given back, and the process that waited for it got it.
    pub passed: u64,
    /// The longest time from giving it back until the next one had it.
    pub longest: Nanos,
}

impl LocksSeen {
    /// What several processes saw.
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
