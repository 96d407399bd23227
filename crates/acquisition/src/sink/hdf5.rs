//! Frames as chunks of HDF5 datasets: what the files of a recording have in them, and how chunks are made.

use std::sync::{Arc, Mutex, PoisonError};

use nilometer_codec::{ChunkCodec, ElementSize};
use nilometer_hdf5::{
    nexus::{DetectorDescription, FRAMES_PATH, RECORDER_PATH, nexus_plain},
    tree::{FrameFilter, NumberType, TreeGroup, TreeValue},
};
use nilometer_model::{
    ChunkShape, DataKind, Format, FrameCompression, Instrument, Length, Moment, Nanos, PixelType,
    RecordingLayout, ScanShape,
};
use nilometer_recording::{chunk::compression_of, journal::Encoding, tiles::TileGrid};
use nilometer_storage::buffer::ALIGNMENT;

use super::{
    FrameEncoder,
    hdf5_tree::{ArrangedTree, FileWishes, KnownRecording, SeriesExtent, stated_of},
};
use crate::{joined::JoinedValues, series::DescribedSeries};

/// What the HDF5 files of a recording have in them.
#[derive(Debug, Clone)]
pub struct Hdf5Contents {
    /// All that is there before the first frame.
    pub tree: Arc<TreeGroup>,
    /// How frames are compressed.
    pub compression: FrameCompression,
    /// Bytes of a pixel.
    pub element: ElementSize,
    /// Bytes of a frame.
    pub frame_size: u64,
    /// How a frame is cut into chunks, if it is not one.
    pub grid: Option<Arc<TileGrid>>,
    /// When the clock of the recording began.
    pub start: Moment,
    /// Values that are joined to frames.
    pub joined: Option<Arc<JoinedValues>>,
    /// What of the user's layout is not in the files, and why.
    pub left_out: Vec<String>,
}

/// Where the frames are in such a file.
pub const FRAMES_IN_FILE: &str = FRAMES_PATH;
/// Where the recorder says there what became of each.
pub const RECORDER_IN_FILE: &str = RECORDER_PATH;

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
            chunk: recording.chunk.map(|chunk| in_frame(chunk, &instrument.shape)).unwrap_or_default(),
            ..described(instrument, compression, start)?
        };
        let counts = matches!(instrument.data.kind, DataKind::Diffraction) && instrument.shape.len() == 2;
        let known = KnownRecording { description, counts, stated: stated_of(instrument), series: None };
        Self::arranged(known, compression, start, wishes)
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
        let filter = filter(compression, ElementSize::of(said.element.bytes() as u64)?);
        let scan = recording.scan.iter().flat_map(ScanShape::rest).chain(&said.scan);
        let description = DetectorDescription {
            filter,
            start_time: start.to_string(),
            scan: scan.copied().collect(),
            chunk: recording.chunk.map(|chunk| in_frame(chunk, &said.shape)).unwrap_or_default(),
            ..said.clone()
        };
        let images = series.start.images;
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
        let ArrangedTree { tree, left_out } = known.arrange(wishes);
        let contents = Self::with_tree(&known.description, tree, compression, start)?;
        Some(Hdf5Contents { joined: wishes.joined.clone(), left_out, ..contents })
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
        let element = ElementSize::of(described.element.bytes() as u64)?;
        let frame_size = described.frames_shape().frame_size();
        let grid = match &described.chunk[..] {
            [] => None,
            tile => Some(Arc::new(TileGrid::new(&described.shape, tile, element)?)),
        };
        Some(Hdf5Contents {
            tree: Arc::new(tree),
            compression,
            element,
            frame_size,
            grid,
            start,
            joined: None,
            left_out: Vec::new(),
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
        let filter = filter(compression, ElementSize::of(number.bytes() as u64)?);
        let described = DetectorDescription { filter, chunk: tile.into(), ..described };
        Self::with_tree(&described, nexus_plain(&described), compression, start)
    }

    /// All that is in its files beside the frames, as text: files can be made again from it, see [`crate::repair`].
    pub(super) fn text(&self) -> String {
        serde_json::to_string(&*self.tree).unwrap_or_default()
    }

    /// The most bytes that are stored of a frame, in whole pages.
    pub(crate) fn stored_max(&self) -> u64 {
        let plain = self.frame_size.next_multiple_of(ALIGNMENT as u64);
        self.encoder().map_or(plain, |encoder| encoder.length_max() as u64)
    }

    /// What makes chunks of frames, if they are compressed.
    pub(super) fn encoder(&self) -> Option<ChunkEncoder> {
        let Hdf5Contents { compression, element, frame_size, ref grid, .. } = *self;
        (compression != FrameCompression::None || grid.is_some()).then(|| ChunkEncoder {
            compression,
            element,
            frame_size,
            grid: grid.clone(),
            codecs: Mutex::default(),
        })
    }
}

/// What an instrument's file says of it.
fn described(
    instrument: &Instrument,
    compression: FrameCompression,
    start: Moment,
) -> Option<DetectorDescription> {
    let number = number_type(instrument.pixel)?;
    let described = DetectorDescription::new(&instrument.name, &start.to_string(), number, &instrument.shape);
    let cbf = instrument.cbf;
    Some(DetectorDescription {
        filter: filter(compression, ElementSize::of(number.bytes() as u64)?),
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

fn number_type(pixel: PixelType) -> Option<NumberType> {
    match pixel {
        PixelType::Uint8 => Some(NumberType::Uint8),
        PixelType::Int8 => Some(NumberType::Int8),
        PixelType::Uint16 => Some(NumberType::Uint16),
        PixelType::Int16 => Some(NumberType::Int16),
        PixelType::Int32 => Some(NumberType::Int32),
        PixelType::Uint32 => Some(NumberType::Uint32),
        PixelType::Int64 => Some(NumberType::Int64),
        PixelType::Uint64 => Some(NumberType::Uint64),
        PixelType::Float32 => Some(NumberType::Float32),
        PixelType::Float64 => Some(NumberType::Float64),
        PixelType::Uint2 | PixelType::Uint12 => None,
    }
}

fn filter(compression: FrameCompression, element: ElementSize) -> Option<FrameFilter> {
    let compression = compression_of(compression);
    let number = compression.filter()?.into();
    Some(FrameFilter { number, values: compression.cd_values(element) })
}

/// Makes chunks of frames.
#[derive(Debug)]
pub(super) struct ChunkEncoder {
    compression: FrameCompression,
    element: ElementSize,
    frame_size: u64,
    grid: Option<Arc<TileGrid>>,
    /// Working memory, one for each thread that asks.
    codecs: Mutex<Vec<ChunkCodec>>,
}

impl FrameEncoder for ChunkEncoder {
    fn encoding(&self) -> Encoding {
        encoding(self.grid.as_deref(), self.compression, self.element)
    }

    /// Whole pages, so that it is written past the cache.
    fn length_max(&self) -> usize {
        let of_frame = || compression_of(self.compression).most_bytes(self.frame_size as usize);
        let most = self.grid.as_ref().map_or_else(of_frame, |grid| grid.length_max(self.compression));
        most.next_multiple_of(ALIGNMENT)
    }

    fn encode(&self, _number: u64, slot: &[u8], scratch: &mut Vec<u8>, into: &mut [u8]) -> u32 {
        let codecs = || self.codecs.lock().unwrap_or_else(PoisonError::into_inner);
        let codec = codecs().pop();
        let mut codec =
            codec.unwrap_or_else(|| ChunkCodec::new(compression_of(self.compression), self.element));
        let frame = &slot[..self.frame_size as usize];
        let length = match &self.grid {
            Some(grid) => grid.encode(&mut codec, frame, scratch, into),
            None => codec.encode(frame, into),
        };
        let length = length.expect("frames are whole pixels, and there is room for the longest");
        codecs().push(codec);
        u32::try_from(length).expect("layouts of longer ones are refused")
    }
}
