//! Frames as chunks of HDF5 datasets, compressed as the filters of HDF5 frame them.

use std::cell::RefCell;

use nilometer_codec::{ChunkCodec, CodecError, Compression, ElementSize, ZstdLevel};
use nilometer_model::FrameCompression;

/// What carries a compression out, at its usual level.
pub fn compression_of(compression: FrameCompression) -> Compression {
    match compression {
        FrameCompression::None => Compression::None,
        FrameCompression::Bslz4 => Compression::BitshuffleLz4,
        FrameCompression::Bszstd => Compression::BitshuffleZstd(ZstdLevel::USUAL),
        FrameCompression::Lz4 => Compression::Lz4,
        FrameCompression::Zstd => Compression::Zstd(ZstdLevel::USUAL),
    }
}

/// Other programs may have used smaller blocks, each of which costs a header.
const SPARE: u64 = 64;

/// The most bytes that a frame of so many has as a chunk.
pub(crate) fn length_max(compression: FrameCompression, size: u64) -> u64 {
    let most = compression_of(compression).most_bytes(size as usize) as u64;
    most.saturating_add(most / SPARE).saturating_add(SPARE)
}

/// Makes the frame of a chunk.
///
/// # Errors
/// If it is no chunk of such a frame.
pub fn decode(
    compression: FrameCompression,
    element: ElementSize,
    stored: &[u8],
    frame: &mut [u8],
) -> Result<(), CodecError> {
    std::thread_local!(static KEPT: RefCell<Option<ChunkCodec>> = const { RefCell::new(None) });
    let compression = compression_of(compression);
    KEPT.with_borrow_mut(|kept| {
        let same = |codec: &ChunkCodec| codec.compression() == compression && codec.element() == element;
        let codec = kept.take().filter(same);
        let codec = kept.insert(codec.unwrap_or_else(|| ChunkCodec::new(compression, element)));
        codec.decode(stored, frame)
    })
}
