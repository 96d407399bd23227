//! The chunks of a frame in HDF5 datasets: its whole extent, or the tiles that the table at the start of the
//! extent lists.

use nilometer_hdf5::StoredChunk;
use nilometer_model::FrameCompression;
use nilometer_recording::{
    journal::{Encoding, FrameExtent},
    tiles::{TileTable, TilesError},
};
use nilometer_ring::{Frame, StoredAs};

/// The position of a written frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WrittenPlace {
    /// From the start of its file, in bytes.
    pub(crate) offset: u64,
    /// Bytes written, for a frame that is not encoded.
    pub(crate) length: u32,
    /// Bytes of the frame.
    pub(crate) size: u32,
}

/// Passes on the chunks of a frame that was just written; the encoded bytes are still in its buffer.
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

/// Passes on the chunks of a frame with the index `frame` in its file, in the order of the dataset. For a tiled
/// frame, `begin` must contain the first bytes of its extent with the whole table.
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
