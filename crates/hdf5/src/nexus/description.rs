//! The description of a detector and of a recording with it.

use super::{axis_rotation::AxisRotation, correction::FrameCorrection};
use crate::tree::{FrameFilter, FramesShape, MovedPart, NumberType, TreeValue};

/// A detector and a recording with it, as far as the user states it. The file omits values that are not stated.
/// If NXmx demands one, the file contains `not stated` or not a number (NaN). The dataset `not_stated` in
/// [`super::RECORDER_PATH`] lists these.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectorDescription {
    /// The detector's name: `eiger2-16m`.
    pub name: String,
    /// When the recording starts: RFC 3339 in UTC, `2026-06-30T23:59:59Z`.
    pub start_time: String,
    /// The type of pixels.
    pub element: NumberType,
    /// Dimensions of a frame in pixels, the slowest first.
    pub shape: Vec<u64>,
    /// Dimensions of the scan except the first, as in [`FramesShape::scan`].
    pub scan: Vec<u64>,
    /// The maximum of the first dimension, as in [`FramesShape::first_max`].
    pub first_max: Option<u64>,
    /// Dimensions of a chunk within a frame, as in [`FramesShape::chunk`]; empty if a chunk is a frame.
    pub chunk: Vec<u64>,
    /// True for samples of 12 bits, as in [`FramesShape::packed_12`].
    pub packed_12: bool,
    /// The compression of frames; `None` if they are not compressed.
    pub filter: Option<FrameFilter>,
    /// The pixel value of missing frames, little-endian; `None` means 0.
    pub fill: Option<Vec<u8>>,
    /// The expected time of the last frame, in the same form as the start.
    pub end_estimated: Option<String>,
    /// The expected number of frames, those of all channels.
    pub frames: Option<u64>,
    /// Frames of an image: 1, or more if the detector sends several channels.
    pub channels: u64,
    /// The subject of the recording, in a line.
    pub title: Option<String>,
    /// The detector, in a line: maker, model, serial number.
    pub description: Option<String>,
    /// The detector's serial number.
    pub serial_number: Option<String>,
    /// The energy above which the detector counts a photon, in electronvolt. `None` too if it has several thresholds.
    pub threshold_energy: Option<f64>,
    /// The beamline or instrument.
    pub instrument: Option<String>,
    /// The facility or source.
    pub source: Option<String>,
    /// The sample.
    pub sample: Option<String>,
    /// The material of the sensor: `Si`.
    pub sensor_material: Option<String>,
    /// Thickness of the sensor, in metres.
    pub sensor_thickness: Option<f64>,
    /// The size of a pixel.
    pub pixel_size: Option<PixelSize>,
    /// From the start of a frame to that of the next, in seconds.
    pub frame_time: Option<f64>,
    /// Exposure time of a frame, in seconds.
    pub count_time: Option<f64>,
    /// Wavelength of the beam, in ångström.
    pub wavelength: Option<f64>,
    /// From the sample to the detector, in metres.
    pub distance: Option<f64>,
    /// The point where the beam would hit the detector.
    pub beam_center: Option<BeamCenter>,
    /// The axes that turn the sample or the detector.
    pub rotations: Vec<AxisRotation>,
    /// Bits that the detector reads out per pixel; may be fewer than in the type of pixels.
    pub bit_depth: Option<u32>,
    /// The largest valid pixel value.
    pub saturation: Option<u64>,
    /// Corrections, each with whether the detector applied it to its frames.
    pub corrections: Vec<(FrameCorrection, bool)>,
    /// The factor of each pixel by which the detector corrects its sensitivity.
    pub flatfield: Option<Vec<f32>>,
    /// The faults of each pixel of a frame, as bits: 0 a gap, 1 dead, 2 under- and 3 over-responding, 4 noisy.
    pub pixel_mask: Option<Vec<u32>>,
    /// The image that the modules make up, if a frame is its modules one behind the other. Values of pixels,
    /// such as the mask and the beam centre, are those of the image.
    pub image: Option<ModuleImage>,
    /// Values that nobody stated and that the recorder assumed, a line each.
    pub assumed: Vec<String>,
    /// The user's own values, by name, in `/entry/metadata`; a slash in a name makes groups.
    pub metadata: Vec<(String, TreeValue)>,
}

/// The size of a pixel, in metres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelSize {
    /// Along the fastest dimension.
    pub fast: f64,
    /// Along the dimension before it.
    pub slow: f64,
}

/// The point where the beam would hit the detector, in pixels from the outer corner of the first pixel. It may
/// lie outside the detector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BeamCenter {
    /// Along the fastest dimension.
    pub x: f64,
    /// Along the dimension before it.
    pub y: f64,
}

/// The image that the modules of a detector make up together. Frames have the dimensions modules, rows, columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleImage {
    /// Rows and columns of the image.
    pub size: [u64; 2],
    /// Row and column of each module's first pixel.
    pub origins: Vec<[u64; 2]>,
    /// Rows and columns of a module in the image, with the gaps between its chips.
    pub module: [u64; 2],
    /// The pieces without gaps, each with its ranges in a frame and in the image.
    pub parts: Vec<MovedPart>,
}

/// The fault of pixels that do not exist, in a mask of NXmx.
const GAP: u32 = 1;
impl ModuleImage {
    /// The faults of all pixels: 0 for those of a module, 1 for gaps.
    pub(super) fn mask(&self) -> Vec<u32> {
        let [rows, columns] = self.size;
        let mut mask = vec![GAP; (rows * columns) as usize];
        for part in &self.parts {
            let [of_rows, _] = &part.to[..] else { continue };
            for row in of_rows.clone() {
                let line = row * columns;
                for piece in part.columns() {
                    mask[(line + piece.start) as usize..(line + piece.end) as usize].fill(0);
                }
            }
        }
        mask
    }
}

impl DetectorDescription {
    /// Creates a description with only the required values: the detector's name, the start (RFC 3339 in UTC), the
    /// type of pixels, and the dimensions of a frame, the slowest first.
    pub fn new(name: &str, start_time: &str, element: NumberType, shape: &[u64]) -> Self {
        DetectorDescription {
            name: name.into(),
            start_time: start_time.into(),
            element,
            shape: shape.into(),
            scan: Vec::new(),
            first_max: None,
            chunk: Vec::new(),
            packed_12: false,
            filter: None,
            fill: None,
            end_estimated: None,
            frames: None,
            channels: 1,
            title: None,
            description: None,
            serial_number: None,
            threshold_energy: None,
            instrument: None,
            source: None,
            sample: None,
            sensor_material: None,
            sensor_thickness: None,
            pixel_size: None,
            frame_time: None,
            count_time: None,
            wavelength: None,
            distance: None,
            beam_center: None,
            rotations: Vec::new(),
            bit_depth: None,
            saturation: None,
            corrections: Vec::new(),
            flatfield: None,
            pixel_mask: None,
            image: None,
            assumed: Vec::new(),
            metadata: Vec::new(),
        }
    }

    /// The expected number of images, each of all channels. A scan of fixed size has that many.
    pub fn images(&self) -> Option<u64> {
        let line = self.scan.iter().fold(1, |line: u64, side| line.saturating_mul(*side));
        let scanned = self.first_max.map(|lines| lines.saturating_mul(line));
        self.frames.or(scanned).map(|frames| frames / self.channels.max(1))
    }

    /// The dataset of the frames.
    pub fn frames_shape(&self) -> FramesShape {
        FramesShape {
            element: self.element,
            frame: self.shape.clone(),
            scan: self.scan.clone(),
            first_max: self.first_max,
            chunk: self.chunk.clone(),
            stack: 1,
            packed_12: self.packed_12,
            filter: self.filter.clone(),
            fill: self.fill.clone(),
        }
    }
}
