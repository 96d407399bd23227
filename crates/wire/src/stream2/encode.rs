//! Encodes messages, for simulators and tests. It does not copy pixels: a message is a list of pieces to send
//! one after the other.

use std::convert::Infallible;

use minicbor::{
    Encoder,
    data::{Int, Tag},
    encode::Error as EncodeError,
};

use super::{BITSHUFFLE_LZ4, COMPRESSED, DATE, LZ4, ROW_MAJOR, tag_of};
use crate::series::{
    ElementType, ImageTimes, MetadataField, MetadataValue, Packing, SeriesError, SeriesName, SeriesStart,
    TimeRatio,
};

/// Encodes into memory, which always has room.
type CborEncoder = Encoder<Vec<u8>>;

impl From<EncodeError<Infallible>> for SeriesError {
    fn from(fault: EncodeError<Infallible>) -> Self {
        SeriesError::field("message", fault.to_string())
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessagePiece<'a> {
    /// Bytes around the pixels.
    Made(Vec<u8>),
    /// Pixels.
    Pixels(&'a [u8]),
}

impl MessagePiece<'_> {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            MessagePiece::Made(bytes) => bytes,
            MessagePiece::Pixels(bytes) => bytes,
        }
    }
}

/// The pixels of one channel of an image, little-endian.
#[derive(Debug, Clone, Copy)]
pub struct ImageChannel<'a> {
    /// The channel's name.
    pub name: &'a str,
    /// Pixels in each dimension, the slowest first.
    pub shape: &'a [u64],
    /// Type of a pixel.
    pub element: ElementType,
    /// Packing of the bytes.
    pub packing: Packing,
    /// The packed pixels.
    pub bytes: &'a [u8],
}

/// Encodes a start message. It can't encode fields that hold byte strings or arrays, because their bytes are in
/// another message.
///
/// # Errors
/// If there is such a field, or if images do not have two dimensions.
pub fn encode_start(start: &SeriesStart) -> Result<Vec<u8>, SeriesError> {
    let [rows, columns] = start.shape[..] else {
        return Err(SeriesError::field("shape", "images of version 2 have rows and columns"));
    };
    let mut encoder = CborEncoder::new(Vec::new());
    encoder.map(8 + start.fields.len() as u64)?;
    head(&mut encoder, "start", &start.series)?;
    encoder.str("number_of_images")?.u64(start.images)?;
    encoder.str("image_size_y")?.u64(rows)?;
    encoder.str("image_size_x")?.u64(columns)?;
    encoder.str("image_dtype")?.str(start.element.name())?;
    encoder.str("channels")?.array(start.channels.len() as u64)?;
    for channel in &start.channels {
        encoder.str(channel)?;
    }
    fields(&mut encoder, &start.fields)?;
    Ok(encoder.into_writer())
}

/// Encodes an image message, in pieces.
///
/// # Errors
/// If version 2 has no word for the packing.
pub fn encode_image<'a>(
    series: &SeriesName,
    image: u64,
    times: &ImageTimes,
    channels: &[ImageChannel<'a>],
) -> Result<Vec<MessagePiece<'a>>, SeriesError> {
    let ratios = [("start_time", times.start), ("stop_time", times.stop), ("real_time", times.real)];
    let told = ratios.iter().filter(|(_, ratio)| ratio.is_some()).count();
    let mut encoder = CborEncoder::new(Vec::new());
    encoder.map((5 + told + usize::from(times.series_date.is_some())) as u64)?;
    head(&mut encoder, "image", series)?;
    encoder.str("image_id")?.u64(image)?;
    for (name, ratio) in ratios {
        if let Some(TimeRatio { numerator, denominator }) = ratio {
            encoder.str(name)?.array(2)?.u64(numerator)?.u64(denominator)?;
        }
    }
    if let Some(date) = &times.series_date {
        encoder.str("series_date")?.tag(Tag::new(DATE))?.str(date)?;
    }
    encoder.str("data")?.map(channels.len() as u64)?;
    let mut pieces = Vec::new();
    for channel in channels {
        encoder.str(channel.name)?;
        array(&mut encoder, channel)?;
        pieces.push(MessagePiece::Made(std::mem::take(encoder.writer_mut())));
        pieces.push(MessagePiece::Pixels(channel.bytes));
    }
    Ok(pieces)
}

/// Encodes an end message.
pub fn encode_end(series: &SeriesName) -> Vec<u8> {
    let mut encoder = CborEncoder::new(Vec::new());
    let written = encoder.map(3).map(drop);
    written.and_then(|()| head(&mut encoder, "end", series)).expect("memory takes all");
    encoder.into_writer()
}

/// Encodes the three fields that all messages share.
fn head(encoder: &mut CborEncoder, kind: &str, series: &SeriesName) -> Result<(), EncodeError<Infallible>> {
    encoder.str("type")?.str(kind)?;
    encoder.str("series_id")?.u64(series.number)?;
    encoder.str("series_unique_id")?.str(&series.unique)?.ok()
}

/// Encodes an array up to its bytes.
fn array(encoder: &mut CborEncoder, channel: &ImageChannel<'_>) -> Result<(), SeriesError> {
    encoder.tag(Tag::new(ROW_MAJOR))?.array(2)?.array(channel.shape.len() as u64)?;
    for length in channel.shape {
        encoder.u64(*length)?;
    }
    encoder.tag(Tag::new(tag_of(channel.element)))?;
    match channel.packing {
        Packing::Plain => {}
        Packing::BitshuffleLz4 { element } => compressed(encoder, BITSHUFFLE_LZ4, element)?,
        Packing::Lz4 => compressed(encoder, LZ4, 0)?,
        Packing::Lz4Block => {
            return Err(SeriesError::field("data", "LZ4 without a header is of version 1 alone"));
        }
    }
    Ok(encoder.bytes_len(channel.bytes.len() as u64)?.ok()?)
}

fn compressed(
    encoder: &mut CborEncoder,
    algorithm: &str,
    element: u8,
) -> Result<(), EncodeError<Infallible>> {
    encoder.tag(Tag::new(COMPRESSED))?.array(3)?.str(algorithm)?.u8(element)?.ok()
}

fn fields(encoder: &mut CborEncoder, fields: &[MetadataField]) -> Result<(), SeriesError> {
    for MetadataField { name, value } in fields {
        encoder.str(name)?;
        if name == "arm_date" {
            encoder.tag(Tag::new(DATE))?;
        }
        said(encoder, name, value)?;
    }
    Ok(())
}

fn said(encoder: &mut CborEncoder, name: &str, value: &MetadataValue) -> Result<(), SeriesError> {
    match value {
        MetadataValue::Null => encoder.null()?,
        MetadataValue::Bool(value) => encoder.bool(*value)?,
        MetadataValue::Integer(number) => match Int::try_from(*number) {
            Ok(number) => encoder.int(number)?,
            Err(_) => encoder.f64(*number as f64)?,
        },
        MetadataValue::Float(number) => encoder.f64(*number)?,
        MetadataValue::Text(text) => encoder.str(text)?,
        MetadataValue::List(values) => {
            encoder.array(values.len() as u64)?;
            return values.iter().try_for_each(|value| said(encoder, name, value));
        }
        MetadataValue::Map(inner) => {
            encoder.map(inner.len() as u64)?;
            return fields(encoder, inner);
        }
        MetadataValue::Bytes(_) | MetadataValue::Array(_) => {
            return Err(SeriesError::field(name, "bytes of another message can't be sent"));
        }
    };
    Ok(())
}
