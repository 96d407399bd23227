//! One process's part of a reading, if several processes read one dataset of frames together.
//!
//! The processes divide the slowest axis of the order in which a way reads:
//!
//! ```text
//! way                                   slowest axis      process 1 of 3 reads
//! frames, frame, region, line, pixel    frames            the middle third of the frames
//! rows                                  rows of chunks    the middle third of them, through all frames
//! blocks                                chunks of pixels  the middle third of them, through all frames
//! ```
//!
//! Parts are disjoint. Together they are the reading of one process.
//!
//! Rows and blocks end where chunks end, so that no two processes read the same chunk. If a frame has fewer of
//! them than there are processes, each process gets an equal part of it, and processes read chunks in common:
//!
//! ```text
//! frames of 6 rows, a chunk has 2 of them      rows   0 1 | 2 3 | 4 5
//! 2 processes, in whole chunks                        0 0   1 1   1 1
//! 4 processes, in equal parts                         0 1   1 2   3 3
//! ```

use std::ops::Range;

use crate::{FrameBlock, ReadingWay};

/// The place of a process among those that read one dataset together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderPlace {
    /// Its number, from 0.
    pub number: u32,
    /// The number of processes.
    pub of: u32,
}

/// A dataset of frames, in chunks.
#[derive(Debug, Clone, Copy)]
pub struct ChunkedFrames<'a> {
    /// The sides of a frame in pixels, slowest first.
    pub frame: &'a [u64],
    /// The sides of a chunk in pixels, slowest first. A chunk has a frame at most.
    pub chunk: &'a [u64],
    /// The number of frames.
    pub frames: u64,
}

/// A process's part of a reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadingPart {
    /// The blocks of a frame: the process reads each through all of its frames before the next one.
    pub blocks: Vec<FrameBlock>,
    /// The numbers of its frames.
    pub frames: Range<u64>,
}

impl ReaderPlace {
    /// The place of the only process.
    pub const ALONE: ReaderPlace = ReaderPlace { number: 0, of: 1 };

    /// Its share of `all` things in a row. Shares differ by one at most.
    fn share(self, all: u64) -> Range<u64> {
        let edge = |number: u32| (u128::from(all) * u128::from(number) / u128::from(self.of)) as u64;
        edge(self.number)..edge(self.number + 1)
    }
}

impl ReadingWay {
    /// The part of the process in this place. If there are more processes than can read, some parts have no block
    /// or no frame.
    pub fn part(self, dataset: ChunkedFrames<'_>, place: ReaderPlace) -> ReadingPart {
        let Some(cuts) = self.cuts(dataset, place.of.into()) else {
            return ReadingPart {
                blocks: vec![self.block(dataset.frame)],
                frames: place.share(dataset.frames),
            };
        };
        let blocks = place.share(cuts.blocks()).map(|number| cuts.block(number)).collect();
        ReadingPart { blocks, frames: 0..dataset.frames }
    }

    /// The cuts of each frame, at least `parts` blocks if possible. `None` if it reads one block of each frame,
    /// and the processes divide the frames.
    fn cuts(self, dataset: ChunkedFrames<'_>, parts: u64) -> Option<FrameCuts> {
        let dimensions = dataset.frame.len();
        // The pixels of a row stay together.
        let cut = match self {
            ReadingWay::Rows => dimensions.saturating_sub(1),
            ReadingWay::Blocks => dimensions,
            _ => return None,
        };
        let at_chunks = FrameCuts::at_chunks(dataset, cut);
        if at_chunks.blocks() >= parts {
            return Some(at_chunks);
        }
        Some(FrameCuts::alike(dataset.frame, &self.pieces(dataset.frame, cut, parts)))
    }

    /// The number of equal pieces of each dimension, so that there are `parts` blocks or a few more. Rows
    /// divide the slowest dimension, blocks all of them: they are as square as the number allows.
    fn pieces(self, frame: &[u64], cut: usize, parts: u64) -> Vec<u64> {
        let mut pieces = vec![1; frame.len()];
        let mut rest = parts;
        for at in 0..cut {
            let wished =
                if self == ReadingWay::Blocks { root_divisor(rest, (cut - at) as u32) } else { rest };
            pieces[at] = wished.min(frame[at]);
            rest = rest.div_ceil(pieces[at]);
        }
        pieces
    }
}

/// The largest divisor of a number whose power is not above it: 2 of 6 for the power 2, and 6 for the power 1.
fn root_divisor(number: u64, power: u32) -> u64 {
    let is_root = |divisor: &u64| {
        let raised = divisor.checked_pow(power).is_some_and(|raised| raised <= number);
        raised && number.is_multiple_of(*divisor)
    };
    (1..=number).rev().find(is_root).unwrap_or(1)
}

/// The edges of blocks in each dimension of a frame: `[0, 2, 4, 6]` are three blocks of 2.
#[derive(Debug)]
struct FrameCuts(Vec<Vec<u64>>);

impl FrameCuts {
    /// Cuts the first `cut` dimensions at the edges of chunks.
    fn at_chunks(dataset: ChunkedFrames<'_>, cut: usize) -> Self {
        let sides = dataset.frame.iter().zip(dataset.chunk).enumerate();
        let edges = sides.map(|(at, (side, chunk))| {
            let step = if at < cut { *chunk } else { *side };
            (0..*side).step_by(step as usize).chain([*side]).collect()
        });
        FrameCuts(edges.collect())
    }

    /// Cuts each dimension into a number of pieces whose lengths differ by one at most.
    fn alike(frame: &[u64], pieces: &[u64]) -> Self {
        let edge =
            |side: u64, piece: u64, of: u64| (u128::from(side) * u128::from(piece) / u128::from(of)) as u64;
        let sides = frame.iter().zip(pieces);
        let edges =
            sides.map(|(side, pieces)| (0..=*pieces).map(|piece| edge(*side, piece, *pieces)).collect());
        FrameCuts(edges.collect())
    }

    /// The number of blocks.
    fn blocks(&self) -> u64 {
        self.0.iter().map(|edges| edges.len() as u64 - 1).product()
    }

    /// The block of this number, counted with the fastest dimension first.
    fn block(&self, number: u64) -> FrameBlock {
        let dimensions = self.0.len();
        let mut block = FrameBlock { first: vec![0; dimensions], size: vec![0; dimensions] };
        let mut rest = number;
        for (at, edges) in self.0.iter().enumerate().rev() {
            let pieces = edges.len() as u64 - 1;
            let piece = (rest % pieces) as usize;
            rest /= pieces;
            block.first[at] = edges[piece];
            block.size[at] = edges[piece + 1] - edges[piece];
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How often each pixel of each frame is read by all processes together, and the parts.
    fn times_read(way: ReadingWay, dataset: ChunkedFrames<'_>, of: u32) -> (Vec<u32>, Vec<ReadingPart>) {
        let pixels: u64 = dataset.frame.iter().product();
        let mut times = vec![0; (pixels * dataset.frames) as usize];
        let parts: Vec<_> = (0..of).map(|number| way.part(dataset, ReaderPlace { number, of })).collect();
        for part in &parts {
            for frame in part.frames.clone() {
                for pixel in part.blocks.iter().flat_map(|block| pixels_of(block, dataset.frame)) {
                    times[(frame * pixels + pixel) as usize] += 1;
                }
            }
        }
        (times, parts)
    }

    /// The numbers of the pixels of a block, in C order.
    fn pixels_of(block: &FrameBlock, frame: &[u64]) -> Vec<u64> {
        let mut all = vec![0];
        for (at, side) in frame.iter().enumerate() {
            let along = block.first[at]..block.first[at] + block.size[at];
            let next = |before: u64| along.clone().map(move |place| before * side + place);
            all = all.into_iter().flat_map(next).collect();
        }
        all
    }

    /// The rows of each process.
    fn rows(frame: &[u64], chunk: &[u64], of: u32) -> Vec<u64> {
        let dataset = ChunkedFrames { frame, chunk, frames: 1 };
        let rows = |number| {
            let part = ReadingWay::Rows.part(dataset, ReaderPlace { number, of });
            part.blocks.iter().map(|block| block.size[0]).sum()
        };
        (0..of).map(rows).collect()
    }

    #[test]
    fn rows_end_at_chunks_unless_there_are_too_few() {
        assert_eq!(rows(&[6, 5], &[2, 5], 2), [2, 4]);
        assert_eq!(rows(&[6, 5], &[2, 5], 4), [1, 2, 1, 2]);
        assert_eq!(rows(&[50, 100], &[50, 100], 3), [16, 17, 17]);
        assert_eq!(rows(&[2, 5], &[1, 5], 3).iter().sum::<u64>(), 2, "one process has none");
    }

    #[test]
    fn blocks_are_chunks_or_as_square_as_they_can_be() {
        let sides = |frame: [u64; 2], chunk: [u64; 2], of: u32| {
            let dataset = ChunkedFrames { frame: &frame, chunk: &chunk, frames: 1 };
            ReadingWay::Blocks.part(dataset, ReaderPlace { number: 0, of }).blocks
        };
        let block = |size: [u64; 2]| FrameBlock { first: vec![0, 0], size: size.to_vec() };
        assert_eq!(sides([60, 60], [60, 60], 4), [block([30, 30])]);
        assert_eq!(sides([60, 60], [60, 60], 6), [block([30, 20])]);
        assert_eq!(sides([60, 60], [60, 60], 1), [block([60, 60])]);
        assert_eq!(sides([60, 60], [30, 60], 2), [block([30, 60])]);
        assert_eq!(sides([60, 60], [20, 60], 1).len(), 3, "one process reads chunk by chunk");
    }

    proptest! {
        #[test]
        fn parts_are_disjoint_and_together_what_one_process_reads(
            sides in prop::collection::vec((1..8_u64, 1..8_u64), 1..4), frames in 0..9_u64, of in 1..9_u32,
            way in prop::sample::select(ReadingWay::ALL.to_vec()),
        ) {
            let frame: Vec<u64> = sides.iter().map(|(side, _)| *side).collect();
            let chunk: Vec<u64> = sides.iter().map(|(side, chunk)| *chunk.min(side)).collect();
            let dataset = ChunkedFrames { frame: &frame, chunk: &chunk, frames };
            let (alone, _) = times_read(way, dataset, 1);
            let (together, parts) = times_read(way, dataset, of);
            prop_assert!(alone.iter().all(|times| *times <= 1));
            prop_assert_eq!(alone, together);
            prop_assert_eq!(parts.len(), of as usize);
        }

        #[test]
        fn no_two_processes_read_a_chunk_if_there_are_enough(
            rows in 4..20_u64, chunk in 1..4_u64, of in 1..4_u32,
        ) {
            let dataset = ChunkedFrames { frame: &[rows, 3], chunk: &[chunk, 2], frames: 1 };
            prop_assume!(rows.div_ceil(chunk) >= of.into());
            for way in [ReadingWay::Rows, ReadingWay::Blocks] {
                for number in 0..of {
                    let part = way.part(dataset, ReaderPlace { number, of });
                    prop_assert!(part.blocks.iter().all(|block| block.first[0] % chunk == 0));
                }
            }
        }
    }
}
