//! The type of a pixel.

use serde::{Deserialize, Serialize};

/// The type of a pixel in memory and in raw files: little-endian, and without gaps if it is not whole bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PixelType {
    /// Unsigned 2 bit: samples of a radio telescope.
    Uint2,
    /// Unsigned 8 bit.
    Uint8,
    /// Signed 8 bit.
    Int8,
    /// Unsigned 12 bit.
    Uint12,
    /// Unsigned 16 bit.
    Uint16,
    /// Signed 16 bit.
    Int16,
    /// Signed 32 bit.
    Int32,
    /// Unsigned 32 bit.
    Uint32,
    /// Signed 64 bit.
    Int64,
    /// Unsigned 64 bit.
    Uint64,
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
}

impl PixelType {
    /// Bits of a pixel.
    pub const fn bits(self) -> u64 {
        match self {
            PixelType::Uint2 => 2,
            PixelType::Uint8 | PixelType::Int8 => 8,
            PixelType::Uint12 => 12,
            PixelType::Uint16 | PixelType::Int16 => 16,
            PixelType::Int32 | PixelType::Uint32 | PixelType::Float32 => 32,
            PixelType::Int64 | PixelType::Uint64 | PixelType::Float64 => 64,
        }
    }

    /// Its word in instruments.
    pub const fn name(self) -> &'static str {
        match self {
            PixelType::Uint2 => "uint2",
            PixelType::Uint8 => "uint8",
            PixelType::Int8 => "int8",
            PixelType::Uint12 => "uint12",
            PixelType::Uint16 => "uint16",
            PixelType::Int16 => "int16",
            PixelType::Int32 => "int32",
            PixelType::Uint32 => "uint32",
            PixelType::Int64 => "int64",
            PixelType::Uint64 => "uint64",
            PixelType::Float32 => "float32",
            PixelType::Float64 => "float64",
        }
    }

    /// Bytes of a pixel, if it is whole bytes as HDF5 types are.
    pub const fn whole_bytes(self) -> Option<u64> {
        match self.bits() {
            bits @ (8 | 16 | 32 | 64) => Some(bits / 8),
            _ => None,
        }
    }
}
