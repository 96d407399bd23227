//! Frames that readers see in another arrangement than the stored one: modules of a detector as one image.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::number_array::NumberType;

/// A dataset that shows the frames of another dataset of the same file, with their parts in other places. It has no
/// pixels of its own, and always as many frames as the other (a virtual dataset of HDF5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RearrangedFrames {
    /// The path of the other dataset.
    pub source: String,
    /// The type of pixels.
    pub element: NumberType,
    /// Dimensions of the scan except the first, as in [`crate::tree::FramesShape::scan`].
    pub scan: Vec<u64>,
    /// Dimensions of a frame of the other dataset, the slowest first.
    pub frame: Vec<u64>,
    /// Dimensions of a frame of this dataset, the slowest first.
    pub image: Vec<u64>,
    /// The parts of a frame.
    pub parts: Vec<MovedPart>,
    /// The value of pixels without a part, little-endian.
    pub fill: Vec<u8>,
}

/// A part of a frame, with as many pixels in both places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedPart {
    /// Its ranges in a frame of the other dataset, one for each dimension.
    pub from: Vec<Range<u64>>,
    /// Its ranges in the image, one for each dimension.
    pub to: Vec<Range<u64>>,
}

/// The value of a pixel in a gap: the highest of an unsigned type, -1 of a signed one, else not a number.
pub(crate) fn gap_value(element: NumberType) -> Vec<u8> {
    match element {
        NumberType::Float32 => f32::NAN.to_le_bytes().into(),
        NumberType::Float64 => f64::NAN.to_le_bytes().into(),
        _ => vec![u8::MAX; element.bytes()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_has_a_value_that_no_count_has() {
        assert_eq!(gap_value(NumberType::Uint16), u16::MAX.to_le_bytes());
        assert_eq!(gap_value(NumberType::Int32), (-1_i32).to_le_bytes());
        let float: [u8; 4] = gap_value(NumberType::Float32)[..].try_into().expect("four bytes");
        assert!(f32::from_le_bytes(float).is_nan());
    }
}
