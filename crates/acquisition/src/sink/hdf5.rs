//! Frames as chunks of HDF5 datasets: what the file of a recording has in it, and how chunks are made.

use std::sync::{Arc, Mutex, PoisonError};

use nilometer_codec::{ChunkCodec, ElementSize};
use nilometer_hdf5::tree::{
    DatasetContent, FrameColumn, FrameFilter, FramesShape, NumberType, TreeDataset, TreeGroup, TreeNode,
};
use nilometer_model::{Format, FrameCompression, Instrument, Nanos, PixelType};
use nilometer_recording::{chunk::compression_of, journal::Encoding};
use nilometer_storage::buffer::ALIGNMENT;

use super::FrameEncoder;
use crate::Frame;

/// What the HDF5 files of a recording have in them.
#[derive(Debug, Clone)]
pub struct Hdf5Layout {
    /// All of it.
    pub tree: Arc<TreeGroup>,
    /// How frames are compressed.
    pub compression: FrameCompression,
    /// Bytes of a pixel.
    pub element: ElementSize,
    /// Bytes of a frame.
    pub frame_size: u64,
}

/// What is kept of each frame beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    /// Whether it is there and whole.
    Flag,
    /// Packets that are missing in it.
    Missing,
    /// When it was due, since the recording began.
    Due,
    /// When it was written.
    Written,
}

impl ColumnKind {
    const ALL: [(ColumnKind, &'static str); 4] = [
        (ColumnKind::Flag, "flag"),
        (ColumnKind::Missing, "missing"),
        (ColumnKind::Due, "due"),
        (ColumnKind::Written, "written"),
    ];

    pub(super) fn of(key: &str) -> Option<Self> {
        ColumnKind::ALL.into_iter().find(|(_, name)| *name == key).map(|(kind, _)| kind)
    }

    pub(super) fn value(self, frame: &Frame, written: Nanos) -> i64 {
        let gaps = frame.packed.iter().flat_map(|packed| &packed.gaps);
        let missing: u64 = gaps.map(|gap| gap.count).sum();
        match self {
            ColumnKind::Flag => i64::from(missing > 0) * 2,
            ColumnKind::Missing => missing.cast_signed(),
            ColumnKind::Due => frame.due.0.cast_signed(),
            ColumnKind::Written => written.0.cast_signed(),
        }
    }
}

impl Hdf5Layout {
    /// The files of an instrument whose frames are to be stored so; none if they are to be stored otherwise.
    pub fn of(instrument: &Instrument) -> Option<Self> {
        if instrument.recording.format != Format::Hdf5 {
            return None;
        }
        let compression = instrument.recording.compression.unwrap_or_default();
        Self::of_frames(instrument.pixel, &instrument.shape, compression)
    }

    /// The files of such frames; none if their pixels are no whole bytes.
    pub fn of_frames(pixel: PixelType, shape: &[u64], compression: FrameCompression) -> Option<Self> {
        let number = number_type(pixel)?;
        let element = ElementSize::of(number.bytes() as u64)?;
        let shape = FramesShape {
            element: number,
            frame: shape.to_vec(),
            scan: Vec::new(),
            filter: filter(compression, element),
            fill: None,
        };
        let frame_size = shape.frame_size();
        Some(Hdf5Layout { tree: Arc::new(tree(shape)), compression, element, frame_size })
    }

    /// What makes chunks of frames, if they are compressed.
    pub(super) fn encoder(&self) -> Option<ChunkEncoder> {
        let Hdf5Layout { compression, element, frame_size, .. } = *self;
        (compression != FrameCompression::None).then(|| ChunkEncoder {
            compression,
            element,
            frame_size,
            codecs: Mutex::default(),
        })
    }
}

fn number_type(pixel: PixelType) -> Option<NumberType> {
    match pixel {
        PixelType::Uint8 => Some(NumberType::Uint8),
        PixelType::Uint16 => Some(NumberType::Uint16),
        PixelType::Int32 => Some(NumberType::Int32),
        PixelType::Uint32 => Some(NumberType::Uint32),
        PixelType::Uint2 | PixelType::Uint12 => None,
    }
}

fn filter(compression: FrameCompression, element: ElementSize) -> Option<FrameFilter> {
    let compression = compression_of(compression);
    let number = compression.filter()?.into();
    Some(FrameFilter { number, values: compression.cd_values(element) })
}

fn tree(shape: FramesShape) -> TreeGroup {
    let column = |key: &str, element, fill: &[u8]| {
        let column = FrameColumn { key: key.into(), element, fill: fill.into() };
        TreeNode::Dataset(TreeDataset::of(DatasetContent::Column(column)))
    };
    let data = TreeGroup::nexus("NXdata")
        .attribute("signal", "data")
        .with("data", TreeNode::Dataset(TreeDataset::of(DatasetContent::Frames(shape))));
    let recorder = TreeGroup::nexus("NXcollection")
        .with("flag", column("flag", NumberType::Uint8, &[1]))
        .with("missing", column("missing", NumberType::Uint32, &[0; 4]))
        .with("due", column("due", NumberType::Int64, &[255; 8]))
        .with("written", column("written", NumberType::Int64, &[255; 8]));
    let entry = TreeGroup::nexus("NXentry")
        .attribute("default", "data")
        .group("data", data)
        .group("recorder", recorder);
    TreeGroup::default().attribute("default", "entry").group("entry", entry)
}

/// Makes chunks of frames.
#[derive(Debug)]
pub(super) struct ChunkEncoder {
    compression: FrameCompression,
    element: ElementSize,
    frame_size: u64,
    /// Working memory, one for each thread that asks.
    codecs: Mutex<Vec<ChunkCodec>>,
}

impl FrameEncoder for ChunkEncoder {
    fn encoding(&self) -> Encoding {
        Encoding::of_chunk(self.compression, self.element)
    }

    /// Whole pages, so that it is written past the cache.
    fn length_max(&self) -> usize {
        let most = compression_of(self.compression).most_bytes(self.frame_size as usize);
        most.next_multiple_of(ALIGNMENT)
    }

    fn encode(&self, _number: u64, slot: &[u8], _scratch: &mut Vec<u8>, into: &mut [u8]) -> u32 {
        let codecs = || self.codecs.lock().unwrap_or_else(PoisonError::into_inner);
        let codec = codecs().pop();
        let mut codec =
            codec.unwrap_or_else(|| ChunkCodec::new(compression_of(self.compression), self.element));
        let frame = &slot[..self.frame_size as usize];
        let length = codec.encode(frame, into).expect("frames are whole pixels, and there is room for the longest");
        codecs().push(codec);
        length as u32
    }
}
