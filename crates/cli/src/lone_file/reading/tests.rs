//! The findings of `verify` about a file without a journal in each format, with every field set.

use super::*;
use crate::recording_listing::testing::told_everywhere;

fn frames(of: std::ops::Range<u64>) -> Ranges {
    let mut ranges = Ranges::default();
    ranges.add_all(of);
    ranges
}

fn reading() -> LoneReading {
    let verified = LoneVerified {
        chunks: 90,
        missing: frames(3..5),
        not_whole: frames(6..7),
        damaged: frames(8..9),
        damages: vec![LoneDamage { begin: vec![8, 1], frame: 8, why: "it does not unpack".into() }],
        damaged_chunks: 2,
        broken: vec![BrokenObject { path: "/entry/a".into(), why: "no such type".into() }],
    };
    LoneReading {
        path: "/d/a.h5".into(),
        dataset: "/entry/data/data".into(),
        kind: "uint16".into(),
        dimensions: vec![100, 20, 40],
        chunk: Some(vec![1, 20, 40]),
        filters: vec![32_008],
        chunks_due: 100,
        frames: 100,
        frame_size: 1600,
        other_datasets: vec!["/entry/b".into()],
        journal: Some("/d".into()),
        verified,
    }
}

#[test]
fn each_form_has_each_finding() {
    let lines = told_everywhere(&reading());
    let expected = [
        "file        /d/a.h5",
        "dataset     /entry/data/data: 100 x 20 x 40 of uint16",
        "chunks      90 of 100, each 1 x 20 x 40, filter 32008",
        "readable    97 of 100 frames of 1.6 kB, unpacked; without a journal there are no checksums to compare them with",
        "missing     2 frames: 3-4",
        "not whole   1 frames: 6, as the recorder noted",
        "damaged     chunk at (8, 1), frame 8 on: it does not unpack",
        "damaged     1 chunks more",
        "damaged     1 frames: 8",
        "broken      /entry/a: no such type",
        "not read    /entry/b: --dataset names another",
        "journal     beside it is one: name /d to compare with it",
    ];
    assert_eq!(lines, expected);
    let complaint = reading().complaint();
    assert_eq!(
        complaint.as_deref(),
        Some("2 frames are missing; 1 frames are damaged; 1 object can't be read")
    );
}
