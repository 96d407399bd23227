//! The axes that turn the sample and the detector, as NXmx has them: `NXtransformations` with an angle for each frame.
//!
//! The names, units and fields of an axis are those of NXmx (`AXISNAME`, `AXISNAME_end`, `AXISNAME_increment_set`), as
//! in the files of DECTRIS' own writer (`FileWriter V2`, <https://dectris.github.io/documentation/>). The sample lies
//! on the innermost axis, and each axis on the next:
//!
//! ```text
//! sample -> phi -> chi -> kappa -> omega -> .          detector -> distance -> two_theta -> .
//! ```

use super::{
    axis_rotation::{AxisRotation, GoniometerAxis},
    description::DetectorDescription,
    stated::measured,
};
use crate::tree::{
    ColumnElement, DatasetContent, FrameColumn, NumberArray, TreeDataset, TreeGroup, WriteTime,
};

/// The angle of an axis in each frame, as a column: it follows from the frame's number alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AngleColumn {
    rotation: AxisRotation,
    /// True for the angles at the end of frames.
    is_end: bool,
}

/// The beginning of the key of such a column. The key has all numbers, so that a file can be made again from its tree.
const KEY: &str = "rotation";

impl AngleColumn {
    /// The [`FrameColumn::key`]: `rotation:omega:90:0.1`, or with `_end` behind the name.
    pub fn key(&self) -> String {
        let AxisRotation { axis, start, increment } = self.rotation;
        let end = if self.is_end { "_end" } else { "" };
        format!("{KEY}:{}{end}:{start}:{increment}", axis.name())
    }

    /// The column with this key. `None` if the key is that of no angle.
    pub fn of_key(key: &str) -> Option<Self> {
        let mut parts = key.split(':');
        if parts.next()? != KEY {
            return None;
        }
        let named = parts.next()?;
        let name = named.strip_suffix("_end").unwrap_or(named);
        let axis = GoniometerAxis::ALL.into_iter().find(|axis| axis.name() == name)?;
        let start = parts.next()?.parse().ok()?;
        let increment = parts.next()?.parse().ok()?;
        let rotation = AxisRotation { axis, start, increment };
        Some(AngleColumn { rotation, is_end: name != named })
    }

    /// The angle in a frame with this number, in degrees.
    pub fn angle(&self, frame: u64) -> f64 {
        let steps = frame as f64 + if self.is_end { 1.0 } else { 0.0 };
        self.rotation.start + steps * self.rotation.increment
    }

    /// The angles in the first frames. `None` if they would take too much memory.
    pub fn angles(&self, frames: u64) -> Option<NumberArray> {
        let angles = || (0..frames).map(|frame| self.angle(frame)).collect::<Vec<_>>();
        (frames <= ANGLES_MAX).then(|| NumberArray::floats(&angles()))
    }

    /// Returns true if the angle differs between frames. If it does not, it is the column's fill value, and nothing is
    /// written for a frame.
    pub fn differs(&self) -> bool {
        self.rotation.increment != 0.0
    }

    fn column(&self) -> FrameColumn {
        let fill = if self.differs() { f64::NAN } else { self.angle(0) };
        FrameColumn { key: self.key(), element: ColumnElement::FLOAT, fill: fill.to_le_bytes().to_vec() }
    }
}

/// Angles of an axis that are written at once, at the most: 8 MiB.
const ANGLES_MAX: u64 = 1 << 20;

const DEGREE: &str = "degree";

impl AxisRotation {
    /// The angle of each image, as a column: each file has the angles of its own frames. Images of several channels
    /// have one angle for all of them, and a column would have one for each.
    fn content(&self, is_end: bool, detector: &DetectorDescription) -> DatasetContent {
        let column = AngleColumn { rotation: *self, is_end };
        if detector.channels == 1 {
            return DatasetContent::Column(column.column());
        }
        let images = detector.images().and_then(|images| column.angles(images));
        let angles = images.unwrap_or_else(|| NumberArray::floats(&[column.angle(0)]));
        DatasetContent::Value(angles.into(), WriteTime::Opening)
    }

    /// Puts the axis into its group. It depends on the axis at the path `below`.
    fn put(&self, group: TreeGroup, below: &str, detector: &DetectorDescription) -> TreeGroup {
        let name = self.axis.name();
        let angles = TreeDataset::of(self.content(false, detector))
            .attribute("units", DEGREE)
            .attribute("transformation_type", "rotation")
            .attribute("vector", NumberArray::floats(&self.axis.vector()))
            .attribute("offset", NumberArray::floats(&[0.0; 3]))
            .attribute("offset_units", "m")
            .attribute("depends_on", below);
        let ends = TreeDataset::of(self.content(true, detector)).attribute("units", DEGREE);
        let increment = measured(self.increment, DEGREE);
        group
            .stated(name, Some(angles))
            .stated(&format!("{name}_end"), Some(ends))
            .stated(&format!("{name}_increment_set"), Some(increment))
    }
}

/// The axes of the sample, from the innermost.
fn of_sample(detector: &DetectorDescription) -> Vec<AxisRotation> {
    let stated = |axis: GoniometerAxis| detector.rotations.iter().find(move |rotation| rotation.axis == axis);
    let axes = GoniometerAxis::ALL.into_iter().filter(|axis| *axis != GoniometerAxis::TwoTheta);
    axes.filter_map(stated).copied().collect()
}

/// Adds the position of the sample to its group: the end of the chain if no axis was stated.
pub(super) fn with_sample_axes(sample: TreeGroup, detector: &DetectorDescription) -> TreeGroup {
    let axes = of_sample(detector);
    let Some(first) = axes.first() else { return sample.value("depends_on", super::stated::NOTHING) };
    let mut transformations = TreeGroup::nexus("NXtransformations");
    for (at, rotation) in axes.iter().enumerate() {
        let below = axes.get(at + 1).map_or(super::stated::NOTHING.into(), |next| next.axis.path());
        transformations = rotation.put(transformations, &below, detector);
    }
    sample.value("depends_on", first.axis.path().as_str()).group("transformations", transformations)
}

/// The axis of the detector's arm, if it was stated.
pub(super) fn arm(detector: &DetectorDescription) -> Option<AxisRotation> {
    detector.rotations.iter().find(|rotation| rotation.axis == GoniometerAxis::TwoTheta).copied()
}

/// Adds the axis of the detector's arm to the detector's transformations.
pub(super) fn with_arm(transformations: TreeGroup, detector: &DetectorDescription) -> TreeGroup {
    match arm(detector) {
        Some(rotation) => rotation.put(transformations, super::stated::NOTHING, detector),
        None => transformations,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{NumberType, TreeNode, TreeValue};

    fn described(rotations: Vec<AxisRotation>) -> DetectorDescription {
        DetectorDescription {
            rotations,
            frames: Some(6),
            ..DetectorDescription::new("d", "2026-11-25T00:00:00Z", NumberType::Uint16, &[8, 16])
        }
    }

    fn turned(axis: GoniometerAxis, start: f64, increment: f64) -> AxisRotation {
        AxisRotation { axis, start, increment }
    }

    fn dataset(tree: &TreeGroup, path: &str) -> TreeDataset {
        match tree.find(path) {
            Some(TreeNode::Dataset(dataset)) => dataset.clone(),
            other => panic!("{path}: {other:?}"),
        }
    }

    fn angles(tree: &TreeGroup, path: &str) -> Vec<f64> {
        match dataset(tree, path).content {
            DatasetContent::Value(TreeValue::Numbers(array), _) => {
                array.bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
            }
            DatasetContent::Column(column) => {
                let angle = AngleColumn::of_key(&column.key).expect("an angle");
                let fill = f64::from_le_bytes(column.fill[..].try_into().expect("one number"));
                assert_eq!(fill.is_nan(), angle.differs(), "{path}");
                (0..6).map(|frame| angle.angle(frame)).collect()
            }
            other => panic!("{path}: {other:?}"),
        }
    }

    fn below(tree: &TreeGroup, path: &str) -> TreeValue {
        let dataset = dataset(tree, path);
        let link = dataset.attributes.into_iter().find(|attribute| attribute.name == "depends_on");
        link.expect("a link").value
    }

    #[test]
    fn a_key_has_all_numbers_of_a_column() {
        for (start, increment) in [(90.0, 0.1), (-1.5e-7, -0.2), (0.0, 1.0 / 3.0)] {
            for axis in GoniometerAxis::ALL {
                for is_end in [false, true] {
                    let column = AngleColumn { rotation: turned(axis, start, increment), is_end };
                    assert_eq!(AngleColumn::of_key(&column.key()), Some(column));
                }
            }
        }
        for other in ["flag", "rotation", "rotation:omega", "rotation:beta:1:2", "rotation:omega:x:2"] {
            assert_eq!(AngleColumn::of_key(other), None, "{other}");
        }
    }

    #[test]
    fn the_sample_lies_on_the_innermost_axis_and_each_axis_on_the_next() {
        let stated = vec![
            turned(GoniometerAxis::Omega, 90.0, 0.1),
            turned(GoniometerAxis::Chi, 30.0, 0.0),
            turned(GoniometerAxis::Phi, 0.0, 0.0),
        ];
        let tree = super::super::nxmx(&described(stated));
        let axis = |name: &str| format!("/entry/sample/transformations/{name}");
        let DatasetContent::Value(first, _) = dataset(&tree, "/entry/sample/depends_on").content else {
            panic!("a value")
        };
        assert_eq!(first, axis("phi").as_str().into());
        assert_eq!(below(&tree, &axis("phi")), axis("chi").as_str().into());
        assert_eq!(below(&tree, &axis("chi")), axis("omega").as_str().into());
        assert_eq!(below(&tree, &axis("omega")), ".".into());
        assert_eq!(angles(&tree, &axis("chi")), [30.0; 6]);
        assert_eq!(angles(&tree, &axis("chi_end")), [30.0; 6]);
        let starts = angles(&tree, &axis("omega"));
        let ends = angles(&tree, &axis("omega_end"));
        assert_eq!(starts[..2], [90.0, 90.1]);
        assert_eq!(starts[1..], ends[..5]);
        assert_eq!(angles(&tree, &axis("omega_increment_set")), [0.1]);
        assert!(tree.find(&axis("kappa")).is_none(), "nobody stated it");
    }

    #[test]
    fn without_axes_the_sample_depends_on_nothing() {
        let tree = super::super::nxmx(&described(Vec::new()));
        let depends = dataset(&tree, "/entry/sample/depends_on");
        assert_eq!(depends.content, DatasetContent::Value(".".into(), WriteTime::Opening));
        assert!(tree.find("/entry/sample/transformations").is_none());
    }

    #[test]
    fn the_detector_turns_with_its_arm() {
        let detector = DetectorDescription {
            distance: Some(0.2),
            ..described(vec![turned(GoniometerAxis::TwoTheta, 20.0, 0.0)])
        };
        let tree = super::super::nxmx(&detector);
        let arm = GoniometerAxis::TwoTheta.path();
        assert_eq!(below(&tree, "/entry/instrument/detector/transformations/distance"), arm.as_str().into());
        assert_eq!(below(&tree, &arm), ".".into());
        assert_eq!(angles(&tree, &arm), [20.0; 6]);
        assert!(tree.find("/entry/sample/transformations").is_none());
    }

    #[test]
    fn images_of_several_channels_have_one_angle() {
        let rotations = vec![turned(GoniometerAxis::Omega, 10.0, 0.5)];
        let detector = DetectorDescription { channels: 2, scan: vec![2], ..described(rotations) };
        let tree = super::super::nxmx(&detector);
        assert_eq!(angles(&tree, "/entry/sample/transformations/omega"), [10.0, 10.5, 11.0]);
        assert_eq!(angles(&tree, "/entry/sample/transformations/omega_end"), [10.5, 11.0, 11.5]);
    }
}
