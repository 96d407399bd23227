//! The time of a recording: the time of its first frame, and the duration of its frames.

use nilometer_model::Moment;
use nilometer_recording::{
    reader::{OpenError, Recording, Trust},
    view::{Extent, RecordingView, Scan as Scanned},
};

use crate::state::EndedScan;

/// The begin and duration of a recording, from the times in its frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ScanSpan {
    pub(super) begin: Moment,
    pub(super) seconds: f64,
}

/// The time span of a recording, from its journals and a few frames; `None` if these carry no times.
pub(super) fn span(scan: &EndedScan) -> Result<Option<ScanSpan>, OpenError> {
    let recording = Recording::open(&scan.paths, Trust::Acknowledged)?;
    let scanned = Scanned::of(&RecordingView::new(recording, Extent::All));
    let Some(seconds) = scanned.seconds() else { return Ok(None) };
    let first = scanned.first.zip(scanned.survey.frames_per_second);
    Ok(first.map(|((_, stamp), rate)| {
        let begin = stamp.moment(Some(rate));
        ScanSpan { begin, seconds }
    }))
}
