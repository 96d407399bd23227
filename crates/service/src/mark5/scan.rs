//! The time of a recording or of a part of it: the time of its first frame, and the duration of its frames.

use std::ops::Range;

use nilometer_model::Moment;
use nilometer_recording::{
    foreign::foreign_sources,
    reader::{OpenError, Recording, Trust},
    view::{Extent, RecordingView, Scan as Scanned},
};

use super::{scan_range::ScanExtent, stream_form::StreamForm};
use crate::state::EndedScan;

/// The begin and duration of a recording, from the times in its frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ScanSpan {
    pub(super) begin: Moment,
    pub(super) seconds: f64,
    /// Number of missing packets.
    pub(super) missing_packets: u64,
    /// The form that the headers give, or `None` if they give none.
    pub(super) form: Option<StreamForm>,
}

/// A view of a recording, with or without a journal.
pub(super) fn view(scan: &EndedScan) -> Result<RecordingView, OpenError> {
    let is_file = scan.paths.iter().any(|path| path.is_file());
    let recording = if is_file { foreign(scan) } else { Recording::open(&scan.paths, Trust::Acknowledged) };
    let recording = match recording {
        Err(OpenError::NotARecording { .. }) => foreign(scan),
        other => other,
    };
    Ok(RecordingView::new(recording?, Extent::All))
}

/// Opens a recording without a journal.
fn foreign(scan: &EndedScan) -> Result<Recording, OpenError> {
    match &foreign_sources(&scan.paths)?[..] {
        [source] => source.open(),
        _ => Err(OpenError::NotARecording { directories: scan.name.clone() }),
    }
}

/// The time span of a recording, from its journals and a few frames; `None` if these carry no times.
pub(super) fn span(scan: &EndedScan, part: Option<&Range<u64>>) -> Result<Option<ScanSpan>, OpenError> {
    let whole = view(scan)?;
    if let Some(part) = part {
        return Ok(span_of_part(&whole, part));
    }
    let scanned = Scanned::of(&whole);
    let Some(seconds) = scanned.seconds() else { return Ok(None) };
    let first = scanned.first.zip(scanned.survey.frames_per_second);
    let missing_packets = scan.missing_packets;
    let form = StreamForm::of_headers(&whole, &scanned.survey);
    Ok(first.map(|((_, stamp), rate)| {
        let begin = stamp.moment(Some(rate));
        ScanSpan { begin, seconds, missing_packets, form }
    }))
}

/// The time span of whole frames of a recording.
fn span_of_part(whole: &RecordingView, part: &Range<u64>) -> Option<ScanSpan> {
    let size = whole.frame_size();
    let frames = part.start / size..part.end / size;
    let scanned = Scanned::of(whole);
    let rate = scanned.survey.frames_per_second?;
    let first = frames.clone().find_map(|frame| whole.stamp(frame))?;
    let last = frames.clone().rev().find_map(|frame| whole.stamp(frame))?;
    let count = (last.count(rate) + 1).checked_sub(first.count(rate))?;
    let holes = scanned.gaps.iter().filter(|hole| frames.contains(&hole.frame));
    Some(ScanSpan {
        begin: first.moment(Some(rate)),
        seconds: count as f64 / rate as f64,
        missing_packets: holes.map(|hole| hole.packets).sum(),
        form: StreamForm::of_headers(whole, &scanned.survey),
    })
}

/// The bytes of a recording with its times.
pub(super) fn extent(scan: &EndedScan) -> Result<ScanExtent, OpenError> {
    let whole = view(scan)?;
    let times = span(scan, None)?.map(|span| (span.begin, span.seconds));
    Ok(ScanExtent { bytes: whole.length(), frame: whole.frame_size(), times })
}
