//! Messages of a series of images, as both versions of the DECTRIS stream have them: a start, images, an end.
//!
//! ```text
//! ZMTP message -> stream2 (CBOR) or stream1 (JSON and blobs) -> SeriesMessage -> which frame is it, where do its bytes lie?
//! ```
//!
//! Pixels are not copied: a message says where its bytes of them lie ([`DataPlace`]) and how they are packed.

mod announcement;
mod metadata;

pub use announcement::SeriesAnnouncement;
pub(crate) use metadata::{Fields, element, positive, ratio, text, unsigned};
pub use metadata::{MetadataField, MetadataValue};

use nilometer_model::PixelType;

use crate::cbor::{CborError, DataPlace};

/// Dimensions of an array, at the most.
pub const DIMENSIONS_MAX: usize = 8;
/// Channels of a series, at the most.
pub const CHANNELS_MAX: usize = 64;

/// What elements of an array are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// Unsigned 8 bit.
    Uint8,
    /// Unsigned 16 bit.
    Uint16,
    /// Unsigned 32 bit.
    Uint32,
    /// Unsigned 64 bit.
    Uint64,
    /// Signed 8 bit.
    Int8,
    /// Signed 16 bit.
    Int16,
    /// Signed 32 bit.
    Int32,
    /// Signed 64 bit.
    Int64,
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
}

impl ElementType {
    /// All of them.
    pub const ALL: [ElementType; 10] = [
        ElementType::Uint8,
        ElementType::Uint16,
        ElementType::Uint32,
        ElementType::Uint64,
        ElementType::Int8,
        ElementType::Int16,
        ElementType::Int32,
        ElementType::Int64,
        ElementType::Float32,
        ElementType::Float64,
    ];

    /// The same type of pixels.
    pub const fn pixel(self) -> PixelType {
        match self {
            ElementType::Uint8 => PixelType::Uint8,
            ElementType::Uint16 => PixelType::Uint16,
            ElementType::Uint32 => PixelType::Uint32,
            ElementType::Uint64 => PixelType::Uint64,
            ElementType::Int8 => PixelType::Int8,
            ElementType::Int16 => PixelType::Int16,
            ElementType::Int32 => PixelType::Int32,
            ElementType::Int64 => PixelType::Int64,
            ElementType::Float32 => PixelType::Float32,
            ElementType::Float64 => PixelType::Float64,
        }
    }

    /// Bytes of an element.
    pub const fn bytes(self) -> usize {
        match self {
            ElementType::Uint8 | ElementType::Int8 => 1,
            ElementType::Uint16 | ElementType::Int16 => 2,
            ElementType::Uint32 | ElementType::Int32 | ElementType::Float32 => 4,
            ElementType::Uint64 | ElementType::Int64 | ElementType::Float64 => 8,
        }
    }

    /// The word in messages, as NumPy has it.
    pub const fn name(self) -> &'static str {
        match self {
            ElementType::Uint8 => "uint8",
            ElementType::Uint16 => "uint16",
            ElementType::Uint32 => "uint32",
            ElementType::Uint64 => "uint64",
            ElementType::Int8 => "int8",
            ElementType::Int16 => "int16",
            ElementType::Int32 => "int32",
            ElementType::Int64 => "int64",
            ElementType::Float32 => "float32",
            ElementType::Float64 => "float64",
        }
    }

    /// The type of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|element| element.name() == name)
    }
}

/// How the bytes of an array are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packing {
    /// They are its elements.
    Plain,
    /// Bitshuffle and LZ4, as a chunk of HDF5 filter 32008, of elements of so many bytes.
    BitshuffleLz4 {
        /// 1, 2, 4 or 8.
        element: u8,
    },
    /// LZ4, as a chunk of HDF5 filter 32004.
    Lz4,
    /// One LZ4 block with nothing around it: version 1 alone.
    Lz4Block,
}

impl Packing {
    /// How many bytes come out of these, as they say themselves. None if they don't say it, or are too few to.
    pub fn unpacked_bytes(self, packed: &[u8]) -> Option<u64> {
        match self {
            Packing::Plain => Some(packed.len() as u64),
            Packing::BitshuffleLz4 { .. } | Packing::Lz4 => {
                // Behind the size stands that of a block.
                let (size, _) = packed.get(..12)?.split_first_chunk()?;
                Some(u64::from_be_bytes(*size))
            }
            Packing::Lz4Block => None,
        }
    }
}

/// An array of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayData {
    /// Elements in each dimension, the slowest first.
    pub shape: Vec<u64>,
    /// What they are.
    pub element: ElementType,
    /// Elements have their most significant byte first.
    pub big_endian: bool,
    /// How they are packed.
    pub packing: Packing,
    /// Where their bytes lie.
    pub place: DataPlace,
}

impl ArrayData {
    /// Bytes of all elements; None beyond 64 bits.
    pub fn bytes(&self) -> Option<u64> {
        bytes_of(&self.shape, self.element)
    }
}

/// Bytes of an array of this shape; None beyond 64 bits.
pub fn bytes_of(shape: &[u64], element: ElementType) -> Option<u64> {
    shape.iter().try_fold(element.bytes() as u64, |bytes, length| bytes.checked_mul(*length))
}

/// Which series a message is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SeriesName {
    /// Counted by the detector.
    pub number: u64,
    /// A name that no other series has, if the sender gives one: version 2.
    pub unique: String,
}

impl SeriesName {
    /// Whether both are names of one series. The unique name decides if both have one: a message may leave it out.
    pub fn is_same(&self, other: &SeriesName) -> bool {
        if self.unique.is_empty() || other.unique.is_empty() {
            return self.number == other.number;
        }
        self.unique == other.unique
    }
}

/// A series begins.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesStart {
    /// Which one.
    pub series: SeriesName,
    /// How many images it has, each of all channels. 0 if the sender does not know: it has those that come before its end.
    pub images: u64,
    /// Pixels of an image, the slowest dimension first: rows and columns.
    pub shape: Vec<u64>,
    /// What a pixel is.
    pub element: ElementType,
    /// Names of the channels, in their order: one at least. Thresholds of a detector that counts photons.
    pub channels: Vec<String>,
    /// All else that it says, as it stands there.
    pub fields: Vec<MetadataField>,
}

/// A time in seconds as a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRatio {
    /// Ticks.
    pub numerator: u64,
    /// Ticks a second; not 0.
    pub denominator: u64,
}

impl TimeRatio {
    /// As one number.
    pub fn seconds(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// When an image was taken, as far as it says so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImageTimes {
    /// From the beginning of the series to the beginning of the image.
    pub start: Option<TimeRatio>,
    /// From the beginning of the series to the end of the image.
    pub stop: Option<TimeRatio>,
    /// Exposure.
    pub real: Option<TimeRatio>,
    /// When the series began, as RFC 3339 has it.
    pub series_date: Option<String>,
}

/// The pixels of one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelData {
    /// The channel's name.
    pub channel: String,
    /// Its pixels.
    pub array: ArrayData,
}

/// An image of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesImage {
    /// Which series.
    pub series: SeriesName,
    /// Counted from 0.
    pub image: u64,
    /// Its channels, in the order of the message: one at least, none twice.
    pub channels: Vec<ChannelData>,
    /// When it was taken.
    pub times: ImageTimes,
    /// All else that it says.
    pub fields: Vec<MetadataField>,
    /// Fields and parts that can't be read. The pixels are whole without them.
    pub unread: Vec<SeriesError>,
    /// Channels that can't be read. The others are whole without them.
    pub unread_channels: Vec<SeriesError>,
}

/// A message of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum SeriesMessage {
    /// It begins.
    Start(Box<SeriesAnnouncement>),
    /// One of its images.
    Image(SeriesImage),
    /// No image is sent any more. Those on other connections may still be on their way.
    End(SeriesName),
}

/// Which of the messages of a series one is, known from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesMessageKind {
    /// A series begins.
    Start,
    /// An image.
    Image,
    /// A series ends.
    End,
}

/// A message that is none of a series. It costs this message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeriesError {
    /// Not CBOR as it is sent.
    #[error("{0}")]
    Cbor(#[from] CborError),
    /// Not JSON as it is sent.
    #[error("part {part}: {fault}")]
    Json {
        /// Counted from 0.
        part: usize,
        /// What the reader of JSON says, with its line and column.
        fault: String,
    },
    /// A field is missing.
    #[error("{message} has no {field}")]
    Missing {
        /// Which message.
        message: &'static str,
        /// Name of the field.
        field: String,
    },
    /// A field has a value that it can't have.
    #[error("{field}: {fault}")]
    Field {
        /// Name of the field, with those that it stands in.
        field: String,
        /// What was wanted.
        fault: String,
    },
}

impl SeriesError {
    /// A field with a wrong value.
    pub(crate) fn field(field: &str, fault: impl Into<String>) -> Self {
        SeriesError::Field { field: field.to_owned(), fault: fault.into() }
    }
}
