//! The DECTRIS stream, version 2: one CBOR map per message, for decoding and encoding.
//!
//! Source: github.com/dectris/documentation, `stream_v2/README.md` and `cbor/dectris-compression-tag.md`.
//! Arrays follow RFC 8746. Detectors send on TCP port 31001 from a PUSH socket. Any program can send data for
//! recording in the same way, with pixels of any [`ElementType`].

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{decode, is_image, kind_of, series_of};
pub use encode::{ImageChannel, MessagePiece, encode_end, encode_image, encode_start};

use crate::series::ElementType;

/// TCP port on which detectors send.
pub const PORT: u16 = 31001;

/// A standard date and time as text: RFC 8949 3.4.1.
const DATE: u64 = 0;
/// Seconds since 1970: RFC 8949 3.4.2.
const EPOCH: u64 = 1;
/// An array of several dimensions in row-major order: RFC 8746 3.1.1.
const ROW_MAJOR: u64 = 40;
/// Compressed bytes in place of a byte string.
const COMPRESSED: u64 = 56500;
const BITSHUFFLE_LZ4: &str = "bslz4";
const LZ4: &str = "lz4";

/// Tags of typed arrays, RFC 8746 2.1. Their bits are 0b010 f s e ll, with f for floats, s for signed, e for
/// little-endian, and the size ll.
const TYPED: std::ops::RangeInclusive<u64> = 64..=87;
const LITTLE_ENDIAN: u64 = 4;

/// Returns the element type of a typed array, and true if the most significant byte comes first.
fn typed(tag: u64) -> Option<(ElementType, bool)> {
    let element = match tag & !LITTLE_ENDIAN {
        64 => ElementType::Uint8,
        65 => ElementType::Uint16,
        66 => ElementType::Uint32,
        67 => ElementType::Uint64,
        72 => ElementType::Int8,
        73 => ElementType::Int16,
        74 => ElementType::Int32,
        75 => ElementType::Int64,
        81 => ElementType::Float32,
        82 => ElementType::Float64,
        _ => return None,
    };
    let big_endian = element.bytes() > 1 && tag & LITTLE_ENDIAN == 0;
    // 76 is reserved. 68 is a clamped byte, which this reads as a byte.
    (tag != 76).then_some((element, big_endian))
}

/// Returns the tag of a typed array in little-endian.
fn tag_of(element: ElementType) -> u64 {
    match element {
        ElementType::Uint8 => 64,
        ElementType::Uint16 => 69,
        ElementType::Uint32 => 70,
        ElementType::Uint64 => 71,
        ElementType::Int8 => 72,
        ElementType::Int16 => 77,
        ElementType::Int32 => 78,
        ElementType::Int64 => 79,
        ElementType::Float32 => 85,
        ElementType::Float64 => 86,
    }
}
