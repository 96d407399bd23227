//! Reads frames out of HDF5 files as analysis programs do: a part of each frame, chunk by chunk. The library
//! gives the position of a chunk. One thread reads the bytes, decodes them and takes out the requested part, as
//! in a program that uses the library. Its costs are the basis for the choice of chunks.

use std::{
    fs::File,
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use nilometer_codec::ElementSize;
use nilometer_hdf5::{Hdf5Error, ReadDataset, ReadFile, tree::FramesShape};
use nilometer_model::{
    ChunkedFrames, FrameBlock, FrameCompression, Nanos, ReaderPlace, ReadingPart, ReadingWay, Seed,
};
use nilometer_recording::{
    chunk::{self, ChunkError},
    tiles::TileGrid,
};
use nilometer_storage::Clock;

use crate::Hdf5Contents;

/// Errors of reading frames.
#[derive(Debug, thiserror::Error)]
pub enum FrameReadError {
    /// The library failed.
    #[error(transparent)]
    Hdf5(#[from] Hdf5Error),
    /// The file can't be read.
    #[error("can't read the file of frames: {0}")]
    Storage(#[from] io::Error),
    /// A chunk is damaged.
    #[error("frame {frame}: {source}")]
    Chunk {
        /// Index of the frame in the file.
        frame: u64,
        /// The reason.
        source: ChunkError,
    },
    /// The file has no frames of such a recording.
    #[error("the file has no frames that can be read")]
    NoFrames,
}

/// The state of a reading, shared with other threads.
#[derive(Debug, Default)]
pub struct ReadingWatch {
    /// Set it to stop before the next frame.
    pub stop: Arc<AtomicBool>,
    /// Number of frames, or of their blocks, begun.
    pub frames: AtomicU64,
}

/// The result of one way of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadingTotals {
    /// Bytes of pixels requested.
    pub asked: u64,
    /// Bytes read from the file.
    pub read: u64,
    /// Frames of which something was read; a frame counts once for each of its blocks.
    pub frames: u64,
    /// Duration.
    pub took: Nanos,
}

impl ReadingTotals {
    /// The sum of two results.
    #[must_use]
    pub fn and(self, other: ReadingTotals) -> Self {
        ReadingTotals {
            asked: self.asked + other.asked,
            read: self.read + other.read,
            frames: self.frames + other.frames,
            took: self.took + other.took,
        }
    }
}

/// A file of frames, open for reading.
#[derive(Debug)]
pub struct Hdf5FrameReader {
    data: ReadDataset,
    file: File,
    shape: FramesShape,
    grid: TileGrid,
    compression: FrameCompression,
    element: ElementSize,
    stored: Vec<u8>,
    pixels: Vec<u8>,
    /// Closed after the dataset.
    _opened: ReadFile,
}

/// Frames that are read for a way that needs any single frame: the cost of one depends on its position.
const ANY: u64 = 16;

impl Hdf5FrameReader {
    /// Opens a file with these contents.
    ///
    /// # Errors
    /// If it can't be opened, or has no frames.
    pub fn open(path: &Path, contents: &Hdf5Contents) -> Result<Self, FrameReadError> {
        let opened = ReadFile::open(path)?;
        let frames = contents.tree.frames().into_iter().next();
        let (path_there, shape) = frames.ok_or(FrameReadError::NoFrames)?;
        let data = opened.dataset(&path_there)?;
        let shape = shape.clone();
        let element = ElementSize::of(shape.element.bytes() as u64).ok_or(FrameReadError::NoFrames)?;
        let grid = TileGrid::new(&shape.frame, shape.chunk(), element).ok_or(FrameReadError::NoFrames)?;
        let compression = contents.compression;
        let pixels = vec![0; grid.tile_size()];
        let file = File::open(path)?;
        let stored = Vec::new();
        Ok(Hdf5FrameReader { data, file, shape, grid, compression, element, stored, pixels, _opened: opened })
    }

    /// Number of places for frames in the file.
    pub fn frames(&self) -> u64 {
        let line: u64 = self.shape.scan.iter().product();
        self.data.dimensions().first().map_or(0, |lines| lines * line)
    }

    /// Reads a block of a frame into the first bytes of `into`, which must be large enough. Returns the bytes
    /// read from the file. Missing parts leave `into` unchanged.
    ///
    /// # Errors
    /// If the file can't be read, or is damaged.
    pub fn block(&mut self, frame: u64, block: &FrameBlock, into: &mut [u8]) -> Result<u64, FrameReadError> {
        let mut read = 0;
        for tile in self.grid.tiles_of(block) {
            let Some(place) = self.data.chunk(&self.shape.offset(frame, tile))? else { continue };
            self.stored.resize(place.bytes as usize, 0);
            self.file.read_exact_at(&mut self.stored, place.offset)?;
            read += place.bytes;
            if place.unfiltered == 0 {
                let decoded = chunk::decode(self.compression, self.element, &self.stored, &mut self.pixels);
                decoded.map_err(|source| FrameReadError::Chunk { frame, source })?;
                self.grid.put(tile, &self.pixels, block, into);
            } else {
                self.grid.put(tile, &self.stored, block, into);
            }
        }
        Ok(read)
    }

    /// The dimensions of the dataset, the slowest first.
    pub fn dimensions(&self) -> &[u64] {
        self.data.dimensions()
    }

    /// Reads the part of a process in one way. If the way needs a single frame, these are `ANY` random frames of
    /// the part. Stops early if asked.
    ///
    /// # Errors
    /// If the file can't be read, or is damaged.
    pub fn read(
        &mut self,
        way: ReadingWay,
        place: ReaderPlace,
        seed: Seed,
        clock: Clock,
        watch: &ReadingWatch,
    ) -> Result<ReadingTotals, FrameReadError> {
        let FramesShape { frame, .. } = &self.shape;
        let dataset = ChunkedFrames { frame, chunk: self.shape.chunk(), frames: self.frames() };
        let ReadingPart { blocks, frames } = way.part(dataset, place);
        let frames = if way == ReadingWay::Frame { any_of(frames, seed) } else { frames.collect() };
        let most = blocks.iter().map(FrameBlock::pixels).max().unwrap_or_default();
        let mut into = vec![0; (most * self.shape.element.bytes() as u64) as usize];
        let mut totals = ReadingTotals::default();
        let begun = clock.now();
        for block in &blocks {
            self.read_block(block, &frames, &mut into, watch, &mut totals)?;
        }
        totals.took = clock.now().since(begun);
        Ok(totals)
    }

    /// Reads a block of each of these frames into the first bytes of `into`, and adds it to the totals.
    fn read_block(
        &mut self,
        block: &FrameBlock,
        frames: &[u64],
        into: &mut [u8],
        watch: &ReadingWatch,
        totals: &mut ReadingTotals,
    ) -> Result<(), FrameReadError> {
        let asked = block.pixels() * self.shape.element.bytes() as u64;
        for number in frames {
            if watch.stop.load(Ordering::Relaxed) {
                break;
            }
            watch.frames.fetch_add(1, Ordering::Relaxed);
            let read = self.block(*number, block, into)?;
            if read == 0 {
                // The frame is in another lane, or was never received.
                continue;
            }
            totals.read += read;
            totals.asked += asked;
            totals.frames += 1;
        }
        Ok(())
    }
}

/// Any `ANY` frames of these, or all if there are fewer. Each comes once, because it is in the cache afterwards.
fn any_of(frames: Range<u64>, seed: Seed) -> Vec<u64> {
    let mut random = seed.stream();
    let mut all: Vec<_> = frames.collect();
    let number = all.len() as u64;
    for at in 0..ANY.min(number) {
        all.swap(at as usize, (at + random.below(number - at)) as usize);
    }
    all.truncate(ANY as usize);
    all
}
