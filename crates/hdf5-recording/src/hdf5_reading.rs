//! Frames read out of HDF5 files as programs of analysis read them: a part of each frame, chunk by chunk. The library says where
//! a chunk is; its bytes are read, decoded, and what was asked for is taken out, by one thread, as in a program that uses
//! the library. What it takes is what chunks are chosen by.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use nilometer_codec::ElementSize;
use nilometer_hdf5::{Hdf5Error, ReadDataset, ReadFile, tree::FramesShape};
use nilometer_model::{FrameBlock, FrameCompression, Nanos, ReadingWay, Seed};
use nilometer_recording::{
    chunk::{self, ChunkError},
    tiles::TileGrid,
};
use nilometer_storage::Clock;

use crate::Hdf5Contents;

/// Why frames can't be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameReadError {
    /// The library can't.
    #[error(transparent)]
    Hdf5(#[from] Hdf5Error),
    /// The file can't be read.
    #[error("can't read the file of frames: {0}")]
    Storage(#[from] io::Error),
    /// A chunk is damaged.
    #[error("frame {frame}: {source}")]
    Chunk {
        /// Which frame of the file.
        frame: u64,
        /// Why.
        source: ChunkError,
    },
    /// No frames of such a recording are in it.
    #[error("the file has no frames that can be read")]
    NoFrames,
}

/// Reading as others see it.
#[derive(Debug, Default)]
pub struct ReadingWatch {
    /// No further frame is to be read.
    pub stop: Arc<AtomicBool>,
    /// Frames that were begun.
    pub frames: AtomicU64,
}

/// What a way of reading came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadingTotals {
    /// Bytes of pixels that were asked for.
    pub asked: u64,
    /// Bytes that were read of the file.
    pub read: u64,
    /// Frames of which something was read.
    pub frames: u64,
    /// How long it took.
    pub took: Nanos,
}

impl ReadingTotals {
    /// Of both, one after the other.
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

/// A file of frames that is open to be read.
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
    /// Closed behind the dataset.
    _opened: ReadFile,
}

/// So many frames are read where any one is meant: what one takes depends on where it is.
const ANY: u64 = 16;

impl Hdf5FrameReader {
    /// Opens a file that has these in it.
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

    /// Frames that the file has places for.
    pub fn frames(&self) -> u64 {
        let line: u64 = self.shape.scan.iter().product();
        self.data.dimensions().first().map_or(0, |lines| lines * line)
    }

    /// Reads a block of a frame into the first bytes of `into`, of which there are enough; how many bytes were read of the
    /// file. What is not there is as it was.
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

    /// Reads all frames in a way, or any so many where one is meant, until it is stopped.
    ///
    /// # Errors
    /// If the file can't be read, or is damaged.
    pub fn read(
        &mut self,
        way: ReadingWay,
        seed: Seed,
        clock: Clock,
        watch: &ReadingWatch,
    ) -> Result<ReadingTotals, FrameReadError> {
        let frames = self.frames();
        let mut random = seed.stream();
        let numbers: Vec<u64> = match way {
            ReadingWay::Frame => {
                // Each once: what was read is in the cache.
                let mut all: Vec<_> = (0..frames).collect();
                for at in 0..ANY.min(frames) {
                    all.swap(at as usize, (at + random.below(frames - at)) as usize);
                }
                all.truncate(ANY as usize);
                all
            }
            _ => (0..frames).collect(),
        };
        let block = way.block(&self.shape.frame);
        let asked = block.pixels() * self.shape.element.bytes() as u64;
        let mut into = vec![0; asked as usize];
        let mut totals = ReadingTotals::default();
        let begun = clock.now();
        for number in numbers {
            if watch.stop.load(Ordering::Relaxed) {
                break;
            }
            watch.frames.fetch_add(1, Ordering::Relaxed);
            let read = self.block(number, &block, &mut into)?;
            if read == 0 {
                // Another lane has it, or it never came.
                continue;
            }
            totals.read += read;
            totals.asked += asked;
            totals.frames += 1;
        }
        totals.took = clock.now().since(begun);
        Ok(totals)
    }
}
