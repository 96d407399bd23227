//! Verifies a recording without a journal: every byte can be read, and its headers go on as they should.

use nilometer_model::Bytes;
use nilometer_recording::{
    foreign::{FrameFindings, read_through},
    reader::Recording,
    view::{Extent, RecordingView, Scan},
};
use serde_json::{Value, json};

use super::range;
use crate::{
    foreign_text::{
        NOT_KNOWN, foreign_faults, foreign_lines, foreign_missing, foreign_value, walked_lines, walked_value,
    },
    recording_text::{in_line, ranges},
    share::Share,
};

/// A recording without a journal, after all of it was read.
pub(super) struct ForeignReading {
    whole: RecordingView,
    scan: Scan,
    walked: Option<FrameFindings>,
    /// The reasons why it is not whole, in words.
    faults: Vec<String>,
}

impl ForeignReading {
    /// Reads every byte of a recording.
    pub(super) fn of(recording: Recording) -> Self {
        let whole = RecordingView::new(recording, Extent::All);
        let scan = Scan::of(&whole);
        let mut share = Share::new("read", Bytes(scan.bytes));
        let walked = read_through(&whole, |done| share.tell(Bytes(done)));
        share.clear();
        let facts = whole.recording(|recording| recording.foreign().cloned());
        let mut faults =
            facts.map_or_else(Vec::new, |facts| foreign_faults(&facts, scan.missing_frames, walked.as_ref()));
        let unread = whole.faults();
        faults.extend(unread.first.map(|why| format!("{} reads failed: {why}", unread.count)));
        if scan.bytes == 0 {
            faults.push("there is nothing in it".into());
        }
        ForeignReading { whole, scan, walked, faults }
    }

    /// The reason why it is not whole, if it is not.
    pub(super) fn complaint(&self) -> Option<String> {
        (!self.faults.is_empty()).then(|| self.faults.join("; "))
    }

    /// The state of the recording, one line each.
    pub(super) fn told(&self) -> String {
        let ForeignReading { whole, scan, walked, .. } = self;
        let frame_size = whole.frame_size();
        let rate = scan.survey.frames_per_second;
        let mut lines = vec![format!("recording   {}, {}", in_line(whole.name()), whole.format().name())];
        lines.extend(whole.recording(foreign_lines));
        let unread = whole.faults();
        let readable = if unread.count == 0 {
            "all of it can be read".into()
        } else {
            format!("{} reads failed", unread.count)
        };
        lines.push(format!(
            "frames      {} of {}, {} in all: {readable}; there are no checksums to compare them with",
            scan.frames,
            Bytes(frame_size),
            Bytes(scan.bytes)
        ));
        lines.extend(unread.first.map(|why| format!("unreadable  {}", in_line(why))));
        lines.push(match walked {
            Some(_) => format!("missing     {}", foreign_missing(scan.missing_frames, walked.as_ref())),
            None => "missing     not known: its frames have no headers".into(),
        });
        if !scan.missing.is_empty() {
            lines.push(format!("no block    {}", ranges(&scan.missing)));
        }
        lines.extend(walked.iter().flat_map(|walked| walked_lines(walked, frame_size, rate)));
        lines.push(NOT_KNOWN.to_owned());
        lines.join("\n") + "\n"
    }

    /// The result as JSON.
    pub(super) fn value(&self) -> Value {
        let ForeignReading { whole, scan, walked, faults } = self;
        let missing = scan.missing.iter().map(|&(first, count)| range(first, count));
        json!({
            "name": whole.name(), "format": whole.format().name(), "without_journal": whole.recording(foreign_value),
            "frames": scan.frames, "frame_bytes": whole.frame_size(), "bytes": scan.bytes,
            "missing_frames": scan.missing_frames, "missing_blocks": missing.collect::<Vec<_>>(),
            "walk": walked.as_ref().map_or(Value::Null, walked_value), "unreadable": whole.faults().first,
            "whole": faults.is_empty(), "faults": faults,
        })
    }
}
