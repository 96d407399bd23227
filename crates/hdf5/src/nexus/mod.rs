//! Describes the frames of a detector's file in the terms of NeXus: from a description to a tree, before the
//! first frame.
//!
//! - [`nxmx`]: by the application definition NXmx, which programs of crystallography read;
//! - [`nexus_plain`]: NXentry, NXdata and NXdetector, for cameras and whatever has no sensor of silicon;
//! - [`closing`]: the values written after the last frame, the end and the totals.
//!
//! The definitions are those of <https://manual.nexusformat.org> (NXDL 2024.02 and later).

mod axis_rotation;
mod chain;
mod correction;
mod description;
mod goniometer;
mod module_image;
mod mx;
mod plain;
mod recorder;
mod stated;

#[cfg(test)]
mod tests;

pub use axis_rotation::{AxisRotation, GoniometerAxis};
pub use correction::FrameCorrection;
pub use description::{BeamCenter, DetectorDescription, ModuleImage, PixelSize};
pub use goniometer::AngleColumn;
pub use mx::nxmx;
pub use plain::nexus_plain;
pub use recorder::{RecorderColumn, RecordingTotals, closing, ending};
pub use stated::NOT_STATED;

/// Path of the frames. The detector has a soft link to them: definitions allow their older `@signal` attribute in
/// NXdata alone, and a hard link would show it at the detector too.
pub const FRAMES_PATH: &str = "/entry/data/data";
/// Path of the frames of a detector whose modules make up an image, which is then at [`FRAMES_PATH`].
pub const MODULES_PATH: &str = "/entry/data/modules";
/// Path of the recorder's notes about each frame.
pub const RECORDER_PATH: &str = "/entry/instrument/nilometer";
