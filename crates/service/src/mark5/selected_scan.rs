//! The recording that queries of a connection refer to, and the part of it that `scan_set` selected.

use std::ops::Range;

/// A selected recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SelectedScan {
    /// The name of the recording.
    pub(super) name: String,
    /// The bytes selected of it, or `None` for all.
    pub(super) part: Option<Range<u64>>,
}
