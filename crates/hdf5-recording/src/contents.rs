//! Frames as chunks of HDF5 datasets: the content of a recording's files, and the encoding of chunks.

use std::sync::Arc;

use nilometer_codec::ElementSize;
use nilometer_hdf5::{
    filter_plugin,
    nexus::{BeamCenter, DetectorDescription, FRAMES_PATH, PixelSize, RECORDER_PATH, nexus_plain, nxmx},
    tree::{FrameFilter, FramesShape, NumberType, TreeGroup, TreeValue},
};
use nilometer_intake::{joined::JoinedValues, series::DescribedSeries};
use nilometer_model::{
    ChunkShape, DataKind, FileNames, Format, FrameCompression, Instrument, Length, Moment, Nanos, PixelType,
    PluginFilter, RecordingLayout, ScanShape,
};
use nilometer_recording::{chunk::compression_of, journal::Encoding, number_type, tiles::TileGrid};
use nilometer_ring::FrameEncoder;
use nilometer_storage::buffer::ALIGNMENT;

use crate::{
    assumed_places::{assumed_of, module_image},
    chunk_encoder::{ChunkEncoder, encoding},
    datasets::SeveralDatasets,
    file_tree::{ArrangedTree, FileWishes, KnownRecording, SeriesExtent, stated_of},
    journal_text::journal_text,
    kept_values::KeptValues,
};

/// The content of the HDF5 files of a recording.
#[derive(Debug, Clone)]
pub struct Hdf5Contents {
    /// Everything that is there before the first frame.
    pub tree: Arc<TreeGroup>,
    /// The compression of frames.
    pub compression: FrameCompression,
    /// Bytes of a pixel.
    pub element: ElementSize,
    /// Bytes of a recorded frame, or of a stack of them.
    pub frame_size: u64,
    /// True if the recorded frames are samples of 12 bits, two in three bytes; files have them as 16-bit numbers.
    pub packed_12: bool,
    /// The tiles of a frame, or of a stack of them; `None` if it is a single chunk.
    pub grid: Option<Arc<TileGrid>>,
    /// The start of the recording's clock.
    pub start: Moment,
    /// Values that are joined to frames.
    pub joined: Option<Arc<JoinedValues>>,
    /// Values that only existing files contain, and no journal.
    pub(crate) kept: Option<Arc<KeptValues>>,
    /// The parts of the user's layout that are not in the files, each with the reason.
    pub left_out: Vec<String>,
    /// The stack, if the recorder treats several frames as one.
    pub stack: Option<StackedFrames>,
    /// The datasets, if frames go into several.
    pub datasets: Option<Arc<SeveralDatasets>>,
    /// True if frames are being recorded, so that we observe the times of their arrival, compression and
    /// durability. False for frames recorded earlier.
    pub live: bool,
    /// The pattern of the names of files, which decides the links in the file over all.
    pub names: FileNames,
}

/// A stack: several frames that the recorder treats as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackedFrames {
    /// Number of frames in a stack.
    pub frames: u64,
    /// Number of all frames expected, including missing ones.
    pub due: u64,
}

/// Path of the frames in such a file.
pub const FRAMES_IN_FILE: &str = FRAMES_PATH;
/// Path of the recorder's notes in such a file.
pub const RECORDER_IN_FILE: &str = RECORDER_PATH;

/// Bytes per compressed chunk in the index: its offset, length and filters.
const INDEX_ENTRY: u64 = 16;
/// Bytes of metadata in a file without frames, with the library's own memory.
const METADATA_LEAST: u64 = 2 << 20;
/// Share of memory for partly filled pages and the index's own blocks: one part in `METADATA_SHARE`.
const METADATA_SHARE: u64 = 2;

impl Hdf5Contents {
    /// The content of an instrument's files, in a recording whose clock began at `start`; `None` if its frames
    /// are not stored in HDF5.
    ///
    /// Files of photon-counting detectors follow NXmx, all others plain NeXus.
    pub fn of(instrument: &Instrument, start: Moment) -> Option<Self> {
        Self::asked(instrument, start, &FileWishes::default())
    }

    /// The same, with the user's wishes.
    pub fn asked(instrument: &Instrument, start: Moment, wishes: &FileWishes) -> Option<Self> {
        if instrument.recording.format != Format::Hdf5 {
            return None;
        }
        let compression = instrument.recording.compression.unwrap_or_default();
        let recording = &instrument.recording;
        let description = DetectorDescription {
            scan: recording.scan.map(|scan| scan.rest().to_vec()).unwrap_or_default(),
            // Packets do not contain the number of frames, so there may be an additional line.
            first_max: recording.scan.filter(|_| instrument.packets.is_none()).and_then(|scan| scan.lines()),
            chunk: recording.chunk.map(|chunk| in_frame(chunk, &instrument.shape)).unwrap_or_default(),
            ..instrument_description(instrument, compression, &start.to_string())?
        };
        let counts = matches!(instrument.data.kind, DataKind::Diffraction) || is_dectris(recording);
        let is_image = description.image.is_some();
        let counts = counts && instrument.shape.len() == 2 || is_image;
        let known = KnownRecording { description, counts, stated: stated_of(instrument), series: None };
        let contents = Self::arranged(known, compression, start, wishes)?;
        Some(contents.laid_out(&instrument.recording))
    }

    /// The content of the files of an existing recording of this detector; `None` if the size of its pixels is
    /// not that of a number. Files of photon-counting detectors follow NXmx.
    pub(crate) fn described(
        described: &DetectorDescription,
        counts: bool,
        compression: FrameCompression,
        start: Moment,
    ) -> Option<Self> {
        let tree = if counts { nxmx(described) } else { nexus_plain(described) };
        Self::with_tree(described, tree, compression, start)
    }

    /// The content of a series' files, stored as `recording` says, in a recording whose clock began at `start`.
    /// `None` if such pixels can't be stored in HDF5. Channels are the dimension before those of a frame.
    pub fn of_series(
        series: &DescribedSeries,
        recording: &RecordingLayout,
        start: Moment,
        wishes: &FileWishes,
    ) -> Option<Self> {
        let said = &series.description;
        let compression = recording.compression.unwrap_or_default();
        let filter = frame_filter(compression, ElementSize::of(said.element.bytes() as u64)?);
        let scan = recording.scan.iter().flat_map(ScanShape::rest).chain(&said.scan);
        let description = DetectorDescription {
            filter,
            start_time: start.to_string(),
            scan: scan.copied().collect(),
            first_max: recording.scan.as_ref().and_then(ScanShape::lines),
            chunk: recording.chunk.map(|chunk| in_frame(chunk, &said.shape)).unwrap_or_default(),
            ..said.clone()
        };
        let images = recording.scan.as_ref().and_then(ScanShape::frames);
        let extent = SeriesExtent { images, channels: series.start.channels.len() as u64 };
        let stated = series.stated.clone();
        let counts = series.counts || is_dectris(recording) && said.shape.len() == 2;
        let known = KnownRecording { description, counts, stated, series: Some(extent) };
        let contents = Self::arranged(known, compression, start, wishes)?;
        Some(contents.laid_out(recording))
    }

    fn arranged(
        mut known: KnownRecording,
        compression: FrameCompression,
        start: Moment,
        wishes: &FileWishes,
    ) -> Option<Self> {
        known.stated.push(("recording_start".into(), TreeValue::from(start.to_string().as_str())));
        let ArrangedTree { tree, left_out, datasets } = known.arrange(wishes);
        let contents = Self::with_tree(&known.description, tree, compression, start)?;
        Some(Hdf5Contents {
            joined: wishes.joined.clone(),
            left_out,
            datasets: datasets.map(Arc::new),
            ..contents
        })
    }

    /// The same, for a recording whose files each have only a part of the frames. In the layout of DECTRIS each
    /// file has a fixed size.
    #[must_use]
    pub fn of_parts(mut self) -> Self {
        if self.names == FileNames::Recorder
            && let Some(frames) = Arc::make_mut(&mut self.tree).frames_mut()
        {
            frames.first_max = None;
        }
        self
    }

    /// The same in the layout of these files.
    fn laid_out(self, recording: &RecordingLayout) -> Self {
        match recording.frames_per_file.filter(|_| is_dectris(recording)) {
            Some(frames) => self.of_dectris(frames),
            None => self,
        }
    }

    /// The same in the layout of DECTRIS, with `frames` frames in each full file. Its datasets have a fixed size:
    /// the plug-in neggia for XDS reads no other index of chunks (`src/dectris/neggia/data`).
    fn of_dectris(mut self, frames: u64) -> Self {
        let tree = Arc::make_mut(&mut self.tree);
        let images = frames / tree.frames_of_image();
        if let Some(shape) = tree.frames_mut() {
            shape.first_max = Some(images.max(1));
        }
        tree.number_images();
        self.names = FileNames::Dectris;
        self
    }

    /// Bytes of memory for the metadata of an open file with `frames` frames, at the most: the index entries of
    /// chunks, and the values in columns.
    pub fn metadata_memory(&self, frames: u64) -> u64 {
        let tree = &self.tree;
        let index: u64 =
            tree.frames().iter().map(|(_, shape)| INDEX_ENTRY.saturating_mul(shape.tiles())).sum();
        let columns: u64 = tree.columns().iter().map(|(_, column)| column.element.bytes() as u64).sum();
        let each = (index + columns).saturating_mul(frames);
        METADATA_LEAST.saturating_add(each).saturating_add(each / METADATA_SHARE)
    }

    /// Returns true if frames go into several datasets, each of which counts its own.
    pub fn has_several_datasets(&self) -> bool {
        self.datasets.is_some()
    }

    /// The encoding of a stored frame.
    pub fn encoding(&self) -> Encoding {
        if self.packed_12 {
            return Encoding::Packed12(self.compression);
        }
        encoding(self.grid.as_deref(), self.compression, self.element)
    }

    fn with_tree(
        described: &DetectorDescription,
        tree: TreeGroup,
        compression: FrameCompression,
        start: Moment,
    ) -> Option<Self> {
        Self::of_shape(&described.frames_shape(), tree, compression, start)
    }

    /// The content of files with frames of this shape and the rest of a tree; `None` if frames can't be cut into
    /// such chunks.
    pub(crate) fn of_shape(
        shape: &FramesShape,
        tree: TreeGroup,
        compression: FrameCompression,
        start: Moment,
    ) -> Option<Self> {
        let element = ElementSize::of(shape.element.bytes() as u64)?;
        let frame_size = shape.recorded_size(shape.frame_size());
        let grid = match &shape.chunk[..] {
            [] => None,
            tile => Some(Arc::new(TileGrid::new(&shape.frame, tile, element)?)),
        };
        Some(Hdf5Contents {
            tree: Arc::new(tree),
            compression,
            element,
            frame_size,
            packed_12: shape.packed_12,
            grid,
            start,
            joined: None,
            kept: None,
            left_out: Vec::new(),
            stack: None,
            datasets: None,
            live: true,
            names: FileNames::Recorder,
        })
    }

    /// The content of files with only these frames; `None` if pixels are not whole bytes.
    pub fn of_frames(pixel: PixelType, shape: &[u64], compression: FrameCompression) -> Option<Self> {
        Self::of_tiles(pixel, shape, &[], compression)
    }

    /// The same with frames in tiles of these sides, if there are any.
    pub fn of_tiles(
        pixel: PixelType,
        shape: &[u64],
        tile: &[u64],
        compression: FrameCompression,
    ) -> Option<Self> {
        let start = Moment::default();
        let number = number_type(pixel)?;
        let described = DetectorDescription::new("frames", &start.to_string(), number, shape);
        let filter = frame_filter(compression, ElementSize::of(number.bytes() as u64)?);
        let described = DetectorDescription { filter, chunk: tile.into(), ..described };
        Self::with_tree(&described, nexus_plain(&described), compression, start)
    }

    /// Everything in the files beside the frames, as text for a journal. [`crate::repair`] makes files again from it.
    pub fn text(&self) -> String {
        journal_text(&self.tree)
    }

    /// Bytes stored per frame, at the most, in whole pages.
    pub fn stored_max(&self) -> u64 {
        let plain = self.frame_size.next_multiple_of(ALIGNMENT as u64);
        self.encoder().map_or(plain, |encoder| encoder.length_max() as u64)
    }

    /// The plug-in that encodes chunks, if there is one.
    pub fn plugin(&self) -> Option<PluginFilter> {
        match self.compression {
            FrameCompression::Filter(filter) => Some(filter),
            _ => None,
        }
    }

    /// The encoder of chunks; `None` if frames are not compressed.
    pub fn encoder(&self) -> Option<ChunkEncoder> {
        let Hdf5Contents { compression, element, frame_size, packed_12, ref grid, .. } = *self;
        (compression != FrameCompression::None || grid.is_some()).then(|| ChunkEncoder {
            compression,
            element,
            frame_size,
            packed_12,
            grid: grid.clone(),
        })
    }
}

/// The description of an instrument for a recording with this start; `None` if its pixels are not whole bytes.
pub(crate) fn instrument_description(
    instrument: &Instrument,
    compression: FrameCompression,
    start_time: &str,
) -> Option<DetectorDescription> {
    let packed_12 = instrument.recording.unpacks_12(instrument.pixel);
    let number = if packed_12 { NumberType::Uint16 } else { number_type(instrument.pixel)? };
    let described = DetectorDescription::new(&instrument.name, start_time, number, &instrument.shape);
    let cbf = instrument.cbf;
    Some(DetectorDescription {
        filter: frame_filter(compression, ElementSize::of(number.bytes() as u64)?),
        description: Some(instrument.title.clone()),
        frame_time: Some(instrument.frame_rate.period().seconds()),
        count_time: cbf.exposure_time.map(Nanos::seconds),
        wavelength: cbf.wavelength.map(Length::angstrom),
        distance: cbf.detector_distance.map(Length::metres),
        pixel_size: cbf.pixel_size.map(Length::metres).map(|side| PixelSize { fast: side, slow: side }),
        sensor_material: cbf.sensor_thickness.map(|_| SILICON.to_owned()),
        sensor_thickness: cbf.sensor_thickness.map(Length::metres),
        beam_center: cbf.beam_center.map(|beam| {
            let [x, y] = beam.into();
            BeamCenter { x, y }
        }),
        image: instrument.placed_modules().and_then(|places| module_image(places, &instrument.shape)),
        assumed: assumed_of(instrument),
        packed_12,
        ..described
    })
}

/// The material of sensors whose thickness an instrument states.
const SILICON: &str = "Si";
/// Returns true for the layout of DECTRIS, whose files are NXmx for any detector with rows and columns.
fn is_dectris(recording: &RecordingLayout) -> bool {
    recording.names() == FileNames::Dectris
}

/// The dimensions of a chunk within a frame; empty if a chunk is a frame.
fn in_frame(chunk: ChunkShape, frame: &[u64]) -> Vec<u64> {
    let sides = chunk.sides();
    let sides = &sides[sides.len().saturating_sub(frame.len())..];
    if sides == frame { Vec::new() } else { sides.to_vec() }
}

/// The filter of a dataset with such compression, if it has one.
pub(crate) fn frame_filter(compression: FrameCompression, element: ElementSize) -> Option<FrameFilter> {
    if let FrameCompression::Filter(filter) = compression {
        return Some(FrameFilter { number: filter.number(), values: filter.values().into() });
    }
    let compression = compression_of(compression)?;
    let number = compression.filter()?.into();
    Some(FrameFilter { number, values: compression.cd_values(element) })
}

/// Adapts the user's compression to frames of this shape: a plug-in completes its numbers for the pixels and
/// chunks. Other compressions stay as they are.
///
/// # Errors
/// If no plug-in has the filter, or the plug-in refuses such frames or numbers.
pub fn settled_compression(
    compression: FrameCompression,
    pixel: PixelType,
    shape: &[u64],
) -> Result<FrameCompression, String> {
    let Some(element) = number_type(pixel) else { return Ok(compression) };
    let chunk: Vec<u64> = [1].into_iter().chain(shape.iter().copied()).collect();
    settled_for(compression, element, &chunk)
}

/// The same for chunks of these dimensions.
pub(crate) fn settled_for(
    compression: FrameCompression,
    element: NumberType,
    chunk: &[u64],
) -> Result<FrameCompression, String> {
    let FrameCompression::Filter(filter) = compression else { return Ok(compression) };
    let refused = |why: String| format!("compression {}: {why}", filter.text());
    let plugin = filter_plugin(filter.number()).map_err(|error| refused(error.to_string()))?;
    let values = plugin.settled(element, chunk, filter.values());
    let values = values.map_err(|error| refused(error.to_string()))?;
    PluginFilter::new(filter.number(), &values).map(FrameCompression::Filter).map_err(refused)
}

/// The same for the frames of an instrument, in the instrument itself.
///
/// # Errors
/// The same errors as [`settled_compression`].
pub fn settle_instrument(instrument: &mut Instrument) -> Result<(), String> {
    if let Some(compression) = instrument.recording.compression {
        let settled = settled_compression(compression, instrument.pixel, &instrument.shape)?;
        instrument.recording.compression = Some(settled);
    }
    Ok(())
}

/// Checks that such a compression is available.
///
/// # Errors
/// If no plug-in has the filter; the error lists the filters found, and the directories searched.
pub fn check_compression(compression: FrameCompression) -> Result<(), String> {
    let FrameCompression::Filter(filter) = compression else { return Ok(()) };
    let found = filter_plugin(filter.number()).map(drop);
    found.map_err(|error| format!("compression {}: {error}", filter.text()))
}
