//! Files that are written, read by h5py while they grow and when they are closed.

use std::{fs::File, os::unix::fs::FileExt, path::Path, process::Command};

use nilometer_hdf5::{
    Hdf5File, Hdf5FileOptions, ReadFile, StoredChunk,
    nexus::{DetectorDescription, FRAMES_PATH, RECORDER_PATH, RecordingTotals, closing, nxmx},
    tree::{DatasetContent, FrameColumn, FramesShape, NumberType, TreeDataset, TreeGroup, TreeNode},
};

fn tree() -> TreeGroup {
    let shape = FramesShape {
        element: NumberType::Uint16,
        frame: vec![30, 100],
        scan: Vec::new(),
        first_max: None,
        chunk: Vec::new(),
        stack: 1,
        packed_12: false,
        filter: None,
        fill: Some(vec![255, 255]),
    };
    let column = FrameColumn { key: "flag".into(), element: NumberType::Uint8.into(), fill: vec![1] };
    let data = TreeGroup::nexus("NXdata")
        .attribute("signal", "data")
        .with("data", TreeNode::Dataset(TreeDataset::of(DatasetContent::Frames(shape))))
        .with("flag", TreeNode::Dataset(TreeDataset::of(DatasetContent::Column(column))));
    let entry = TreeGroup::nexus("NXentry").value("title", "a try").group("data", data);
    TreeGroup::default().attribute("default", "entry").group("entry", entry)
}

/// A frame of such a file.
fn stored(frame: u64, offset: u64) -> StoredChunk {
    StoredChunk { dataset: 0, frame, tile: 0, offset, bytes: 6000, unfiltered: false }
}

fn carry_out(file: &File, mut next: impl FnMut() -> Option<nilometer_hdf5::FileWrite>) {
    while let Some(write) = next() {
        file.write_all_at(&write.bytes, write.offset).expect("it is written");
    }
}

fn python(script: &str, path: &Path) -> String {
    let output =
        Command::new("/usr/bin/python3").arg("-c").arg(script).arg(path).output().expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().into()
}

#[test]
fn frames_are_read_while_the_file_grows_and_when_it_is_closed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.h5");
    let file = File::create_new(&path).expect("a file");
    let mut frames = Hdf5File::create("a.h5", &tree(), Hdf5FileOptions::default()).expect("it is made");
    carry_out(&file, || frames.next_write());
    for number in [0_u64, 1, 3] {
        let bytes = vec![number as u8 + 7; 6000];
        let offset = frames.allocate(6000, 4096);
        assert!(offset.is_multiple_of(4096));
        file.write_all_at(&bytes, offset).expect("it is written");
        frames.insert(stored(number, offset));
        frames.set(0, number, 0);
        frames.flush().expect("it is flushed");
        carry_out(&file, || frames.next_write());
        let script = "import h5py, sys
f = h5py.File(sys.argv[1], 'r', libver='latest', swmr=True)
d = f['entry/data/data']
print(d.shape, d[-1].min(), d[-1].max(), f['entry/data/flag'][-1], f.attrs['default'].decode())";
        let value = (number + 7) * 257;
        let expected = format!("({}, 30, 100) {value} {value} 0 entry", number + 1);
        assert_eq!(python(script, &path), expected);
        let plain = script.replace(", swmr=True", "");
        assert_eq!(python(&plain, &path), expected);
    }
    let mut closed = frames.close(6, &tree()).expect("it is closed");
    carry_out(&file, || closed.next_write());
    file.set_len(closed.size()).expect("it is cut");
    let script = "import h5py, sys
f = h5py.File(sys.argv[1], 'r+')
d = f['entry/data/data']
print(d.shape, [int(x.max()) for x in d[:]], list(f['entry/data/flag'][:]), f['entry/title'][()].decode())
f['entry/more'] = 5";
    let expected = "(6, 30, 100) [1799, 2056, 65535, 2570, 65535, 65535] [0, 0, 1, 0, 1, 1] a try";
    assert_eq!(python(script, &path), expected);
}

#[test]
fn each_of_several_datasets_is_as_long_as_it_has_frames_and_columns_as_there_are_frames() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.h5");
    let file = File::create_new(&path).expect("a file");
    let mut tree = tree();
    let other = tree.find("/entry/data/data").cloned().expect("it is there");
    tree.put("/entry/data/other", other);
    let options = Hdf5FileOptions { apart: true, ..Hdf5FileOptions::default() };
    let mut frames = Hdf5File::create("a.h5", &tree, options).expect("it is made");
    for (number, (dataset, frame)) in (0_u64..).zip([(0, 0), (1, 0), (0, 1), (0, 2)]) {
        let offset = frames.allocate(6000, 4096);
        file.write_all_at(&[number as u8 + 7; 6000], offset).expect("it is written");
        frames.insert(StoredChunk { dataset, ..stored(frame, offset) });
        frames.set(0, number, 0);
        frames.flush().expect("it is flushed");
        carry_out(&file, || frames.next_write());
    }
    let mut closed = frames.close(6, &tree).expect("it is closed");
    carry_out(&file, || closed.next_write());
    file.set_len(closed.size()).expect("it is cut");
    let script = "import h5py, sys
d = h5py.File(sys.argv[1], 'r')['entry/data']
print([[int(x.max()) // 257 for x in d[name]] for name in ('data', 'other')], list(d['flag'][:]))";
    assert_eq!(python(script, &path), "[[7, 9, 10], [8]] [0, 0, 0, 0, 1, 1]");
}

/// What whoever opens the file just now finds: each frame that is said to be whole is in the index, and what is in the index
/// is in front of where the file ends, for readers refuse all behind it.
fn assert_readable(path: &Path, written: u64) {
    let file = ReadFile::open(path).expect("it can be opened");
    let mut superblock = [0; 48];
    File::open(path).and_then(|file| file.read_exact_at(&mut superblock, 0)).expect("it is there");
    let end = u64::from_le_bytes(*superblock[28..].first_chunk().expect("eight bytes"));
    let data = file.dataset("entry/data/data").expect("it is there");
    let flags = file.dataset("entry/data/flag").and_then(|flags| flags.numbers()).expect("they can be read");
    for number in 0..data.dimensions()[0] {
        let place = data.chunk(&[number, 0, 0]).expect("the index can be read");
        let is_whole = flags.get(number as usize) == Some(&0);
        assert!(place.is_some() || !is_whole, "frame {number} is said to be whole, after {written} writes");
        let behind = place.map_or(0, |place| place.offset + place.bytes);
        assert!(behind <= end, "frame {number} ends at {behind} of {end}, after {written} writes");
    }
    let early = flags.iter().skip(data.dimensions()[0] as usize).filter(|flag| **flag == 0).count();
    assert_eq!(early, 0, "frames that are said to be whole are behind the last, after {written} writes");
}

/// Seen: flags were written before the frames that they speak of, and frames were in the index before the superblock said
/// that the file is so long, for whoever was killed in between.
#[test]
fn after_each_write_what_is_said_to_be_whole_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.h5");
    let file = File::create_new(&path).expect("a file");
    let mut frames = Hdf5File::create("a.h5", &tree(), Hdf5FileOptions::default()).expect("it is made");
    carry_out(&file, || frames.next_write());
    let mut written = 0;
    for first in (0..400).step_by(4) {
        for number in first..first + 4 {
            let offset = frames.allocate(6000, 4096);
            file.write_all_at(&[7; 6000], offset).expect("it is written");
            frames.insert(stored(number, offset));
            frames.set(0, number, 0);
        }
        frames.flush().expect("it is flushed");
        while let Some(write) = frames.next_write() {
            file.write_all_at(&write.bytes, write.offset).expect("it is written");
            written += 1;
            assert_readable(&path, written);
        }
    }
    assert!(written > 400, "more than a write a flush: {written}");
}

/// The bytes of a file, to which writes are done up to each page that they reach.
struct Torn {
    bytes: Vec<u8>,
    looks: u64,
}

const PAGE: u64 = 4096;

impl Torn {
    fn put(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset as usize + bytes.len();
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[offset as usize..end].copy_from_slice(bytes);
    }

    /// A write that ends at a page, as it does for who is killed, leaves a file in which all is found that is said to be whole.
    fn carry_out(&mut self, mut next: impl FnMut() -> Option<nilometer_hdf5::FileWrite>) {
        while let Some(write) = next() {
            let end = write.offset + write.bytes.len() as u64;
            let mut at = write.offset;
            while at < end {
                let upto = (at + 1).next_multiple_of(PAGE).min(end);
                let part = (at - write.offset) as usize..(upto - write.offset) as usize;
                self.put(at, &write.bytes[part]);
                at = upto;
                self.look();
            }
        }
    }

    fn look(&mut self) {
        self.looks += 1;
        let file = ReadFile::of_bytes(&self.bytes).expect("it opens");
        let column = |key: &str| file.dataset(&format!("{RECORDER_PATH}/{key}")).expect("it is there");
        let flags = column("flag").numbers().expect("they are read");
        assert!(["due", "durable", "missing"].iter().all(|key| column(key).numbers().is_ok()));
        let frames = file.dataset(FRAMES_PATH).expect("it is there");
        for (frame, _) in (0..).zip(&flags).filter(|(_, flag)| **flag == 0) {
            let chunk = frames.chunk(&[frame, 0, 0]).expect("the index is whole");
            assert!(chunk.is_some(), "frame {frame} is said to be whole, after {} looks", self.looks);
        }
    }
}

/// Seen: a block of metadata on two pages, of which a process that was killed had written one.
#[test]
fn a_write_that_ends_at_a_page_leaves_a_file_that_can_be_read() {
    let described = DetectorDescription::new("d", "2026-11-25T00:00:00Z", NumberType::Uint16, &[8, 16]);
    let tree = nxmx(&described);
    for count in [5, 50, 300] {
        let mut torn = Torn { bytes: Vec::new(), looks: 0 };
        let mut file = Hdf5File::create("a.h5", &tree, Hdf5FileOptions::default()).expect("it is made");
        while let Some(write) = file.next_write() {
            torn.put(write.offset, &write.bytes);
        }
        for number in 0..count {
            let offset = file.allocate(256, 8);
            torn.put(offset, &[7; 256]);
            file.insert(StoredChunk {
                dataset: 0,
                frame: number,
                tile: 0,
                offset,
                bytes: 256,
                unfiltered: false,
            });
            (0..3).for_each(|column| file.set(column, number, 0));
            file.flush().expect("it is flushed");
            torn.carry_out(|| file.next_write());
        }
        let totals = RecordingTotals {
            whole: count,
            end_time: Some("2026-11-25T00:00:01Z".into()),
            ..RecordingTotals::default()
        };
        let mut closed = file.close(count, &closing(&totals)).expect("it is closed");
        torn.carry_out(|| closed.next_write());
        let read = ReadFile::of_bytes(&torn.bytes).expect("it opens");
        let whole = read.dataset(&format!("{RECORDER_PATH}/frames_whole")).expect("it is there");
        assert_eq!(whole.numbers(), Ok(vec![count.cast_signed()]));
        assert!(torn.looks > count, "{} looks", torn.looks);
    }
}

/// The dataset of frames of a file, with so many frames in a chunk.
fn stacked(stack: u64, scan: &[u64]) -> (TreeGroup, FramesShape) {
    let mut tree = tree();
    let shape = tree.frames_mut().expect("it has frames");
    shape.stack = stack;
    shape.scan = scan.into();
    let shape = shape.clone();
    (tree, shape)
}

#[test]
fn chunks_of_several_frames_are_read_and_the_last_ends_behind_the_dataset() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.h5");
    let file = File::create_new(&path).expect("a file");
    let (tree, _) = stacked(4, &[]);
    let mut frames = Hdf5File::create("a.h5", &tree, Hdf5FileOptions::default()).expect("it is made");
    for first in [0_u64, 8] {
        let offset = frames.allocate(24_000, 4096);
        let bytes: Vec<u8> = (0..4).flat_map(|more| vec![(first + more) as u8 + 7; 6000]).collect();
        file.write_all_at(&bytes, offset).expect("it is written");
        let chunk = StoredChunk { bytes: 24_000, ..stored(first, offset) };
        frames.insert(chunk);
        (first..first + 2).for_each(|number| frames.set(0, number, 0));
        frames.flush().expect("it is flushed");
        carry_out(&file, || frames.next_write());
    }
    let mut closed = frames.close(11, &tree).expect("it is closed");
    carry_out(&file, || closed.next_write());
    file.set_len(closed.size()).expect("it is cut");
    let script = "import h5py, sys
f = h5py.File(sys.argv[1])
d = f['entry/data/data']
print(d.shape, d.chunks, [int(x.max()) // 257 for x in d[:]], list(f['entry/data/flag'][:]))";
    let expected = "(11, 30, 100) (4, 30, 100) [7, 8, 9, 10, 255, 255, 255, 255, 15, 16, 17] [0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 1]";
    assert_eq!(python(script, &path), expected);
}

#[test]
fn frames_are_put_together_only_where_they_are_one_row() {
    let is_sound = |stack, scan: &[u64]| stacked(stack, scan).1.is_sound(100, 100);
    assert!(is_sound(1, &[5]) && is_sound(4, &[]));
    assert!(!is_sound(4, &[5]) && !is_sound(0, &[]));
}
