//! Pixel types as number types of HDF5 files.

use nilometer_hdf5::tree::NumberType;
use nilometer_model::PixelType;

/// Returns the HDF5 number type of a pixel type. `None` if a pixel is no whole number of bytes. This is the
/// only such table.
pub fn number_type(pixel: PixelType) -> Option<NumberType> {
    match pixel {
        PixelType::Uint8 => Some(NumberType::Uint8),
        PixelType::Int8 => Some(NumberType::Int8),
        PixelType::Uint16 => Some(NumberType::Uint16),
        PixelType::Int16 => Some(NumberType::Int16),
        PixelType::Int32 => Some(NumberType::Int32),
        PixelType::Uint32 => Some(NumberType::Uint32),
        PixelType::Int64 => Some(NumberType::Int64),
        PixelType::Uint64 => Some(NumberType::Uint64),
        PixelType::Float32 => Some(NumberType::Float32),
        PixelType::Float64 => Some(NumberType::Float64),
        PixelType::Uint2 | PixelType::Uint12 => None,
    }
}
