//! Translates the start of a series into a description of its detector in the terms of NeXus.
//!
//! Field names and units are those of the DECTRIS stream. They follow version 2 (SIMPLON API 1.8 and later,
//! "Stream V2 interface"), and version 1 (SIMPLON API, "Stream interface") if that has other names.
//!
//! Fields without a place of their own in a file go to `/entry/metadata` under the sender's name for them.
//! Fields of other programs go there too.

use nilometer_codec::ElementSize;
use nilometer_hdf5::{
    nexus::{AxisRotation, BeamCenter, DetectorDescription, FrameCorrection, GoniometerAxis, PixelSize},
    tree::{NumberArray, NumberType, TreeValue},
};
use nilometer_model::{FrameCompression, Moment};
use nilometer_recording::{chunk, number_type};
use nilometer_wire::series::{
    ArrayData, ElementType, MetadataField, MetadataValue, Packing, SeriesStart, bytes_of,
};

use crate::transport::zeromq::ZmqMessage;

/// A series as its start describes it.
#[derive(Debug, Clone)]
pub struct DescribedSeries {
    /// The start message.
    pub start: SeriesStart,
    /// The same for a file.
    pub description: DetectorDescription,
    /// All its single values, by the names of the stream, for layouts.
    pub stated: Vec<(String, TreeValue)>,
    /// True if the detector counts photons in a sensor, so that the file follows NXmx.
    pub counts: bool,
}

/// Larger arrays are left out, except a pixel mask, because each file of a recording contains them.
const ARRAY_MAX: u64 = 1 << 20;
/// Maximum depth of nested values.
const DEPTH: usize = 8;

impl DescribedSeries {
    /// Describes a series by its start message. A detector without a description gets this name.
    pub fn of(start: &SeriesStart, message: &ZmqMessage, name: &str) -> Self {
        let element = number_of(start.element);
        let mut said = Said { fields: start.fields.clone(), message };
        let begun = Moment::default().to_string();
        let mut description = DetectorDescription::new(name, &begun, element, &start.shape);
        if start.channels.len() > 1 {
            // Images, channels, rows, columns.
            description.scan = vec![start.channels.len() as u64];
        }
        let frames = start.images.saturating_mul(start.channels.len() as u64);
        description.frames = Some(frames).filter(|frames| *frames > 0);
        description.channels = (start.channels.len() as u64).max(1);
        description.rotations = said.rotations();
        let stated = said.values();
        said.describe(&mut description);
        description.pixel_mask = said.pixel_mask(start);
        description.flatfield = said.flatfield(start);
        description.metadata = said.rest();
        let names = start.channels.clone();
        description.metadata.push(("channels".into(), TreeValue::Texts(names)));
        let counts = description.sensor_material.is_some() && start.shape.len() == 2;
        DescribedSeries { start: start.clone(), description, stated, counts }
    }
}

/// The fields of a start. Known ones are taken out.
struct Said<'a> {
    fields: Vec<MetadataField>,
    message: &'a ZmqMessage,
}

impl Said<'_> {
    /// Takes the first of these fields that exists.
    fn take(&mut self, names: &[&str]) -> Option<MetadataValue> {
        let at = self.fields.iter().position(|field| names.contains(&field.name.as_str()))?;
        Some(self.fields.remove(at).value)
    }

    fn text(&mut self, names: &[&str]) -> Option<String> {
        match self.take(names)? {
            MetadataValue::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    fn number(&mut self, names: &[&str]) -> Option<f64> {
        number_in(&self.take(names)?)
    }

    /// A number for which 0 means that it is not given.
    fn positive(&mut self, names: &[&str]) -> Option<f64> {
        self.number(names).filter(|number| *number > 0.0)
    }

    /// A whole number above 0.
    fn whole(&mut self, names: &[&str]) -> Option<u64> {
        match self.take(names)? {
            MetadataValue::Integer(number) => u64::try_from(number).ok().filter(|number| *number > 0),
            _ => None,
        }
    }

    fn describe(&mut self, description: &mut DetectorDescription) {
        description.serial_number = self.serial_number();
        description.threshold_energy = self.threshold_energy();
        description.description = self.text(&["detector_description", "description"]);
        description.sensor_material = self.text(&["sensor_material"]);
        description.sensor_thickness = self.positive(&["sensor_thickness"]);
        description.count_time = self.positive(&["count_time"]);
        description.frame_time = self.positive(&["frame_time"]);
        description.wavelength = self.positive(&["incident_wavelength", "wavelength"]);
        description.saturation = self.whole(&["saturation_value", "countrate_correction_count_cutoff"]);
        let bits = self.whole(&["bit_depth_readout", "image_bit_depth"]);
        description.bit_depth = bits.and_then(|bits| u32::try_from(bits).ok());
        let fast = self.positive(&["pixel_size_x", "x_pixel_size"]);
        let slow = self.positive(&["pixel_size_y", "y_pixel_size"]);
        description.pixel_size = fast.zip(slow).map(|(fast, slow)| PixelSize { fast, slow });
        let x = self.number(&["beam_center_x"]);
        let y = self.number(&["beam_center_y"]);
        // A detector without a configured beam center sends 0, 0.
        let center = x.zip(y).filter(|(x, y)| *x != 0.0 || *y != 0.0);
        description.beam_center = center.map(|(x, y)| BeamCenter { x, y });
        description.distance = self.distance();
        description.corrections = self.corrections();
    }

    /// The corrections of which the sender says whether the detector applies them. The fields stay, for
    /// `/entry/metadata`.
    fn corrections(&self) -> Vec<(FrameCorrection, bool)> {
        let stated = |correction| Some((correction, self.is_applied(correction)?));
        FrameCorrection::ALL.into_iter().filter_map(stated).collect()
    }

    /// The switch of a correction: true if the detector applies it. Version 2 says `enabled`, version 1 `applied`.
    fn is_applied(&self, correction: FrameCorrection) -> Option<bool> {
        let names = match correction {
            FrameCorrection::CountRate => ["countrate_correction_enabled", "countrate_correction_applied"],
            FrameCorrection::Flatfield => ["flatfield_enabled", "flatfield_correction_applied"],
            FrameCorrection::PixelMask => ["pixel_mask_enabled", "pixel_mask_applied"],
            FrameCorrection::VirtualPixels => {
                ["virtual_pixel_interpolation_enabled", "virtual_pixel_correction_applied"]
            }
        };
        match names.into_iter().find_map(|name| find(&self.fields, name))? {
            MetadataValue::Bool(applied) => Some(*applied),
            MetadataValue::Integer(number @ (0 | 1)) => Some(*number == 1),
            _ => None,
        }
    }

    /// The detector's serial number, which version 1 calls `detector_number`. The field stays, for `/entry/metadata`.
    fn serial_number(&self) -> Option<String> {
        let names = ["detector_serial_number", "detector_number"];
        match names.into_iter().find_map(|name| find(&self.fields, name))? {
            MetadataValue::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        }
    }

    /// The threshold of a detector that has one. Version 2 has a map of all channels, and version 1 a number. The
    /// field stays, for `/entry/metadata`.
    fn threshold_energy(&self) -> Option<f64> {
        let energy = match find(&self.fields, "threshold_energy")? {
            MetadataValue::Map(channels) if channels.len() == 1 => number_in(&channels[0].value),
            other => number_in(other),
        };
        energy.filter(|energy| *energy > 0.0)
    }

    /// The distance from the sample to the detector. Detectors count along the beam or against it, and 0 means that
    /// nobody configured it.
    fn distance(&mut self) -> Option<f64> {
        let stated = self.number(&["detector_distance"]).map(f64::abs).filter(|metres| *metres > 0.0);
        stated.or_else(|| self.translation())
    }

    /// The length of the detector's translation along the beam, which is its third component.
    fn translation(&mut self) -> Option<f64> {
        let MetadataValue::List(axes) = self.take(&["detector_translation"])? else { return None };
        let metres = number_in(axes.get(2)?)?.abs();
        (metres > 0.0).then_some(metres)
    }

    /// The axes that have a start angle. Version 2 has a map of them, `goniometer`, and version 1 fields such as
    /// `omega_start`. The fields stay, for `/entry/metadata`.
    fn rotations(&self) -> Vec<AxisRotation> {
        let goniometer = match find(&self.fields, "goniometer") {
            Some(MetadataValue::Map(axes)) => axes.as_slice(),
            _ => &[],
        };
        let rotation = |axis: GoniometerAxis| self.rotation(axis, goniometer);
        GoniometerAxis::ALL.into_iter().filter_map(rotation).collect()
    }

    fn rotation(&self, axis: GoniometerAxis, goniometer: &[MetadataField]) -> Option<AxisRotation> {
        let name = axis.name();
        if let Some(MetadataValue::Map(fields)) = find(goniometer, name) {
            return rotation_of(axis, find(fields, "start"), find(fields, "increment"));
        }
        let [start, increment] = ["start", "increment"].map(|of| format!("{name}_{of}"));
        rotation_of(axis, find(&self.fields, &start), find(&self.fields, &increment))
    }

    /// The mask of the first channel, if it has the shape of the images. In version 1 it has no channel name.
    fn pixel_mask(&mut self, start: &SeriesStart) -> Option<Vec<u32>> {
        let bytes = self.of_pixels("pixel_mask", start, ElementType::Uint32)?;
        Some(bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
    }

    /// The flat field, likewise. Each channel has its own, so a detector with several has no single one.
    fn flatfield(&mut self, start: &SeriesStart) -> Option<Vec<f32>> {
        if start.channels.len() > 1 {
            return None;
        }
        let bytes = self.of_pixels("flatfield", start, ElementType::Float32)?;
        Some(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// Takes the array of the first channel with a number for each pixel, little-endian. `None` if the sender has none
    /// of this type.
    fn of_pixels(&mut self, name: &str, start: &SeriesStart, element: ElementType) -> Option<Vec<u8>> {
        let array = match self.take(&[name])? {
            MetadataValue::Map(fields) => match fields.into_iter().next()?.value {
                MetadataValue::Array(array) => array,
                _ => return None,
            },
            MetadataValue::Array(array) => array,
            _ => return None,
        };
        if array.shape != start.shape || array.element != element {
            return None;
        }
        self.unpacked(&array)
    }

    /// The elements of an array, little-endian. `None` if they are missing.
    fn unpacked(&self, array: &ArrayData) -> Option<Vec<u8>> {
        let bytes = self.message.bytes(&array.place)?;
        let size = bytes_of(&array.shape, array.element)?;
        let compression = match array.packing {
            _ if array.big_endian => return None,
            Packing::Plain => return (bytes.len() as u64 == size).then(|| bytes.to_vec()),
            Packing::BitshuffleLz4 { .. } => FrameCompression::Bslz4,
            Packing::Lz4 => FrameCompression::Lz4,
            Packing::Lz4Block => return None,
        };
        // The array states its unpacked size: no more memory is allocated than that.
        if array.packing.unpacked_bytes(bytes) != Some(size) || size > 1 << 30 {
            return None;
        }
        let mut unpacked = vec![0; size as usize];
        let element = ElementSize::of(array.element.bytes() as u64)?;
        chunk::decode(compression, element, bytes, &mut unpacked).ok()?;
        Some(unpacked)
    }

    /// All texts, numbers and rows.
    fn values(&self) -> Vec<(String, TreeValue)> {
        let mut values = Vec::new();
        for MetadataField { name, value } in &self.fields {
            if !matches!(value, MetadataValue::Map(_)) {
                self.add(&mut values, plain(name), value, DEPTH);
            }
        }
        let is_small = |value: &TreeValue| match value {
            TreeValue::Numbers(array) => array.shape.len() <= 1,
            _ => true,
        };
        values.retain(|(_, value)| is_small(value));
        values
    }

    /// All fields without a place of their own.
    fn rest(&mut self) -> Vec<(String, TreeValue)> {
        let mut values = Vec::new();
        for MetadataField { name, value } in std::mem::take(&mut self.fields) {
            self.add(&mut values, plain(&name), &value, DEPTH);
        }
        values
    }

    fn add(&self, values: &mut Vec<(String, TreeValue)>, path: String, value: &MetadataValue, depth: usize) {
        let leaf = match value {
            MetadataValue::Map(fields) if depth > 0 => {
                for MetadataField { name, value } in fields {
                    self.add(values, format!("{path}/{}", plain(name)), value, depth - 1);
                }
                return;
            }
            MetadataValue::Text(text) => Some(TreeValue::Text(text.clone())),
            MetadataValue::Bool(is) => Some(NumberArray::int((*is).into()).into()),
            MetadataValue::Integer(number) => {
                i64::try_from(*number).ok().map(|number| NumberArray::int(number).into())
            }
            MetadataValue::Float(number) => Some(floats(Vec::new(), &[*number])),
            MetadataValue::List(list) => list_of(list),
            MetadataValue::Array(array) => self.array(array),
            MetadataValue::Null | MetadataValue::Bytes(_) | MetadataValue::Map(_) => None,
        };
        values.extend(leaf.map(|leaf| (path, leaf)));
    }

    fn array(&self, array: &ArrayData) -> Option<TreeValue> {
        if bytes_of(&array.shape, array.element).is_none_or(|bytes| bytes == 0 || bytes > ARRAY_MAX) {
            return None;
        }
        let bytes = self.unpacked(array)?;
        Some(NumberArray { element: number_of(array.element), shape: array.shape.clone(), bytes }.into())
    }
}

/// The value of the field with this name.
fn find<'a>(fields: &'a [MetadataField], name: &str) -> Option<&'a MetadataValue> {
    fields.iter().find(|field| field.name == name).map(|field| &field.value)
}

/// The angles of an axis, in degrees. `None` without a start angle; without an increment the axis stands still.
fn rotation_of(
    axis: GoniometerAxis,
    start: Option<&MetadataValue>,
    increment: Option<&MetadataValue>,
) -> Option<AxisRotation> {
    let start = number_in(start?)?;
    let increment = increment.and_then(number_in).unwrap_or(0.0);
    Some(AxisRotation { axis, start, increment })
}

/// The finite number in a value. `None` for other values.
fn number_in(value: &MetadataValue) -> Option<f64> {
    let number = match value {
        MetadataValue::Float(number) => *number,
        MetadataValue::Integer(number) => *number as f64,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// Converts a list of numbers or of texts. `None` for other lists.
fn list_of(list: &[MetadataValue]) -> Option<TreeValue> {
    let number = |value: &MetadataValue| match value {
        MetadataValue::Integer(number) => Some(*number as f64),
        MetadataValue::Float(number) => Some(*number),
        _ => None,
    };
    let text = |value: &MetadataValue| match value {
        MetadataValue::Text(text) => Some(text.clone()),
        _ => None,
    };
    if list.is_empty() {
        return None;
    }
    let numbers: Option<Vec<f64>> = list.iter().map(number).collect();
    let texts = || list.iter().map(text).collect::<Option<Vec<_>>>().map(TreeValue::Texts);
    numbers.map(|numbers| floats(vec![numbers.len() as u64], &numbers)).or_else(texts)
}

fn floats(shape: Vec<u64>, numbers: &[f64]) -> TreeValue {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    NumberArray { element: NumberType::Float64, shape, bytes }.into()
}

/// Makes a name valid in a file, where a slash would make a group.
fn plain(name: &str) -> String {
    let is_odd = |letter: char| letter == '/' || letter.is_control();
    let name: String =
        name.chars().take(80).map(|letter| if is_odd(letter) { '_' } else { letter }).collect();
    if name.is_empty() || name == "." || name == ".." { "unnamed".into() } else { name }
}

/// The same type in a file.
fn number_of(element: ElementType) -> NumberType {
    number_type(element.pixel()).expect("elements are whole bytes, as numbers in files are")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_wire::series::SeriesName;

    fn described(fields: Vec<MetadataField>) -> DescribedSeries {
        let start = SeriesStart {
            series: SeriesName { number: 1, unique: "a series".into() },
            images: 6,
            shape: vec![64, 80],
            element: ElementType::Uint16,
            channels: vec!["threshold_1".into()],
            fields,
        };
        DescribedSeries::of(&start, &ZmqMessage::default(), "detector")
    }

    fn float(name: &str, number: f64) -> MetadataField {
        MetadataField::new(name, MetadataValue::Float(number))
    }

    fn translation(axes: &[f64]) -> MetadataField {
        let axes = axes.iter().map(|metres| MetadataValue::Float(*metres)).collect();
        MetadataField::new("detector_translation", MetadataValue::List(axes))
    }

    #[test]
    fn the_distance_is_positive_in_either_direction_of_counting() {
        let distance = |fields| described(fields).description.distance;
        assert_eq!(distance(vec![translation(&[0.0, 0.0, 0.15])]), Some(0.15));
        assert_eq!(distance(vec![translation(&[-0.02, 0.01, -0.1525])]), Some(0.1525));
        assert_eq!(distance(vec![translation(&[0.0, 0.0, 0.0])]), None);
        assert_eq!(distance(vec![translation(&[0.0, 0.0])]), None);
        assert_eq!(distance(vec![translation(&[0.0, 0.0, f64::NAN])]), None);
        assert_eq!(distance(vec![float("detector_distance", -0.2)]), Some(0.2));
        let both = vec![float("detector_distance", 0.2), translation(&[0.0, 0.0, -0.15])];
        assert_eq!(distance(both), Some(0.2));
        let unset = vec![float("detector_distance", 0.0), translation(&[0.0, 0.0, -0.15])];
        assert_eq!(distance(unset), Some(0.15));
        let whole = MetadataValue::List([0, 0, -1].map(MetadataValue::Integer).into());
        assert_eq!(distance(vec![MetadataField::new("detector_translation", whole)]), Some(1.0));
    }

    #[test]
    fn serial_number_and_threshold_come_from_both_versions() {
        let text = |name: &str| MetadataField::new(name, MetadataValue::Text("E-32-0123".into()));
        let newer = |energies: &[f64]| {
            let channels = energies.iter().enumerate();
            let channels = channels.map(|(number, energy)| float(&format!("threshold_{number}"), *energy));
            let energies = MetadataValue::Map(channels.collect());
            let description = described(vec![
                text("detector_serial_number"),
                MetadataField::new("threshold_energy", energies),
            ]);
            (description.description.serial_number, description.description.threshold_energy)
        };
        let serial = Some("E-32-0123".to_owned());
        assert_eq!(newer(&[6350.0]), (serial.clone(), Some(6350.0)));
        assert_eq!(
            newer(&[6350.0, 12_000.0]),
            (serial.clone(), None),
            "several thresholds have no single energy"
        );
        let older = described(vec![text("detector_number"), float("threshold_energy", 4020.5)]).description;
        assert_eq!((older.serial_number, older.threshold_energy), (serial, Some(4020.5)));
        let kept: Vec<_> = older.metadata.iter().map(|(name, _)| name.as_str()).collect();
        assert!(kept.contains(&"detector_number") && kept.contains(&"threshold_energy"), "{kept:?}");
    }

    #[test]
    fn corrections_come_from_both_versions() {
        let said = |fields: &[(&str, MetadataValue)]| {
            let fields = fields.iter().map(|(name, value)| MetadataField::new(name, value.clone()));
            described(fields.collect()).description.corrections
        };
        let newer = said(&[
            ("flatfield_enabled", MetadataValue::Bool(true)),
            ("virtual_pixel_interpolation_enabled", MetadataValue::Bool(false)),
        ]);
        assert_eq!(newer, [(FrameCorrection::Flatfield, true), (FrameCorrection::VirtualPixels, false)]);
        let older = said(&[
            ("countrate_correction_applied", MetadataValue::Integer(1)),
            ("pixel_mask_applied", MetadataValue::Bool(true)),
            ("flatfield_correction_applied", MetadataValue::Text("yes".into())),
        ]);
        assert_eq!(older, [(FrameCorrection::CountRate, true), (FrameCorrection::PixelMask, true)]);
    }

    #[test]
    fn axes_come_from_the_map_of_version_2() {
        let axis = |name: &str, fields| MetadataField::new(name, MetadataValue::Map(fields));
        let stated = vec![
            axis("omega", vec![float("start", 90.0), float("increment", 0.1)]),
            axis("chi", vec![MetadataField::new("start", MetadataValue::Integer(30))]),
            axis("two_theta", vec![float("increment", 0.1)]),
            axis("unknown", vec![float("start", 1.0), float("increment", 0.1)]),
        ];
        let description = described(vec![axis("goniometer", stated)]).description;
        let turned = |axis, start, increment| AxisRotation { axis, start, increment };
        let expected = [turned(GoniometerAxis::Chi, 30.0, 0.0), turned(GoniometerAxis::Omega, 90.0, 0.1)];
        assert_eq!(description.rotations, expected);
        let kept: Vec<_> = description.metadata.iter().map(|(name, _)| name.as_str()).collect();
        assert!(kept.contains(&"goniometer/omega/increment"), "{kept:?}");
    }

    #[test]
    fn axes_come_from_the_fields_of_version_1() {
        let fields = vec![
            float("omega_start", -10.0),
            float("omega_increment", 0.25),
            float("phi_start", 0.0),
            float("kappa_start", f64::INFINITY),
        ];
        let turned = |axis, start, increment| AxisRotation { axis, start, increment };
        let expected = [turned(GoniometerAxis::Phi, 0.0, 0.0), turned(GoniometerAxis::Omega, -10.0, 0.25)];
        assert_eq!(described(fields).description.rotations, expected);
    }
}
