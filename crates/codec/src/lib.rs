//! Compressed pixels, exactly as detectors and HDF5 filters frame them: bytes in, bytes out, no I/O.
//!
//! - [`ChunkCodec`]: the chunks of HDF5 datasets by each [`Compression`]: LZ4 (filter 32004), Zstandard (32015), and these
//!   behind a transposition of bits (32008); those with LZ4 are also what the DECTRIS stream has;
//! - [`byte_offset`]: differences of pixels, as Pilatus writes them into CBF files.
//!
//! Decoders are given the room to decode into, so that no number in a file decides how much memory is taken, and
//! answer any bytes with pixels or an error. Unsafe code stands in the AVX2 and AVX-512 parts of the bit
//! transposition alone; LZ4 and Zstandard are the C libraries, through the safe interfaces of the crates lz4 and zstd-safe.

#![deny(unsafe_code)]

mod bitshuffle;
mod block;
pub mod byte_offset;
mod chunk;
mod compression;
mod element;
mod frame;
mod lz4_filter;
mod transpose;
mod walk;

pub use chunk::ChunkCodec;
pub use compression::{Compression, UnknownCompression, ZstdLevel};
pub use element::ElementSize;
pub use frame::uncompressed_bytes;
pub use transpose::Method;
pub use walk::check_structure;

/// Compressed bytes that can't be what they should be, or elements that can't be compressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The bytes to be compressed, or to be decompressed into, end within an element.
    #[error("{length} B are no whole number of elements of {element} B")]
    Ragged {
        /// Bytes there are.
        length: usize,
        /// Bytes of an element.
        element: usize,
    },
    /// The compressed bytes end early.
    #[error("ends at byte {at}, within {what}")]
    Short {
        /// Where they end.
        at: usize,
        /// What was being read.
        what: &'static str,
    },
    /// There is more, or less, in it than was asked for.
    #[error("holds {holds} B, not {wanted}")]
    Length {
        /// Bytes or pixels that it holds, as it says itself.
        holds: u64,
        /// As the caller says.
        wanted: u64,
    },
    /// A block size that no encoder chooses.
    #[error("has blocks of {size} B: no multiple of 8 elements of {element} B")]
    BlockSize {
        /// As stated.
        size: u32,
        /// Bytes of an element.
        element: usize,
    },
    /// Blocks that hold nothing, where there is something to be held.
    #[error("has blocks of 0 B")]
    EmptyBlocks,
    /// A block that can't be decompressed to its size.
    #[error("block {block} at byte {at} is damaged")]
    Block {
        /// From 0.
        block: usize,
        /// Where it begins.
        at: usize,
    },
    /// No frame of Zstandard, or one that can't be decompressed to its size.
    #[error("is no frame of Zstandard, or a damaged one")]
    Frame,
    /// What is compressed has no room where it is to go.
    #[error("does not fit into {room} B")]
    Room {
        /// Bytes there are for it.
        room: usize,
    },
    /// A pixel beyond 32 bits.
    #[error("pixel {pixel} is beyond 32 bits")]
    Pixel {
        /// From 0.
        pixel: usize,
    },
    /// Bytes behind the last pixel or block.
    #[error("{bytes} B follow its end")]
    Trailing {
        /// How many.
        bytes: usize,
    },
}
