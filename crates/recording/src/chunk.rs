//! Frames as chunks of HDF5 datasets, compressed as the filters of HDF5 frame them.

use nilometer_codec::{Bitshuffle, CodecError, ElementSize};
use nilometer_model::FrameCompression;

/// The most bytes that a frame of so many has as a chunk.
pub fn length_max(compression: FrameCompression, size: u64) -> u64 {
    match compression {
        FrameCompression::None => size,
        // A block of 8 KiB that can't be compressed takes 4 B more, and a byte for each 255.
        _ => size.saturating_add(size / 128).saturating_add(4096),
    }
}

/// Makes the frame of a chunk.
pub(crate) fn decode(
    _compression: FrameCompression,
    element: ElementSize,
    stored: &[u8],
    frame: &mut [u8],
) -> Result<(), CodecError> {
    Bitshuffle::new(element).decode(stored, frame)
}
