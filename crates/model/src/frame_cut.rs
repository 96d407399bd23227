//! How frames divide into chunks of an HDF5 dataset, or several frames share a chunk.

use crate::{Bytes, ChunkShape};

/// The most chunks in a frame, so that the table in front of a frame and the index of the file stay small.
pub const TILES_MAX: u64 = 1 << 16;
/// The most that padding at the edges may enlarge a frame: its chunks have at most this many times its
/// pixels.
pub const TILES_FILLED: u64 = 4;
/// The largest chunk: less than 4 GiB, since HDF5 keeps its size in 32 bits.
const CHUNK_MAX: u64 = u32::MAX as u64;
/// Bounds on the stored size. Incompressible data grow by at most one byte in `LONGER`. Each chunk adds
/// `TILE_COSTS` bytes beside its pixels, and their table adds `TABLE_COSTS`.
const LONGER: u64 = 64;
const TILE_COSTS: u64 = 256;
const TABLE_COSTS: u64 = 4096;

/// The part of one or more frames that a chunk holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameCut {
    /// Number of frames in the chunk.
    pub frames: u64,
    /// The dimensions of its part of each frame, slowest first; the dimensions of a frame if it holds whole
    /// frames.
    pub sides: Vec<u64>,
}

impl ChunkShape {
    /// The part of frames with dimensions `shape` that such a chunk holds; a pixel has `pixel` bytes.
    ///
    /// # Errors
    /// Such a chunk is impossible; the message says how to correct it.
    pub fn of_frames(self, shape: &[u64], pixel: u64) -> Result<FrameCut, String> {
        let cut = self.cut_of(shape)?;
        let sides = &cut.sides;
        if sides.iter().zip(shape).any(|(side, of_frame)| side > of_frame) {
            let whole = sides_text(shape);
            return Err(format!("chunk = \"{self}\": it is larger than a frame: write at most {whole}"));
        }
        let pixels = sides.iter().fold(cut.frames, |pixels, side| pixels.saturating_mul(*side));
        let bytes = pixels.saturating_mul(pixel);
        if bytes > CHUNK_MAX {
            return Err(format!("chunk = \"{self}\": it has {}: write less than 4 GiB", Bytes(bytes)));
        }
        let tiles = sides.iter().zip(shape).map(|(side, of_frame)| of_frame.div_ceil(*side));
        let tiles = tiles.fold(1_u64, u64::saturating_mul);
        if tiles > TILES_MAX {
            return Err(format!(
                "chunk = \"{self}\": a frame has {tiles} of them: write larger ones, so that there are at most {TILES_MAX}"
            ));
        }
        let filled = bytes.saturating_mul(tiles);
        let pixels = shape.iter().fold(cut.frames, |pixels, side| pixels.saturating_mul(*side));
        self.check_filled(filled, tiles, pixels.saturating_mul(pixel))?;
        Ok(cut)
    }

    fn cut_of(self, shape: &[u64]) -> Result<FrameCut, String> {
        let sides = self.sides();
        let (frames, sides) = match sides.len().checked_sub(shape.len()) {
            Some(0) => (1, sides),
            Some(1) => (sides[0], &sides[1..]),
            _ => {
                let dimensions = shape.len();
                let whole = sides_text(shape);
                return Err(format!(
                    "chunk = \"{self}\": frames have {dimensions} dimensions, and so has a chunk, or one more in front of them: \
                     write at most {whole}"
                ));
            }
        };
        Ok(FrameCut { frames, sides: sides.into() })
    }

    /// Checks the padded size. All chunks of a frame, or of frames that share chunks, are one extent, whose
    /// length journals keep in 32 bits.
    fn check_filled(self, filled: u64, tiles: u64, frames: u64) -> Result<(), String> {
        let extent = filled
            .saturating_add(filled / LONGER)
            .saturating_add(tiles * TILE_COSTS)
            .saturating_add(TABLE_COSTS);
        if filled <= CHUNK_MAX && extent > CHUNK_MAX {
            return Err(format!(
                "chunk = \"{self}\": all of a frame may take more than 4 GiB when they are stored: write larger ones"
            ));
        }
        if filled > CHUNK_MAX || filled > frames.saturating_mul(TILES_FILLED) {
            let filled = Bytes(filled);
            return Err(format!(
                "chunk = \"{self}\": the chunks of a frame are filled up to {filled} at its edges: write sides that \
                 fit better"
            ));
        }
        Ok(())
    }
}

/// Dimensions in the form that users write.
pub(crate) fn sides_text(sides: &[u64]) -> String {
    let sides: Vec<_> = sides.iter().map(u64::to_string).collect();
    sides.join("x")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(chunk: &str, shape: &[u64]) -> Result<FrameCut, String> {
        chunk.parse::<ChunkShape>()?.of_frames(shape, 2)
    }

    #[test]
    fn a_number_in_front_of_the_sides_of_a_frame_is_one_of_frames() {
        let cut_of = |frames, sides: &[u64]| Ok(FrameCut { frames, sides: sides.into() });
        assert_eq!(cut("64x96", &[64, 96]), cut_of(1, &[64, 96]));
        assert_eq!(cut("64x96", &[96]), cut_of(64, &[96]));
        assert_eq!(cut("8x32x96", &[64, 96]), cut_of(8, &[32, 96]));
        for (chunk, why) in
            [("8x65x96", "at most 64x96"), ("96", "frames have 2 dimensions"), ("1x2x3x4", "2 dimensions")]
        {
            let refused = cut(chunk, &[64, 96]).expect_err("it can't be");
            assert!(refused.contains(why), "{chunk}: {refused}");
        }
    }

    #[test]
    fn all_chunks_of_frames_that_are_cut_together_have_less_than_4_gib() {
        assert!(cut("300x2048x2048", &[2048, 2048]).is_ok());
        for (chunk, why) in [
            ("512x2048x2048", "less than 4 GiB"),
            ("300x1024x2000", "filled up to"),
            ("511x1024x1024", "may take more than 4 GiB"),
        ] {
            let refused = cut(chunk, &[2048, 2048]).expect_err("it is too large");
            assert!(refused.contains(why), "{chunk}: {refused}");
        }
    }
}
