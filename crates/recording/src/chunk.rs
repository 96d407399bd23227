//! Frames as chunks of HDF5 datasets, compressed in the format of the HDF5 filters: built-in ones and plug-ins.

use std::cell::RefCell;

use nilometer_codec::{ChunkCodec, CodecError, Compression, ElementSize, ZstdLevel};
use nilometer_hdf5::{PluginError, filter_plugin};
use nilometer_model::{FrameCompression, PluginFilter};

/// The reason why a chunk can't be decoded to a frame, or a frame not encoded.
#[derive(Debug, thiserror::Error)]
pub enum ChunkError {
    /// The chunk is damaged.
    #[error("the chunk {0}")]
    Codec(#[from] CodecError),
    /// The plug-in is missing or failed.
    #[error("the chunk: {0}")]
    Plugin(#[from] PluginError),
    /// The journal does not name the plug-in that made the chunk.
    #[error("the chunk is of a filter that its journal does not name")]
    Unnamed,
}

/// Returns the codec of a compression, at its usual level. `None` if a plug-in does the compression.
pub fn compression_of(compression: FrameCompression) -> Option<Compression> {
    match compression {
        FrameCompression::None => Some(Compression::None),
        FrameCompression::Bslz4 => Some(Compression::BitshuffleLz4),
        FrameCompression::Bszstd => Some(Compression::BitshuffleZstd(ZstdLevel::USUAL)),
        FrameCompression::Lz4 => Some(Compression::Lz4),
        FrameCompression::Zstd => Some(Compression::Zstd(ZstdLevel::USUAL)),
        FrameCompression::Filter(_) => None,
    }
}

/// Returns the codec of a compression that needs no plug-in.
pub(crate) fn built_in(compression: FrameCompression) -> Compression {
    compression_of(compression).unwrap_or(Compression::None)
}

/// Other programs may have used smaller blocks, each of which costs a header.
const SPARE: u64 = 64;

/// Upper bound on the bytes of a chunk that holds a frame of `size` bytes.
pub(crate) fn length_max(compression: FrameCompression, size: u64) -> u64 {
    // If a plug-in would make a frame longer, the writer stores the frame itself.
    let most = compression_of(compression).map_or(size, |codec| codec.most_bytes(size as usize) as u64);
    most.saturating_add(most / SPARE).saturating_add(SPARE)
}

std::thread_local!(static KEPT: RefCell<Option<ChunkCodec>> = const { RefCell::new(None) });

/// Runs `work` with a codec of this thread, which keeps its memory from chunk to chunk.
pub(crate) fn with_codec<T>(
    compression: Compression,
    element: ElementSize,
    work: impl FnOnce(&mut ChunkCodec) -> T,
) -> T {
    KEPT.with_borrow_mut(|kept| {
        let same = |codec: &ChunkCodec| codec.compression() == compression && codec.element() == element;
        let codec = kept.take().filter(same);
        work(kept.insert(codec.unwrap_or_else(|| ChunkCodec::new(compression, element))))
    })
}

/// Encodes a frame into the first bytes of `into` and returns the chunk's length.
///
/// Returns `None` if a plug-in declines or lacks room for its result; then store the frame uncompressed.
///
/// # Errors
/// If a codec has no room, or the plug-in is not there.
pub fn encode(
    compression: FrameCompression,
    element: ElementSize,
    frame: &[u8],
    into: &mut [u8],
) -> Result<Option<usize>, ChunkError> {
    match (compression, compression_of(compression)) {
        (FrameCompression::Filter(filter), _) => {
            // If the plug-in's result is longer than the frame, the writer stores the frame itself.
            let room = into.len().min(frame.len());
            Ok(filter_plugin(filter.number())?.encode(filter.values(), frame, &mut into[..room])?)
        }
        (_, codec) => {
            let codec = codec.unwrap_or(Compression::None);
            let length = with_codec(codec, element, |codec| codec.encode(frame, into))?;
            Ok(Some(length))
        }
    }
}

/// Checks by a chunk's structure that it can hold a frame of `size` bytes: see
/// [`nilometer_codec::check_structure`]. Does not check chunks of plug-in filters.
///
/// # Errors
/// If [`decode`] would fail.
pub fn check_structure(
    compression: FrameCompression,
    element: ElementSize,
    stored: &[u8],
    size: usize,
) -> Result<(), ChunkError> {
    let codec = compression_of(compression).unwrap_or(Compression::None);
    Ok(nilometer_codec::check_structure(codec, element, stored, size)?)
}

/// Decodes a chunk to its frame.
///
/// # Errors
/// If the bytes are no chunk of such a frame, or the plug-in that made it is missing.
pub fn decode(
    compression: FrameCompression,
    element: ElementSize,
    stored: &[u8],
    frame: &mut [u8],
) -> Result<(), ChunkError> {
    match (compression, compression_of(compression)) {
        (FrameCompression::Filter(filter), _) if filter == PluginFilter::UNSTATED => Err(ChunkError::Unnamed),
        (FrameCompression::Filter(filter), _) => {
            Ok(filter_plugin(filter.number())?.decode(filter.values(), stored, frame)?)
        }
        (_, codec) => {
            let codec = codec.unwrap_or(Compression::None);
            Ok(with_codec(codec, element, |codec| codec.decode(stored, frame))?)
        }
    }
}
