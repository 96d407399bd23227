//! What processes saw of files that another one wrote and closed.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Counts of files, each once for each process that looked for it. Every one of the first five is a fault where storage
/// promises close-to-open consistency: who opens a file after it was closed sees all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FilesSeen {
    /// Looked for.
    pub files: u64,
    /// Closed, and not there when it was opened.
    pub missing: u64,
    /// Closed, and shorter than it should be.
    pub short: u64,
    /// Closed, and with other contents than were written last.
    pub stale: u64,
    /// There, while the file that was closed before it was made was not, or not whole.
    pub out_of_order: u64,
    /// Not seen whole and right within the patience of who looked.
    pub never: u64,
    /// The longest time from its close until one was seen whole and right.
    pub longest: Nanos,
}

impl FilesSeen {
    /// Whether every file was whole for everybody who opened it after its close.
    pub fn kept_close_to_open(&self) -> bool {
        let Self { missing, short, stale, never, .. } = *self;
        missing + short + stale + never == 0
    }

    /// What several processes saw.
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
