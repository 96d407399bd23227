//! The recording that queries of a connection refer to, and the part of it that `scan_set` selected.

use std::ops::Range;

use crate::state::EndedScan;

/// A selected recording.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SelectedScan {
    /// The name of the recording.
    pub(super) name: String,
    /// The bytes selected of it, or `None` for all.
    pub(super) part: Option<Range<u64>>,
    /// The recording, if it was found in the directories. `None` if it is one of this service.
    pub(super) stored: Option<EndedScan>,
}

/// The recording that queries refer to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LookedAtScan {
    /// Its number from 1. `None` if this service did not record it.
    pub(super) number: Option<usize>,
    pub(super) scan: EndedScan,
}

impl LookedAtScan {
    /// Its number for a reply: `?` if it has none, as on a `FlexBuff`.
    pub(super) fn number(&self) -> String {
        self.number.map_or_else(|| "?".into(), |number| number.to_string())
    }
}
