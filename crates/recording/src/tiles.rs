//! Frames in tiles: each tile is a chunk of an HDF5 dataset, compressed by itself. To read a region, or a line
//! of each frame, a reader decodes only the tiles that overlap with it.
//!
//! In the file, all tiles of a frame form one extent, one after the other behind a table:
//!
//! ```text
//! extent  | "nm-tiles", dimensions, tiles | sides of a frame | of a tile | length of each tile | tile | tile | ...
//! HDF5                                                                                           chunk  chunk
//! ```
//!
//! The file's index lists the tiles. The journal lists the extent, like that of a frame in one chunk. A frame
//! has one record, one operation writes it, and it is complete or absent.
//!
//! The table costs 4 bytes per tile and makes an extent readable by itself. With the journal, a reader needs
//! neither the index nor the tree of the file. `verify`, `mount`, `export`, followers and `repair` therefore
//! handle tiles like any other encoding.
//!
//! With a record for each tile, a crash could leave parts of a frame, for which no other part of the program
//! has a term.
//!
//! A tile at the edge of a frame has the full size, as HDF5 requires of chunks. Pixels beyond the edge are 0.
//!
//! All numbers are little-endian. The table has 8 letters, two numbers of 32 bits, the sides with 64 bits each
//! (slowest first) and the lengths with 32 bits. Each tile begins at a multiple of 8 bytes in the extent.

use nilometer_codec::{ChunkCodec, CodecError, ElementSize};
use nilometer_model::{FrameBlock, FrameCompression, TILES_FILLED, TILES_MAX};

use crate::chunk::{self, ChunkError};

/// First bytes of an extent with tiles.
const MAGIC: &[u8; 8] = b"nm-tiles";
/// Limit on a frame's dimensions, more than the description of an instrument may have.
const DIMENSIONS_MAX: usize = 32;
/// Bytes in front of the sides.
const FIXED: usize = 16;
/// Tiles begin at a multiple of this number of bytes.
const ALIGNED: usize = 8;

/// Division of frames into tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileGrid {
    frame: Vec<u64>,
    tile: Vec<u64>,
    element: ElementSize,
}

/// The reason why bytes are not the tiles of a frame.
#[derive(Debug, thiserror::Error)]
pub enum TilesError {
    /// The bytes end early.
    #[error("end within the table of its tiles, or within a tile")]
    Short,
    /// The bytes have no valid table in front.
    #[error("have no table of tiles of such a frame in front")]
    Table,
    /// A tile can't be decoded.
    #[error("tile {tile} {source}")]
    Tile {
        /// Index of the tile from 0, row by row over the frame.
        tile: u64,
        /// The reason.
        source: ChunkError,
    },
}

/// Position of a tile in the extent of its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TilePlace {
    /// Bytes from the start of the extent.
    pub offset: u64,
    /// Bytes of the tile.
    pub length: u32,
}

/// The table in front of a frame's tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileTable {
    /// Division of the frame into tiles.
    pub grid: TileGrid,
    /// Position of each tile, row by row over the frame.
    pub places: Vec<TilePlace>,
}

/// A run of pixels that are consecutive in a tile and in a block of its frame, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PixelRun {
    in_tile: usize,
    in_frame: usize,
    length: usize,
}

impl TileGrid {
    /// Divides frames with these sides into tiles with those, slowest first. `None` if that is impossible or
    /// gives too many tiles.
    pub fn new(frame: &[u64], tile: &[u64], element: ElementSize) -> Option<Self> {
        let known = !frame.is_empty() && frame.len() == tile.len() && frame.len() <= DIMENSIONS_MAX;
        let within = frame.iter().zip(tile).all(|(frame, tile)| (1..=*frame).contains(tile));
        let pixels = frame.iter().try_fold(element.bytes() as u64, |bytes, side| bytes.checked_mul(*side));
        let grid = TileGrid { frame: frame.into(), tile: tile.into(), element };
        (known && within && pixels.is_some() && grid.tiles() <= TILES_MAX).then_some(grid)
    }

    /// Number of tiles in a frame.
    pub fn tiles(&self) -> u64 {
        self.along().fold(1, u64::saturating_mul)
    }

    /// Number of tiles in each dimension.
    fn along(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator {
        self.frame.iter().zip(&self.tile).map(|(frame, tile)| frame.div_ceil(*tile))
    }

    /// Bytes of an uncompressed tile.
    pub fn tile_size(&self) -> usize {
        self.tile.iter().product::<u64>() as usize * self.element.bytes()
    }

    /// Bytes of a frame.
    pub fn frame_size(&self) -> usize {
        self.frame.iter().product::<u64>() as usize * self.element.bytes()
    }

    /// Bytes in front of the first tile.
    fn table_size(&self) -> usize {
        FIXED + 16 * self.frame.len() + (4 * self.tiles() as usize).next_multiple_of(ALIGNED)
    }

    /// Upper bound on the bytes of an extent.
    pub fn length_max(&self, compression: FrameCompression) -> usize {
        let tile = chunk::built_in(compression).most_bytes(self.tile_size());
        self.table_size() + self.tiles() as usize * tile.next_multiple_of(ALIGNED)
    }

    /// Returns the tiles that overlap with a block, in order.
    pub fn tiles_of(&self, block: &FrameBlock) -> Vec<u64> {
        let mut all = vec![0];
        for (at, along) in self.along().enumerate() {
            let first = block.first[at] / self.tile[at];
            let end = (block.first[at] + block.size[at]).div_ceil(self.tile[at]);
            all = all
                .into_iter()
                .flat_map(|before| (first..end).map(move |place| before * along + place))
                .collect();
        }
        all
    }

    /// Passes each row that a tile and a block of the frame share to `take`.
    fn each_run(&self, tile: u64, block: &FrameBlock, mut take: impl FnMut(PixelRun)) {
        let mut begin = vec![0; self.frame.len()];
        let mut rest = tile;
        for ((place, along), side) in begin.iter_mut().zip(self.along()).zip(&self.tile).rev() {
            *place = rest % along * side;
            rest /= along;
        }
        let dimensions = 0..begin.len();
        let first: Vec<u64> = dimensions.clone().map(|at| begin[at].max(block.first[at])).collect();
        let end = |at: usize| (begin[at] + self.tile[at]).min(block.first[at] + block.size[at]);
        let sides: Vec<u64> = dimensions.map(|at| end(at).saturating_sub(first[at])).collect();
        if sides.contains(&0) {
            return;
        }
        let last = sides.len() - 1;
        let element = self.element.bytes() as u64;
        let mut row = vec![0; sides.len()];
        loop {
            let mut in_tile = 0;
            let mut in_frame = 0;
            for (at, row) in row.iter().enumerate() {
                in_tile = in_tile * self.tile[at] + first[at] - begin[at] + row;
                in_frame = in_frame * block.size[at] + first[at] - block.first[at] + row;
            }
            take(PixelRun {
                in_tile: (in_tile * element) as usize,
                in_frame: (in_frame * element) as usize,
                length: (sides[last] * element) as usize,
            });
            let Some(next) = (0..last).rev().find(|at| row[*at] + 1 < sides[*at]) else { return };
            row[next] += 1;
            row[next + 1..].fill(0);
        }
    }

    /// Returns the block that covers the whole frame.
    fn whole(&self) -> FrameBlock {
        FrameBlock { first: vec![0; self.frame.len()], size: self.frame.clone() }
    }

    /// Cuts a tile out of a frame.
    fn cut(&self, tile: u64, frame: &[u8], into: &mut [u8]) {
        into.fill(0);
        self.each_run(tile, &self.whole(), |PixelRun { in_tile, in_frame, length }| {
            into[in_tile..in_tile + length].copy_from_slice(&frame[in_frame..in_frame + length]);
        });
    }

    /// Copies the part of a tile that lies in a block of the frame into that block.
    pub fn put(&self, tile: u64, from: &[u8], block: &FrameBlock, frame: &mut [u8]) {
        self.each_run(tile, block, |PixelRun { in_tile, in_frame, length }| {
            frame[in_frame..in_frame + length].copy_from_slice(&from[in_tile..in_tile + length]);
        });
    }

    /// Writes the extent of a frame to the front of `into` and returns its length. Give `into` room for the
    /// longest extent.
    ///
    /// # Errors
    /// If the room is too small.
    pub fn encode(
        &self,
        codec: &mut ChunkCodec,
        frame: &[u8],
        scratch: &mut Vec<u8>,
        into: &mut [u8],
    ) -> Result<usize, CodecError> {
        let lengths = self.put_head(into);
        scratch.resize(self.tile_size(), 0);
        let mut end = self.table_size();
        for tile in 0..self.tiles() {
            let at = end.next_multiple_of(ALIGNED);
            into[end..at].fill(0);
            self.cut(tile, frame, scratch);
            let length = codec.encode(scratch, &mut into[at..])?;
            let said = lengths + 4 * tile as usize;
            into[said..said + 4].copy_from_slice(&(length as u32).to_le_bytes());
            end = at + length;
        }
        // Add no padding after the last tile, because files end there.
        Ok(end)
    }

    /// Does the same with a codec that this thread keeps. Plug-ins make no tiles: see `check_chunk` of the
    /// model.
    ///
    /// # Errors
    /// The same errors as [`TileGrid::encode`].
    pub fn encode_by(
        &self,
        compression: FrameCompression,
        frame: &[u8],
        scratch: &mut Vec<u8>,
        into: &mut [u8],
    ) -> Result<usize, CodecError> {
        let codec = chunk::built_in(compression);
        chunk::with_codec(codec, self.element, |codec| self.encode(codec, frame, scratch, into))
    }

    /// Writes the table without the lengths, and returns their position.
    fn put_head(&self, into: &mut [u8]) -> usize {
        let table = &mut into[..self.table_size()];
        table.fill(0);
        table[..8].copy_from_slice(MAGIC);
        table[8..12].copy_from_slice(&(self.frame.len() as u32).to_le_bytes());
        table[12..16].copy_from_slice(&(self.tiles() as u32).to_le_bytes());
        let mut at = FIXED;
        for side in self.frame.iter().chain(&self.tile) {
            table[at..at + 8].copy_from_slice(&side.to_le_bytes());
            at += 8;
        }
        at
    }
}

fn word(bytes: &[u8], at: usize) -> Result<u32, TilesError> {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk()).ok_or(TilesError::Short)?;
    Ok(u32::from_le_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> Result<u64, TilesError> {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk()).ok_or(TilesError::Short)?;
    Ok(u64::from_le_bytes(*bytes))
}

impl TileTable {
    /// Bytes of the longest table.
    const LONGEST: usize = FIXED + 16 * DIMENSIONS_MAX + 4 * TILES_MAX as usize;

    /// Returns the length of an extent's table, from the first bytes of the extent. Use it to read the table
    /// without the tiles.
    ///
    /// # Errors
    /// If the bytes are no table, or too few to tell.
    pub fn length(begin: &[u8]) -> Result<usize, TilesError> {
        if !begin.starts_with(MAGIC) {
            return Err(TilesError::Table);
        }
        let dimensions = word(begin, 8)? as usize;
        let tiles = word(begin, 12)? as usize;
        let length = dimensions.checked_mul(16).and_then(|sides| sides.checked_add(FIXED));
        let length = length.and_then(|sides| tiles.checked_mul(4)?.checked_add(sides));
        length.filter(|length| *length <= Self::LONGEST).ok_or(TilesError::Table)
    }

    /// Reads the table from the first bytes of an extent. The bytes need not include the tiles.
    ///
    /// # Errors
    /// If they are no table for a frame of `frame_size` bytes.
    pub fn read(extent: &[u8], element: ElementSize, frame_size: usize) -> Result<Self, TilesError> {
        if extent.len() >= MAGIC.len() && !extent.starts_with(MAGIC) {
            return Err(TilesError::Table);
        }
        let dimensions = word(extent, 8)? as usize;
        let tiles = u64::from(word(extent, 12)?);
        if dimensions > DIMENSIONS_MAX {
            return Err(TilesError::Table);
        }
        let sides = (0..2 * dimensions).map(|at| long(extent, FIXED + 8 * at));
        let sides = sides.collect::<Result<Vec<_>, _>>()?;
        let grid =
            TileGrid::new(&sides[..dimensions], &sides[dimensions..], element).ok_or(TilesError::Table)?;
        let filled = (grid.tile_size() as u64).saturating_mul(tiles);
        let is_filled = filled > (frame_size as u64).saturating_mul(TILES_FILLED);
        if grid.tiles() != tiles || grid.frame_size() != frame_size || is_filled {
            return Err(TilesError::Table);
        }
        let lengths = FIXED + 16 * dimensions;
        let mut offset = grid.table_size() as u64;
        let mut places = Vec::with_capacity(tiles as usize);
        for tile in 0..tiles as usize {
            let length = word(extent, lengths + 4 * tile)?;
            places.push(TilePlace { offset, length });
            offset += u64::from(length).next_multiple_of(ALIGNED as u64);
        }
        Ok(TileTable { grid, places })
    }
}

/// Upper bound on the bytes of a tile that do not depend on its pixels.
const TILE_COSTS: u64 = 256;

/// Upper bound on the bytes of an extent for a frame of `size` bytes. Holds for all tiles with at most
/// [`TILES_FILLED`] times as many pixels as the frame.
pub(crate) fn length_max(compression: FrameCompression, size: u64) -> u64 {
    let pixels = chunk::length_max(compression, size.saturating_mul(TILES_FILLED));
    pixels.saturating_add(TileTable::LONGEST as u64 + TILES_MAX * TILE_COSTS)
}

/// Decodes the frame from an extent.
///
/// # Errors
/// If the extent holds no such frame.
pub(crate) fn decode(
    compression: FrameCompression,
    element: ElementSize,
    stored: &[u8],
    frame: &mut [u8],
) -> Result<(), TilesError> {
    let TileTable { grid, places } = TileTable::read(stored, element, frame.len())?;
    let mut pixels = vec![0; grid.tile_size()];
    let whole = grid.whole();
    for (tile, TilePlace { offset, length }) in (0..).zip(places) {
        let begin = offset as usize;
        let bytes = stored.get(begin..begin + length as usize).ok_or(TilesError::Short)?;
        chunk::decode(compression, element, bytes, &mut pixels)
            .map_err(|source| TilesError::Tile { tile, source })?;
        grid.put(tile, &pixels, &whole, frame);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sides() -> impl Strategy<Value = (Vec<u64>, Vec<u64>)> {
        prop::collection::vec((1_u64..12, any::<prop::sample::Index>()), 1..4).prop_map(|sides| {
            sides.into_iter().map(|(side, tile)| (side, 1 + tile.index(side as usize) as u64)).unzip()
        })
    }

    fn encoded(grid: &TileGrid, compression: FrameCompression, frame: &[u8]) -> Vec<u8> {
        let mut codec = ChunkCodec::new(chunk::built_in(compression), grid.element);
        let mut into = vec![0xee; grid.length_max(compression)];
        let length = grid.encode(&mut codec, frame, &mut Vec::new(), &mut into).expect("there is room");
        into.truncate(length);
        into
    }

    proptest! {
        #[test]
        fn any_frame_in_any_tiles_is_what_it_was(
            (frame, tile) in sides(), element in 0_usize..4, how in 0_usize..5, seed in any::<u64>(),
        ) {
            let element = ElementSize::ALL[element];
            let compression = FrameCompression::ALL[how];
            let grid = TileGrid::new(&frame, &tile, element).expect("tiles within the frame");
            // No recorder makes tiles with more filling.
            let filled = grid.tile_size() as u64 * grid.tiles();
            prop_assume!(filled <= TILES_FILLED * grid.frame_size() as u64);
            let mut random = nilometer_model::Seed(seed).stream();
            let pixels: Vec<u8> = (0..grid.frame_size()).map(|_| random.next() as u8 & 3).collect();
            let extent = encoded(&grid, compression, &pixels);
            let mut back = vec![0x55; pixels.len()];
            prop_assert!(decode(compression, element, &extent, &mut back).is_ok());
            prop_assert_eq!(&back, &pixels);
            let most = length_max(compression, pixels.len() as u64);
            prop_assert!(grid.length_max(compression) as u64 <= most);
            let table = TileTable::read(&extent, element, pixels.len()).expect("it is one");
            let begin = TileTable::length(&extent[..16]).expect("its first bytes say it");
            prop_assert_eq!(TileTable::read(&extent[..begin], element, pixels.len()).expect("all of it"), table.clone());
            prop_assert!(TileTable::read(&extent[..begin - 1], element, pixels.len()).is_err());
            let last = table.places.last().expect("a frame has a tile");
            prop_assert!(last.offset + u64::from(last.length) <= extent.len() as u64);
            // Cut anywhere, the extent is invalid, since nothing follows the last tile.
            let end = last.offset as usize + last.length as usize;
            let cut = (seed % end as u64) as usize;
            prop_assert!(decode(compression, element, &extent[..cut], &mut back).is_err());
        }

        #[test]
        fn any_block_of_a_frame_is_in_the_tiles_that_have_some_of_it((frame, tile) in sides(), way in 0_usize..7, of in 1_u32..5) {
            let grid = TileGrid::new(&frame, &tile, ElementSize::One).expect("tiles within the frame");
            let pixels: Vec<u8> = (0..grid.frame_size()).map(|at| at as u8).collect();
            let dataset = nilometer_model::ChunkedFrames { frame: &frame, chunk: &tile, frames: 1 };
            let place = nilometer_model::ReaderPlace { number: of - 1, of };
            let part = nilometer_model::ReadingWay::ALL[way].part(dataset, place);
            let block = part.blocks.last().expect("the last process has a block").clone();
            let mut read = vec![0xaa; block.pixels() as usize];
            let mut cut = vec![0; grid.tile_size()];
            for tile in grid.tiles_of(&block) {
                grid.cut(tile, &pixels, &mut cut);
                grid.put(tile, &cut, &block, &mut read);
            }
            let one = TileGrid::new(&frame, &frame, ElementSize::One).expect("one tile");
            let mut expected = vec![0x55; read.len()];
            one.put(0, &pixels, &block, &mut expected);
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), element in 0_usize..4) {
            let mut frame = vec![0; 96];
            for magic in [false, true] {
                if magic && bytes.len() >= 16 {
                    bytes[..8].copy_from_slice(MAGIC);
                    bytes[8..12].copy_from_slice(&2_u32.to_le_bytes());
                }
                prop_assert!(decode(FrameCompression::Bslz4, ElementSize::ALL[element], &bytes, &mut frame).is_err());
                if let Ok(length) = TileTable::length(&bytes) {
                    prop_assert!(magic && length <= TileTable::LONGEST);
                }
            }
        }
    }

    #[test]
    fn a_tile_at_the_edge_is_filled_up_with_zeroes() {
        let grid = TileGrid::new(&[3, 5], &[2, 3], ElementSize::One).expect("it can be");
        let frame: Vec<u8> = (1..16).collect();
        let tile = |number| {
            let mut tile = vec![9; grid.tile_size()];
            grid.cut(number, &frame, &mut tile);
            tile
        };
        assert_eq!(
            (0..grid.tiles()).map(tile).collect::<Vec<_>>(),
            [[1, 2, 3, 6, 7, 8], [4, 5, 0, 9, 10, 0], [11, 12, 13, 0, 0, 0], [14, 15, 0, 0, 0, 0],]
        );
    }

    #[test]
    fn what_can_not_be_tiles_is_none() {
        let none = |frame: &[u64], tile: &[u64]| TileGrid::new(frame, tile, ElementSize::Four).is_none();
        assert!(none(&[], &[]) && none(&[4], &[0]) && none(&[4], &[5]) && none(&[4, 4], &[4]));
        assert!(none(&[1 << 17, 2], &[1, 2]) && none(&[1 << 40, 1 << 40], &[1 << 40, 1 << 40]));
    }

    #[test]
    fn a_table_of_tiles_that_are_filled_with_more_than_they_hold_is_none() {
        // Each side of 3 in tiles of 2 gives (4/3)^16 times the pixels of the frame.
        let grid = TileGrid::new(&[3; 16], &[2; 16], ElementSize::One).expect("it can be counted");
        let mut head = vec![0; grid.table_size()];
        grid.put_head(&mut head);
        let read = TileTable::read(&head, ElementSize::One, grid.frame_size());
        assert!(matches!(read, Err(TilesError::Table)), "{read:?}");
    }
}
