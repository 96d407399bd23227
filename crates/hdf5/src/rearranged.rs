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
    /// Its ranges in the image, one for each dimension. If its rows are turned, the last one is that of the first
    /// piece.
    pub to: Vec<Range<u64>>,
    /// The order of its rows. `None` means that it is the same in both places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turned: Option<TurnedRows>,
}

/// The rows of a part that is upside down: the first row in the frame is the last one in the image. A row may have gaps
/// in the image, in equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnedRows {
    /// Number of pieces of a row in the image.
    pub pieces: u64,
    /// Pixels from the beginning of each piece to that of the next.
    pub step: u64,
}

impl MovedPart {
    /// A part that stays upright.
    pub fn upright(from: Vec<Range<u64>>, to: Vec<Range<u64>>) -> Self {
        MovedPart { from, to, turned: None }
    }

    /// Number of pieces of a row in the image, and pixels from the beginning of each to that of the next.
    pub(crate) fn pieces(&self) -> [u64; 2] {
        self.turned.map_or([1, 0], |TurnedRows { pieces, step }| [pieces, step])
    }

    /// The ranges of all pieces along the last dimension of the image.
    pub(crate) fn columns(&self) -> impl Iterator<Item = Range<u64>> {
        let first = self.to.last().cloned().unwrap_or_default();
        let [pieces, step] = self.pieces();
        (0..pieces).map(move |piece| first.start + piece * step..first.end + piece * step)
    }

    /// The places of this part as ranges of the frame and of the image: for each row, if its rows are turned. HDF5
    /// takes positions of a selection in ascending order only.
    pub(crate) fn ascending(&self) -> Vec<[Vec<Range<u64>>; 2]> {
        let row_of = |ranges: &[Range<u64>]| ranges.len().checked_sub(2);
        let rows = row_of(&self.from).zip(row_of(&self.to)).filter(|_| self.turned.is_some());
        let Some((taken, shown)) = rows else { return vec![[self.from.clone(), self.to.clone()]] };
        let rows = self.from[taken].clone().zip(self.to[shown].clone().rev());
        rows.map(|(row, place)| [with_row(&self.from, taken, row), with_row(&self.to, shown, place)])
            .collect()
    }
}

/// The same ranges, of which one is a single row.
fn with_row(ranges: &[Range<u64>], dimension: usize, row: u64) -> Vec<Range<u64>> {
    let mut ranges = ranges.to_vec();
    ranges[dimension] = row..row + 1;
    ranges
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
    fn a_part_that_is_upside_down_has_places_for_each_row() {
        let turned = Some(TurnedRows { pieces: 2, step: 6 });
        let part = MovedPart { turned, ..MovedPart::upright(vec![4..5, 0..3, 0..8], vec![10..13, 20..24]) };
        let places: Vec<_> =
            part.ascending().into_iter().map(|[from, to]| (from[1].clone(), to[0].clone())).collect();
        assert_eq!(places, [(0..1, 12..13), (1..2, 11..12), (2..3, 10..11)]);
        assert_eq!(part.columns().collect::<Vec<_>>(), [20..24, 26..30]);
        let upright = MovedPart::upright(vec![0..2, 0..8], vec![5..7, 0..8]);
        assert_eq!(upright.ascending(), [[vec![0..2, 0..8], vec![5..7, 0..8]]]);
    }

    #[test]
    fn a_gap_has_a_value_that_no_count_has() {
        assert_eq!(gap_value(NumberType::Uint16), u16::MAX.to_le_bytes());
        assert_eq!(gap_value(NumberType::Int32), (-1_i32).to_le_bytes());
        let float: [u8; 4] = gap_value(NumberType::Float32)[..].try_into().expect("four bytes");
        assert!(f32::from_le_bytes(float).is_nan());
    }
}
