//! The files that another process wrote and closed, as other processes saw them.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Counts of files, each once for each process that looked for it.
///
/// `missing` to `never` are faults if storage promises close-to-open consistency: a process that opens a file
/// after its close sees all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FilesSeen {
    /// Files looked for.
    pub files: u64,
    /// Closed files that were missing at their open.
    pub missing: u64,
    /// Closed files that were too short.
    pub short: u64,
    /// Closed files with older contents than the last ones written.
    pub stale: u64,
    /// Files that were there although a file closed before their creation was missing or incomplete.
    pub out_of_order: u64,
    /// Files never seen whole and right within the patience of the observer.
    pub never: u64,
    /// The longest time from a close until a process saw the file whole and right.
    pub longest: Nanos,
}

impl FilesSeen {
    /// Returns true if every file was whole for every process that opened it after its close.
    pub fn kept_close_to_open(&self) -> bool {
        let Self { missing, short, stale, never, .. } = *self;
        missing + short + stale + never == 0
    }

    /// The sum over several processes.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        FilesSeen {
            files: self.files + other.files,
            missing: self.missing + other.missing,
            short: self.short + other.short,
            stale: self.stale + other.stale,
            out_of_order: self.out_of_order + other.out_of_order,
            never: self.never + other.never,
            longest: self.longest.max(other.longest),
        }
    }
}
