//! Ways to read the frames of a dataset. They decide the best chunks, beside writing.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A way of reading frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadingWay {
    /// All frames, in order.
    Frames,
    /// Any single frame.
    Frame,
    /// A region of interest of all frames: the middle, a quarter of each side.
    Region,
    /// A line of all frames, as sinograms are read: the row in the middle.
    Line,
    /// A pixel of all frames: the one in the middle.
    Pixel,
    /// All rows, through all frames: a row of chunks after the other. Several processes divide the rows.
    Rows,
    /// All pixels, through all frames: a chunk of pixels after the other. Several processes divide the chunks.
    Blocks,
}

/// A part of a frame: its start and length in each dimension, slowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameBlock {
    /// The start: pixels before the block.
    pub first: Vec<u64>,
    /// The length in pixels.
    pub size: Vec<u64>,
}

/// A region has one `REGION`th of each side.
const REGION: u64 = 4;

impl ReadingWay {
    /// All ways.
    pub const ALL: [ReadingWay; 7] = [
        ReadingWay::Frames,
        ReadingWay::Frame,
        ReadingWay::Region,
        ReadingWay::Line,
        ReadingWay::Pixel,
        ReadingWay::Rows,
        ReadingWay::Blocks,
    ];

    /// Its word on the command line and in plans.
    pub const fn name(self) -> &'static str {
        match self {
            ReadingWay::Frames => "frames",
            ReadingWay::Frame => "frame",
            ReadingWay::Region => "region",
            ReadingWay::Line => "line",
            ReadingWay::Pixel => "pixel",
            ReadingWay::Rows => "rows",
            ReadingWay::Blocks => "blocks",
        }
    }

    /// A description in words.
    pub const fn words(self) -> &'static str {
        match self {
            ReadingWay::Frames => "all frames in order",
            ReadingWay::Frame => "one frame, any",
            ReadingWay::Region => "the middle of all frames, a quarter of each side",
            ReadingWay::Line => "one row of all frames",
            ReadingWay::Pixel => "one pixel of all frames",
            ReadingWay::Rows => "all rows, each row of chunks through all frames",
            ReadingWay::Blocks => "all pixels, each chunk of them through all frames",
        }
    }

    /// The part of a frame with these sides that it reads, over all processes and steps.
    pub fn block(self, frame: &[u64]) -> FrameBlock {
        let last = frame.len().saturating_sub(1);
        let sizes = frame.iter().enumerate().map(|(at, side)| match self {
            ReadingWay::Frames | ReadingWay::Frame | ReadingWay::Rows | ReadingWay::Blocks => *side,
            ReadingWay::Region => side.div_ceil(REGION),
            ReadingWay::Line if at == last => *side,
            ReadingWay::Line | ReadingWay::Pixel => 1,
        });
        let size: Vec<u64> = sizes.collect();
        let first = frame.iter().zip(&size).map(|(side, size)| (side - size) / 2).collect();
        FrameBlock { first, size }
    }
}

impl fmt::Display for ReadingWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ReadingWay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        ReadingWay::ALL.into_iter().find(|way| way.name() == text).ok_or_else(|| {
            let names = ReadingWay::ALL.map(ReadingWay::name);
            format!("no way of reading `{text}`: write {}", names.join(", "))
        })
    }
}

impl FrameBlock {
    /// Number of pixels.
    pub fn pixels(&self) -> u64 {
        self.size.iter().product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_a_word_of_its_own_and_reads_within_a_frame() {
        for way in ReadingWay::ALL {
            assert_eq!(way.name().parse(), Ok(way));
            for frame in [&[7_u64][..], &[2167, 2070], &[1, 1], &[3, 5, 2]] {
                let FrameBlock { first, size } = way.block(frame);
                for ((first, size), side) in first.iter().zip(&size).zip(frame) {
                    assert!(*size >= 1 && first + size <= *side, "{way} of {frame:?}");
                }
            }
        }
        let block = ReadingWay::Line.block(&[10, 6]);
        assert_eq!((block.first, block.size), (vec![4, 0], vec![1, 6]));
        assert_eq!(ReadingWay::Region.block(&[10, 6]).size, [3, 2]);
        assert!("lines".parse::<ReadingWay>().expect_err("none").contains("region, line, pixel"));
    }
}
