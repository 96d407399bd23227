//! What an instrument sees: the pixels of any frame, from a seed, by recipes as simple as the data allow.

use std::ops::Range;

use nilometer_model::{PixelType, Seed};

/// The pixels of a frame, as rows: the last dimension of the shape is along a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    /// Rows of a picture: the last but one dimension.
    pub(super) height: usize,
    /// Pixels of a row.
    pub(super) width: usize,
    /// Rows of the whole frame: several pictures, one after the other, if there are more dimensions.
    pub(super) rows: usize,
    /// What stands for a pixel.
    pub(super) pixel: PixelType,
}

impl Grid {
    pub(super) fn new(shape: &[u64], pixel: PixelType) -> Self {
        let (width, slower) = shape.split_last().expect("an instrument's shape has a dimension");
        let height = slower.last().map_or(1, |height| *height as usize);
        let rows = slower.iter().product::<u64>() as usize;
        Grid { height, width: *width as usize, rows, pixel }
    }

    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> usize {
        self.width * self.pixel.size() as usize
    }

    /// Bytes of a frame.
    pub(super) fn frame_bytes(&self) -> usize {
        self.rows * self.row_bytes()
    }

    /// The greatest count that is a count.
    pub(super) fn count_max(&self) -> i32 {
        match self.pixel {
            PixelType::Uint8 => 0xff - 2,
            PixelType::Uint16 => 0xffff - 2,
            // The counters of a Pilatus, and of an EIGER summing frames, have 20 bits or somewhat more.
            PixelType::Int32 | PixelType::Uint32 => 0xf_ffff,
        }
    }

    /// Puts values into the bytes of a row; -1 and -2 become the type's greatest values where it has no sign.
    pub(super) fn put(&self, values: &[i32], row: &mut [u8]) {
        let size = self.pixel.size() as usize;
        for (value, bytes) in values.iter().zip(row.chunks_exact_mut(size)) {
            bytes.copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
}

/// Makes frames. The same seed, frame and row give the same bytes, whichever rows are made together.
pub(super) trait Scene: Send + Sync {
    /// Makes these rows of a frame.
    fn rows(&self, frame: u64, rows: Range<usize>, bytes: &mut [u8]);
}

/// The seed of a row of a frame.
pub(super) fn row_seed(seed: Seed, frame: u64, row: usize) -> Seed {
    seed.part(frame).named("row").part(row as u64)
}

/// The pixel at a distance from the first; before it, the first.
#[inline]
#[expect(clippy::cast_sign_loss, reason = "a cast from a float saturates: at 0 below")]
pub(super) fn place(distance: f64) -> usize {
    distance as usize
}
