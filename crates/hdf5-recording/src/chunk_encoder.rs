//! The encode stage of HDF5 recordings: makes the chunks of a frame, whole, in tiles, or of unpacked 12-bit samples.

use std::sync::Arc;

use nilometer_codec::{
    ElementSize,
    packed12::{numbers_bytes, unpack_12},
};
use nilometer_model::FrameCompression;
use nilometer_recording::{chunk, journal::Encoding, tiles::TileGrid};
use nilometer_ring::{FrameEncoder, StoredAs};
use nilometer_storage::buffer::ALIGNMENT;

/// Encodes frames into chunks.
#[derive(Debug)]
pub struct ChunkEncoder {
    pub(crate) compression: FrameCompression,
    pub(crate) element: ElementSize,
    pub(crate) frame_size: u64,
    pub(crate) packed_12: bool,
    pub(crate) grid: Option<Arc<TileGrid>>,
}

impl ChunkEncoder {
    /// Encodes a frame of 12-bit samples.
    fn encode_samples(&self, frame: &[u8], numbers: &mut Vec<u8>, into: &mut [u8]) -> StoredAs {
        numbers.resize(numbers_bytes(frame.len() as u64) as usize, 0);
        unpack_12(frame, numbers);
        let length = chunk::encode(self.compression, self.element, numbers, into).ok().flatten();
        let length = length.expect("there is room for the longest, and no plug-in takes such samples");
        StoredAs { encoding: Encoding::Packed12(self.compression), length: length_of_extent(length) }
    }
}

impl FrameEncoder for ChunkEncoder {
    /// Whole pages, so that the chunk can be written with `O_DIRECT`.
    fn length_max(&self) -> usize {
        let of_chunk = Encoding::of_chunk(self.compression, self.element);
        let encoding = if self.packed_12 { Encoding::Packed12(self.compression) } else { of_chunk };
        let of_frame = || encoding.length_max(self.frame_size) as usize;
        let most = self.grid.as_ref().map_or_else(of_frame, |grid| grid.length_max(self.compression));
        most.next_multiple_of(ALIGNMENT)
    }

    fn encode(&self, _number: u64, slot: &[u8], scratch: &mut Vec<u8>, into: &mut [u8]) -> StoredAs {
        let frame = &slot[..self.frame_size as usize];
        if self.packed_12 {
            return self.encode_samples(frame, scratch, into);
        }
        let encoding = encoding(self.grid.as_deref(), self.compression, self.element);
        if let Some(grid) = &self.grid {
            let length = grid.encode_by(self.compression, frame, scratch, into);
            let length = length.expect("frames are whole pixels, and there is room for the longest");
            return StoredAs { encoding, length: length_of_extent(length) };
        }
        // This can't fail: the plug-in was checked when the recording was prepared, frames are whole pixels, and
        // there is room for the longest chunk.
        if let Ok(Some(length)) = chunk::encode(self.compression, self.element, frame, into) {
            return StoredAs { encoding, length: length_of_extent(length) };
        }
        into[..frame.len()].copy_from_slice(frame);
        StoredAs { encoding: Encoding::Raw, length: length_of_extent(frame.len()) }
    }

    fn is_damaged(&self, came_as: StoredAs, bytes: &[u8]) -> bool {
        let Encoding::Chunk(compression, element) = came_as.encoding else { return false };
        chunk::check_structure(compression, element, bytes, self.frame_size as usize).is_err()
    }
}

/// The conversion can't fail: layouts with longer chunks are refused.
fn length_of_extent(length: usize) -> u32 {
    u32::try_from(length).expect("no chunk of a layout is longer than an extent can be")
}

/// The encoding of a stored frame.
pub(crate) fn encoding(
    grid: Option<&TileGrid>,
    compression: FrameCompression,
    element: ElementSize,
) -> Encoding {
    match grid {
        Some(_) => Encoding::Tiles(compression, element),
        None => Encoding::of_chunk(compression, element),
    }
}
