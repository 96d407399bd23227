//! For tests: recordings of packets laid out block by block, without a recorder.

use std::{
    fs::{self, File},
    ops::Range,
    os::unix::fs::FileExt,
    path::PathBuf,
};

use nilometer_model::{FileNames, Format, Instrument, Storing};
use nilometer_wire::{Known, WireFormat};
use tempfile::TempDir;

use super::{Extent, RecordingView};
use crate::{
    Due, Gap, Missing, Stream,
    journal::{Entry, Head, RECORD, stream_entries},
    reader::{Recording, Trust},
};

/// Frames in each block.
pub const FRAMES_OF_BLOCK: u64 = 4;
const BEGINS: u64 = 812_345_678;
const TELESCOPE: &str = "shape = [40_000]\npixel = \"uint2\"\nframe_rate = \"100 Hz\"\n";

/// The most threads in a case whose threads the recorder does not know.
pub const THREADS: u64 = 2;

/// The packets as the sender describes them, as the recorder knows them, and the format on storage.
pub type PacketCase = (&'static str, &'static str, Format);
/// One case of each kind of packets.
pub const PACKET_CASES: [PacketCase; 5] = [
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

/// Parses an instrument with these packets.
pub fn instrument(shape: &str, packets: &str) -> Instrument {
    let head = "name = \"t\"\ntitle = \"t\"\nsource = \"t\"\n";
    Instrument::parse(&format!("{head}{shape}[packets]\n{packets}\n"), "t.toml").expect("it is one")
}

/// Returns the facts known about these packets.
pub fn known(packets: &str) -> Known {
    Known { begins: BEGINS, ..Known::of(&instrument(TELESCOPE, packets)) }
}

/// Returns the format in which the sender sends the packets.
pub fn sender(packets: &str) -> Box<dyn WireFormat> {
    nilometer_wire::of(&instrument(TELESCOPE, packets).packets.expect("it has some"), &known(packets))
        .expect("it can be made")
}

/// Returns the description of the stream for the journal.
pub fn stream(course: PacketCase, known: &Known) -> Stream {
    let (_, told, stored) = course;
    let packets = instrument(TELESCOPE, told).packets.expect("it has some");
    let format = nilometer_wire::of(&packets, known).expect("it can be made");
    Stream::new(stored, format.geometry(), Missing::Filled).sent_as(&packets, known)
}

/// Returns a frame as sent, or the frame that must replace it if it is missing.
pub fn frame(format: &dyn WireFormat, stored: Format, number: u64, missing: bool) -> Vec<u8> {
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

/// Number of parts of a ring.
const PARTS: u64 = 3;

/// A recording that a test writes.
#[derive(Debug)]
pub struct LaidOut {
    pub(super) directories: Vec<TempDir>,
    pub(super) head: Head,
    pub(super) journals: Vec<Vec<Entry>>,
    blocks: Vec<u64>,
}

impl LaidOut {
    /// Creates a recording with `lanes` lanes, each in its own directory.
    pub fn new(lanes: usize, storing: Storing, stream: &Stream) -> Self {
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
            names: FileNames::default(),
        };
        let journal = |lane| {
            let head = [Entry::Head(Head { lane, ..head })];
            head.into_iter().chain(stream_entries(&stream.text())).collect()
        };
        LaidOut {
            directories: (0..lanes).map(|_| tempfile::tempdir().expect("a temporary directory")).collect(),
            head,
            journals: (0..lanes as u32).map(journal).collect(),
            blocks: vec![0; lanes],
        }
    }

    /// Stores a block with these gaps, complete at second `due`.
    pub fn store(&mut self, lane: usize, number: u64, bytes: &[u8], due: u64, gaps: &[Gap]) {
        let Head { frames_per_file, stride, storing, .. } = self.head;
        let stored = self.blocks[lane];
        let file = stored / frames_per_file;
        let issued = stored % frames_per_file;
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

    /// Stores these blocks of a case in the first lane, and writes the journals.
    fn store_all(&mut self, course: PacketCase, blocks: Range<u64>) {
        let format = sender(course.0);
        for block in blocks {
            let frames = block * FRAMES_OF_BLOCK..(block + 1) * FRAMES_OF_BLOCK;
            let bytes: Vec<u8> = frames.flat_map(|number| frame(&*format, course.2, number, false)).collect();
            self.store(0, block, &bytes, 0, &[]);
        }
        self.publish(0);
    }

    /// Writes the journals without their last `but` records.
    pub fn publish(&self, but: usize) {
        for (lane, entries) in self.journals.iter().enumerate() {
            let mut bytes = vec![0; (entries.len() - but) * RECORD];
            for (sequence, (record, entry)) in bytes.chunks_exact_mut(RECORD).zip(entries).enumerate() {
                entry.put(sequence as u64, record);
            }
            fs::write(self.directories[lane].path().join(format!("n.{lane}.journal")), bytes).expect("room");
        }
    }

    /// Journals that the frames in this file are about to be overwritten.
    pub fn remove(&mut self, lane: usize, file: u64) {
        self.journals[lane].push(Entry::Removed { file });
    }

    /// Ends the recording in order, with whole blocks.
    pub fn end(&mut self, frames: u64) {
        self.end_with(Due { frames, last: None });
    }

    /// Ends the recording in order.
    pub fn end_with(&mut self, due: Due) {
        self.journals.iter_mut().for_each(|journal| journal.push(Entry::End { due: Some(due) }));
    }

    /// Directories of its lanes.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.directories.iter().map(|directory| directory.path().to_owned()).collect()
    }

    /// Opens the recording as a view.
    pub fn whole(&self, extent: Extent) -> RecordingView {
        let recording = Recording::open(&self.paths(), Trust::Acknowledged).expect("a recording");
        RecordingView::new(recording, extent)
    }
}

/// Lays out blocks by lane, `None` for missing ones, and `last` frames in the last block. Also returns the
/// expected bytes.
pub fn laid_out(
    course: PacketCase,
    storing: Storing,
    lanes: usize,
    blocks: &[Option<usize>],
    last: u64,
) -> (LaidOut, Vec<u8>) {
    let (sent, told, stored) = course;
    let format = sender(sent);
    let mut recorded = LaidOut::new(lanes, storing, &stream(course, &known(told)));
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

/// Returns a ring partly overwritten since the view opened it, without the view's knowledge.
pub fn overtaken() -> (LaidOut, RecordingView) {
    let course = PACKET_CASES[0];
    let mut lanes = LaidOut::new(1, Storing::Ring, &stream(course, &known(course.1)));
    lanes.store_all(course, 0..8);
    let whole = lanes.whole(Extent::Mark);
    lanes.remove(0, 0);
    lanes.store_all(course, 8..11);
    (lanes, whole)
}
