//! Frames as chunks of HDF5 datasets: what the files of a recording have in them, and how chunks are made.

use std::{collections::BTreeMap, sync::Arc};

use nilometer_codec::ElementSize;
use nilometer_hdf5::{
    filter_plugin,
    layout::FrameDatasets,
    nexus::{DetectorDescription, FRAMES_PATH, RECORDER_PATH, nexus_plain, nxmx},
    tree::{FrameFilter, FramesShape, NumberType, TreeGroup, TreeValue},
};
use nilometer_intake::{joined::JoinedValues, series::DescribedSeries};
use nilometer_model::{
    ChunkShape, DataKind, Format, FrameCompression, Instrument, Length, Moment, Nanos, PixelType,
    PluginFilter, RecordingLayout, ScanShape,
};
use nilometer_recording::{
    chunk::{self, compression_of},
    journal::{DatasetPlace, Encoding},
    number_type,
    tiles::TileGrid,
};
use nilometer_ring::{FrameEncoder, StoredAs};
use nilometer_storage::buffer::ALIGNMENT;

use crate::{
    file_tree::{ArrangedTree, FileWishes, KnownRecording, SeriesExtent, stated_of},
    kept_values::KeptValues,
};

/// What the HDF5 files of a recording have in them.
#[derive(Debug, Clone)]
pub struct Hdf5Contents {
    /// All that is there before the first frame.
    pub tree: Arc<TreeGroup>,
    /// How frames are compressed.
    pub compression: FrameCompression,
    /// Bytes of a pixel.
    pub element: ElementSize,
    /// Bytes of a frame, or of a stack of them.
    pub frame_size: u64,
    /// How a frame, or a stack of them, is cut into chunks, if it is not one.
    pub grid: Option<Arc<TileGrid>>,
    /// When the clock of the recording began.
    pub start: Moment,
    /// Values that are joined to frames.
    pub joined: Option<Arc<JoinedValues>>,
    /// What files that are there say of the frames, and no journal does.
    pub(crate) kept: Option<Arc<KeptValues>>,
    /// What of the user's layout is not in the files, and why.
    pub left_out: Vec<String>,
    /// Several frames that are one frame for the recorder, if they are.
    pub stack: Option<StackedFrames>,
    /// Several datasets that frames go into, if there are.
    pub datasets: Option<Arc<SeveralDatasets>>,
    /// Its frames come as they are recorded: when they came, were compressed and became durable is known. Not of those that
    /// were recorded before.
    pub live: bool,
}

/// How frames are put together, several into one of the recorder's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackedFrames {
    /// So many.
    pub frames: u64,
    /// All there are to be, those that are missing with them.
    pub due: u64,
}

/// Several datasets of frames in a file, and how frames get to them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeveralDatasets {
    /// Which they are, and how a value chooses among them.
    pub frames: FrameDatasets,
    /// So many frames belong together: the channels of an image.
    pub(crate) together: u64,
    /// Where each frame is to be, if it was recorded before.
    pub(crate) known: Option<BTreeMap<u64, DatasetPlace>>,
}

/// Where the frames are in such a file.
pub const FRAMES_IN_FILE: &str = FRAMES_PATH;
/// Where the recorder says there what became of each.
pub const RECORDER_IN_FILE: &str = RECORDER_PATH;

/// Bytes of a chunk in the index, of one that is compressed: its offset, length and filters.
const INDEX_ENTRY: u64 = 16;
/// Metadata of a file without frames, and what the library keeps of it.
const METADATA_LEAST: u64 = 2 << 20;
/// Pages that are not full, and what the index has of its own: one part in so many.
const METADATA_SHARE: u64 = 2;

impl Hdf5Contents {
    /// The files of an instrument whose frames are to be stored so, in a recording whose clock began at `start`; none if
    /// they are to be stored otherwise.
    ///
    /// A photon-counting detector's are described as NXmx asks, all others as NeXus does.
    pub fn of(instrument: &Instrument, start: Moment) -> Option<Self> {
        Self::asked(instrument, start, &FileWishes::default())
    }

    /// The same as the user wishes them.
    pub fn asked(instrument: &Instrument, start: Moment, wishes: &FileWishes) -> Option<Self> {
        if instrument.recording.format != Format::Hdf5 {
            return None;
        }
        let compression = instrument.recording.compression.unwrap_or_default();
        let recording = &instrument.recording;
        let description = DetectorDescription {
            scan: recording.scan.map(|scan| scan.rest().to_vec()).unwrap_or_default(),
            // Packets do not say how many frames come: there may be a line more.
            first_max: recording.scan.filter(|_| instrument.packets.is_none()).and_then(|scan| scan.lines()),
            chunk: recording.chunk.map(|chunk| in_frame(chunk, &instrument.shape)).unwrap_or_default(),
            ..instrument_description(instrument, compression, &start.to_string())?
        };
        let counts = matches!(instrument.data.kind, DataKind::Diffraction) && instrument.shape.len() == 2;
        let known = KnownRecording { description, counts, stated: stated_of(instrument), series: None };
        Self::arranged(known, compression, start, wishes)
    }

    /// The files of a detector of this description, of a recording that is there; none if its pixels have no size of a number.
    /// One that counts photons is described as NXmx asks.
    pub(crate) fn described(
        described: &DetectorDescription,
        counts: bool,
        compression: FrameCompression,
        start: Moment,
    ) -> Option<Self> {
        let tree = if counts { nxmx(described) } else { nexus_plain(described) };
        Self::with_tree(described, tree, compression, start)
    }

    /// The files of a series that is stored as `recording` says, in a recording whose clock began at `start`; none if its pixels
    /// can't be in one. Channels are the last dimension in front of those of a frame.
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
        let known = KnownRecording { description, counts: series.counts, stated, series: Some(extent) };
        Self::arranged(known, compression, start, wishes)
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

    /// The same, of which one file has only a part.
    #[must_use]
    pub fn of_parts(mut self) -> Self {
        if let Some(frames) = Arc::make_mut(&mut self.tree).frames_mut() {
            frames.first_max = None;
        }
        self
    }

    /// Bytes of memory that the metadata of an open file take at the most, once it has so many frames: what each chunk has in the
    /// index, and the values of each frame in columns.
    pub fn metadata_memory(&self, frames: u64) -> u64 {
        let tree = &self.tree;
        let index: u64 =
            tree.frames().iter().map(|(_, shape)| INDEX_ENTRY.saturating_mul(shape.tiles())).sum();
        let columns: u64 = tree.columns().iter().map(|(_, column)| column.element.bytes() as u64).sum();
        let each = (index + columns).saturating_mul(frames);
        METADATA_LEAST.saturating_add(each).saturating_add(each / METADATA_SHARE)
    }

    /// Frames go into several datasets, each of which counts its own.
    pub fn has_several_datasets(&self) -> bool {
        self.datasets.is_some()
    }

    /// What is stored of each frame.
    pub fn encoding(&self) -> Encoding {
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

    /// Files in which frames of this shape are, and what else a tree says; none if they can't be cut so.
    pub(crate) fn of_shape(
        shape: &FramesShape,
        tree: TreeGroup,
        compression: FrameCompression,
        start: Moment,
    ) -> Option<Self> {
        let element = ElementSize::of(shape.element.bytes() as u64)?;
        let frame_size = shape.frame_size();
        let grid = match &shape.chunk[..] {
            [] => None,
            tile => Some(Arc::new(TileGrid::new(&shape.frame, tile, element)?)),
        };
        Some(Hdf5Contents {
            tree: Arc::new(tree),
            compression,
            element,
            frame_size,
            grid,
            start,
            joined: None,
            kept: None,
            left_out: Vec::new(),
            stack: None,
            datasets: None,
            live: true,
        })
    }

    /// The files of such frames, of which nothing else is known; none if their pixels are no whole bytes.
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

    /// All that is in its files beside the frames, as text: files can be made again from it, see [`crate::repair`].
    pub fn text(&self) -> String {
        serde_json::to_string(&*self.tree).unwrap_or_default()
    }

    /// The most bytes that are stored of a frame, in whole pages.
    pub fn stored_max(&self) -> u64 {
        let plain = self.frame_size.next_multiple_of(ALIGNMENT as u64);
        self.encoder().map_or(plain, |encoder| encoder.length_max() as u64)
    }

    /// The plug-in that makes chunks, if one does.
    pub fn plugin(&self) -> Option<PluginFilter> {
        match self.compression {
            FrameCompression::Filter(filter) => Some(filter),
            _ => None,
        }
    }

    /// What makes chunks of frames, if they are compressed.
    pub fn encoder(&self) -> Option<ChunkEncoder> {
        let Hdf5Contents { compression, element, frame_size, ref grid, .. } = *self;
        (compression != FrameCompression::None || grid.is_some()).then(|| ChunkEncoder {
            compression,
            element,
            frame_size,
            grid: grid.clone(),
        })
    }
}

/// What an instrument's file says of it, for a recording that starts then; none if its pixels are no whole bytes.
pub(crate) fn instrument_description(
    instrument: &Instrument,
    compression: FrameCompression,
    start_time: &str,
) -> Option<DetectorDescription> {
    let number = number_type(instrument.pixel)?;
    let described = DetectorDescription::new(&instrument.name, start_time, number, &instrument.shape);
    let cbf = instrument.cbf;
    Some(DetectorDescription {
        filter: frame_filter(compression, ElementSize::of(number.bytes() as u64)?),
        description: Some(instrument.title.clone()),
        frame_time: Some(instrument.frame_rate.period().seconds()),
        count_time: cbf.exposure_time.map(Nanos::seconds),
        wavelength: cbf.wavelength.map(Length::angstrom),
        distance: cbf.detector_distance.map(Length::metres),
        ..described
    })
}

/// The dimensions of a chunk that are those of a frame; none if it is a frame.
fn in_frame(chunk: ChunkShape, frame: &[u64]) -> Vec<u64> {
    let sides = chunk.sides();
    let sides = &sides[sides.len().saturating_sub(frame.len())..];
    if sides == frame { Vec::new() } else { sides.to_vec() }
}

/// What is stored of a frame.
fn encoding(grid: Option<&TileGrid>, compression: FrameCompression, element: ElementSize) -> Encoding {
    match grid {
        Some(_) => Encoding::Tiles(compression, element),
        None => Encoding::of_chunk(compression, element),
    }
}

/// The filter of a dataset whose frames are compressed so, if it has one.
pub(crate) fn frame_filter(compression: FrameCompression, element: ElementSize) -> Option<FrameFilter> {
    if let FrameCompression::Filter(filter) = compression {
        return Some(FrameFilter { number: filter.number(), values: filter.values().into() });
    }
    let compression = compression_of(compression)?;
    let number = compression.filter()?.into();
    Some(FrameFilter { number, values: compression.cd_values(element) })
}

/// How frames of this shape are to be compressed where a user says it so: the plug-in of a filter fits what it is given to pixels
/// and chunks. All others are as they are.
///
/// # Errors
/// If no plug-in has the filter, or it does not take such frames or what it is given, in words.
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

/// The same for the frames of an instrument, in its own file.
///
/// # Errors
/// The same.
pub fn settle_instrument(instrument: &mut Instrument) -> Result<(), String> {
    if let Some(compression) = instrument.recording.compression {
        let settled = settled_compression(compression, instrument.pixel, &instrument.shape)?;
        instrument.recording.compression = Some(settled);
    }
    Ok(())
}

/// Whether it is known how to compress so.
///
/// # Errors
/// If no plug-in has the filter: which there are, and where was looked.
pub fn check_compression(compression: FrameCompression) -> Result<(), String> {
    let FrameCompression::Filter(filter) = compression else { return Ok(()) };
    let found = filter_plugin(filter.number()).map(drop);
    found.map_err(|error| format!("compression {}: {error}", filter.text()))
}

/// Makes chunks of frames.
#[derive(Debug)]
pub struct ChunkEncoder {
    compression: FrameCompression,
    element: ElementSize,
    frame_size: u64,
    grid: Option<Arc<TileGrid>>,
}

impl FrameEncoder for ChunkEncoder {
    /// Whole pages, so that it is written past the cache.
    fn length_max(&self) -> usize {
        let encoding = Encoding::of_chunk(self.compression, self.element);
        let of_frame = || encoding.length_max(self.frame_size) as usize;
        let most = self.grid.as_ref().map_or_else(of_frame, |grid| grid.length_max(self.compression));
        most.next_multiple_of(ALIGNMENT)
    }

    fn encode(&self, _number: u64, slot: &[u8], scratch: &mut Vec<u8>, into: &mut [u8]) -> StoredAs {
        let frame = &slot[..self.frame_size as usize];
        let encoding = encoding(self.grid.as_deref(), self.compression, self.element);
        if let Some(grid) = &self.grid {
            let length = grid.encode_by(self.compression, frame, scratch, into);
            let length = length.expect("frames are whole pixels, and there is room for the longest");
            return StoredAs { encoding, length: length_of_extent(length) };
        }
        // A plug-in was there when the recording was prepared, frames are whole pixels, and there is room for the longest.
        if let Ok(Some(length)) = chunk::encode(self.compression, self.element, frame, into) {
            return StoredAs { encoding, length: length_of_extent(length) };
        }
        into[..frame.len()].copy_from_slice(frame);
        StoredAs { encoding: Encoding::Raw, length: length_of_extent(frame.len()) }
    }

    fn is_damaged(&self, came_as: StoredAs, bytes: &[u8]) -> bool {
        let Encoding::Chunk(compression, element) = came_as.encoding else { return false };
        chunk::check_structure(compression, element, bytes, self.frame_size as usize).is_err()
    }
}

/// Layouts of longer ones are refused.
fn length_of_extent(length: usize) -> u32 {
    u32::try_from(length).expect("no chunk of a layout is longer than an extent can be")
}
