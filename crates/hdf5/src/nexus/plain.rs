//! The file of an instrument without an application definition: a tomography camera, a time projection chamber,
//! frames of any number of dimensions.

use super::{
    description::DetectorDescription,
    mx::{data_group, detector_group, entry, root, with_user_values},
    recorder::recorder_group,
};
use crate::tree::TreeGroup;

/// The tree of a file with frames of any dimensions: NXentry, NXdata, NXinstrument with NXdetector, and the
/// recorder's notes about each frame. It contains only values that were stated.
pub fn nexus_plain(detector: &DetectorDescription) -> TreeGroup {
    let instrument = TreeGroup::nexus("NXinstrument")
        .stated_text("name", detector.instrument.as_ref())
        .group("detector", with_sensor(detector_group(detector), detector))
        .group("nilometer", recorder_group(detector.frames, Vec::new(), detector.assumed.clone()));
    let mut entry = entry(detector)
        .stated_text("end_time_estimated", detector.end_estimated.as_ref())
        .group("instrument", instrument);
    entry = entry.group("data", data_group(detector));
    for (group, class, name) in
        [("sample", "NXsample", &detector.sample), ("source", "NXsource", &detector.source)]
    {
        if name.is_some() {
            entry = entry.group(group, TreeGroup::nexus(class).stated_text("name", name.as_ref()));
        }
    }
    root(with_user_values(entry, detector))
}

fn with_sensor(group: TreeGroup, detector: &DetectorDescription) -> TreeGroup {
    group.stated_text("sensor_material", detector.sensor_material.as_ref()).stated_number(
        "sensor_thickness",
        detector.sensor_thickness,
        "m",
    )
}
