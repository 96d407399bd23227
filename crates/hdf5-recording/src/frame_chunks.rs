//! The chunks of HDF5 datasets that a frame is in a file: the extent of it, or those that the table in front of the extent names.

use nilometer_hdf5::StoredChunk;
use nilometer_model::FrameCompression;
use nilometer_recording::{
    journal::{Encoding, FrameExtent},
    tiles::{TileTable, TilesError},
};
use nilometer_ring::{Frame, StoredAs};

/// Where a frame was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WrittenPlace {
    /// From the start of its file, in bytes.
    pub(crate) offset: u64,
    /// Bytes that were written, if it is not encoded.
    pub(crate) length: u32,
    /// Bytes of the frame.
    pub(crate) size: u32,
}

/// Hands out the chunks of a frame that was just written: it still has what was written in its place.
pub(crate) fn each_written_chunk(
    frame: &Frame,
    place: WrittenPlace,
    number: u64,
    take: impl FnMut(StoredChunk),
) {
    let WrittenPlace { offset, length, size } = place;
    let plain = StoredAs { encoding: Encoding::Raw, length };
    let StoredAs { encoding, length } = frame.stored_as().unwrap_or(plain);
    let extent = FrameExtent { file: 0, offset, length, encoding, size };
    let bytes = frame.encoded.as_deref().map_or(&frame.data[..], |encoded| &encoded.bytes[..]);
    each_chunk(&extent, number, bytes, take)
        .expect("the encode stage made its table, or it was decoded by it");
}

/// Hands out the chunks of a frame, which is the one of this number in its file, in the order of the dataset. `begin` are the
/// first bytes of its extent, all of its table among them: they are looked at where it is in tiles.
pub(crate) fn each_chunk(
    extent: &FrameExtent,
    frame: u64,
    begin: &[u8],
    mut take: impl FnMut(StoredChunk),
) -> Result<(), TilesError> {
    let FrameExtent { offset, length, encoding, size, .. } = *extent;
    let unfiltered = encoding == Encoding::Raw;
    let whole = StoredChunk { dataset: 0, frame, tile: 0, offset, bytes: length, unfiltered };
    let Encoding::Tiles(compression, element) = encoding else {
        take(whole);
        return Ok(());
    };
    let table = TileTable::read(begin, element, size as usize)?;
    let unfiltered = compression == FrameCompression::None;
    for (tile, place) in (0..).zip(table.places) {
        take(StoredChunk { tile, offset: offset + place.offset, bytes: place.length, unfiltered, ..whole });
    }
    Ok(())
}
