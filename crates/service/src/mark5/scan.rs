//! What a recording says of its time: that of its first frame, and how long its frames last.

use nilometer_model::{Moment, Nanos};
use nilometer_recording::{
    reader::{OpenError, Recording, Trust},
    view::{Extent, RecordingView, Scan as Scanned},
};
use nilometer_wire::EPOCH;

use crate::state::EndedScan;

/// When a recording begins and how long it lasts, by the times that stand in its frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ScanSpan {
    pub(super) begin: Moment,
    pub(super) seconds: f64,
}

const SECOND: u64 = 1_000_000_000;

/// The time of a recording, from its journals and a few of its frames; none if these have no times.
pub(super) fn span(scan: &EndedScan) -> Result<Option<ScanSpan>, OpenError> {
    let recording = Recording::open(&scan.paths, Trust::Acknowledged)?;
    let scanned = Scanned::of(&RecordingView::new(recording, Extent::All));
    let Some(seconds) = scanned.seconds() else { return Ok(None) };
    let first = scanned.first.zip(scanned.survey.frames_per_second);
    Ok(first.map(|((_, stamp), rate)| {
        let within = stamp.frame.min(rate - 1) * SECOND / rate;
        ScanSpan { begin: Moment(Nanos((EPOCH + stamp.second) * SECOND + within)), seconds }
    }))
}
