//! Messages of a series of images, for both versions of the DECTRIS stream: a start, images, an end.
//!
//! ```text
//! ZMTP message -> stream2 (CBOR) or stream1 (JSON and blobs) -> SeriesMessage -> which frame is it, where do its bytes lie?
//! ```
//!
//! A message does not copy pixels: it states their position ([`DataPlace`]) and how they are packed.

mod announcement;
mod metadata;

pub use announcement::SeriesAnnouncement;
pub(crate) use metadata::{Fields, element, positive, ratio, text, unsigned};
pub use metadata::{MetadataField, MetadataValue};

use nilometer_model::PixelType;

use crate::cbor::{CborError, DataPlace};

/// Limit on the dimensions of an array.
pub const DIMENSIONS_MAX: usize = 8;
/// Limit on the channels of a series.
pub const CHANNELS_MAX: usize = 64;

/// Type of the elements of an array.
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
    /// All types.
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

    /// Returns the same type as a type of pixels.
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

    /// Returns the name in messages, as NumPy spells it.
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

    /// Returns the type with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|element| element.name() == name)
    }
}

/// Packing of the bytes of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packing {
    /// The bytes of the elements.
    Plain,
    /// Bitshuffle and LZ4, as a chunk of HDF5 filter 32008.
    BitshuffleLz4 {
        /// Bytes of an element: 1, 2, 4 or 8.
        element: u8,
    },
    /// LZ4, as a chunk of HDF5 filter 32004.
    Lz4,
    /// One bare LZ4 block. Only version 1 has it.
    Lz4Block,
}

impl Packing {
    /// Returns the number of unpacked bytes that `packed` states. `None` if it states none, or is too short.
    pub fn unpacked_bytes(self, packed: &[u8]) -> Option<u64> {
        match self {
            Packing::Plain => Some(packed.len() as u64),
            Packing::BitshuffleLz4 { .. } | Packing::Lz4 => {
                // The size of a block follows.
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
    /// Type of the elements.
    pub element: ElementType,
    /// True if the most significant byte of an element comes first.
    pub big_endian: bool,
    /// Packing of the bytes.
    pub packing: Packing,
    /// Position of the bytes.
    pub place: DataPlace,
}

impl ArrayData {
    /// Bytes of all elements. `None` if they exceed 64 bits.
    pub fn bytes(&self) -> Option<u64> {
        bytes_of(&self.shape, self.element)
    }
}

/// Bytes of an array of this shape. `None` if they exceed 64 bits.
pub fn bytes_of(shape: &[u64], element: ElementType) -> Option<u64> {
    shape.iter().try_fold(element.bytes() as u64, |bytes, length| bytes.checked_mul(*length))
}

/// Name of a series.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SeriesName {
    /// The detector's number for it.
    pub number: u64,
    /// A name that no other series has, if the sender gives one. Only version 2 has it.
    pub unique: String,
}

impl SeriesName {
    /// Returns true if both name the same series. The unique name decides if both have one, because a message
    /// may leave it out.
    pub fn is_same(&self, other: &SeriesName) -> bool {
        if self.unique.is_empty() || other.unique.is_empty() {
            return self.number == other.number;
        }
        self.unique == other.unique
    }
}

/// The start of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesStart {
    /// Name of the series.
    pub series: SeriesName,
    /// Number of images, each of all channels. 0 if the sender does not know it; the series then has the images
    /// before its end message.
    pub images: u64,
    /// Pixels of an image, the slowest dimension first: rows and columns.
    pub shape: Vec<u64>,
    /// Type of a pixel.
    pub element: ElementType,
    /// Names of the channels, in order. At least one. For a photon-counting detector they are its thresholds.
    pub channels: Vec<String>,
    /// All other fields, unchanged.
    pub fields: Vec<MetadataField>,
}

/// A time in seconds as a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRatio {
    /// Ticks.
    pub numerator: u64,
    /// Ticks per second, not 0.
    pub denominator: u64,
}

impl TimeRatio {
    /// Returns the time in seconds.
    pub fn seconds(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// Times of an image, as far as its message states them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImageTimes {
    /// From the beginning of the series to the beginning of the image.
    pub start: Option<TimeRatio>,
    /// From the beginning of the series to the end of the image.
    pub stop: Option<TimeRatio>,
    /// Exposure time.
    pub real: Option<TimeRatio>,
    /// Start of the series, in the format of RFC 3339.
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
    /// Name of its series.
    pub series: SeriesName,
    /// Number of the image, from 0.
    pub image: u64,
    /// Its channels, in the order of the message. At least one, and none twice.
    pub channels: Vec<ChannelData>,
    /// Times of the image.
    pub times: ImageTimes,
    /// MD5 of the pixels as the sender sent them, if it states one.
    pub hash: Option<[u8; 16]>,
    /// All other fields.
    pub fields: Vec<MetadataField>,
    /// Fields and parts that can't be read. The pixels do not need them.
    pub unread: Vec<SeriesError>,
    /// Channels that can't be read. The others do not need them.
    pub unread_channels: Vec<SeriesError>,
}

/// A message of a series.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "most messages are images, which then need no memory of their own"
)]
pub enum SeriesMessage {
    /// The start of the series.
    Start(Box<SeriesAnnouncement>),
    /// An image of the series.
    Image(SeriesImage),
    /// The end of the series. The sender sends no more images, but images on other connections may still be on
    /// their way.
    End(SeriesName),
}

/// Kind of a message of a series, known from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesMessageKind {
    /// The start of a series.
    Start,
    /// An image.
    Image,
    /// The end of a series.
    End,
}

/// The error for a message that belongs to no series or is invalid. The receiver loses only this message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeriesError {
    /// The message is no valid CBOR.
    #[error("{0}")]
    Cbor(#[from] CborError),
    /// A part is no valid JSON.
    #[error("part {part}: {fault}")]
    Json {
        /// Index of the part, from 0.
        part: usize,
        /// The error of the JSON reader, with line and column.
        fault: String,
    },
    /// A field is missing.
    #[error("{message} has no {field}")]
    Missing {
        /// The message.
        message: &'static str,
        /// Name of the field.
        field: String,
    },
    /// A field has an invalid value.
    #[error("{field}: {fault}")]
    Field {
        /// Name of the field, with the fields around it.
        field: String,
        /// The expected value.
        fault: String,
    },
}

impl SeriesError {
    /// Creates the error for a field with a wrong value.
    pub(crate) fn field(field: &str, fault: impl Into<String>) -> Self {
        SeriesError::Field { field: field.to_owned(), fault: fault.into() }
    }
}
