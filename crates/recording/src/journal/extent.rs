//! Position of a frame's bytes in a file, and their encoding.

use nilometer_codec::{
    ElementSize,
    packed12::{numbers_bytes, pack_12},
};
use nilometer_model::{Format, FrameCompression, PluginFilter};

use super::Head;
use crate::{
    cbf::{self, CbfError},
    chunk::{self, ChunkError},
    tiles::{self, TilesError},
};

/// Encoding of a frame's bytes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// The bytes of the frame itself.
    Raw,
    /// A CBF file with one compressed picture.
    Cbf,
    /// A chunk of an HDF5 dataset, with this compression and element size.
    Chunk(FrameCompression, ElementSize),
    /// Such a chunk of numbers of 16 bits, for a frame with two samples of 12 bits in three bytes.
    Packed12(FrameCompression),
    /// Several such chunks behind a table of them: see [`crate::tiles`].
    Tiles(FrameCompression, ElementSize),
}

/// First number of chunk encodings in journals.
const CHUNKS: u64 = 2;
/// First number of tile encodings, which are numbered in the same way.
const TILES: u64 = 256;
/// First number of encodings of 12-bit samples, numbered by their compression.
const PACKED_12: u64 = 512;

impl Encoding {
    /// Returns the encoding of frames in files of this format, unless they are chunks.
    pub fn of(format: Format) -> Self {
        match format {
            Format::Cbf => Encoding::Cbf,
            Format::Raw | Format::Hdf5 | Format::Vdif | Format::Mark5b => Encoding::Raw,
        }
    }

    /// Returns the encoding of chunks with this compression. Uncompressed chunks hold the bytes of the frame.
    pub const fn of_chunk(compression: FrameCompression, element: ElementSize) -> Self {
        match compression {
            FrameCompression::None => Encoding::Raw,
            _ => Encoding::Chunk(compression, element),
        }
    }

    /// Returns the number of the encoding in journals. All plug-ins share one; another record names the
    /// plug-in.
    pub(super) fn number(self) -> u64 {
        match self {
            Encoding::Raw => 0,
            Encoding::Cbf => 1,
            Encoding::Chunk(compression, element) => CHUNKS + counted(compression, element),
            Encoding::Tiles(compression, element) => TILES + counted(compression, element),
            Encoding::Packed12(compression) => PACKED_12 + position(compression),
        }
    }

    /// Returns the encoding with this number, if any.
    pub(super) fn numbered(number: u64) -> Option<Self> {
        let Some(of_chunks) = number.checked_sub(CHUNKS) else {
            return Some(if number == 0 { Encoding::Raw } else { Encoding::Cbf });
        };
        if let Some(of_samples) = number.checked_sub(PACKED_12) {
            let compression = *FrameCompression::ALL.get(of_samples as usize)?;
            return (compression != FrameCompression::None).then_some(Encoding::Packed12(compression));
        }
        let sizes = ElementSize::ALL.len() as u64;
        let of_tiles = number.checked_sub(TILES);
        let of_chunks = of_tiles.unwrap_or(of_chunks);
        let unstated = [FrameCompression::Filter(PluginFilter::UNSTATED)];
        let mut all = FrameCompression::ALL.into_iter().chain(unstated);
        let compression = all.nth((of_chunks / sizes) as usize)?;
        let element = ElementSize::ALL[(of_chunks % sizes) as usize];
        if of_tiles.is_some() {
            return Some(Encoding::Tiles(compression, element));
        }
        (compression != FrameCompression::None).then_some(Encoding::Chunk(compression, element))
    }

    /// Returns true if a plug-in makes this encoding.
    pub(crate) fn is_of_plugin(self) -> bool {
        matches!(self, Encoding::Chunk(FrameCompression::Filter(_), _))
    }

    /// Returns the encoding with the plug-in that the journal names.
    #[must_use]
    pub(crate) fn made_by(self, plugin: Option<PluginFilter>) -> Self {
        match (self, plugin) {
            (Encoding::Chunk(FrameCompression::Filter(filter), element), Some(plugin))
                if filter == PluginFilter::UNSTATED =>
            {
                Encoding::Chunk(FrameCompression::Filter(plugin), element)
            }
            _ => self,
        }
    }

    /// Upper bound on the bytes in a file for a frame of `size` bytes.
    pub fn length_max(self, size: u64) -> u64 {
        match self {
            Encoding::Raw => size,
            Encoding::Cbf => cbf::size_max(size / 4),
            Encoding::Chunk(compression, _) => chunk::length_max(compression, size),
            Encoding::Tiles(compression, _) => tiles::length_max(compression, size),
            Encoding::Packed12(compression) => chunk::length_max(compression, numbers_bytes(size)),
        }
    }

    /// Decodes the whole frame from the bytes read from its extent. There may be more of them if the frame is sure
    /// to end within them.
    ///
    /// # Errors
    /// If there are too few bytes, or they do not encode a frame of this size.
    pub fn decode(self, stored: &[u8], frame: &mut [u8]) -> Result<(), DecodeError> {
        match self {
            Encoding::Raw => {
                let there = stored.get(..frame.len()).ok_or(DecodeError::Short)?;
                frame.copy_from_slice(there);
                Ok(())
            }
            Encoding::Cbf => Ok(cbf::read_frame(stored, frame)?),
            Encoding::Chunk(compression, element) => Ok(chunk::decode(compression, element, stored, frame)?),
            Encoding::Tiles(compression, element) => Ok(tiles::decode(compression, element, stored, frame)?),
            Encoding::Packed12(compression) => decode_samples(compression, stored, frame),
        }
    }
}

/// Decodes numbers of 16 bits, and packs their 12 bits.
fn decode_samples(compression: FrameCompression, stored: &[u8], frame: &mut [u8]) -> Result<(), DecodeError> {
    let mut numbers = vec![0; numbers_bytes(frame.len() as u64) as usize];
    chunk::decode(compression, ElementSize::Two, stored, &mut numbers)?;
    if pack_12(&numbers, frame) { Ok(()) } else { Err(DecodeError::Sample) }
}

/// Returns one number for compression and element size.
fn counted(compression: FrameCompression, element: ElementSize) -> u64 {
    let sizes = ElementSize::ALL.len() as u64;
    let size = ElementSize::ALL.iter().position(|size| *size == element).unwrap_or(0);
    position(compression) * sizes + size as u64
}

/// Returns the number of a compression. Plug-ins have the one behind the others.
fn position(compression: FrameCompression) -> u64 {
    let all = &FrameCompression::ALL;
    all.iter().position(|known| *known == compression).unwrap_or(all.len()) as u64
}

/// The reason why bytes do not decode to a frame.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The file ends before the frame does.
    #[error("the file ends before the frame does")]
    Short,
    /// The bytes are not the picture of the frame.
    #[error(transparent)]
    Cbf(#[from] CbfError),
    /// The bytes are no chunk of such a frame.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// A sample of 12 bits has more of them.
    #[error("a sample has more than 12 bits")]
    Sample,
    /// The bytes are no tiles of such a frame.
    #[error("the bytes {0}")]
    Tiles(#[from] TilesError),
}

impl From<DecodeError> for std::io::Error {
    fn from(error: DecodeError) -> Self {
        let kind = match error {
            DecodeError::Short => std::io::ErrorKind::UnexpectedEof,
            DecodeError::Cbf(_) | DecodeError::Chunk(_) | DecodeError::Sample | DecodeError::Tiles(_) => {
                std::io::ErrorKind::InvalidData
            }
        };
        std::io::Error::new(kind, error)
    }
}

/// Position and encoding of a frame's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameExtent {
    /// Index of the lane's file, or of the part if it has only one file.
    pub file: u64,
    /// Offset in the real file, in bytes.
    pub offset: u64,
    /// Bytes in the file.
    pub length: u32,
    /// Encoding of the bytes.
    pub encoding: Encoding,
    /// Bytes of the frame.
    pub size: u32,
}

impl FrameExtent {
    /// Offset after the last byte in the file.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length.into())
    }
}

impl Head {
    /// Returns the extent of an unencoded frame of `size` bytes.
    pub fn extent(&self, file: u64, offset: u64, size: u32) -> FrameExtent {
        FrameExtent { file, offset, length: size, encoding: Encoding::Raw, size }
    }
}
