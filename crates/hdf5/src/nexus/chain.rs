//! The chain of translations from the sample to a pixel, by NXmx. Each link names the link that it depends on.

use super::{
    axis_rotation::GoniometerAxis,
    description::{DetectorDescription, PixelSize},
    goniometer::arm,
    stated::{NOTHING, measured},
};
use crate::tree::{NumberArray, TreeDataset};

const DISTANCE: &str = "/entry/instrument/detector/transformations/distance";
const CORNER: &str = "/entry/instrument/detector/transformations/corner";
/// The way from a pixel to the next of its row, seen from the sample.
pub(super) const TO_THE_RIGHT: [f64; 3] = [-1.0, 0.0, 0.0];
/// The way from a row to the next.
pub(super) const DOWNWARDS: [f64; 3] = [0.0, -1.0, 0.0];
const WITH_THE_BEAM: [f64; 3] = [0.0, 0.0, 1.0];

/// The link that the distance depends on.
fn on_arm(detector: &DetectorDescription) -> String {
    arm(detector).map_or_else(|| NOTHING.into(), |_| GoniometerAxis::TwoTheta.path())
}

/// The link that the corner depends on.
pub(super) fn on_distance(detector: &DetectorDescription) -> String {
    if detector.distance.is_some() { DISTANCE.into() } else { on_arm(detector) }
}

/// The link that modules depend on.
pub(super) fn on_corner(detector: &DetectorDescription) -> String {
    if corner(detector).is_some() { CORNER.into() } else { on_distance(detector) }
}

/// The translation along the beam, or `None` if nobody stated the distance.
pub(super) fn distance(detector: &DetectorDescription) -> Option<TreeDataset> {
    let distance = detector.distance?;
    Some(translation(measured(distance, "m"), WITH_THE_BEAM, &on_arm(detector)))
}

/// The translation from the beam to the corner of the first pixel. It is not called `module_offset`: names ending
/// in `_offset` mean the offset of a field, and validators would look for that field.
pub(super) fn corner(detector: &DetectorDescription) -> Option<TreeDataset> {
    let PixelSize { fast, slow } = detector.pixel_size?;
    let center = detector.beam_center?;
    Some(shift([center.x * fast, center.y * slow], &on_distance(detector)))
}

/// The translation from the corner of the first pixel to that of the pixel at this row and column.
pub(super) fn offset(detector: &DetectorDescription, origin: &[u64]) -> Option<TreeDataset> {
    let PixelSize { fast, slow } = detector.pixel_size?;
    let &[row, column] = origin else { return None };
    let right = column as f64 * fast * TO_THE_RIGHT[0];
    let down = row as f64 * slow * DOWNWARDS[1];
    Some(shift([right, down], &on_corner(detector)))
}

/// A translation in the plane of the detector, by x and y in metres.
fn shift(by: [f64; 2], below: &str) -> TreeDataset {
    let [x, y] = by;
    let length = x.hypot(y);
    let vector = if length > 0.0 { [x / length, y / length, 0.0] } else { [1.0, 0.0, 0.0] };
    translation(measured(length, "m"), vector, below)
}

/// A link of the chain.
pub(super) fn translation(length: TreeDataset, vector: [f64; 3], below: &str) -> TreeDataset {
    length
        .attribute("transformation_type", "translation")
        .attribute("vector", NumberArray::floats(&vector))
        .attribute("offset", NumberArray::floats(&[0.0; 3]))
        .attribute("offset_units", "m")
        .attribute("depends_on", below)
}
