//! The frames in the files of a recording, in the words of readers: the dataset, and the shape, type and chunk of
//! its frames.

use nilometer_hdf5::tree::{FramesShape, NumberType};
use nilometer_model::{Instrument, PixelType};
use nilometer_recording::number_type;

use crate::Hdf5Contents;

/// The frames in each file of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FramesInFile {
    /// The path of their dataset. If there are several, the one for frames that name none. `None` outside HDF5.
    pub dataset: Option<String>,
    /// The paths of all datasets, if each frame goes into one of several.
    pub datasets: Vec<String>,
    /// The dimensions of a frame, the slowest first. `None` if unknown.
    pub shape: Option<Vec<u64>>,
    /// The dimensions of the dataset between the first and those of a frame.
    pub scan: Vec<u64>,
    /// The type of a pixel in the notation of `NumPy`, as `numpy.dtype(..).str` gives it. `None` if unknown.
    pub dtype: Option<&'static str>,
    /// The dimensions of a chunk of the dataset. `None` outside HDF5, and for a dataset that shows modules as an image.
    pub chunk: Option<Vec<u64>>,
}

impl FramesInFile {
    /// The frames in HDF5 files with these contents.
    pub fn of(contents: &Hdf5Contents) -> Self {
        let datasets = contents.datasets.as_ref().map(|several| several.frames.clone()).unwrap_or_default();
        let default = datasets.paths.get(datasets.default).map(|path| path.trim_matches('/'));
        let is_default = |path: &str| default.is_none_or(|default| default == path.trim_matches('/'));
        let frames = contents.tree.frames();
        let Some((path, shape)) = frames.iter().find(|frames| is_default(&frames.0)) else {
            return FramesInFile::default();
        };
        let (shown, frame) = contents.tree.shown_frames(path).unwrap_or_default();
        let is_stored = shown == *path;
        FramesInFile {
            dataset: Some(shown),
            shape: Some(frame),
            scan: shape.scan.clone(),
            dtype: Some(numpy_type(shape.element)),
            chunk: is_stored.then(|| chunk_of(shape)),
            datasets: datasets.paths,
        }
    }

    /// The frames of a detector in other files. Samples of a telescope, which have one dimension, have no shape.
    pub fn outside_hdf5(instrument: &Instrument) -> Self {
        if instrument.shape.len() < 2 {
            return FramesInFile::default();
        }
        let dtype = numpy_type_of(instrument.pixel);
        FramesInFile { shape: Some(instrument.shape.clone()), dtype, ..FramesInFile::default() }
    }
}

/// The dimensions of a chunk of the whole dataset.
fn chunk_of(shape: &FramesShape) -> Vec<u64> {
    let across = shape.scan.iter().map(|_| 1);
    [shape.stack].into_iter().chain(across).chain(shape.chunk().iter().copied()).collect()
}

/// The type of a pixel; `None` if pixels are no whole bytes.
fn numpy_type_of(pixel: PixelType) -> Option<&'static str> {
    number_type(pixel).map(numpy_type)
}

/// Numbers in files are little-endian.
const fn numpy_type(element: NumberType) -> &'static str {
    match element {
        NumberType::Uint8 => "|u1",
        NumberType::Uint16 => "<u2",
        NumberType::Uint32 => "<u4",
        NumberType::Uint64 => "<u8",
        NumberType::Int8 => "|i1",
        NumberType::Int16 => "<i2",
        NumberType::Int32 => "<i4",
        NumberType::Int64 => "<i8",
        NumberType::Float32 => "<f4",
        NumberType::Float64 => "<f8",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nilometer_hdf5::layout::FrameDatasets;
    use nilometer_model::FrameCompression;

    use super::*;
    use crate::SeveralDatasets;

    fn contents(tile: &[u64]) -> Hdf5Contents {
        let contents = Hdf5Contents::of_tiles(PixelType::Uint32, &[64, 80], tile, FrameCompression::Bslz4);
        contents.expect("whole pixels")
    }

    #[test]
    fn a_chunk_is_a_frame_or_a_tile_of_it() {
        let frames = FramesInFile::of(&contents(&[]));
        assert_eq!((frames.shape, frames.dtype), (Some(vec![64, 80]), Some("<u4")));
        assert_eq!(frames.chunk, Some(vec![1, 64, 80]));
        assert_eq!(frames.dataset.as_deref(), Some("/entry/data/data"));
        assert_eq!(FramesInFile::of(&contents(&[32, 40])).chunk, Some(vec![1, 32, 40]));
    }

    #[test]
    fn modules_are_seen_as_an_image_without_chunks_of_its_own() {
        let text = "name = \"m\"\ntitle = \"m\"\nsource = \"m\"\nshape = [2, 8, 16]\npixel = \"uint16\"\nframe_rate = \"1 Hz\"\n\
                    recording.format = \"hdf5\"\nmodules = { origins = [[0, 0], [10, 1]] }\n";
        let instrument = Instrument::parse(text, "m.toml").expect("valid");
        let contents =
            Hdf5Contents::of(&instrument, nilometer_model::Moment::default()).expect("whole pixels");
        let frames = FramesInFile::of(&contents);
        assert_eq!((frames.dataset.as_deref(), frames.shape), (Some("/entry/data/data"), Some(vec![18, 17])));
        assert_eq!(frames.chunk, None);
    }

    #[test]
    fn the_dataset_among_several_is_the_default_one() {
        let path = "/entry/data/data".to_owned();
        let paths = vec!["/entry/dark".into(), path.clone()];
        let frames = FrameDatasets { paths: paths.clone(), default: 1, destination: None };
        let datasets = Some(Arc::new(SeveralDatasets { frames, ..SeveralDatasets::default() }));
        let frames = FramesInFile::of(&Hdf5Contents { datasets, ..contents(&[]) });
        assert_eq!((frames.dataset, frames.datasets), (Some(path), paths));
    }

    #[test]
    fn numpy_tells_types_apart_by_sign_and_bytes() {
        for element in NumberType::ALL {
            let text = numpy_type(element);
            assert!(text.ends_with(&element.bytes().to_string()), "{text}");
            assert_eq!(text.starts_with('|'), element.bytes() == 1, "{text}");
        }
        assert_eq!(numpy_type_of(PixelType::Uint12), None);
    }
}
