//! What is known of a detector and of a recording with it.

use crate::tree::{FrameFilter, FramesShape, NumberType, TreeValue};

/// A detector and a recording with it, as far as it is known. What is not stated is not in the file; where NXmx demands it,
/// the file says `not stated` or has not a number (NaN), and the dataset `not_stated` in [`super::RECORDER_PATH`] lists it.
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
    /// Dimensions of a scan that frames stand in, but for the first: see [`FramesShape::scan`].
    pub scan: Vec<u64>,
    /// How large the first dimension may become: see [`FramesShape::first_max`].
    pub first_max: Option<u64>,
    /// Dimensions of a chunk within a frame, if not a frame: see [`FramesShape::chunk`].
    pub chunk: Vec<u64>,
    /// How frames are compressed, if they are.
    pub filter: Option<FrameFilter>,
    /// The pixel of frames that are not there, little-endian; 0 if none.
    pub fill: Option<Vec<u8>>,
    /// When the last frame is expected, like the start.
    pub end_estimated: Option<String>,
    /// How many frames are expected.
    pub frames: Option<u64>,
    /// What is recorded, in a line.
    pub title: Option<String>,
    /// The detector, in a line: maker, model, serial number.
    pub description: Option<String>,
    /// The beamline or instrument.
    pub instrument: Option<String>,
    /// The facility or source.
    pub source: Option<String>,
    /// The sample.
    pub sample: Option<String>,
    /// What the sensor is made of: `Si`.
    pub sensor_material: Option<String>,
    /// Of the sensor, in metres.
    pub sensor_thickness: Option<f64>,
    /// Of a pixel.
    pub pixel_size: Option<PixelSize>,
    /// From the start of a frame to that of the next, in seconds.
    pub frame_time: Option<f64>,
    /// For how long a frame counts, in seconds.
    pub count_time: Option<f64>,
    /// Of the beam, in ångström.
    pub wavelength: Option<f64>,
    /// From the sample to the detector, in metres.
    pub distance: Option<f64>,
    /// Where the beam would hit the detector.
    pub beam_center: Option<BeamCenter>,
    /// Bits that the detector reads out a pixel; they may be fewer than the type of pixels has.
    pub bit_depth: Option<u32>,
    /// Pixels above it are not valid.
    pub saturation: Option<u64>,
    /// For each pixel of a frame what is wrong with it, in bits: 0 a gap, 1 dead, 2 under- and 3 over-responding, 4 noisy.
    pub pixel_mask: Option<Vec<u32>>,
    /// The user's own, by name, in `/entry/metadata`; a slash in a name makes groups.
    pub metadata: Vec<(String, TreeValue)>,
}

/// Of a pixel, in metres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelSize {
    /// Along the fastest dimension.
    pub fast: f64,
    /// Along the dimension before it.
    pub slow: f64,
}

/// Where the beam would hit the detector, in pixels from the outer corner of the first pixel. It may be beside the detector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BeamCenter {
    /// Along the fastest dimension.
    pub x: f64,
    /// Along the dimension before it.
    pub y: f64,
}

impl DetectorDescription {
    /// With nothing stated but what has to be: the detector's name, the start (RFC 3339 in UTC), the type of pixels, and the
    /// dimensions of a frame, the slowest first.
    pub fn new(name: &str, start_time: &str, element: NumberType, shape: &[u64]) -> Self {
        DetectorDescription {
            name: name.into(),
            start_time: start_time.into(),
            element,
            shape: shape.into(),
            scan: Vec::new(),
            first_max: None,
            chunk: Vec::new(),
            filter: None,
            fill: None,
            end_estimated: None,
            frames: None,
            title: None,
            description: None,
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
            bit_depth: None,
            saturation: None,
            pixel_mask: None,
            metadata: Vec::new(),
        }
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
            filter: self.filter.clone(),
            fill: self.fill.clone(),
        }
    }
}
