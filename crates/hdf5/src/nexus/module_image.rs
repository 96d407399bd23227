//! The image of a detector whose modules are stored one behind the other, and its groups by NXmx.

use super::{
    FRAMES_PATH, MODULES_PATH,
    chain::{DOWNWARDS, TO_THE_RIGHT, offset, on_corner, translation},
    description::DetectorDescription,
    stated::demanded_number,
};
use crate::{
    rearranged::gap_value,
    tree::{DatasetContent, NumberArray, RearrangedFrames, TreeDataset, TreeGroup, TreeNode},
};

const DETECTOR: &str = "/entry/instrument/detector";
const MODULES: &str = "modules";
const OFFSET: &str = "module_offset";
/// A note for readers of the file.
const PLACES_SAY: &str = "the places of the modules in the image";
const MODULES_SAY: &str = "the modules as the detector sends them: module, row, column";

/// The frames of a file: the detector's own, or its modules and the image that shows them.
pub(super) fn with_frames(group: TreeGroup, detector: &DetectorDescription) -> TreeGroup {
    let frames = TreeDataset::of(DatasetContent::Frames(detector.frames_shape()));
    let shown = |dataset: TreeDataset| {
        TreeNode::Dataset(dataset.attribute("signal", NumberArray::int(1)).attribute("target", FRAMES_PATH))
    };
    let Some(image) = &detector.image else { return group.with("data", shown(frames)) };
    let rearranged = RearrangedFrames {
        source: MODULES_PATH.into(),
        element: detector.element,
        scan: detector.scan.clone(),
        frame: detector.shape.clone(),
        image: image.size.into(),
        parts: image.parts.clone(),
        fill: gap_value(detector.element),
    };
    group
        .with("modules", TreeNode::Dataset(frames.attribute("long_name", MODULES_SAY)))
        .with("data", shown(TreeDataset::of(DatasetContent::Rearranged(rearranged))))
}

/// Dimensions of a frame as readers see it.
pub(super) fn shown_shape(detector: &DetectorDescription) -> Vec<u64> {
    detector.image.as_ref().map_or_else(|| detector.shape.clone(), |image| image.size.into())
}

/// Adds the frames as one module, since gaps between modules are pixels too. The modules of an image stand in a
/// collection: DIALS 3.12 reads no mask of a detector with several modules in a row.
pub(super) fn with_modules(group: TreeGroup, detector: &DetectorDescription) -> TreeGroup {
    let shape = shown_shape(detector);
    let group = group.group("module", module(detector, &vec![0; shape.len()], &shape, None));
    let Some(image) = &detector.image else { return group };
    let modules = TreeGroup::nexus("NXcollection").attribute("description", PLACES_SAY);
    let modules = image.origins.iter().enumerate().fold(modules, |modules, (number, origin)| {
        let name = format!("module_{number}");
        let module = module(detector, origin, &image.module, Some(&name));
        modules.group(&name, module)
    });
    group.group(MODULES, modules)
}

/// A rectangle of pixels of the frames that readers see. A module among others has this name, and states its place by
/// `module_offset`.
fn module(detector: &DetectorDescription, origin: &[u64], size: &[u64], name: Option<&str>) -> TreeGroup {
    let fast = demanded_number(detector.pixel_size.map(|size| size.fast), "m");
    let slow = demanded_number(detector.pixel_size.map(|size| size.slow), "m");
    let own = name.and_then(|name| Some((name, offset(detector, origin)?)));
    let below = match &own {
        Some((name, _)) => format!("{DETECTOR}/{MODULES}/{name}/{OFFSET}"),
        None => on_corner(detector),
    };
    TreeGroup::nexus("NXdetector_module")
        .value("data_origin", places(origin))
        .value("data_size", places(size))
        .stated(OFFSET, own.map(|(_, offset)| offset))
        .stated("fast_pixel_direction", Some(translation(fast, TO_THE_RIGHT, &below)))
        .stated("slow_pixel_direction", Some(translation(slow, DOWNWARDS, &below)))
}

fn places(pixels: &[u64]) -> NumberArray {
    let pixels: Vec<i64> = pixels.iter().map(|pixel| i64::try_from(*pixel).unwrap_or(i64::MAX)).collect();
    NumberArray::ints(&pixels)
}
