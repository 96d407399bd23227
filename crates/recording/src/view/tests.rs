//! Tests that recordings laid out by hand, read as one file, match a plain reference.

mod growing;

use std::{
    fs::{self, File},
    os::fd::AsRawFd,
};

use nilometer_model::{FileNames, Storing};
use proptest::prelude::*;

use super::{
    laid_out::{FRAMES_OF_BLOCK, LaidOut, PACKET_CASES, THREADS, frame, known, laid_out, sender, stream},
    *,
};
use crate::{
    Due, Gap,
    journal::{Entry, Head, RECORD},
    reader::Trust,
};
use nilometer_wire::Known;

/// Reads from start to end, in reads of these lengths in turn, with each pair of reads swapped.
fn read_in_order(ahead: &ReadAhead, reference: &[u8], lengths: &[usize]) {
    let mut reads = Vec::new();
    let mut next = 0;
    for length in lengths.iter().cycle() {
        if next >= reference.len() {
            break;
        }
        reads.push(next..next + length);
        next += length;
    }
    for range in reads.chunks(2).flat_map(|pair| pair.iter().rev()) {
        let expected = &reference[range.start..range.end.min(reference.len())];
        let mut read = vec![0xee; range.len()];
        let count = ahead.read_at(range.start as u64, &mut read);
        assert!(&read[..count] == expected, "{range:?}");
    }
}

fn blocks() -> impl Strategy<Value = Vec<Option<usize>>> {
    let block = prop_oneof![3 => (0..3_usize).prop_map(Some), 1 => Just(None)];
    let some = |blocks: &Vec<Option<usize>>| blocks.iter().any(Option::is_some);
    prop::collection::vec(block, 1..12).prop_filter("nothing is known of nothing", some)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_of_a_recording_are_those_that_were_sent_or_marked_as_invalid(
        which in 0..PACKET_CASES.len(), storing in prop::sample::select(&Storing::ALL[..3]), blocks in blocks(),
        last in 1..=FRAMES_OF_BLOCK, lengths in prop::collection::vec(1..30_000_usize, 1..9), reads in prop::collection::vec((0.0..1.1_f64, 1..40_000_usize), 1..12),
    ) {
        // With fewer frames than threads, it is unknown which threads come in between.
        prop_assume!(last >= THREADS || blocks[..blocks.len() - 1].iter().any(Option::is_some));
        let (lanes, reference) = laid_out(PACKET_CASES[which], storing, 3, &blocks, last);
        let whole = lanes.whole(Extent::All);
        prop_assert_eq!(whole.length(), reference.len() as u64);
        for (share, length) in reads {
            #[expect(clippy::cast_sign_loss, reason = "it is a share")]
            let offset = (reference.len() as f64 * share) as usize;
            let mut read = vec![0xee; length];
            let count = whole.read_at(offset as u64, &mut read);
            let expected = &reference[offset.min(reference.len())..(offset + length).min(reference.len())];
            prop_assert!(&read[..count] == expected, "{} bytes at {}", length, offset);
            prop_assert!(read[count..].iter().all(|byte| *byte == 0xee));
        }
        let whole = Arc::new(whole);
        read_in_order(&ReadAhead::small(whole.clone()), &reference, &lengths);
        let size = lanes.head.frame_size;
        let absent = (0..).zip(&blocks).filter(|(_, lane)| lane.is_none()).map(|(block, _): (u64, _)| block);
        let filled: u64 = whole.filled(0..u64::MAX).into_iter().map(|range| range.end - range.start).sum();
        let cut = if blocks.last() == Some(&None) { size - last * whole.frame_size() } else { 0 };
        prop_assert_eq!(filled, absent.count() as u64 * size - cut);
        prop_assert_eq!(whole.faults().count, 0);
    }
}

#[test]
fn a_lane_that_is_not_there_and_files_that_are_gone_are_filled_and_named() {
    let blocks: Vec<_> = (0..20).map(|block| Some(block % 3)).collect();
    let (lanes, _) = laid_out(PACKET_CASES[0], Storing::Files, 3, &blocks, 4);
    let absent: Vec<_> = (0..20).map(|block| Some(block % 3).filter(|lane| *lane != 1)).collect();
    let (_, expected) = laid_out(PACKET_CASES[0], Storing::Files, 3, &absent, 4);
    let read = |whole: &RecordingView| {
        let mut bytes = vec![0; whole.length() as usize];
        whole.read_at(0, &mut bytes);
        bytes
    };
    let two = [lanes.paths()[0].clone(), lanes.paths()[2].clone()];
    let whole =
        RecordingView::new(Recording::open(&two, Trust::Acknowledged).expect("two lanes"), Extent::All);
    assert!(read(&whole) == expected);
    assert_eq!((whole.filled(0..u64::MAX).len(), whole.faults().count), (7, 0));
    fs::read_dir(&lanes.paths()[1]).expect("it is there").for_each(|entry| {
        let path = entry.expect("listed").path();
        if path.extension().is_some_and(|end| end == "vdif") {
            fs::remove_file(path).expect("it was there");
        }
    });
    let whole = lanes.whole(Extent::All);
    assert!(read(&whole) == expected);
    let faults = whole.faults();
    let first = faults.first.expect("it is said");
    assert!(
        faults.count == 7 && first.contains("block 1 in ") && first.contains("n.1.00000000.vdif"),
        "{first}"
    );
}

#[test]
fn what_was_read_ahead_of_a_block_that_is_lost_later_is_forgotten() {
    let (lanes, reference) = laid_out(PACKET_CASES[2], Storing::Shared, 2, &[Some(0), Some(1)], 4);
    let (_, filled) = laid_out(PACKET_CASES[2], Storing::Shared, 2, &[None, Some(1)], 4);
    let ahead = ReadAhead::small(Arc::new(lanes.whole(Extent::All)));
    let read = |range: Range<usize>| {
        let mut bytes = vec![0; range.len()];
        ahead.read_at(range.start as u64, &mut bytes);
        bytes
    };
    assert!(read(0..100) == reference[..100] && read(100..150) == reference[100..150]);
    let path = lanes.paths()[0].join("n.vdif");
    File::options().write(true).open(path).expect("the only file").set_len(0).expect("it is ours");
    let block = lanes.head.frame_size as usize;
    // This part was not read ahead yet.
    assert!(read(block - 100..block) == filled[block - 100..block]);
    assert!(read(100..8000) == filled[100..8000], "a part of a frame does not fit the rest");
}

#[test]
fn a_file_that_is_all_of_a_recording_is_named() {
    let blocks = [Some(0); 8];
    let only = |storing, blocks: &[Option<usize>], last| {
        let (lanes, reference) = laid_out(PACKET_CASES[0], storing, 1, blocks, last);
        let file = lanes.whole(Extent::All).only_file()?;
        let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("it is open");
        assert!(fs::read(&path).expect("it is there") == reference);
        Some(path.strip_prefix(&lanes.paths()[0]).expect("its directory").to_owned())
    };
    assert_eq!(only(Storing::Shared, &blocks, 3), Some("n.vdif".into()));
    assert_eq!(only(Storing::Growing, &blocks, 3), Some("n.0.vdif".into()));
    assert_eq!(only(Storing::Files, &blocks, 3), None, "three blocks are in each");
    assert_eq!(only(Storing::Files, &blocks[..3], 3), Some("n.0.00000000.vdif".into()));
    assert_eq!(only(Storing::Growing, &[Some(0), None, Some(0)], 3), None, "one is missing");
    assert_eq!(only(Storing::Shared, &[Some(0), None, Some(0)], 3), None, "one is missing");
}

#[test]
fn frames_are_counted_in_a_second_where_nobody_said_how_many() {
    for hole in [0..0, 20..40, 100..140] {
        let (sent, told, stored) = PACKET_CASES[1];
        let format = sender(sent);
        let known = Known { frames_per_second: None, ..known(told) };
        let mut lanes = LaidOut::new(1, Storing::Shared, &stream((sent, told, stored), &known));
        // Two threads have 500 frames per second each. The second ends in block 125.
        for block in (0..400).filter(|block| !hole.contains(block)) {
            let first = block * FRAMES_OF_BLOCK;
            let bytes: Vec<u8> = (first..first + FRAMES_OF_BLOCK)
                .flat_map(|number| frame(&*format, stored, number + 500, false))
                .collect();
            lanes.store(0, block, &bytes, 0, &[]);
        }
        lanes.end(400);
        lanes.publish(0);
        let survey = lanes.whole(Extent::All).survey();
        assert_eq!(survey.lanes.iter().map(|(_, thread)| *thread).collect::<Vec<_>>(), [9, 4]);
        assert_eq!(survey.frames_per_second, Some(500), "{hole:?}");
    }
}

#[test]
fn what_was_left_out_before_a_missing_block_counts() {
    let course = PACKET_CASES[0];
    let format = sender(course.0);
    let mut lanes = LaidOut::new(1, Storing::Growing, &stream(course, &known(course.1)));
    let bytes = |first: u64| -> Vec<u8> {
        (first..first + 4).flat_map(|number| frame(&*format, course.2, number, false)).collect()
    };
    lanes.store(
        0,
        0,
        &bytes(0),
        0,
        &[
            Gap { at: 2, count: 9, filled: true, sender: None },
            Gap { at: 4, count: 6, filled: false, sender: None },
        ],
    );
    lanes.store(0, 2, &bytes(14), 0, &[]);
    lanes.end(3);
    lanes.publish(0);
    let (whole, mut read) = (lanes.whole(Extent::All), vec![0; lanes.head.frame_size as usize]);
    whole.read_at(lanes.head.frame_size, &mut read);
    let expected: Vec<u8> = (10..14).flat_map(|number| frame(&*format, course.2, number, true)).collect();
    assert!(read == expected);
}

#[test]
fn frames_of_cameras_have_no_padding_between_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let head = Head {
        recording: 5,
        lane: 0,
        lanes: 1,
        frame_size: 100,
        stride: 128,
        frames_per_file: 8,
        storing: Storing::Files,
        format: Format::Raw,
        names: FileNames::default(),
    };
    let frame = |offset, number| {
        let extent = head.extent(0, offset, 100);
        Entry::Frame { number, extent, due: 0, checksum: None }
    };
    let entries = [
        Entry::Head(head),
        frame(0, 0),
        frame(128, 2),
        Entry::End { due: Some(Due { frames: 3, last: None }) },
    ];
    let mut journal = vec![0; entries.len() * RECORD];
    for (sequence, (record, entry)) in journal.chunks_exact_mut(RECORD).zip(entries).enumerate() {
        entry.put(sequence as u64, record);
    }
    fs::write(directory.path().join("n.0.journal"), journal).expect("room");
    fs::write(directory.path().join("n.0.00000000.raw"), [[1; 128], [2; 128]].concat()).expect("room");
    let recording =
        Recording::open(&[directory.path().to_owned()], Trust::Acknowledged).expect("a recording");
    let (whole, mut read) = (RecordingView::new(recording, Extent::All), vec![9; 1000]);
    assert_eq!(whole.read_at(0, &mut read), 300);
    assert_eq!(read[..300], [[1; 100], [0; 100], [2; 100]].concat());
    assert_eq!((whole.stamp(0), whole.survey()), (None, Survey::default()));
}
