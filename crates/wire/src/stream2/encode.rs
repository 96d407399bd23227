//! From what is to be said to a message, for simulators and tests. Pixels stay where they are: a message is pieces that are
//! sent one behind the other.

use super::{BITSHUFFLE_LZ4, COMPRESSED, DATE, LZ4, ROW_MAJOR, tag_of};
use crate::{
    cbor::CborWriter,
    series::{
        ElementType, ImageTimes, MetadataField, MetadataValue, Packing, SeriesError, SeriesName, SeriesStart,
        TimeRatio,
    },
};

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessagePiece<'a> {
    /// What stands around pixels.
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
    /// What a pixel is.
    pub element: ElementType,
    /// How the bytes are packed.
    pub packing: Packing,
    /// They.
    pub bytes: &'a [u8],
}

/// A start message. Fields of the start that hold byte strings or arrays can't be said again: they lay in another message.
///
/// # Errors
/// If there is such a field, or if the images are not of two dimensions.
pub fn encode_start(start: &SeriesStart) -> Result<Vec<u8>, SeriesError> {
    let [rows, columns] = start.shape[..] else {
        return Err(SeriesError::field("shape", "images of version 2 have rows and columns"));
    };
    let mut writer = CborWriter::default();
    writer.map(8 + start.fields.len() as u64);
    head(&mut writer, "start", &start.series);
    for (name, number) in
        [("number_of_images", start.images), ("image_size_y", rows), ("image_size_x", columns)]
    {
        writer.text(name);
        writer.unsigned(number);
    }
    writer.text("image_dtype");
    writer.text(start.element.name());
    writer.text("channels");
    writer.array(start.channels.len() as u64);
    start.channels.iter().for_each(|channel| writer.text(channel));
    fields(&mut writer, &start.fields)?;
    Ok(writer.0)
}

/// An image message, in pieces.
///
/// # Errors
/// If pixels are packed in a way that version 2 has no word for.
pub fn encode_image<'a>(
    series: &SeriesName,
    image: u64,
    times: &ImageTimes,
    channels: &[ImageChannel<'a>],
) -> Result<Vec<MessagePiece<'a>>, SeriesError> {
    let ratios = [("start_time", times.start), ("stop_time", times.stop), ("real_time", times.real)];
    let told = ratios.iter().filter(|(_, ratio)| ratio.is_some()).count();
    let mut writer = CborWriter::default();
    writer.map((5 + told + usize::from(times.series_date.is_some())) as u64);
    head(&mut writer, "image", series);
    writer.text("image_id");
    writer.unsigned(image);
    for (name, ratio) in ratios {
        if let Some(TimeRatio { numerator, denominator }) = ratio {
            writer.text(name);
            writer.array(2);
            writer.unsigned(numerator);
            writer.unsigned(denominator);
        }
    }
    if let Some(date) = &times.series_date {
        writer.text("series_date");
        writer.tag(DATE);
        writer.text(date);
    }
    writer.text("data");
    writer.map(channels.len() as u64);
    let mut pieces = Vec::new();
    for channel in channels {
        writer.text(channel.name);
        array(&mut writer, channel)?;
        pieces.push(MessagePiece::Made(std::mem::take(&mut writer.0)));
        pieces.push(MessagePiece::Pixels(channel.bytes));
    }
    Ok(pieces)
}

/// An end message.
pub fn encode_end(series: &SeriesName) -> Vec<u8> {
    let mut writer = CborWriter::default();
    writer.map(3);
    head(&mut writer, "end", series);
    writer.0
}

/// Three fields.
fn head(writer: &mut CborWriter, kind: &str, series: &SeriesName) {
    writer.text("type");
    writer.text(kind);
    writer.text("series_id");
    writer.unsigned(series.number);
    writer.text("series_unique_id");
    writer.text(&series.unique);
}

/// An array up to its bytes.
fn array(writer: &mut CborWriter, channel: &ImageChannel<'_>) -> Result<(), SeriesError> {
    writer.tag(ROW_MAJOR);
    writer.array(2);
    writer.array(channel.shape.len() as u64);
    channel.shape.iter().for_each(|length| writer.unsigned(*length));
    writer.tag(tag_of(channel.element));
    match channel.packing {
        Packing::Plain => {}
        Packing::BitshuffleLz4 { element } => compressed(writer, BITSHUFFLE_LZ4, element),
        Packing::Lz4 => compressed(writer, LZ4, 0),
        Packing::Lz4Block => {
            return Err(SeriesError::field("data", "LZ4 without a header is of version 1 alone"));
        }
    }
    writer.bytes(channel.bytes.len() as u64);
    Ok(())
}

fn compressed(writer: &mut CborWriter, algorithm: &str, element: u8) {
    writer.tag(COMPRESSED);
    writer.array(3);
    writer.text(algorithm);
    writer.unsigned(element.into());
}

fn fields(writer: &mut CborWriter, fields: &[MetadataField]) -> Result<(), SeriesError> {
    for MetadataField { name, value } in fields {
        writer.text(name);
        if name == "arm_date" {
            writer.tag(DATE);
        }
        said(writer, name, value)?;
    }
    Ok(())
}

fn said(writer: &mut CborWriter, name: &str, value: &MetadataValue) -> Result<(), SeriesError> {
    match value {
        MetadataValue::Null => writer.null(),
        MetadataValue::Bool(value) => writer.bool(*value),
        MetadataValue::Integer(number) => writer.integer(*number),
        MetadataValue::Float(number) => writer.float(*number),
        MetadataValue::Text(text) => writer.text(text),
        MetadataValue::List(values) => {
            writer.array(values.len() as u64);
            return values.iter().try_for_each(|value| said(writer, name, value));
        }
        MetadataValue::Map(inner) => {
            writer.map(inner.len() as u64);
            return fields(writer, inner);
        }
        MetadataValue::Bytes(_) | MetadataValue::Array(_) => {
            return Err(SeriesError::field(name, "bytes of another message can't be sent"));
        }
    }
    Ok(())
}
