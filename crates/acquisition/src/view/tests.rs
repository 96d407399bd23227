//! Recordings laid out by hand, read as one file and compared with a plain reference.

mod growing;

use std::{
    fs::{self, File},
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::PathBuf,
    sync::Arc,
};

use nilometer_model::{Instrument, Storing};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::{
    Due, Gap,
    assembly::Missing,
    journal::{Entry, Head, RECORD, stream_entries},
    reader::Trust,
};
use nilometer_wire::{Known, WireFormat};

const FRAMES_OF_BLOCK: u64 = 4;
const BEGINS: u64 = 812_345_678;
const TELESCOPE: &str = "shape = [40_000]\npixel = \"uint2\"\nframe_rate = \"100 Hz\"\n";

/// The most threads of a course that the recorder was not told of.
const THREADS: u64 = 2;

/// As it is sent, as the recorder was told, and as it is stored.
pub(crate) type Course = (&'static str, &'static str, Format);
pub(crate) const COURSES: [Course; 5] = [
    (
        "format.vdif = { payload = \"1000 B\", threads = [2, 0, 1, 3, 7], stations = [\"Mc\"] }",
        "format.vdif = { payload = \"1000 B\", threads = [2, 0, 1, 3, 7], stations = [\"Mc\"] }",
        Format::Vdif,
    ),
    (
        "format.vdif = { payload = \"1000 B\", threads = [9, 4] }",
        "serial = { at = { offset = 1, bytes = 4 } }\nprefix = \"5 B\"\nformat.vdif = { payload = \"1000 B\" }",
        Format::Vdif,
    ),
    (
        "format.vdif = { payload = \"5000 B\", threads = [5], edv = 2 }",
        "format.vdif = { payload = \"5000 B\" }",
        Format::Vdif,
    ),
    ("format.mark5b = { frame = \"whole\" }", "format.mark5b = {}", Format::Mark5b),
    ("format.raw = { payload = \"1234 B\" }", "format.raw = { payload = \"1234 B\" }", Format::Raw),
];

/// An instrument with these packets.
fn instrument(shape: &str, packets: &str) -> Instrument {
    let head = "name = \"t\"\ntitle = \"t\"\nsource = \"t\"\n";
    Instrument::parse(&format!("{head}{shape}[packets]\n{packets}\n"), "t.toml").expect("it is one")
}

fn known(packets: &str) -> Known {
    Known { begins: BEGINS, ..Known::of(&instrument(TELESCOPE, packets)) }
}

fn sender(packets: &str) -> Box<dyn WireFormat> {
    nilometer_wire::of(&instrument(TELESCOPE, packets).packets.expect("it has some"), &known(packets))
        .expect("it can be made")
}

fn stream((_, told, stored): Course, known: &Known) -> Stream {
    let packets = instrument(TELESCOPE, told).packets.expect("it has some");
    let format = nilometer_wire::of(&packets, known).expect("it can be made");
    Stream::new(stored, format.geometry(), Missing::Filled).sent_as(&packets, known)
}

/// A frame as it was sent, or as it must stand where it is missing.
fn frame(format: &dyn WireFormat, stored: Format, number: u64, missing: bool) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..format.geometry().frame_size()).map(|at| (at as u64 * 7 + number * 13) as u8).collect();
    if missing {
        bytes.as_chunks_mut().0.fill(0x1122_3344_u32.to_le_bytes());
        let rest = bytes.len() % 4;
        let end = bytes.len() - rest;
        bytes[end..].copy_from_slice(&0x1122_3344_u32.to_le_bytes()[..rest]);
    }
    format.make(number, 0, &mut vec![0; format.geometry().prefix], &mut bytes);
    if missing && stored == Format::Vdif {
        bytes[3] |= 0x80;
    }
    bytes
}

/// Of a ring.
const PARTS: u64 = 3;

/// A recording that somebody writes.
pub(crate) struct Lanes {
    directories: Vec<TempDir>,
    head: Head,
    journals: Vec<Vec<Entry>>,
    blocks: Vec<u64>,
}

impl Lanes {
    fn new(lanes: usize, storing: Storing, stream: &Stream) -> Self {
        let size = stream.frame_size() as u64 * FRAMES_OF_BLOCK;
        let head = Head {
            recording: 5,
            lane: 0,
            lanes: lanes as u32,
            frame_size: size,
            stride: size,
            frames_per_file: 3,
            storing,
            format: stream.format(),
        };
        let journal = |lane| {
            let head = [Entry::Head(Head { lane, ..head })];
            head.into_iter().chain(stream_entries(&stream.text())).collect()
        };
        Lanes {
            directories: (0..lanes).map(|_| tempfile::tempdir().expect("a temporary directory")).collect(),
            head,
            journals: (0..lanes as u32).map(journal).collect(),
            blocks: vec![0; lanes],
        }
    }

    /// Stores a block, complete at this second, with these gaps.
    fn store(&mut self, lane: usize, number: u64, bytes: &[u8], due: u64, gaps: &[Gap]) {
        let Head { frames_per_file, stride, storing, .. } = self.head;
        let (file, issued) = (self.blocks[lane] / frames_per_file, self.blocks[lane] % frames_per_file);
        let stored = self.blocks[lane];
        let round = stored % (PARTS * frames_per_file);
        let positions = [(Storing::Files, issued), (Storing::Growing, stored), (Storing::Ring, round)];
        let position =
            positions.iter().find(|(of, _)| *of == storing).map_or(number, |(_, position)| *position);
        self.blocks[lane] += 1;
        let path =
            self.directories[lane].path().join(Head { lane: lane as u32, ..self.head }.file_name("n", file));
        let file_there = File::options().create(true).truncate(false).write(true).open(path).expect("a file");
        file_there.write_all_at(bytes, position * stride).expect("room");
        let extent = self.head.extent(file, position * stride, bytes.len() as u32);
        self.journals[lane].extend(gaps.iter().map(|gap| Entry::Gap { number, gap: *gap }));
        let due = due * 1_000_000_000;
        let checksum = Some(crc32fast::hash(bytes));
        self.journals[lane].push(Entry::Frame { number, extent, due, checksum });
    }

    /// Writes the journals, but for so many of their last records.
    fn publish(&self, but: usize) {
        for (lane, entries) in self.journals.iter().enumerate() {
            let mut bytes = vec![0; (entries.len() - but) * RECORD];
            for (sequence, (record, entry)) in bytes.chunks_exact_mut(RECORD).zip(entries).enumerate() {
                entry.put(sequence as u64, record);
            }
            fs::write(self.directories[lane].path().join(format!("n.{lane}.journal")), bytes).expect("room");
        }
    }

    /// What is in this file will be overwritten.
    fn remove(&mut self, lane: usize, file: u64) {
        self.journals[lane].push(Entry::Removed { file });
    }

    fn end(&mut self, frames: u64) {
        self.end_with(Due { frames, last: None });
    }

    fn end_with(&mut self, due: Due) {
        self.journals.iter_mut().for_each(|journal| journal.push(Entry::End { due: Some(due) }));
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.directories.iter().map(|directory| directory.path().to_owned()).collect()
    }

    pub(crate) fn whole(&self, extent: Extent) -> RecordingView {
        let recording = Recording::open(&self.paths(), Trust::Acknowledged).expect("a recording");
        RecordingView::new(recording, extent)
    }
}

/// Blocks by the lane that has them, none if they are missing; as many frames in the last one.
pub(crate) fn laid_out(
    course: Course,
    storing: Storing,
    lanes: usize,
    blocks: &[Option<usize>],
    last: u64,
) -> (Lanes, Vec<u8>) {
    let (sent, told, stored) = course;
    let format = sender(sent);
    let mut recorded = Lanes::new(lanes, storing, &stream(course, &known(told)));
    let mut reference = Vec::new();
    for (number, lane) in (0..).zip(blocks) {
        let is_last = number + 1 == blocks.len() as u64;
        let frames = if is_last { last } else { FRAMES_OF_BLOCK };
        let first = number * FRAMES_OF_BLOCK;
        let bytes: Vec<u8> = (first..first + frames)
            .flat_map(|number| frame(&*format, stored, number, lane.is_none()))
            .collect();
        if let Some(lane) = lane {
            recorded.store(*lane, number, &bytes, 0, &[]);
        }
        reference.extend(bytes);
    }
    let last = (last * format.geometry().frame_size() as u64) as u32;
    recorded.end_with(Due { frames: blocks.len() as u64, last: Some(last) });
    recorded.publish(0);
    (recorded, reference)
}

/// A ring that is overwritten in part since it was opened, though nobody was told so.
pub(crate) fn overtaken() -> (Lanes, RecordingView) {
    let course = COURSES[0];
    let format = sender(course.0);
    let mut lanes = Lanes::new(1, Storing::Ring, &stream(course, &known(course.1)));
    let store = |lanes: &mut Lanes, blocks: Range<u64>| {
        for block in blocks {
            let frames = block * FRAMES_OF_BLOCK..(block + 1) * FRAMES_OF_BLOCK;
            let bytes: Vec<u8> = frames.flat_map(|number| frame(&*format, course.2, number, false)).collect();
            lanes.store(0, block, &bytes, 0, &[]);
        }
        lanes.publish(0);
    };
    store(&mut lanes, 0..8);
    let whole = lanes.whole(Extent::Mark);
    lanes.remove(0, 0);
    store(&mut lanes, 8..11);
    (lanes, whole)
}

/// From one end to the other, in reads of these lengths in turn, two at a time in the other order.
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
        which in 0..COURSES.len(), storing in prop::sample::select(&Storing::ALL[..3]), blocks in blocks(),
        last in 1..=FRAMES_OF_BLOCK, lengths in prop::collection::vec(1..30_000_usize, 1..9), reads in prop::collection::vec((0.0..1.1_f64, 1..40_000_usize), 1..12),
    ) {
        // From fewer frames than there are threads, nobody can tell which come in between.
        prop_assume!(last >= THREADS || blocks[..blocks.len() - 1].iter().any(Option::is_some));
        let (lanes, reference) = laid_out(COURSES[which], storing, 3, &blocks, last);
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
    let (lanes, _) = laid_out(COURSES[0], Storing::Files, 3, &blocks, 4);
    let absent: Vec<_> = (0..20).map(|block| Some(block % 3).filter(|lane| *lane != 1)).collect();
    let (_, expected) = laid_out(COURSES[0], Storing::Files, 3, &absent, 4);
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
    let (lanes, reference) = laid_out(COURSES[2], Storing::Shared, 2, &[Some(0), Some(1)], 4);
    let (_, filled) = laid_out(COURSES[2], Storing::Shared, 2, &[None, Some(1)], 4);
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
    // Not read ahead yet.
    assert!(read(block - 100..block) == filled[block - 100..block]);
    assert!(read(100..8000) == filled[100..8000], "a part of a frame does not fit the rest");
}

#[test]
fn a_file_that_is_all_of_a_recording_is_named() {
    let blocks = [Some(0); 8];
    let only = |storing, blocks: &[Option<usize>], last| {
        let (lanes, reference) = laid_out(COURSES[0], storing, 1, blocks, last);
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
        let (sent, told, stored) = COURSES[1];
        let format = sender(sent);
        let known = Known { frames_per_second: None, ..known(told) };
        let mut lanes = Lanes::new(1, Storing::Shared, &stream((sent, told, stored), &known));
        // 500 frames a second of each of two threads; the second ends in block 125.
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
    let course = COURSES[0];
    let format = sender(course.0);
    let mut lanes = Lanes::new(1, Storing::Growing, &stream(course, &known(course.1)));
    let bytes = |first: u64| -> Vec<u8> {
        (first..first + 4).flat_map(|number| frame(&*format, course.2, number, false)).collect()
    };
    lanes.store(
        0,
        0,
        &bytes(0),
        0,
        &[Gap { at: 2, count: 9, filled: true }, Gap { at: 4, count: 6, filled: false }],
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
