//! The result of `verify` for programs. Frame numbers count from 0; a range has its first frame and its
//! count.

use std::path::PathBuf;

use nilometer_recording::{
    Damaged, Headers, Verified,
    reader::Recording,
    view::{Jump, Scan},
};
use serde_json::{Value, json};

use crate::recording_text::what;

/// A recording that was read back, and the verdict on it.
pub(super) struct Judged<'a> {
    pub(super) recording: &'a Recording,
    pub(super) verified: &'a Verified,
    pub(super) scan: &'a Scan,
    /// Readable frames that may still be damaged.
    pub(super) unproved: u64,
    /// HDF5 files whose index does not agree with the journals, with the reason.
    pub(super) torn: &'a [(PathBuf, String)],
    /// The reasons why it is not whole, in words.
    pub(super) faults: &'a [String],
}

/// The kind of truth that right frames were compared with; `None` if no frame had any.
fn compared_with(verified: &Verified) -> Option<&'static str> {
    match (verified.made_again, verified.right > verified.unchecked) {
        (true, _) => Some("the simulated instrument"),
        (false, true) => Some("the checksums of the journal"),
        (false, false) => None,
    }
}

/// A range of frames.
pub(crate) fn range(first: u64, count: u64) -> Value {
    json!({ "first": first, "count": count })
}

fn damaged(recording: &Recording, damaged: &Damaged) -> Value {
    json!({
        "frame": damaged.number, "file": recording.path(damaged.place).display().to_string(),
        "offset": damaged.place.extent.offset, "why": damaged.why,
    })
}

fn headers(headers: &Headers) -> Value {
    let Headers { continuity, noted, .. } = headers;
    let jump = |jump: &Jump| json!({ "frame": jump.frame, "from": jump.before.moment(None).to_string(), "to": jump.stamp.moment(None).to_string() });
    json!({
        "frames": continuity.frames, "invalid": continuity.invalid, "noted_as_not_come": noted, "jumps": continuity.jumps,
        "first_jumps": continuity.first_jumps.iter().map(jump).collect::<Vec<_>>(),
    })
}

impl Judged<'_> {
    /// The result as JSON. `what` is the unit that it counts: frames, or blocks of packets.
    pub(super) fn value(&self) -> Value {
        let Judged { recording, verified, scan, unproved, torn, faults } = self;
        let head = recording.head();
        let index = &recording.index;
        let right = verified.right - unproved;
        let missing = verified.missing.iter().map(|&(first, count)| range(first, count));
        let file =
            |(path, why): &(PathBuf, String)| json!({ "file": path.display().to_string(), "why": why });
        let unreadable = recording.unreadable.iter();
        let unreadable = unreadable
            .map(|(path, why)| json!({ "file": path.display().to_string(), "why": why.to_string() }));
        json!({
            "name": recording.name(), "recording": format!("{:016x}", head.recording), "what": what(recording),
            "whole": faults.is_empty(), "faults": faults, "frame_bytes": head.frame_size,
            "clock": index.clock, "lanes": head.lanes, "lanes_here": index.heads.len(), "lanes_ended": index.ended,
            "expected": index.expected(), "right": right, "right_bytes": right * head.frame_size,
            "compared_with": compared_with(verified),
            "without_checksum": verified.unchecked - unproved, "unproved": unproved,
            "removed": index.removed.count(), "overwritten": verified.overwritten,
            "missing": verified.missing_frames(), "missing_ranges": missing.collect::<Vec<_>>(),
            "did_not_come_and_filled": scan.filled, "did_not_come_and_left_out": scan.left_out,
            "damaged": verified.damaged_frames,
            "damaged_frames": verified.damaged.iter().map(|one| damaged(recording, one)).collect::<Vec<_>>(),
            "torn_files": torn.iter().map(file).collect::<Vec<_>>(), "unreadable": unreadable.collect::<Vec<_>>(),
            "headers": verified.headers.as_ref().map(headers),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_named_that_no_frame_was_compared_with() {
        let of = |right, unchecked| compared_with(&Verified { right, unchecked, ..Verified::default() });
        assert_eq!([of(5, 5), of(0, 0)], [None, None]);
        assert_eq!(of(5, 4), Some("the checksums of the journal"));
        let made_again = Verified { made_again: true, right: 5, ..Verified::default() };
        assert_eq!(compared_with(&made_again), Some("the simulated instrument"));
    }
}
