//! Compressed pixels, exactly as detectors and HDF5 filters frame them: bytes in, bytes out, no I/O.
//!
//! - [`ChunkCodec`]: the chunks of HDF5 datasets by each [`Compression`]. LZ4 is filter 32004, Zstandard
//!   32015, and both after a transposition of bits 32008; the DECTRIS stream uses the ones with LZ4 too.
//! - [`packed12`]: samples of 12 bits as numbers of 16 bits, which the compressions take.
//! - [`byte_offset`]: differences of pixels, as in CBF files of Pilatus.
//!
//! The caller gives a decoder its output memory, so no number in a file decides how much is allocated. A
//! decoder answers any bytes with pixels or an error. Only the AVX2 and AVX-512 parts of the bit
//! transposition contain unsafe code. LZ4 and Zstandard are the C libraries, through the safe interfaces of
//! the crates lz4 and zstd-safe.

#![deny(unsafe_code)]

mod bitshuffle;
mod block;
pub mod byte_offset;
mod chunk;
mod compression;
mod element;
mod frame;
mod lz4_filter;
pub mod packed12;
mod transpose;
mod walk;
mod zstd_level;

pub use chunk::ChunkCodec;
pub use compression::{Compression, UnknownCompression};
pub use element::ElementSize;
pub use frame::uncompressed_bytes;
pub use transpose::Method;
pub use walk::check_structure;
pub use zstd_level::ZstdLevel;

/// Invalid compressed bytes, or elements that can't be compressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The uncompressed bytes, input or output, end within an element.
    #[error("{length} B are no whole number of elements of {element} B")]
    Ragged {
        /// The length in bytes.
        length: usize,
        /// Bytes of an element.
        element: usize,
    },
    /// The compressed bytes end early.
    #[error("ends at byte {at}, within {what}")]
    Short {
        /// The position of the end.
        at: usize,
        /// The part being read.
        what: &'static str,
    },
    /// It holds more, or less, than the caller requested.
    #[error("holds {holds} B, not {wanted}")]
    Length {
        /// The bytes or pixels that it states.
        holds: u64,
        /// The bytes or pixels that the caller requested.
        wanted: u64,
    },
    /// A block size that no encoder chooses.
    #[error("has blocks of {size} B: no multiple of 8 elements of {element} B")]
    BlockSize {
        /// The stated size.
        size: u32,
        /// Bytes of an element.
        element: usize,
    },
    /// Blocks of no bytes, although the chunk holds some.
    #[error("has blocks of 0 B")]
    EmptyBlocks,
    /// A block that can't be decompressed to its size.
    #[error("block {block} at byte {at} is damaged")]
    Block {
        /// The number of the block, from 0.
        block: usize,
        /// The position of its beginning.
        at: usize,
    },
    /// No frame of Zstandard, or one that can't be decompressed to its size.
    #[error("is no frame of Zstandard, or a damaged one")]
    Frame,
    /// The compressed data do not fit into the output.
    #[error("does not fit into {room} B")]
    Room {
        /// The bytes of room.
        room: usize,
    },
    /// A pixel beyond 32 bits.
    #[error("pixel {pixel} is beyond 32 bits")]
    Pixel {
        /// The number of the pixel, from 0.
        pixel: usize,
    },
    /// Bytes after the last pixel or block.
    #[error("{bytes} B follow its end")]
    Trailing {
        /// Their number.
        bytes: usize,
    },
}
