//! The findings of `verify` about a recording with a journal in each format, with every field set.

use nilometer_recording::{
    GapSender,
    instrument::ContentError,
    view::{Hole, SourceLoss},
};
use nilometer_wire::Stamp;

use super::*;
use crate::recording_listing::testing::told_everywhere;

fn journals() -> JournalFacts {
    JournalFacts {
        name: "scan".into(),
        recording: 0xab,
        what: "frames",
        frame_size: 8000,
        clock: Some(ClockReading {
            synchronised: true,
            offset_ns: 1000,
            error_max_ns: 2_000_000,
            error_estimate_ns: 5000,
        }),
        lanes: 3,
        lanes_here: 2,
        lanes_ended: 1,
        absent: vec![(2, 1)],
        expected: 100,
        frames_per_file: 16,
        chunks: 6,
        unnumbered_chunks: 2,
        removed: 20,
        unreadable: vec![("/d/y".into(), "no permission".into())],
    }
}

/// A reading of 80 right frames in which everything went wrong that can.
fn reading() -> JournaledReading {
    let sender = Some(GapSender::new(2, "10.0.0.2:4000".parse().ok()));
    let mut continuity = Continuity::new(None);
    continuity.frames = 50;
    continuity.invalid = 1;
    continuity.jumps = 1;
    let stamp = |second| Stamp { second, frame: 8, station: 0, thread: 5, invalid: false };
    continuity.first_jumps = vec![Jump { frame: 7, before: stamp(60), stamp: stamp(62) }];
    let damaged = DamagedPlace { frame: 30, file: "/d/x".into(), offset: 64, why: "differs".into() };
    JournaledReading {
        journals: journals(),
        verified: Verified {
            not_made_again: Some(ContentError::NotMet { wished: 2.0, measured: 3.0 }),
            right: 90,
            unchecked: 15,
            missing: vec![(3, 1), (5, 3)],
            damaged_frames: 2,
            overwritten: 3,
            ..Verified::default()
        },
        scan: Scan {
            filled: 22,
            left_out: 2,
            gaps: vec![Hole { frame: 9, packets: 24, filled: true, sender }],
            sources: vec![SourceLoss { sender, thread: Some((Some(0x4d63), 1)), packets: 24 }],
            ..Scan::default()
        },
        unproved: 10,
        damaged: vec![damaged],
        headers: Some(HeaderFindings { continuity, noted: 6 }),
        torn: vec![("/d/z.h5".into(), "no frame 4".into())],
        faults: vec!["a fault".into()],
    }
}

#[test]
fn each_form_has_each_finding() {
    let lines = told_everywhere(&reading());
    let expected = [
        "recording   00000000000000ab, frames of 8 kB",
        "lanes       2 of 3, 1 ended in order; not here: scan.2.journal",
        "expected    100 frames",
        "right       75 frames, 600 kB, compared with the checksums of the journal",
        "readable    5 frames, 40 kB, not verified: they have no checksum",
        "clock       synchronised",
        "unproved    10 frames: the machine went down",
        "chunks      6; 2 found no number",
        "removed     20 frames, to make room",
        "overwritten 3 frames, while they were read",
        "simulated   frames can't be made again: compressibility",
        "missing     4 frames: 3, 5-7; 22 frames did not come and are marked as invalid; 2 frames did not come and are left out",
        "from        10.0.0.2:4000, thread 1 of station Mc: 24 packets did not come",
        "gap         24 packets from frame 9",
        "headers     50 frames; 1 are marked as invalid, and by the journal 6 never arrived",
        "jump        thread 5 goes on at ",
        "damaged     frame 30 differs: it begins at byte 64 of /d/x",
        "damaged     1 frames more",
        "unreadable  /d/y: no permission",
        "index       /d/z.h5: no frame 4",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, begin) in lines.iter().zip(expected) {
        assert!(line.starts_with(begin), "{line}");
    }
}

#[test]
fn a_recording_is_whole_only_if_every_frame_was_compared() {
    let of = |right, unchecked| {
        let verified = Verified { right, unchecked, ..Verified::default() };
        let scan = Scan::default();
        JournaledReading { verified, scan, unproved: 0, faults: Vec::new(), ..reading() }
    };
    let whole = "Whole: all frames that were kept agree with the checksums of the journal";
    assert_eq!(of(5, 0).conclusion(), (Tone::Good, whole.into()));
    assert_eq!(of(5, 4).conclusion().0, Tone::Doubtful);
    let nothing = "Not decided: no frames are left to compare";
    assert_eq!(of(0, 0).conclusion(), (Tone::Doubtful, nothing.into()));
    for (right, unchecked) in [(5, 0), (5, 4)] {
        let lossy = JournaledReading { scan: reading().scan, ..of(right, unchecked) };
        let (tone, text) = lossy.conclusion();
        assert_eq!(tone, Tone::Bad, "{text}");
        assert!(text.starts_with("Frames are lacking: ") && text.contains("24 frames never came"), "{text}");
    }
    assert_eq!(reading().conclusion(), (Tone::Bad, "Not whole: a fault".into()));
}

#[test]
fn every_fault_is_named_unless_the_recorder_overwrote_frames() {
    let faults = reading().found_faults(false);
    assert_eq!(faults[0], OVERWRITTEN);
    assert_eq!(faults.len(), 3, "what was overwritten explains missing frames: {faults:?}");
    let verified = Verified { overwritten: 0, ..reading().verified };
    let faults = JournaledReading { verified, ..reading() }.found_faults(false);
    let expected = [
        "4 frames are missing",
        "2 frames are damaged",
        "1 times time does not go on, and the journal notes no gap there",
        "no journal here for 1 of 3 lanes (name the directories of all lanes)",
        "it did not end in order, and frames after the last one may be missing",
        "readers of HDF5 do not find all in 1 files: `nilometer repair` mends them",
        "10 frames may be damaged",
    ];
    assert_eq!(faults, expected);
}

#[test]
fn nothing_is_named_that_no_frame_was_compared_with() {
    let of = |right, unchecked| compared_with(&Verified { right, unchecked, ..Verified::default() });
    assert_eq!([of(5, 5), of(0, 0)], [None, None]);
    assert_eq!(of(5, 4), Some("the checksums of the journal"));
    let made_again = Verified { made_again: true, right: 5, ..Verified::default() };
    assert_eq!(compared_with(&made_again), Some("the simulated instrument"));
}
