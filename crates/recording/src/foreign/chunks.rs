//! Chunks as of `FlexBuff`, which jive5ab writes ("vbs"): `NAME/NAME.00000000` and on, one after the other over
//! all disks, without an index. The number after the name is all that orders them (jive5ab, `libvbs.cc`).

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc};

use nilometer_model::{Bytes, Storing};

use super::{
    foreign_file::{ForeignFile, directory_of, source_file},
    joined_blocks::{BlockLayout, JoinedBlocks, PlacedBlock, block_size},
    plain_file::{NOT_RECOGNIZED, notes_of},
    shape::StreamShape,
};
use crate::{
    ForeignFacts, ForeignKind, foreign_facts::ForeignLane, reader::Recording,
    recording_storage::MountedDirectories,
};

/// A chunk with its place among the lanes.
#[derive(Debug, Clone, Copy)]
struct NumberedChunk {
    number: u32,
    lane: usize,
    file: usize,
    length: u64,
}

/// The readable chunks of a recording.
#[derive(Debug, Default)]
struct ChunkFiles {
    lanes: Vec<ForeignLane>,
    /// The lane of each directory.
    by_directory: BTreeMap<PathBuf, usize>,
    /// In the order of their numbers.
    placed: Vec<NumberedChunk>,
    /// A time near that of the first chunk, in seconds since 2000.
    near: Option<u64>,
    faults: Vec<String>,
}

impl ChunkFiles {
    /// Finds the length of each chunk. One that can't be read counts as missing.
    fn of(chunks: &[(u32, PathBuf)]) -> Self {
        let mut files = ChunkFiles::default();
        for (number, path) in chunks {
            match source_file(path) {
                Ok(source) => files.add(*number, source),
                Err(error) => {
                    let path = path.display();
                    files.faults.push(format!("chunk {number} can't be read: {path}: {error}"));
                }
            }
        }
        files
    }

    fn add(&mut self, number: u32, ForeignFile { path, length, near, opened }: ForeignFile) {
        let directory = directory_of(&path);
        let lane = *self.by_directory.entry(directory.clone()).or_insert(self.lanes.len());
        if lane == self.lanes.len() {
            self.lanes.push(ForeignLane { directory, files: Vec::new(), access: opened.access });
        }
        let of = &mut self.lanes[lane];
        of.access = of.access.and(opened.access);
        self.placed.push(NumberedChunk { number, lane, file: of.files.len(), length });
        of.files.push(path);
        self.near.get_or_insert(near);
    }

    /// Looks for the first frame in the first chunk.
    fn shape(&self) -> io::Result<Option<(StreamShape, u64)>> {
        let Some(first) = self.placed.first() else {
            return Err(io::Error::new(io::ErrorKind::NotFound, self.faults.join("; ")));
        };
        let file = source_file(&self.lanes[first.lane].files[first.file])?.opened.file;
        StreamShape::find(&*file, 0)
    }
}

/// Opens the recording of these chunks, in the order of their numbers. There is at least one.
pub(super) fn open(name: &str, chunks: &[(u32, PathBuf)]) -> io::Result<Recording> {
    let files = ChunkFiles::of(chunks);
    let found = files.shape()?;
    let begin = found.map_or(0, |(_, begin)| begin);
    let shape = found.map(|(shape, _)| shape);
    let ChunkFiles { lanes, placed, near, mut faults, .. } = files;
    faults.extend(absent(&placed));
    faults.extend(twice(&placed));
    let full = placed.iter().map(|chunk| chunk.length).max().unwrap_or_default();
    faults.extend(short(&placed, full));
    let block_size = block_size(shape.map_or(1, |shape| shape.frame_size), full);
    let blocks_of_chunk = full.div_ceil(block_size).max(1);
    let layout = BlockLayout {
        shape,
        block_size,
        stride: block_size,
        blocks_per_file: blocks_of_chunk,
        storing: Storing::Scattered,
    };
    let mut blocks = JoinedBlocks::new(layout, lanes);
    join(&mut blocks, &placed, begin, blocks_of_chunk);
    let notes = shape.map_or_else(|| vec![NOT_RECOGNIZED.into()], |shape| notes_of(&shape, begin));
    let files = placed.len() as u64;
    let facts = ForeignFacts { kind: ForeignKind::Chunks, files, in_step: true, faults, notes };
    Ok(blocks.recording(name, near.unwrap_or_default(), Arc::new(MountedDirectories), facts))
}

/// Adds the blocks of all chunks in their order. A missing chunk counts as a full one.
fn join(blocks: &mut JoinedBlocks, placed: &[NumberedChunk], begin: u64, blocks_of_chunk: u64) {
    let mut next = 0;
    let mut number = 0;
    for chunk in placed {
        if chunk.number < next {
            // The same chunk on another disk: see `twice`.
            continue;
        }
        number += u64::from(chunk.number - next) * blocks_of_chunk;
        let offset = if chunk.number == placed[0].number { begin.min(chunk.length) } else { 0 };
        let NumberedChunk { lane, file, length, .. } = *chunk;
        number = blocks.add_all(PlacedBlock { number, lane, file, offset, size: length - offset });
        next = chunk.number + 1;
    }
}

/// The chunks that are not here, in words.
fn absent(placed: &[NumberedChunk]) -> Vec<String> {
    let mut next = 0;
    let mut absent = Vec::new();
    for chunk in placed {
        match chunk.number.saturating_sub(next) {
            0 => {}
            1 => absent.push(format!("chunk {next} is not here")),
            _ => absent.push(format!("chunks {next} to {} are not here", chunk.number - 1)),
        }
        next = next.max(chunk.number + 1);
    }
    absent
}

/// The chunks before the last that have less than a full one, in words.
fn short(placed: &[NumberedChunk], full: u64) -> Vec<String> {
    let last = placed.last().map(|chunk| chunk.number);
    let those = placed.iter().filter(|chunk| chunk.length < full && Some(chunk.number) != last);
    let one = |NumberedChunk { number, length, .. }: &NumberedChunk| {
        format!("chunk {number} is cut: {} of it are not there", Bytes(full - length))
    };
    those.map(one).collect()
}

/// The chunks that are here more than once, in words.
fn twice(placed: &[NumberedChunk]) -> Vec<String> {
    let pairs = placed.windows(2).filter(|pair| pair[0].number == pair[1].number);
    pairs.map(|pair| format!("chunk {} is here twice: the first one counts", pair[0].number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_in_the_middle_that_is_short_is_named() {
        let chunk = |(number, length)| NumberedChunk { number, lane: 0, file: 0, length };
        let of = |lengths: &[u64]| {
            let placed: Vec<_> = (0..).zip(lengths.iter().copied()).map(chunk).collect();
            short(&placed, 1000)
        };
        assert!(of(&[1000, 1000, 20]).is_empty(), "the last may be short");
        assert_eq!(
            of(&[1000, 0, 600, 1000]),
            ["chunk 1 is cut: 1 kB of it are not there", "chunk 2 is cut: 400 B of it are not there"]
        );
    }
}
