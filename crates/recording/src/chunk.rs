//! Frames as chunks of HDF5 datasets, compressed as the filters of HDF5 frame them: those that are built in here, and those of
//! plug-ins of HDF5.

use std::cell::RefCell;

use nilometer_codec::{ChunkCodec, CodecError, Compression, ElementSize, ZstdLevel};
use nilometer_hdf5::{PluginError, filter_plugin};
use nilometer_model::{FrameCompression, PluginFilter};

/// A chunk of which no frame can be made.
#[derive(Debug, thiserror::Error)]
pub enum ChunkError {
    /// It is damaged.
    #[error("the chunk {0}")]
    Codec(#[from] CodecError),
    /// The plug-in that made it is not there, or can't.
    #[error("the chunk: {0}")]
    Plugin(#[from] PluginError),
    /// Its journal does not say which plug-in made it.
    #[error("the chunk is of a filter that its journal does not name")]
    Unnamed,
}

/// What carries a compression out, at its usual level; none if a plug-in does.
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

/// What carries out a compression that needs no plug-in.
pub(crate) fn built_in(compression: FrameCompression) -> Compression {
    compression_of(compression).unwrap_or(Compression::None)
}

/// Other programs may have used smaller blocks, each of which costs a header.
const SPARE: u64 = 64;

/// The most bytes that a frame of so many has as a chunk.
pub(crate) fn length_max(compression: FrameCompression, size: u64) -> u64 {
    // What a plug-in would make longer is stored as it is.
    let most = compression_of(compression).map_or(size, |codec| codec.most_bytes(size as usize) as u64);
    most.saturating_add(most / SPARE).saturating_add(SPARE)
}

std::thread_local!(static KEPT: RefCell<Option<ChunkCodec>> = const { RefCell::new(None) });

/// Has a codec of this thread work, which keeps its memory from chunk to chunk.
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

/// Makes the chunk of a frame in the first bytes of `into`: how many they are. None if a plug-in does not do it, or has no room
/// for what it makes: then the frame is to be stored as it is.
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
            // What it makes longer is stored as it is.
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

/// Whether a frame of `size` bytes can be made of a chunk, as far as its structure says: see
/// [`nilometer_codec::check_structure`]. Of filters of plug-ins nothing is known.
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

/// Makes the frame of a chunk.
///
/// # Errors
/// If it is no chunk of such a frame, or the plug-in that made it is not there.
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
