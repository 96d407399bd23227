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
    ArrayData, ElementType, MetadataField, MetadataValue, Packing, SeriesError, SeriesStart, bytes_of,
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
/// Product of the Planck constant and the speed of light (CODATA 2018).
const ELECTRONVOLT_ANGSTROMS: f64 = 12_398.419_84;
/// Fields with a place of their own in a file that must be numbers.
const NUMBERS: [&str; 21] = [
    "sensor_thickness",
    "count_time",
    "frame_time",
    "incident_wavelength",
    "wavelength",
    "incident_energy",
    "photon_energy",
    "saturation_value",
    "countrate_correction_count_cutoff",
    "bit_depth_readout",
    "image_bit_depth",
    "pixel_size_x",
    "x_pixel_size",
    "pixel_size_y",
    "y_pixel_size",
    "beam_center_x",
    "beam_center_y",
    "detector_distance",
    "omega_start",
    "chi_start",
    "phi_start",
];
/// The same that must be texts.
const TEXTS: [&str; 3] = ["detector_description", "description", "sensor_material"];
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

/// The values of a start that have a place of their own in a file and can't be read. Null and NaN mean that the sender
/// does not know them.
pub(super) fn unread_values(fields: &[MetadataField]) -> Vec<SeriesError> {
    let fault = |field: &MetadataField| {
        let fault = wanted(field)?.to_owned();
        Some(SeriesError::Field { field: field.name.clone(), fault })
    };
    fields.iter().filter_map(fault).collect()
}

/// The demand that a value does not meet.
fn wanted(MetadataField { name, value }: &MetadataField) -> Option<&'static str> {
    match value {
        MetadataValue::Null | MetadataValue::Float(_) => None,
        _ if NUMBERS.contains(&name.as_str()) && number_in(value).is_none() => Some("must be a number"),
        MetadataValue::Text(_) => None,
        _ => TEXTS.contains(&name.as_str()).then_some("must be a text"),
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

    /// The first of these fields that exists. It stays, for `/entry/metadata`.
    fn find(&self, names: &[&str]) -> Option<&MetadataValue> {
        let field = self.fields.iter().find(|field| names.contains(&field.name.as_str()))?;
        Some(&field.value)
    }

    /// Takes a text. Another value stays, and so do those that are no numbers below.
    fn text(&mut self, names: &[&str]) -> Option<String> {
        let MetadataValue::Text(text) = self.find(names)? else { return None };
        let text = text.clone();
        self.take(names);
        Some(text).filter(|text| !text.is_empty())
    }

    fn number(&mut self, names: &[&str]) -> Option<f64> {
        let number = number_in(self.find(names)?)?;
        self.take(names);
        Some(number)
    }

    /// A number for which 0 means that it is not given.
    fn positive(&mut self, names: &[&str]) -> Option<f64> {
        self.number(names).filter(|number| *number > 0.0)
    }

    /// A whole number above 0.
    fn whole(&mut self, names: &[&str]) -> Option<u64> {
        let number = match self.find(names)? {
            MetadataValue::Integer(number) => u64::try_from(*number).ok()?,
            other => whole_in(other)?,
        };
        self.take(names);
        Some(number).filter(|number| *number > 0)
    }

    fn describe(&mut self, description: &mut DetectorDescription) {
        description.serial_number = self.serial_number();
        description.threshold_energy = self.threshold_energy();
        description.description = self.text(&["detector_description", "description"]);
        description.sensor_material = self.text(&["sensor_material"]);
        description.sensor_thickness = self.positive(&["sensor_thickness"]);
        description.count_time = self.positive(&["count_time"]);
        description.frame_time = self.positive(&["frame_time"]);
        description.wavelength = self.wavelength();
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

    /// The wavelength in angstroms, which follows from the energy of the photons if the sender states only that. The
    /// energy stays, for `/entry/metadata`.
    fn wavelength(&mut self) -> Option<f64> {
        let stated = self.positive(&["incident_wavelength", "wavelength"]);
        stated.or_else(|| {
            let energy = number_in(self.find(&["incident_energy", "photon_energy"])?)?;
            (energy > 0.0).then(|| ELECTRONVOLT_ANGSTROMS / energy)
        })
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
            MetadataValue::Integer(number) => Some(number.to_string()),
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
        let MetadataValue::List(axes) = self.find(&["detector_translation"])? else { return None };
        let metres = number_in(axes.get(2)?)?.abs();
        self.take(&["detector_translation"]);
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
    /// of this type. Then it stays, and so do the arrays of several channels.
    fn of_pixels(&mut self, name: &str, start: &SeriesStart, element: ElementType) -> Option<Vec<u8>> {
        let array = match self.find(&[name])? {
            MetadataValue::Map(fields) => match &fields.first()?.value {
                MetadataValue::Array(array) => array,
                _ => return None,
            },
            MetadataValue::Array(array) => array,
            _ => return None,
        };
        if array.shape != start.shape || array.element != element {
            return None;
        }
        let bytes = self.unpacked(array)?;
        if start.channels.len() <= 1 {
            self.take(&[name]);
        }
        Some(bytes)
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

/// The finite number in a value, which some senders write as a text. `None` for other values.
fn number_in(value: &MetadataValue) -> Option<f64> {
    let number = match value {
        MetadataValue::Float(number) => *number,
        MetadataValue::Integer(number) => *number as f64,
        MetadataValue::Text(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// The whole number in a value. `None` for one below 0 or with decimals.
fn whole_in(value: &MetadataValue) -> Option<u64> {
    let number = number_in(value).filter(|number| number.fract() == 0.0)?;
    number.to_string().parse().ok()
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
mod tests;
