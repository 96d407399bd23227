//! Where the bytes of a frame are in a file, and how the frame is made of them.

use nilometer_codec::ElementSize;
use nilometer_model::{Format, FrameCompression, PluginFilter};

use super::Head;
use crate::{
    cbf::{self, CbfError},
    chunk::{self, ChunkError},
    tiles::{self, TilesError},
};

/// How the bytes in a file are made of those of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// They are those of the frame.
    Raw,
    /// A CBF file with one compressed picture.
    Cbf,
    /// A chunk of an HDF5 dataset, compressed so, of elements of so many bytes.
    Chunk(FrameCompression, ElementSize),
    /// Several such chunks, with a table of them in front: see [`crate::tiles`].
    Tiles(FrameCompression, ElementSize),
}

/// Numbers that journals have for encodings, before those of chunks.
const CHUNKS: u64 = 2;
/// And before those of frames in tiles, which are counted in the same way.
const TILES: u64 = 256;

impl Encoding {
    /// The encoding of frames in files of this format, if they are not chunks.
    pub fn of(format: Format) -> Self {
        match format {
            Format::Cbf => Encoding::Cbf,
            Format::Raw | Format::Hdf5 | Format::Vdif | Format::Mark5b => Encoding::Raw,
        }
    }

    /// Of chunks that are compressed so; those that are not compressed have the bytes of the frame.
    pub const fn of_chunk(compression: FrameCompression, element: ElementSize) -> Self {
        match compression {
            FrameCompression::None => Encoding::Raw,
            _ => Encoding::Chunk(compression, element),
        }
    }

    /// The number that journals have for it: one for all plug-ins, which another record names.
    pub(super) fn number(self) -> u64 {
        match self {
            Encoding::Raw => 0,
            Encoding::Cbf => 1,
            Encoding::Chunk(compression, element) => CHUNKS + counted(compression, element),
            Encoding::Tiles(compression, element) => TILES + counted(compression, element),
        }
    }

    /// The one of this number, if there is one.
    pub(super) fn numbered(number: u64) -> Option<Self> {
        let Some(of_chunks) = number.checked_sub(CHUNKS) else {
            return Some(if number == 0 { Encoding::Raw } else { Encoding::Cbf });
        };
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

    /// A plug-in makes it.
    pub(crate) fn is_of_plugin(self) -> bool {
        matches!(self, Encoding::Chunk(FrameCompression::Filter(_), _))
    }

    /// The same, of a journal that names this plug-in.
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

    /// The most bytes that a frame of so many takes in a file.
    pub fn length_max(self, size: u64) -> u64 {
        match self {
            Encoding::Raw => size,
            Encoding::Cbf => cbf::size_max(size / 4),
            Encoding::Chunk(compression, _) => chunk::length_max(compression, size),
            Encoding::Tiles(compression, _) => tiles::length_max(compression, size),
        }
    }

    /// Makes the frame, all of it, of the bytes that were read of its extent. Those may be more than belong to it if its
    /// end is known to be no further.
    ///
    /// # Errors
    /// If they are too few, or not the encoding of a frame of this size.
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
        }
    }
}

/// Compressions and sizes of elements in one number.
fn counted(compression: FrameCompression, element: ElementSize) -> u64 {
    let sizes = ElementSize::ALL.len() as u64;
    let size = ElementSize::ALL.iter().position(|size| *size == element).unwrap_or(0);
    let all = &FrameCompression::ALL;
    let number = all.iter().position(|known| *known == compression).unwrap_or(all.len());
    number as u64 * sizes + size as u64
}

/// Bytes of which no frame can be made.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The file ends before.
    #[error("the file ends before the frame does")]
    Short,
    /// Not the picture that was written.
    #[error(transparent)]
    Cbf(#[from] CbfError),
    /// Not a chunk of such a frame.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// Not the tiles of such a frame.
    #[error("the bytes {0}")]
    Tiles(#[from] TilesError),
}

impl From<DecodeError> for std::io::Error {
    fn from(error: DecodeError) -> Self {
        let kind = match error {
            DecodeError::Short => std::io::ErrorKind::UnexpectedEof,
            DecodeError::Cbf(_) | DecodeError::Chunk(_) | DecodeError::Tiles(_) => {
                std::io::ErrorKind::InvalidData
            }
        };
        std::io::Error::new(kind, error)
    }
}

/// Where the bytes of a frame are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameExtent {
    /// Which file of the lane, or part of its only one.
    pub file: u64,
    /// Where they begin in the file that is there, in bytes.
    pub offset: u64,
    /// How many there are in the file.
    pub length: u32,
    /// How they are made of the frame.
    pub encoding: Encoding,
    /// Bytes of the frame.
    pub size: u32,
}

impl FrameExtent {
    /// Behind its last byte in the file.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length.into())
    }
}

impl Head {
    /// The extent of a frame of so many bytes that is stored as it is.
    pub fn extent(&self, file: u64, offset: u64, size: u32) -> FrameExtent {
        FrameExtent { file, offset, length: size, encoding: Encoding::Raw, size }
    }
}
