//! The content of an HDF5 file that is made from a recording: the description in its journals, or an instrument
//! that the user names.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use nilometer_codec::ElementSize;
use nilometer_hdf5::{
    layout::FrameDatasets,
    nexus::{DetectorDescription, NOT_STATED},
    tree::TreeGroup,
};
use nilometer_model::{
    Bytes, ChunkShape, DataKind, FileNames, Format, FrameCompression, FrameShape, Instrument, Moment,
    PixelType, PluginFilter, Storing,
};
use nilometer_recording::{
    instrument::Origin, journal::Encoding, number_type, reader::Recording, view::RecordingView,
};

use super::wished_chunks::WishedChunks;
use crate::{
    Hdf5Contents, SeveralDatasets, check_compression, frame_filter, instrument_description,
    kept_values::{KeptValues, LOST},
    repair::{files_of, is_of_frames, opened_own, places_of, tree_of},
    settled_compression, settled_for,
};

/// The user's wishes for a file made from a recording.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExportWishes<'a> {
    /// The compression; `None` for that of the recording, or of the instrument.
    pub compression: Option<FrameCompression>,
    /// The shape of chunks; `None` for one frame each, or as in the recording.
    pub chunk: Option<ChunkShape>,
    /// The instrument of the recording, for facts that its journals lack.
    pub instrument: Option<&'a Instrument>,
}

impl Hdf5Contents {
    /// The content of a file for the frames of an existing recording.
    ///
    /// # Errors
    /// If the recording does not fit into such a file, or the user must state more.
    pub fn of_recording(whole: &RecordingView, wishes: ExportWishes<'_>) -> Result<Self, String> {
        let size = whole.frame_size();
        let contents = whole.recording(|recording| {
            check_packets(recording)?;
            let tree = tree_of(recording);
            if let Some(instrument) = wishes.instrument {
                check_alike(instrument, tree.clone())?;
                let contents = of_instrument(instrument, wishes.compression, size)?;
                return Ok(match tree {
                    Some(tree) => contents.with_kept(recording, &tree),
                    None => contents,
                });
            }
            if let Some(tree) = tree {
                let mut whole = tree.clone();
                if recording.head().names == FileNames::Dectris
                    && let Some(frames) = whole.frames_mut()
                {
                    // Its files have a fixed size each, and this one has all frames.
                    frames.first_max = None;
                }
                let contents = of_tree(whole, wishes, compression_in(recording)?, size)?;
                return contents.with_places(recording).map(|contents| contents.with_kept(recording, &tree));
            }
            match recording.index.origin.as_ref().filter(|origin| !is_noise(origin)) {
                Some(origin) => {
                    of_origin(recording.name(), origin, wishes.compression.unwrap_or_default())
                }
                None => Err(format!(
                    "{}: its journals do not tell the pixels of its frames: name the instrument, --instrument NAME",
                    recording.name()
                )),
            }
        })?;
        if contents.frame_size != size {
            let described = Bytes(contents.frame_size);
            let name = whole.name();
            return Err(format!(
                "{name}: its frames have {}, but the described ones {described}: name the instrument, --instrument \
                 NAME",
                Bytes(size)
            ));
        }
        let contents = Hdf5Contents { live: false, ..contents };
        let Some(chunk) = wishes.chunk else { return Ok(contents) };
        contents.cut(WishedChunks { chunk, compression: wishes.compression, due: frames_due(whole) })
    }

    /// Adds the position of each frame, if the recording has several datasets.
    fn with_places(self, recording: &Recording) -> Result<Self, String> {
        let paths: Vec<_> = self.tree.frames().into_iter().map(|(path, _)| path).collect();
        if paths.len() < 2 {
            return Ok(self);
        }
        let known = places_of(recording).map_err(|error| error.to_string())?;
        let mut taken = BTreeSet::new();
        for (number, _) in recording.index.frames.iter() {
            let place = known.get(&number).filter(|place| (place.dataset as usize) < paths.len());
            if !place.is_some_and(|place| taken.insert(*place)) {
                let count = paths.len();
                return Err(format!(
                    "its journal has no separate place for frame {number} in one of {count} datasets"
                ));
            }
        }
        let frames = FrameDatasets { paths, ..FrameDatasets::default() };
        let datasets = SeveralDatasets { frames, together: 1, known: Some(known) };
        Ok(Hdf5Contents { datasets: Some(Arc::new(datasets)), ..self })
    }

    /// Adds the values of frames in the recording's files.
    fn with_kept(self, recording: &Recording, tree: &TreeGroup) -> Self {
        let (kept, mut left_out) = kept_of(recording, tree);
        let has_place = |key: &&str| self.tree.columns().iter().any(|(_, column)| column.key == **key);
        let placeless = kept.keys().filter(|key| !has_place(key));
        left_out.extend(placeless.map(|key| format!("{key}: the file that is made has no place for it")));
        Hdf5Contents { kept: Some(Arc::new(kept)), left_out, ..self }
    }
}

/// Reads the values of all files of a recording, by frame. Also returns a line for each that can't be read,
/// with the reason.
fn kept_of(recording: &Recording, tree: &TreeGroup) -> (KeptValues, Vec<String>) {
    let mut kept = KeptValues::default();
    let files = match files_of(recording) {
        Ok(files) => files,
        Err(error) => return (kept, vec![lost_of(Path::new(recording.name()), &error.to_string())]),
    };
    let frames = recording.index.expected();
    let mut lost = Vec::new();
    for (path, first) in files {
        let opened = opened_own(&path).map_err(|error| error.to_string());
        let places = first..frames.max(first);
        let added = opened.and_then(|file| kept.add(&file, tree, places).map_err(|error| error.to_string()));
        match added {
            Ok(unread) => lost.extend(unread.iter().map(|what| format!("{}: {what}", path.display()))),
            Err(why) => lost.push(lost_of(&path, &why)),
        }
    }
    (kept, lost)
}

fn lost_of(path: &Path, why: &str) -> String {
    format!("{}: {LOST}: {why}", path.display())
}

/// Checks that no missing packets were left out: the data behind them would be in the wrong place.
fn check_packets(recording: &Recording) -> Result<(), String> {
    let left_out = recording.index.gaps.values().flatten().any(|gap| !gap.filled);
    if !left_out {
        return Ok(());
    }
    Err(format!("{}: it leaves out missing packets, so its frames have no fixed places", recording.name()))
}

/// The compression of a recording's frames, as a filter of HDF5. Frames that did not get smaller are stored
/// uncompressed.
fn compression_in(recording: &Recording) -> Result<FrameCompression, String> {
    let encodings = recording.index.frames.iter().map(|(_, place)| place.extent.encoding);
    let mut compressions = encodings.filter_map(|encoding| match encoding {
        Encoding::Chunk(compression, _)
        | Encoding::Packed12(compression)
        | Encoding::Tiles(compression, _) => Some(compression),
        Encoding::Raw | Encoding::Cbf => None,
    });
    let compression = compressions.next().unwrap_or_default();
    if compression == FrameCompression::Filter(PluginFilter::UNSTATED) {
        let name = recording.name();
        return Err(format!("{name}: its journals do not name the plug-in that compressed its frames"));
    }
    Ok(compression)
}

/// Checks that the instrument agrees with the recording's description of its pixels.
fn check_alike(instrument: &Instrument, tree: Option<TreeGroup>) -> Result<(), String> {
    let Some(mut tree) = tree else { return Ok(()) };
    let Some(shape) = tree.frames_mut() else { return Ok(()) };
    let is_packed = shape.packed_12 && instrument.pixel == PixelType::Uint12;
    let is_alike = is_packed || Some(shape.element) == number_type(instrument.pixel);
    if is_alike && shape.frame == instrument.shape {
        return Ok(());
    }
    let name = &instrument.name;
    Err(format!(
        "--instrument {name}: it has frames of {:?} pixels of {}, but those of the recording are {:?} of {:?}: \
         leave it out",
        instrument.shape,
        instrument.pixel.name(),
        shape.frame,
        shape.element
    ))
}

fn of_instrument(
    instrument: &Instrument,
    compression: Option<FrameCompression>,
    size: u64,
) -> Result<Hdf5Contents, String> {
    let mut layout = instrument.recording.clone();
    layout.write_as(Format::Hdf5);
    layout.store(Storing::Growing);
    layout.compression = compression.or(layout.compression);
    layout.encoders = None;
    // The scan and the chunks may differ from those of the recording.
    (layout.scan, layout.chunk) = (None, None);
    let frame =
        FrameShape { shape: &instrument.shape, pixel: instrument.pixel, size: instrument.frame_size() };
    layout.check(frame).map_err(|why| format!("{}: {why}", instrument.name))?;
    if frame.size.0 != size {
        let name = &instrument.name;
        return Err(format!(
            "--instrument {name}: its frames have {}, those of the recording {}",
            frame.size,
            Bytes(size)
        ));
    }
    let compression = layout.compression.unwrap_or_default();
    let compression = settled_compression(compression, instrument.pixel, &instrument.shape)?;
    let described = Instrument { recording: layout, ..instrument.clone() };
    let described = instrument_description(&described, compression, NOT_STATED)
        .ok_or_else(|| packed(instrument.pixel))?;
    let counts = matches!(instrument.data.kind, DataKind::Diffraction) && instrument.shape.len() == 2;
    let counts = counts || described.image.is_some();
    Hdf5Contents::described(&described, counts, compression, Moment::default())
        .ok_or_else(|| packed(instrument.pixel))
}

/// Returns true for random bytes, whose type of pixels is unknown.
fn is_noise(origin: &Origin) -> bool {
    matches!(origin.kind(), DataKind::Incompressible)
}

fn of_origin(name: &str, origin: &Origin, compression: FrameCompression) -> Result<Hdf5Contents, String> {
    let element = number_type(origin.pixel()).ok_or_else(|| packed(origin.pixel()))?;
    let compression = settled_compression(compression, origin.pixel(), origin.shape())?;
    let described = DetectorDescription::new(name, NOT_STATED, element, origin.shape());
    let filter = ElementSize::of(element.bytes() as u64).and_then(|size| frame_filter(compression, size));
    let title = Some(format!("{} frames of {name}, which are simulated", origin.kind()));
    let described = DetectorDescription { filter, title, ..described };
    let counts = matches!(origin.kind(), DataKind::Diffraction) && origin.shape().len() == 2;
    Hdf5Contents::described(&described, counts, compression, Moment::default())
        .ok_or_else(|| packed(origin.pixel()))
}

/// The content of the recording's own files, with the wished compression, or else that of the recording.
fn of_tree(
    mut tree: TreeGroup,
    wishes: ExportWishes<'_>,
    there: FrameCompression,
    size: u64,
) -> Result<Hdf5Contents, String> {
    let shape = tree.frames_mut().ok_or("its journals describe files without frames")?;
    if !is_of_frames(shape, size) {
        return Err(format!(
            "its journals describe frames of {:?}, and they have {}",
            shape.frame,
            Bytes(size)
        ));
    }
    let compression = if let Some(wished) = wishes.compression {
        let chunk = shape.scan.iter().map(|_| 1).chain([1]).chain(shape.frame.iter().copied());
        settled_for(wished, shape.element, &chunk.collect::<Vec<_>>())?
    } else {
        check_compression(there)?;
        there
    };
    if shape.packed_12 && !compression.takes_packed_12() {
        return Err("its samples of 12 bits go into HDF5 compressed: write --compression bszstd, or bslz4, lz4 or zstd".into());
    }
    let element = ElementSize::of(shape.element.bytes() as u64).ok_or("its pixels have an unknown size")?;
    shape.filter = frame_filter(compression, element);
    // If other chunks are wished, this is checked later.
    let is_cut = wishes.chunk.is_none() && shape.chunk() != shape.frame;
    if let (true, FrameCompression::Filter(filter)) = (is_cut, compression) {
        return Err(format!(
            "--compression {}: a plug-in makes chunks of whole frames, and these are cut",
            filter.text()
        ));
    }
    let shape = shape.clone();
    tree.make_frames_alike();
    let contents = Hdf5Contents::of_shape(&shape, tree, compression, Moment::default());
    contents.ok_or_else(|| "its journals describe chunks that frames can't be cut into".into())
}

fn packed(pixel: PixelType) -> String {
    let name = pixel.name();
    format!("pixels of {name} are packed, and HDF5 has whole bytes: export them as they are, --format plain")
}

/// Number of frames that a recording should have: all frame numbers are below it.
pub fn frames_due(whole: &RecordingView) -> u64 {
    let before = whole.first_block().saturating_mul(whole.frames_of_block());
    before.saturating_add(whole.frames())
}
