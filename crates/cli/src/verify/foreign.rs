//! Verifies a recording without a journal: every byte can be read, and its headers go on as they should.

use nilometer_model::Bytes;
use nilometer_recording::{
    foreign::{FrameFindings, read_through},
    reader::Recording,
    view::{Extent, RecordingView, Scan},
};
use nilometer_report::{NamedFact, RecordingFindings, Tone};
use serde_json::{Value, json};

use crate::{
    foreign_text::{ForeignOrigin, foreign_faults, foreign_missing, not_known, walked_facts, walked_value},
    recording_json::ranges_value,
    recording_listing::RecordingResult,
    recording_text::ranges,
    share::Share,
};

/// The findings about a recording without a journal, from all its bytes.
pub(super) struct ForeignReading {
    name: String,
    /// The name of its format.
    format: &'static str,
    origin: Option<ForeignOrigin>,
    frame_size: u64,
    scan: Scan,
    /// `None` if its frames have no headers.
    walked: Option<FrameFindings>,
    failed_reads: u64,
    /// The error of the first of them.
    unreadable: Option<String>,
    /// The reasons why it is not whole, in words.
    pub(super) faults: Vec<String>,
}

impl ForeignReading {
    /// Reads every byte of a recording.
    pub(super) fn of(recording: Recording) -> Self {
        let whole = RecordingView::new(recording, Extent::All);
        let scan = Scan::of(&whole);
        let mut share = Share::new("read", Bytes(scan.bytes));
        let walked = read_through(&whole, |done| share.tell(Bytes(done)));
        share.clear();
        let unread = whole.faults();
        let mut reading = ForeignReading {
            name: whole.name().into(),
            format: whole.format().name(),
            origin: whole.recording(ForeignOrigin::of),
            frame_size: whole.frame_size(),
            scan,
            walked,
            failed_reads: unread.count,
            unreadable: unread.first,
            faults: Vec::new(),
        };
        reading.faults = reading.found_faults();
        reading
    }

    fn found_faults(&self) -> Vec<String> {
        let ForeignReading { origin, scan, walked, failed_reads, unreadable, .. } = self;
        let facts = origin.as_ref().map(|origin| &origin.facts);
        let mut faults =
            facts.map_or_else(Vec::new, |facts| foreign_faults(facts, scan.missing_frames, walked.as_ref()));
        faults.extend(unreadable.as_ref().map(|why| format!("{failed_reads} reads failed: {why}")));
        if scan.bytes == 0 {
            faults.push("there is nothing in it".into());
        }
        faults
    }

    /// The number of its frames.
    pub(super) fn frames_read(&self) -> u64 {
        self.scan.frames
    }

    fn frames(&self) -> String {
        let ForeignReading { frame_size, scan, failed_reads, .. } = self;
        let readable = match failed_reads {
            0 => "all of it can be read".into(),
            count => format!("{count} reads failed"),
        };
        format!(
            "{} of {}, {} in all: {readable}; there are no checksums to compare them with",
            scan.frames,
            Bytes(*frame_size),
            Bytes(scan.bytes)
        )
    }

    fn conclusion(&self) -> (Tone, String) {
        if !self.faults.is_empty() {
            return (Tone::Bad, format!("Not whole: {}", self.faults.join("; ")));
        }
        let text = "No fault found. Without a journal, changed bytes and losses at both ends do not show.";
        (Tone::Doubtful, text.to_owned())
    }

    fn missing(&self) -> NamedFact {
        let text = match &self.walked {
            Some(_) => foreign_missing(self.scan.missing_frames, self.walked.as_ref()),
            None => "not known: its frames have no headers".into(),
        };
        NamedFact::new("missing", text)
    }
}

impl RecordingResult for ForeignReading {
    fn findings(&self) -> RecordingFindings {
        let ForeignReading { name, format, origin, frame_size, scan, walked, unreadable, .. } = self;
        let mut facts = vec![NamedFact::new("recording", format_args!("{name}, {format}"))];
        facts.extend(origin.iter().flat_map(ForeignOrigin::named_facts));
        facts.push(NamedFact::new("frames", self.frames()));
        facts.extend(unreadable.iter().map(|why| NamedFact::toned(Tone::Bad, "unreadable", why)));
        facts.push(self.missing());
        if !scan.missing.is_empty() {
            facts.push(NamedFact::toned(Tone::Bad, "no block", ranges(&scan.missing)));
        }
        let rate = scan.survey.frames_per_second;
        facts.extend(walked.iter().flat_map(|walked| walked_facts(walked, *frame_size, rate)));
        facts.push(not_known());
        RecordingFindings { name: name.clone(), conclusion: Some(self.conclusion()), facts }
    }

    fn value(&self) -> Value {
        let ForeignReading { name, format, origin, frame_size, scan, walked, .. } = self;
        let ForeignReading { failed_reads, unreadable, faults, .. } = self;
        let rate = scan.survey.frames_per_second;
        let walk = walked.as_ref().map_or(Value::Null, |walked| walked_value(walked, rate));
        json!({
            "name": name, "format": format,
            "without_journal": origin.as_ref().map_or(Value::Null, ForeignOrigin::value),
            "frames": scan.frames, "frame_bytes": frame_size, "bytes": scan.bytes, "frames_per_second": rate,
            "missing_frames": scan.missing_frames, "missing_blocks": ranges_value(&scan.missing),
            "walk": walk, "unreadable": unreadable, "failed_reads": failed_reads,
            "whole": faults.is_empty(), "faults": faults,
        })
    }
}

#[cfg(test)]
mod tests;
