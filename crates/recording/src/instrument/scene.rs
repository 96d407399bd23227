//! Scenes that simulated instruments see. Recipes as simple as the data allow make the pixels of any frame from
//! a seed.

use std::ops::Range;

use nilometer_model::{PixelType, Seed};

/// The pixels of a frame, as rows: the last dimension of the shape is along a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    /// Rows of a picture: the second fastest dimension.
    pub(super) height: usize,
    /// Pixels per row.
    pub(super) width: usize,
    /// Rows of the whole frame. With more than two dimensions it consists of several pictures, one after the
    /// other.
    pub(super) rows: usize,
    /// Type of a pixel.
    pub(super) pixel: PixelType,
}

impl Grid {
    pub(super) fn new(shape: &[u64], pixel: PixelType) -> Self {
        let (width, slower) = shape.split_last().expect("an instrument's shape has a dimension");
        let rows = slower.iter().product::<u64>() as usize;
        let width = *width as usize;
        if !(width as u64 * pixel.bits()).is_multiple_of(8) {
            // Rows of these packed pixels do not end at a byte, so put all pixels into one row.
            return Grid { height: 1, width: rows * width, rows: 1, pixel };
        }
        let height = slower.last().map_or(1, |height| *height as usize);
        Grid { height, width, rows, pixel }
    }

    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> usize {
        self.width * self.pixel.bits() as usize / 8
    }

    /// Bytes of a frame.
    pub(super) fn frame_bytes(&self) -> usize {
        self.rows * self.row_bytes()
    }

    /// Returns the greatest valid count of a pixel.
    pub(super) fn count_max(&self) -> i32 {
        match (self.pixel, self.pixel.bits()) {
            // The counters of a Pilatus, and of an EIGER summing frames, have 20 bits or somewhat more.
            (_, 32..) => 0xf_ffff,
            (PixelType::Int8 | PixelType::Int16, bits) => (1 << (bits - 1)) - 1,
            (_, bits) => (1 << bits) - 3,
        }
    }

    /// Writes values into the bytes of a row, little-endian. If the pixel type has no sign, -1 and -2 become
    /// its greatest values.
    pub(super) fn put(&self, values: &[i32], row: &mut [u8]) {
        let bits = self.pixel.bits() as usize;
        match self.pixel {
            PixelType::Uint2 | PixelType::Uint12 => pack(values, bits, row),
            PixelType::Float32 => put_each(values, row, |value| (value as f32).to_le_bytes()),
            PixelType::Float64 => put_each(values, row, |value| f64::from(value).to_le_bytes()),
            PixelType::Int64 | PixelType::Uint64 => {
                put_each(values, row, |value| i64::from(value).to_le_bytes());
            }
            _ => {
                for (value, bytes) in values.iter().zip(row.chunks_exact_mut(bits / 8)) {
                    bytes.copy_from_slice(&value.to_le_bytes()[..bits / 8]);
                }
            }
        }
    }
}

/// Writes each value as `BYTES` bytes.
fn put_each<const BYTES: usize>(values: &[i32], row: &mut [u8], bytes_of: impl Fn(i32) -> [u8; BYTES]) {
    for (value, bytes) in values.iter().zip(row.as_chunks_mut().0) {
        *bytes = bytes_of(*value);
    }
}

/// Packs the lowest `bits` of each value without gaps.
fn pack(values: &[i32], bits: usize, row: &mut [u8]) {
    // The smallest number of values that fill whole bytes.
    let (values_each, bytes_each) = if bits == 2 { (4, 1) } else { (2, 3) };
    for (values, bytes) in values.chunks(values_each).zip(row.chunks_exact_mut(bytes_each)) {
        let mask = (1 << bits) - 1;
        let packed = values.iter().rev().fold(0, |packed, value| packed << bits | (value & mask));
        bytes.copy_from_slice(&packed.to_le_bytes()[..bytes_each]);
    }
}

/// Makes frames. The same seed, frame and row give the same bytes, independent of the other rows made with
/// them.
pub(super) trait Scene: Send + Sync {
    /// Makes these rows of a frame.
    fn rows(&self, frame: u64, rows: Range<usize>, bytes: &mut [u8]);
}

/// Returns the seed of a row of a frame.
pub(super) fn row_seed(seed: Seed, frame: u64, row: usize) -> Seed {
    seed.part(frame).named("row").part(row as u64)
}

/// Returns the pixel at a distance from the first. Negative distances give the first.
#[inline]
#[expect(clippy::cast_sign_loss, reason = "a cast from a float saturates: at 0 below")]
pub(super) fn place(distance: f64) -> usize {
    distance as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_packed_from_the_lowest_bits_on() {
        let put = |pixel, values: &[i32]| {
            let grid = Grid::new(&[values.len() as u64], pixel);
            let mut row = vec![0; grid.row_bytes()];
            grid.put(values, &mut row);
            row
        };
        assert_eq!(put(PixelType::Uint2, &[1, 2, 3, 0]), [0b00_11_10_01]);
        assert_eq!(put(PixelType::Uint12, &[0xabc, -2]), [0xbc, 0xea, 0xff]);
        assert_eq!(put(PixelType::Uint16, &[0x1234, -1]), [0x34, 0x12, 0xff, 0xff]);
        assert_eq!(put(PixelType::Int32, &[-2]), [0xfe, 0xff, 0xff, 0xff]);
    }
}
