//! Compressed pixels, exactly as detectors and HDF5 filters frame them: bytes in, bytes out, no I/O.
//!
//! - [`Bitshuffle`]: bit transposition and LZ4, the chunks of HDF5 filter 32008 and of the DECTRIS stream;
//! - [`byte_offset`]: differences of pixels, as Pilatus writes them into CBF files.
//!
//! Decoders are given the room to decode into, so that no number in a file decides how much memory is taken, and
//! answer any bytes with pixels or an error. Unsafe code stands in the AVX2 half of the bit transposition alone.

#![deny(unsafe_code)]

pub mod bitshuffle;
pub mod byte_offset;
mod element;
mod transpose;

pub use bitshuffle::Bitshuffle;
pub use element::ElementSize;
pub use transpose::Method;

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
    /// A block that LZ4 can't decompress to its size.
    #[error("block {block} at byte {at} is damaged")]
    Block {
        /// From 0.
        block: usize,
        /// Where it begins.
        at: usize,
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
