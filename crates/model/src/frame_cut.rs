//! How frames are cut into chunks of an HDF5 dataset, or several put into one.

use crate::{Bytes, ChunkShape};

/// Chunks of a frame: the table of them in front of a frame stays small, and so does the index of the file.
pub const TILES_MAX: u64 = 1 << 16;
/// Chunks at the edges of a frame are filled up: all have at most so many times the pixels of the frame.
pub const TILES_FILLED: u64 = 4;
/// A chunk has less than 4 GiB: HDF5 keeps its size in 32 bits.
const CHUNK_MAX: u64 = u32::MAX as u64;
/// What does not get smaller gets longer by one in so many bytes at the most when it is compressed; a chunk costs so many beside
/// its pixels, and the table of them so many beside that.
const LONGER: u64 = 64;
const TILE_COSTS: u64 = 256;
const TABLE_COSTS: u64 = 4096;

/// What a chunk has of frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameCut {
    /// So many frames.
    pub frames: u64,
    /// The dimensions of what it has of each, slowest first: those of a frame, if it has all of it.
    pub sides: Vec<u64>,
}

impl ChunkShape {
    /// What such a chunk has of frames of these dimensions, with pixels of so many bytes.
    ///
    /// # Errors
    /// What can't be a chunk of them, with what would be.
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

    /// The chunks of a frame, or of several that are cut together, are one extent, whose length journals have in 32 bits.
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
                "chunk = \"{self}\": those of a frame are filled up to {filled} at its edges: write sides that fit better"
            ));
        }
        Ok(())
    }
}

/// Dimensions as users write them.
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
