//! Verifies an HDF5 file with several frames per chunk. Looks up each chunk in the file's index, like any
//! reader, and compares every frame with the recording.

use std::{collections::BTreeMap, fs::File, io, os::unix::fs::FileExt, path::Path};

use nilometer_hdf5::{
    ChunkPlace, Hdf5Error, ReadDataset, ReadFile,
    nexus::RecorderColumn,
    tree::{FramesShape, TreeGroup},
};
use nilometer_hdf5_recording::{Hdf5Contents, StackedFrames};
use nilometer_model::FrameBlock;
use nilometer_recording::chunk::{self, ChunkError};

use super::frames::{FramesRead, ReadProof};

/// The reason why a file is wrong, or can't be read back.
#[derive(Debug, thiserror::Error)]
pub enum StackFault {
    /// The library can't follow the file's structure.
    #[error(transparent)]
    Hdf5(#[from] Hdf5Error),
    /// The file can't be read.
    #[error("it can't be read: {0}")]
    Storage(#[from] io::Error),
    /// A chunk is damaged.
    #[error("the chunk of frame {frame}: {source}")]
    Chunk {
        /// First frame of the chunk.
        frame: u64,
        /// The reason.
        source: ChunkError,
    },
    /// A frame has other content, or is at another position.
    #[error("frame {frame} {why}")]
    Frame {
        /// Number of the frame.
        frame: u64,
        /// The difference.
        why: String,
    },
    /// The file has other datasets.
    #[error("{0}")]
    Dataset(String),
    /// The user interrupted it.
    #[error("interrupted: nothing is left there")]
    Interrupted,
}

/// Compares every frame of a file with these contents with the frames read from the recording. Returns the
/// number of intact frames.
///
/// # Errors
/// The first difference or fault.
pub fn read_back_stacks(
    path: &Path,
    contents: &Hdf5Contents,
    read: &FramesRead,
    goes_on: &dyn Fn() -> bool,
) -> Result<u64, StackFault> {
    let nothing = || StackFault::Dataset("no checksums were kept of the frames that were read".into());
    let proofs = read.proofs().ok_or_else(nothing)?;
    let stack = contents.stack.ok_or_else(nothing)?;
    let file = ReadFile::open(path)?;
    check_columns(&file, &contents.tree, stack.due, &proofs)?;
    let frames = contents.tree.frames().into_iter().next();
    let (name, shape) = frames.ok_or_else(|| StackFault::Dataset("it has no frames".into()))?;
    let data = file.dataset(&name)?;
    let dimensions = shape.dimensions(stack.due);
    if data.dimensions() != dimensions {
        let found = data.dimensions();
        return Err(StackFault::Dataset(format!(
            "{name} has {found:?} pixels, and should have {dimensions:?}"
        )));
    }
    let bytes = vec![0; contents.frame_size as usize];
    let stored = File::open(path)?;
    let mut reading = StackReading { contents, shape, stack, data, stored, bytes, chunk: Vec::new() };
    for first in (0..stack.due).step_by(stack.frames as usize) {
        if !goes_on() {
            return Err(StackFault::Interrupted);
        }
        reading.read(first)?;
        reading.compare(first, &proofs)?;
    }
    Ok(proofs.len() as u64)
}

/// Checks the recorder's columns about each frame, as far as the file has them.
fn check_columns(
    file: &ReadFile,
    tree: &TreeGroup,
    due: u64,
    proofs: &BTreeMap<u64, ReadProof>,
) -> Result<(), StackFault> {
    for (path, column) in tree.columns() {
        let known = RecorderColumn::ALL.iter().find(|known| known.key() == column.key);
        let Some(known) = known.filter(|known| known.is_of_journals()) else { continue };
        let numbers = file.dataset(&path)?.numbers()?;
        if numbers.len() as u64 != due {
            let count = numbers.len();
            return Err(StackFault::Dataset(format!("{path} has {count} numbers, and should have {due}")));
        }
        for (frame, found) in (0..).zip(numbers) {
            let expected = said(*known, proofs.get(&frame));
            if expected.is_some_and(|expected| expected != found) {
                let why = format!("has {found} in {path}, and should have {expected:?}");
                return Err(StackFault::Frame { frame, why });
            }
        }
    }
    Ok(())
}

/// Returns the value that a column must have for a frame, or for a missing one if there is no proof. `None` if
/// any value is valid.
fn said(column: RecorderColumn, proof: Option<&ReadProof>) -> Option<i64> {
    let said = proof.map(|proof| proof.said);
    match column {
        RecorderColumn::Flag => Some(said.map_or(1, |said| 2 * i64::from(said.missing > 0))),
        RecorderColumn::Missing => Some(said.map_or(0, |said| said.missing.cast_signed())),
        RecorderColumn::Due => Some(said.map_or(-1, |said| said.due.0.cast_signed())),
        RecorderColumn::Arrived | RecorderColumn::Encoded | RecorderColumn::Durable => None,
    }
}

/// A file whose stacks are read one after the other.
struct StackReading<'a> {
    contents: &'a Hdf5Contents,
    shape: &'a FramesShape,
    stack: StackedFrames,
    data: ReadDataset,
    stored: File,
    /// Decoded bytes of a stack.
    bytes: Vec<u8>,
    /// A chunk as stored.
    chunk: Vec<u8>,
}

impl StackReading<'_> {
    /// Reads the stack that begins with this frame. Missing chunks become 0.
    fn read(&mut self, first: u64) -> Result<(), StackFault> {
        self.bytes.fill(0);
        for tile in 0..self.shape.tiles() {
            if let Some(place) = self.data.chunk(&self.shape.offset(first, tile))? {
                self.read_chunk(first, tile, place)?;
            }
        }
        Ok(())
    }

    fn read_chunk(&mut self, frame: u64, tile: u64, place: ChunkPlace) -> Result<(), StackFault> {
        let Hdf5Contents { compression, element, grid, .. } = self.contents;
        let size = grid.as_ref().map_or(self.bytes.len(), |grid| grid.tile_size());
        let is_plain = self.shape.filter.is_none() || place.unfiltered != 0;
        let length = usize::try_from(place.bytes).unwrap_or(usize::MAX);
        if is_plain && length != size || !is_plain && length > size.saturating_mul(2).saturating_add(SPARE) {
            let why = format!("begins a chunk of {length} B, and the pixels have {size}");
            return Err(StackFault::Frame { frame, why });
        }
        self.chunk.resize(length, 0);
        self.stored.read_exact_at(&mut self.chunk, place.offset)?;
        let mut pixels = std::mem::take(&mut self.chunk);
        if !is_plain {
            let stored = std::mem::replace(&mut pixels, vec![0; size]);
            let decoded = chunk::decode(*compression, *element, &stored, &mut pixels);
            decoded.map_err(|source| StackFault::Chunk { frame, source })?;
        }
        match grid {
            None => self.bytes.copy_from_slice(&pixels),
            Some(grid) => {
                let size: Vec<u64> =
                    [self.stack.frames].into_iter().chain(self.shape.frame.iter().copied()).collect();
                let whole = FrameBlock { first: vec![0; size.len()], size };
                grid.put(tile, &pixels, &whole, &mut self.bytes);
            }
        }
        self.chunk = pixels;
        Ok(())
    }

    /// Compares the frames of the stack in memory.
    fn compare(&self, first: u64, proofs: &BTreeMap<u64, ReadProof>) -> Result<(), StackFault> {
        for (frame, bytes) in (first..).zip(self.bytes.chunks_exact(self.shape.frame_size() as usize)) {
            let why = match proofs.get(&frame) {
                Some(proof) if crc32fast::hash(bytes) == proof.checksum => continue,
                Some(_) => "is another than was read of the recording",
                None if bytes.iter().all(|byte| *byte == 0) => continue,
                None => "is not there in the recording, and has pixels",
            };
            return Err(StackFault::Frame { frame, why: why.into() });
        }
        Ok(())
    }
}

/// No compression makes chunks longer than twice their pixels plus this number of bytes.
const SPARE: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use nilometer_hdf5::{FileWrite, Hdf5File, Hdf5FileOptions, StoredChunk};
    use nilometer_model::{FrameCompression, Nanos, PixelType};
    use nilometer_storage::Buffer;

    use nilometer_hdf5_recording::WishedChunks;

    use super::*;
    use nilometer_ring::Frame;

    const FRAME: usize = 64;

    /// Returns the contents of 10 frames in chunks of 4, with frame 5 missing.
    fn contents() -> Hdf5Contents {
        let contents = Hdf5Contents::of_frames(PixelType::Uint8, &[FRAME as u64], FrameCompression::None);
        let chunk = "4x64".parse().expect("a chunk");
        let wished = WishedChunks { chunk, compression: None, due: 10 };
        contents.expect("whole pixels").cut(wished).expect("it can be cut so")
    }

    fn frames() -> impl Iterator<Item = Frame> {
        (0..10).filter(|number| *number != 5).map(|number| {
            let mut data = Buffer::alone(FRAME);
            data.fill(number as u8 + 1);
            Frame::new(number, Nanos(7 * number), Nanos(0), data)
        })
    }

    /// The error that a test puts into a file that is otherwise right.
    struct Wrong {
        /// A value in a column: the column's key, the frame and the value.
        said: Option<(&'static str, u64, i64)>,
        /// A chunk to leave out.
        without: Option<u64>,
        /// True to give frame 5 pixels.
        foreign: bool,
    }

    const RIGHT: Wrong = Wrong { said: None, without: None, foreign: false };

    fn made(path: &Path, contents: &Hdf5Contents, wrong: &Wrong) -> Vec<u64> {
        let file = File::create_new(path).expect("a file");
        let write = |write: FileWrite| file.write_all_at(&write.bytes, write.offset).expect("space");
        let mut made =
            Hdf5File::create("a.h5", &contents.tree, Hdf5FileOptions::default()).expect("it is made");
        let mut places = Vec::new();
        for first in [0, 4, 8].into_iter().filter(|first| Some(*first) != wrong.without) {
            let mut bytes = vec![0; 4 * FRAME];
            for frame in frames().filter(|frame| (first..first + 4).contains(&frame.number)) {
                let begin = (frame.number - first) as usize * FRAME;
                bytes[begin..begin + FRAME].copy_from_slice(&frame.data);
            }
            if wrong.foreign && first == 4 {
                bytes[FRAME] = 1;
            }
            let offset = made.allocate(bytes.len() as u64, 8);
            file.write_all_at(&bytes, offset).expect("space");
            let bytes = bytes.len() as u32;
            made.insert(StoredChunk { dataset: 0, frame: first, tile: 0, offset, bytes, unfiltered: true });
            places.push(offset);
        }
        let keys: Vec<String> = made.columns().map(|column| column.key.clone()).collect();
        for frame in frames() {
            for (column, key) in keys.iter().enumerate() {
                let number = match key.as_str() {
                    "flag" | "missing" => 0,
                    "due" => frame.due.0.cast_signed(),
                    _ => continue,
                };
                let said = wrong.said.filter(|(of, number, _)| of == key && *number == frame.number);
                made.set(column, frame.number, said.map_or(number, |(_, _, said)| said));
            }
        }
        made.flush().expect("it is flushed");
        std::iter::from_fn(|| made.next_write()).for_each(write);
        let mut closed = made.close(10, &contents.tree).expect("it is closed");
        std::iter::from_fn(|| closed.next_write()).for_each(write);
        file.set_len(closed.size()).expect("it is ours");
        places
    }

    fn read() -> FramesRead {
        let read = FramesRead::proving();
        frames().for_each(|frame| read.came(&frame, FRAME));
        read
    }

    fn found(path: &Path, contents: &Hdf5Contents) -> Result<u64, String> {
        read_back_stacks(path, contents, &read(), &|| true).map_err(|why| why.to_string())
    }

    #[test]
    fn a_file_that_is_as_it_should_be_is_right_and_one_that_is_changed_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.h5");
        let contents = contents();
        let places = made(&path, &contents, &RIGHT);
        assert_eq!(found(&path, &contents), Ok(9));
        let ended = read_back_stacks(&path, &contents, &read(), &|| false);
        assert!(matches!(ended, Err(StackFault::Interrupted)), "{ended:?}");
        // Change the last pixel of frame 6.
        let file = File::options().write(true).open(&path).expect("it is there");
        file.write_all_at(&[0], places[1] + 3 * FRAME as u64 - 1).expect("it is ours");
        let why = found(&path, &contents).expect_err("it is another");
        assert!(why.contains("frame 6 is another"), "{why}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let cases = [
            (
                Wrong { said: Some(("flag", 3, 2)), ..RIGHT },
                "frame 3 has 2 in /entry/instrument/nilometer/flag",
            ),
            (Wrong { said: Some(("due", 9, 1)), ..RIGHT }, "frame 9 has 1 in"),
            (Wrong { without: Some(4), ..RIGHT }, "frame 4 is another"),
            (Wrong { foreign: true, ..RIGHT }, "frame 5 is not there in the recording"),
        ];
        for (at, (wrong, why)) in cases.iter().enumerate() {
            let path = folder.path().join(at.to_string());
            let contents = contents();
            made(&path, &contents, wrong);
            let said = found(&path, &contents).expect_err("it is wrong");
            assert!(said.contains(why), "{why}: {said}");
        }
    }
}
