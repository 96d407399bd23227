//! The findings of `scan` about a recording in each format, with every field set.

use nilometer_recording::{
    GapSender,
    view::{Hole, SourceLoss, Survey},
};
use nilometer_wire::vdif::VdifHeader;

use super::*;
use crate::{
    foreign_text::testing::{origin, walked},
    recording_listing::testing::told_everywhere,
};

fn stamp(second: u64, frame: u64) -> Stamp {
    Stamp { second, frame, station: 0x4d63, thread: 5, invalid: false }
}

/// A scan of all frames that found a fault of each kind.
fn scan() -> Scan {
    let sender = Some(GapSender::new(2, "10.0.0.2:4000".parse().ok()));
    let header = VdifHeader {
        invalid: false,
        epoch: 1,
        second: 60,
        frame: 1,
        version: 1,
        channels_log2: 3,
        length: 8000,
        complex: false,
        bits: 2,
        thread: 5,
        station: 0x4d63,
        extended: Some([1 << 24, 0, 0, 0]),
    };
    let lane = (0x4d63, 5);
    let read = Read {
        invalid: 1,
        unknown: 2,
        jumps: 1,
        first_jumps: vec![Jump { frame: 7, before: stamp(60, 8), stamp: stamp(62, 8) }],
        lanes: [lane].into(),
    };
    Scan {
        survey: Survey { lanes: vec![lane], frames_per_second: Some(100), header: Some(header) },
        first: Some((1, stamp(60, 1))),
        last: Some((49, stamp(64, 1))),
        frames: 50,
        bytes: 400_000,
        filled: 22,
        left_out: 2,
        missing: vec![(4, 2)],
        missing_frames: 20,
        gaps: vec![Hole { frame: 9, packets: 24, filled: true, sender }],
        sources: vec![SourceLoss { sender, thread: Some((Some(0x4d63), 1)), packets: 24 }],
        read: Some(read),
    }
}

fn scanned() -> ScannedRecording {
    let clock = ClockReading {
        synchronised: true,
        offset_ns: 1000,
        error_max_ns: 2_000_000,
        error_estimate_ns: 5000,
    };
    ScannedRecording {
        name: "scan".into(),
        format: Format::Vdif,
        lanes: LaneFacts { recording: 0xab, all: 3, here: 2, ended: 1, is_over: true, clock: Some(clock) },
        frame_size: 8000,
        origin: None,
        unreadable: vec![("/d/y".into(), "no permission".into())],
        fault: Some("/d/y: no permission".into()),
        scan: scan(),
        walked: None,
    }
}

/// The form of a recording with a journal and of one without: neither has all facts.
#[test]
fn each_form_has_each_finding() {
    let all = ScannedRecording { origin: Some(origin()), walked: Some(walked()), ..scanned() };
    let lines = told_everywhere(&all);
    let expected = [
        "recording   scan, vdif, EDV 1, 8 channels of 2 bits, station Mc, thread 5",
        "stored      chunks as of FlexBuff (vbs) without a journal: 4 files in 2 directories, first /d/a.00000000",
        "fault       a chunk is empty",
        "note        a note",
        "clock       synchronised",
        "frames      50 of 8 kB, 400 kB in all",
        "first       2000-01-01",
        "last        2000-01-01",
        "rate        ",
        "missing     20 frames are in files or blocks that are not here; gaps by numbering: 1 times time does not go on",
        "headers     50 frames; 1 are marked as invalid",
    ];
    for (line, begin) in lines.iter().zip(expected) {
        assert!(line.starts_with(begin), "{line}");
    }
    let last = [
        "not known   without a journal",
        "from        10.0.0.2:4000, thread 1 of station Mc: 24 packets did not come",
        "gap         24 packets from frame 9",
        "no block    2 from block 4",
        "unreadable  /d/y: no permission",
    ];
    for (line, begin) in lines[lines.len() - last.len()..].iter().zip(last) {
        assert!(line.starts_with(begin), "{line}");
    }
}

#[test]
fn the_lines_about_a_journal_have_its_lanes_and_its_losses() {
    let findings = scanned().findings();
    let lines: Vec<String> = findings.facts.iter().map(ToString::to_string).collect();
    let expected = [
        "lanes       2 of 3, 1 ended in order, recording 00000000000000ab",
        "missing     22 frames did not come and are marked as invalid, 2 frames did not come and are left out, 20 frames are in \
         blocks that are not here",
        "read        all: 1 frames are marked as invalid, 2 have no header, 1 times time does not go on",
        "jump        frame 7: from 2000-01-01T",
    ];
    for begin in expected {
        assert!(lines.iter().any(|line| line.starts_with(begin)), "{begin}: {lines:#?}");
    }
    assert_eq!(findings.conclusion, Some((Tone::Bad, "Can't be read: /d/y: no permission".into())));
}
