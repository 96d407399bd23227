//! The account of a recorder's source when it ends.

use nilometer_model::{Histogram, Nanos, ReaderTotals};
use nilometer_storage::process::Usage;

/// Number and timing of the frames delivered.
#[derive(Debug, Default)]
pub(super) struct SourceTotals {
    pub(super) frames: u64,
    pub(super) stopped: bool,
    pub(super) begun: Nanos,
    pub(super) lateness: Histogram,
    /// Bytes and latencies of the reads, if a recording is copied.
    pub(super) reader: Option<(ReaderTotals, Histogram)>,
    /// Why the source delivered nothing; `None` if it did.
    pub(super) fault: Option<String>,
    pub(super) usage: Usage,
    pub(super) run_delay: Nanos,
}
