//! Frames of a recording in HDF5 as CBF files: their pixels, and the geometry, exposure and rotation that the
//! recording's files state.

use nilometer_codec::byte_offset;
use nilometer_hdf5::{
    Hdf5Error, ReadDataset, ReadFile,
    nexus::{FRAMES_PATH, GoniometerAxis},
    tree::{DatasetContent, NumberType, TreeGroup, TreeNode, TreeValue},
};
use nilometer_model::{BeamPixel, CbfHeader, Format, Length, Nanos, Picture, RotationAngle, Storing};
use nilometer_recording::{cbf, reader::Recording};

use crate::repair::tree_of;

/// Makes CBF files of the frames of a recording.
#[derive(Debug)]
pub struct RecordedPictures {
    picture: Picture,
    element: NumberType,
    /// The detector, for the header.
    detector: String,
    /// The axis that turns; `None` if none does.
    axis: Option<GoniometerAxis>,
    /// The faults of each pixel, as in a [`nilometer_hdf5::nexus::DetectorDescription`]; empty without a mask.
    mask: Vec<i64>,
    /// The pixels of a frame, reused for each.
    pixels: Vec<i32>,
    packed: Vec<u8>,
}

const DETECTOR: &str = "/entry/instrument/detector";
const START: &str = "/entry/start_time";
const WAVELENGTH: &str = "/entry/instrument/beam/incident_wavelength";
/// Letters of the detector in a header, at the most.
const DETECTOR_MAX: usize = 200;
/// The bit of a gap in the mask, and the bits of pixels that do not count as they should.
const GAP: i64 = 1;
const DEFECTS: i64 = 0b1_1110;
/// The values that Pilatus and EIGER detectors give such pixels, in files that hold signed numbers.
const GAP_VALUE: i32 = -1;
const DEFECT_VALUE: i32 = -2;

impl RecordedPictures {
    /// Reads the facts about the frames from the recording's first file.
    ///
    /// # Errors
    /// In words: it is not in HDF5, has no frames, or has others than rows and columns of whole numbers up to 32 bits.
    pub fn of(recording: &Recording) -> Result<Self, String> {
        let head = recording.head();
        let name = recording.name();
        if head.format != Format::Hdf5 {
            return Err(format!(
                "--format cbf: {name} is not in HDF5: leave it out, its frames are exported as they are"
            ));
        }
        let Some((number, place)) = recording.index.frames.iter().next() else {
            return Err(format!("{name}: nothing is recorded there yet"));
        };
        let in_file = match head.storing {
            Storing::Positions => number % head.frames_per_file,
            _ => number,
        };
        let path = recording.path(place);
        let file = ReadFile::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let unreadable = |error: Hdf5Error| format!("{}: {error}", path.display());
        let frames = file.dataset(FRAMES_PATH).map_err(unreadable)?;
        let element = whole_numbers(&frames).map_err(unreadable)?;
        let (&[_, rows, columns], Some(element)) = (frames.dimensions(), element) else {
            return Err(format!(
                "--format cbf: {name} has other frames than rows and columns of whole numbers of at most 32 bits: \
                 write --format hdf5"
            ));
        };
        let values = FileValues { file };
        let rotation = values.rotation(number, in_file);
        let header = CbfHeader {
            start_angle: rotation.map(|rotation| rotation.start),
            angle_increment: rotation.map(|rotation| rotation.increment),
            ..values.header()
        };
        let tree = tree_of(recording).unwrap_or_default();
        let begun = text_at(&tree, START).and_then(|text| text.parse().ok());
        let most = values.number("saturation_value").and_then(|most| u32::try_from(most as i64).ok());
        let count_cutoff = most.unwrap_or(i32::MAX.unsigned_abs());
        let pixels = (rows * columns) as usize;
        let mask = values.mask().filter(|mask| mask.len() == pixels).unwrap_or_default();
        Ok(RecordedPictures {
            picture: Picture { header, begun, count_cutoff, ..Picture::new(rows as usize, columns as usize) },
            element,
            detector: detector_of(recording, &tree),
            axis: rotation.filter(FileRotation::turns).map(|rotation| rotation.axis),
            mask,
            pixels: vec![0; pixels],
            packed: Vec::new(),
        })
    }

    /// The values in the header of the first picture.
    pub fn header(&self) -> CbfHeader {
        self.picture.header
    }

    /// The axis that turns; `None` if none does, or the recording does not state it.
    pub fn axis(&self) -> Option<GoniometerAxis> {
        self.axis
    }

    /// Appends the CBF file of the frame with this number, from its pixels as they are in the recording.
    pub fn put(&mut self, stem: &str, number: u64, frame: &[u8], file: &mut Vec<u8>) {
        let values = frame.chunks_exact(self.element.bytes());
        for (pixel, bytes) in self.pixels.iter_mut().zip(values) {
            *pixel = count_of(self.element, bytes);
        }
        for (pixel, faults) in self.pixels.iter_mut().zip(&self.mask) {
            if faults & GAP != 0 {
                *pixel = GAP_VALUE;
            } else if faults & DEFECTS != 0 {
                *pixel = DEFECT_VALUE;
            }
        }
        self.packed.clear();
        byte_offset::encode(&self.pixels, &mut self.packed);
        let name = picture_name(stem, number);
        cbf::put_of(&self.detector, &name, &self.picture.of_number(number), &self.packed, file);
    }
}

/// The name of the picture with this number, without the suffix. Pictures count from 1.
pub fn picture_name(stem: &str, number: u64) -> String {
    format!("{stem}_{:05}", number + 1)
}

/// The type of whole numbers of at most 32 bits; `None` for others.
fn whole_numbers(frames: &ReadDataset) -> Result<Option<NumberType>, Hdf5Error> {
    Ok(match frames.stored()?.kind.as_str() {
        "uint8" => Some(NumberType::Uint8),
        "uint16" => Some(NumberType::Uint16),
        "uint32" => Some(NumberType::Uint32),
        "int8" => Some(NumberType::Int8),
        "int16" => Some(NumberType::Int16),
        "int32" => Some(NumberType::Int32),
        _ => None,
    })
}

/// A pixel as a signed number. The largest unsigned value marks a pixel without a count, and in 32 bits the one below
/// it marks a defect one.
fn count_of(element: NumberType, bytes: &[u8]) -> i32 {
    let mut wide = [0; 4];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unsigned = u32::from_le_bytes(wide);
    match element {
        NumberType::Int8 => i32::from(bytes[0].cast_signed()),
        NumberType::Int16 => i32::from((unsigned as u16).cast_signed()),
        NumberType::Int32 => unsigned.cast_signed(),
        _ if bytes.iter().all(|byte| *byte == u8::MAX) => GAP_VALUE,
        NumberType::Uint32 if unsigned.cast_signed() == DEFECT_VALUE => DEFECT_VALUE,
        _ => i32::try_from(unsigned).unwrap_or(GAP_VALUE),
    }
}

/// A text of the detector's group.
fn text_at(tree: &TreeGroup, path: &str) -> Option<String> {
    let Some(TreeNode::Dataset(dataset)) = tree.find(path) else { return None };
    match &dataset.content {
        DatasetContent::Value(TreeValue::Text(text), _) => Some(text.clone()),
        _ => None,
    }
}

/// The detector, as the recording's journal describes it, or the name of the recording. The header has a remark a line.
fn detector_of(recording: &Recording, tree: &TreeGroup) -> String {
    let stated =
        ["description", "local_name"].iter().find_map(|name| text_at(tree, &format!("{DETECTOR}/{name}")));
    let name = stated.unwrap_or_else(|| recording.name().into());
    name.chars().filter(|letter| letter.is_ascii_graphic() || *letter == ' ').take(DETECTOR_MAX).collect()
}

/// An axis of the goniometer, with its angle in frame 0.
#[derive(Debug, Clone, Copy)]
struct FileRotation {
    axis: GoniometerAxis,
    start: RotationAngle,
    increment: RotationAngle,
}

impl FileRotation {
    fn turns(&self) -> bool {
        self.increment != RotationAngle::default()
    }
}

/// The values in a file of the recording.
struct FileValues {
    file: ReadFile,
}

impl FileValues {
    fn at(&self, path: &str, index: usize) -> Option<f64> {
        let value = self.file.own_dataset(path).ok()?.floats().ok()?.get(index).copied();
        value.filter(|value| value.is_finite())
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.at(&format!("{DETECTOR}/{name}"), 0)
    }

    fn mask(&self) -> Option<Vec<i64>> {
        self.file.own_dataset(&format!("{DETECTOR}/pixel_mask")).ok()?.numbers().ok()
    }

    fn header(&self) -> CbfHeader {
        let metres = |name: &str| self.number(name).and_then(Length::from_metres);
        let beam = [self.number("beam_center_x"), self.number("beam_center_y")];
        let beam = if let [Some(x), Some(y)] = beam { BeamPixel::try_from([x, y]).ok() } else { None };
        let time = |name: &str| self.number(name).filter(|time| *time > 0.0).map(Nanos::from_seconds);
        CbfHeader {
            detector_distance: metres("distance"),
            wavelength: self.at(WAVELENGTH, 0).and_then(|angstrom| Length::from_metres(angstrom * 1e-10)),
            exposure_time: time("count_time"),
            exposure_period: time("frame_time"),
            pixel_size: metres("x_pixel_size"),
            sensor_thickness: metres("sensor_thickness"),
            beam_center: beam,
            ..CbfHeader::default()
        }
    }

    /// The axis that turns, or else the first one stated: its angle in frame 0, and its increment. `number` is that
    /// of the frame at `in_file` in the file.
    fn rotation(&self, number: u64, in_file: u64) -> Option<FileRotation> {
        let of_sample =
            [GoniometerAxis::Omega, GoniometerAxis::Phi, GoniometerAxis::Chi, GoniometerAxis::Kappa];
        let axes = of_sample.into_iter().filter_map(|axis| self.rotation_about(axis, number, in_file));
        let axes: Vec<_> = axes.collect();
        axes.iter().find(|rotation| rotation.turns()).or(axes.first()).copied()
    }

    fn rotation_about(&self, axis: GoniometerAxis, number: u64, in_file: u64) -> Option<FileRotation> {
        let path = axis.path();
        let increment = self.at(&format!("{path}_increment_set"), 0)?;
        let angle = self.at(&path, usize::try_from(in_file).ok()?)?;
        let start = RotationAngle::try_from(angle - number as f64 * increment).ok()?;
        Some(FileRotation { axis, start, increment: RotationAngle::try_from(increment).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_unsigned_value_is_no_count() {
        assert_eq!(count_of(NumberType::Uint16, &[0xff, 0xff]), -1);
        assert_eq!(count_of(NumberType::Uint16, &[0xfe, 0xff]), 65_534);
        assert_eq!(count_of(NumberType::Uint8, &[7]), 7);
        assert_eq!(count_of(NumberType::Uint32, &[0, 0, 0, 0x80]), -1);
        assert_eq!(count_of(NumberType::Uint32, &0xffff_fffe_u32.to_le_bytes()), -2);
        assert_eq!(count_of(NumberType::Int16, &[0xff, 0xff]), -1);
        assert_eq!(count_of(NumberType::Int32, &(-2_i32).to_le_bytes()), -2);
    }
}
