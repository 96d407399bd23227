//! A crystallography detector's file by the application definition NXmx (nexusformat/definitions,
//! `applications/NXmx.nxdl.xml`).
//!
//! The position of pixels follows from a chain of translations. Each link names the link that it depends on:
//!
//! ```text
//! fast_pixel_direction, slow_pixel_direction -> corner                      -> distance       -> two_theta -> .
//! from a pixel to the next                      from the beam to the corner    along the beam    the arm      sample
//! ```
//!
//! In the coordinate system of McStas, which NeXus uses, z points along the beam, y up, and x to the left of
//! somebody who looks along the beam. An upright detector, seen from the sample, counts columns to the right and
//! rows downwards: along -x and -y. The chain omits links that were not stated.

use super::{
    FRAMES_PATH,
    chain::{corner, distance, on_distance},
    description::{DetectorDescription, ModuleImage},
    goniometer::{with_arm, with_sample_axes},
    module_image::{shown_shape, with_frames, with_modules},
    recorder::recorder_group,
    stated::{NOT_STATED, NOTHING, demanded_number, demanded_text, user_values},
};
use crate::tree::{NumberArray, NumberType, TreeDataset, TreeGroup, TreeNode, TreeValue};

const PIXEL_MASK: &str = "/entry/instrument/detector/pixel_mask";
/// A note for readers of the file.
const UPRIGHT: &str =
    "the detector is upright and square to the beam: fast_pixel_direction and slow_pixel_direction";
const AXES: &str = "the goniometer's axes have these directions and this order: vector, depends_on";

/// The tree of a detector's file by NXmx: `/entry` with data, instrument, sample and source, and the recorder's
/// notes about each frame. [`DetectorDescription`] explains the treatment of values that were not stated.
pub fn nxmx(detector: &DetectorDescription) -> TreeGroup {
    let estimated = detector.end_estimated.as_ref().unwrap_or(&detector.start_time);
    let sample = TreeGroup::nexus("NXsample").stated("name", Some(demanded_text(detector.sample.as_ref())));
    let sample = with_sample_axes(sample, detector);
    let source = TreeGroup::nexus("NXsource").stated("name", Some(demanded_text(detector.source.as_ref())));
    let entry = entry(detector)
        .value("definition", "NXmx")
        .value("end_time_estimated", estimated.as_str())
        .group("instrument", instrument(detector))
        .group("data", data_group(detector))
        .group("sample", sample)
        .group("source", source);
    root(with_user_values(entry, detector))
}

/// The root of every tree.
pub(super) fn root(entry: TreeGroup) -> TreeGroup {
    TreeGroup::nexus("NXroot")
        .attribute("default", "entry")
        .attribute("creator", "nilometer")
        .attribute("creator_version", env!("CARGO_PKG_VERSION"))
        .group("entry", entry)
}

/// An entry with its title and start time.
pub(super) fn entry(detector: &DetectorDescription) -> TreeGroup {
    TreeGroup::nexus("NXentry")
        .attribute("default", "data")
        .stated_text("title", detector.title.as_ref())
        .value("start_time", detector.start_time.as_str())
}

/// Adds the user's own values, if there are any.
pub(super) fn with_user_values(entry: TreeGroup, detector: &DetectorDescription) -> TreeGroup {
    match user_values(&detector.metadata) {
        Some(values) => entry.group("metadata", values),
        None => entry,
    }
}

/// The group that plots the frames: with the current attributes of the group, and the older ones of the field.
pub(super) fn data_group(detector: &DetectorDescription) -> TreeGroup {
    let rank = 1 + detector.scan.len() + shown_shape(detector).len();
    let group = TreeGroup::nexus("NXdata")
        .attribute("signal", "data")
        .attribute("axes", TreeValue::Texts(vec![NOTHING.into(); rank]));
    with_frames(group, detector)
}

/// The fields of any kind of detector: its frames, times and counting range.
pub(super) fn detector_group(detector: &DetectorDescription) -> TreeGroup {
    let uint = |number: u64| TreeDataset::value(NumberArray::uint(number));
    let group = TreeGroup::nexus("NXdetector")
        .with("data", TreeNode::SoftLink(FRAMES_PATH.into()))
        .value("local_name", detector.name.as_str())
        .stated_text("description", detector.description.as_ref())
        .stated_text("serial_number", detector.serial_number.as_ref())
        .stated_number("threshold_energy", detector.threshold_energy, "eV")
        .stated_number("count_time", detector.count_time, "s")
        .stated_number("frame_time", detector.frame_time, "s")
        .stated("bit_depth_readout", detector.bit_depth.map(|bits| uint(bits.into())))
        .stated("saturation_value", detector.saturation.map(uint))
        .stated_number("distance", detector.distance, "m")
        .stated_number("beam_center_x", detector.beam_center.map(|center| center.x), "pixel")
        .stated_number("beam_center_y", detector.beam_center.map(|center| center.y), "pixel")
        .stated_number("x_pixel_size", detector.pixel_size.map(|size| size.fast), "m")
        .stated_number("y_pixel_size", detector.pixel_size.map(|size| size.slow), "m")
        .stated("flatfield", flatfield(detector))
        .stated("pixel_mask", pixel_mask(detector));
    let corrections = detector.corrections.iter();
    corrections.fold(group, |group, (correction, applied)| group.value(correction.field(), *applied))
}

/// The flat field, or `None` if its size does not match the detector's frames.
fn flatfield(detector: &DetectorDescription) -> Option<TreeDataset> {
    let bytes = detector.flatfield.as_ref()?.iter().flat_map(|factor| factor.to_le_bytes()).collect();
    let field = NumberArray { element: NumberType::Float32, shape: shown_shape(detector), bytes };
    field.is_whole().then(|| TreeDataset::value(field))
}

/// The mask, or `None` if its size does not match the detector's frames.
fn pixel_mask(detector: &DetectorDescription) -> Option<TreeDataset> {
    let gaps = detector.image.as_ref().map(ModuleImage::mask);
    let faults = detector.pixel_mask.as_ref().or(gaps.as_ref())?;
    let bytes = faults.iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let mask = NumberArray { element: NumberType::Uint32, shape: shown_shape(detector), bytes };
    mask.is_whole().then(|| TreeDataset::value(mask))
}

fn instrument(detector: &DetectorDescription) -> TreeGroup {
    let beam = TreeGroup::nexus("NXbeam")
        .stated("incident_wavelength", Some(demanded_number(detector.wavelength, "angstrom")));
    TreeGroup::nexus("NXinstrument")
        .stated("name", Some(demanded_text(detector.instrument.as_ref())))
        .group("beam", beam)
        .group("detector", mx_detector(detector))
        .group("nilometer", recorder_group(detector.frames, not_stated(detector), assumed(detector)))
}

/// The assumptions in a file: values of the detector's description, and those that NXmx demands.
fn assumed(detector: &DetectorDescription) -> Vec<String> {
    let mut assumed = vec![UPRIGHT.to_owned()];
    if !detector.rotations.is_empty() {
        assumed.push(AXES.to_owned());
    }
    assumed.extend(detector.assumed.iter().cloned());
    assumed
}

fn mx_detector(detector: &DetectorDescription) -> TreeGroup {
    let group = detector_group(detector)
        .stated("sensor_material", Some(demanded_text(detector.sensor_material.as_ref())))
        .stated("sensor_thickness", Some(demanded_number(detector.sensor_thickness, "m")))
        .value("depends_on", on_distance(detector).as_str());
    let group = with_modules(group, detector);
    let transformations = TreeGroup::nexus("NXtransformations")
        .stated("distance", distance(detector))
        .stated("corner", corner(detector));
    let transformations = with_arm(transformations, detector);
    let group = group.stated_group("detectorSpecific", specific(detector));
    group.stated_group("transformations", transformations)
}

/// The number of images and the mask, at their places in the files of DECTRIS. neggia, the plug-in of DECTRIS for XDS,
/// looks nowhere else (`src/dectris/neggia/plugin/H5ToXds.cpp`).
fn specific(detector: &DetectorDescription) -> TreeGroup {
    let mut group = TreeGroup::nexus("NXcollection");
    if let Some(images) = detector.images() {
        group = group.value("nimages", NumberArray::uint(images)).value("ntrigger", NumberArray::uint(1));
    }
    if pixel_mask(detector).is_some() {
        group = group.with("pixel_mask", TreeNode::HardLink(PIXEL_MASK.into()));
    }
    group
}

/// The paths of values that NXmx demands but nobody stated.
fn not_stated(detector: &DetectorDescription) -> Vec<String> {
    let demanded = [
        ("/entry/start_time", detector.start_time != NOT_STATED),
        ("/entry/end_time_estimated", detector.end_estimated.is_some()),
        ("/entry/sample/name", detector.sample.is_some()),
        ("/entry/source/name", detector.source.is_some()),
        ("/entry/instrument/name", detector.instrument.is_some()),
        ("/entry/instrument/beam/incident_wavelength", detector.wavelength.is_some()),
        ("/entry/instrument/detector/sensor_material", detector.sensor_material.is_some()),
        ("/entry/instrument/detector/sensor_thickness", detector.sensor_thickness.is_some()),
        ("/entry/instrument/detector/module/fast_pixel_direction", detector.pixel_size.is_some()),
        ("/entry/instrument/detector/module/slow_pixel_direction", detector.pixel_size.is_some()),
    ];
    demanded.into_iter().filter(|(_, stated)| !stated).map(|(path, _)| path.into()).collect()
}
