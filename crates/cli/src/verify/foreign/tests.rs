//! The findings of `verify` about a recording without a journal in each format, with every field set.

use nilometer_recording::view::Survey;

use super::*;
use crate::{
    foreign_text::testing::{origin, walked},
    recording_listing::testing::told_everywhere,
};

fn reading() -> ForeignReading {
    let scan = Scan {
        frames: 50,
        bytes: 400_000,
        missing: vec![(4, 2)],
        missing_frames: 20,
        survey: Survey { frames_per_second: Some(100), ..Survey::default() },
        ..Scan::default()
    };
    ForeignReading {
        name: "a".into(),
        format: "vdif",
        origin: Some(origin()),
        frame_size: 8000,
        scan,
        walked: Some(walked()),
        failed_reads: 3,
        unreadable: Some("block 4: bad sector".into()),
        faults: vec!["a fault".into()],
    }
}

#[test]
fn each_form_has_each_finding() {
    let lines = told_everywhere(&reading());
    let expected = [
        "recording   a, vdif",
        "stored      chunks as of FlexBuff (vbs) without a journal: 4 files in 2 directories, first /d/a.00000000",
        "fault       a chunk is empty",
        "note        a note",
        "frames      50 of 8 kB, 400 kB in all: 3 reads failed; there are no checksums to compare them with",
        "unreadable  block 4: bad sector",
        "missing     20 frames are in files or blocks that are not here; gaps by numbering: 1 times time does not go on",
        "no block    4-5",
        "headers     50 frames; 1 are marked as invalid",
        "jump        thread 5 goes on at ",
        "fill        2 frames replace missing ones, without a time: the first at byte 8000",
    ];
    for (line, begin) in lines.iter().zip(expected) {
        assert!(line.starts_with(begin), "{line}");
    }
    let other_sizes = lines.iter().filter(|line| line.starts_with("other size  "));
    assert_eq!(other_sizes.count(), 11, "ten of twelve, and a line for the others: {lines:#?}");
    let last = [
        "no frame    30 B from byte 90 on, all of them zero",
        "cut         the last frame has 200 B of 8 kB: it begins at byte 400",
        "not known   without a journal: losses before the first frame",
    ];
    for (line, begin) in lines[lines.len() - 3..].iter().zip(last) {
        assert!(line.starts_with(begin), "{line}");
    }
}

#[test]
fn a_recording_without_a_journal_is_never_called_whole() {
    let faults = reading().found_faults();
    let expected = [
        "a chunk is empty",
        "20 frames are in files or blocks that are not here",
        "1 times time does not go on",
        "2 frames replace missing ones",
        "12 frames have another size",
        "30 bytes are no frames",
        "1 frame is cut at the end",
        "3 reads failed: block 4: bad sector",
    ];
    assert_eq!(faults, expected);
    assert_eq!(reading().conclusion(), (Tone::Bad, "Not whole: a fault".into()));
    assert_eq!(ForeignReading { faults: Vec::new(), ..reading() }.conclusion().0, Tone::Doubtful);
}
