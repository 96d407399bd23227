//! The DECTRIS stream, version 1: messages of several parts, JSON and blobs, both ways.
//!
//! Source: SIMPLON API of EIGER detectors, "Stream interface". Detectors send on TCP port 9999 from a PUSH socket. Every message
//! begins with a JSON object whose `htype` says what it is:
//!
//! ```text
//! dheader-1.0       | configuration, if `header_detail` is basic or all | flat field and pixel mask, if it is all
//! dimage-1.0        | dimage_d-1.0: shape, type, encoding | pixels | dconfig-1.0: times | appendix of the user, if any
//! dseries_end-1.0
//! ```

mod configuration;
mod encode;
#[cfg(test)]
mod tests;

pub use encode::{encode_end, encode_header, encode_image, hash_of};

use serde_json::Value;

use crate::{
    cbor::{DataPlace, MessageBytes},
    series::{
        ArrayData, ChannelData, ElementType, Fields, ImageTimes, MetadataField, MetadataValue, Packing,
        SeriesError, SeriesImage, SeriesMessage, SeriesStart, TimeRatio,
    },
};

/// Where detectors send.
pub const PORT: u16 = 9999;
/// The name of the only channel.
pub const CHANNEL: &str = "image";

const HEADER: &str = "dheader-1.0";
const IMAGE: &str = "dimage-1.0";
const PIXELS: &str = "dimage_d-1.0";
const CONFIG: &str = "dconfig-1.0";
const END: &str = "dseries_end-1.0";
/// Bytes of a part that is JSON, at the most: what is made of it takes some fifty times as much memory.
pub const JSON_MAX: usize = 4 << 20;
/// Times are in nanoseconds.
const TICKS: u64 = 1_000_000_000;
/// Encodings: the compression, and `<` for little-endian.
const PLAIN: &str = "<";
const LZ4: &str = "lz4<";
const BITSHUFFLE: [(&str, u8); 3] = [("bs8-lz4<", 1), ("bs16-lz4<", 2), ("bs32-lz4<", 4)];

/// Whether a message that begins with this part is of this version, and not of version 2.
pub fn is_json(first: &[u8]) -> bool {
    first.trim_ascii_start().first() == Some(&b'{')
}

/// Whether this part of a message, of which these bytes stand before, is pixels: so it is known before it came.
pub fn is_pixels(before: &[u8], part: usize) -> bool {
    let beginning = &before[..before.len().min(256)];
    part == 2 && is_json(before) && beginning.windows(IMAGE.len()).any(|word| word == IMAGE.as_bytes())
}

/// What a message of these parts says. A part from which something was taken out is one that lies elsewhere as a whole; its cut
/// is counted among those of all parts.
pub fn decode(parts: &[MessageBytes<'_>]) -> Result<SeriesMessage, SeriesError> {
    let mut first = json(parts, 0, "the message")?;
    match first.text("htype")?.as_str() {
        HEADER => start(first, parts),
        IMAGE => image(first, parts),
        END => Ok(SeriesMessage::End(Fields { message: END, ..first }.series("series")?)),
        other => {
            let shown: String = other.chars().take(20).collect();
            Err(SeriesError::field("htype", format!("{shown:?} is none of {HEADER}, {IMAGE}, {END}")))
        }
    }
}

fn start(mut first: Fields, parts: &[MessageBytes<'_>]) -> Result<SeriesMessage, SeriesError> {
    first.message = HEADER;
    let series = first.series("series")?;
    if first.optional_text("header_detail")?.as_deref() == Some("none") {
        let fault = "none says nothing of the images; set it to basic or all";
        return Err(SeriesError::field("header_detail", fault));
    }
    let mut config = json(parts, 1, "the configuration")?;
    let images = config.unsigned("nimages")?;
    let triggers = match config.take("ntrigger") {
        Some(MetadataValue::Integer(triggers)) => u64::try_from(triggers).unwrap_or(1).max(1),
        _ => 1,
    };
    let rows = config.unsigned("y_pixels_in_detector")?;
    let columns = config.unsigned("x_pixels_in_detector")?;
    let bits = config.unsigned("bit_depth_image")?;
    let element = match bits {
        8 => ElementType::Uint8,
        16 => ElementType::Uint16,
        32 => ElementType::Uint32,
        _ => return Err(SeriesError::field("bit_depth_image", "8, 16 or 32 is wanted")),
    };
    Ok(SeriesMessage::Start(Box::new(SeriesStart {
        series,
        images: images.saturating_mul(triggers),
        shape: vec![rows, columns],
        element,
        channels: vec![CHANNEL.to_owned()],
        fields: config.fields,
    })))
}

fn image(mut first: Fields, parts: &[MessageBytes<'_>]) -> Result<SeriesMessage, SeriesError> {
    first.message = IMAGE;
    let mut pixels = json(parts, 1, PIXELS)?;
    let element = pixels.element("type")?;
    let array = ArrayData {
        shape: shape(&pixels.needed("shape")?)?,
        element,
        big_endian: false,
        packing: packing(&pixels.text("encoding")?)?,
        place: blob(parts, 2)?,
    };
    let mut times = ImageTimes::default();
    if parts.len() > 3 {
        let mut config = json(parts, 3, CONFIG)?;
        times.start = nanoseconds(&mut config, "start_time");
        times.stop = nanoseconds(&mut config, "stop_time");
        times.real = nanoseconds(&mut config, "real_time");
    }
    let appendix = parts.get(4).and_then(|part| std::str::from_utf8(part.bytes).ok());
    let appendix = appendix.map(|text| MetadataField::new("user_data", MetadataValue::Text(text.to_owned())));
    let size = array.place.length() as u64;
    let plain = array.packing == Packing::Plain;
    if plain && array.bytes() != Some(size) {
        return Err(SeriesError::field("shape", format!("the pixels have {size} B, which is another shape")));
    }
    Ok(SeriesMessage::Image(SeriesImage {
        series: first.series("series")?,
        image: first.unsigned("frame")?,
        channels: vec![ChannelData { channel: CHANNEL.to_owned(), array }],
        times,
        fields: appendix.into_iter().collect(),
    }))
}

/// Rows and columns: it is said the other way round.
fn shape(value: &MetadataValue) -> Result<Vec<u64>, SeriesError> {
    let wanted = || SeriesError::field("shape", "[columns, rows] is wanted");
    let MetadataValue::List(list) = value else { return Err(wanted()) };
    let [MetadataValue::Integer(columns), MetadataValue::Integer(rows)] = &list[..] else {
        return Err(wanted());
    };
    let lengths = [rows, columns].into_iter().map(|length| u64::try_from(*length).map_err(|_| wanted()));
    lengths.collect()
}

fn packing(encoding: &str) -> Result<Packing, SeriesError> {
    let bitshuffle = BITSHUFFLE.iter().find(|(name, _)| *name == encoding);
    match (encoding, bitshuffle) {
        (PLAIN, _) => Ok(Packing::Plain),
        (LZ4, _) => Ok(Packing::Lz4Block),
        (_, Some((_, element))) => Ok(Packing::BitshuffleLz4 { element: *element }),
        _ => {
            let shown: String = encoding.chars().take(20).collect();
            let names = BITSHUFFLE.map(|(name, _)| name).join(", ");
            Err(SeriesError::field("encoding", format!("{shown:?} is none of {PLAIN}, {LZ4}, {names}")))
        }
    }
}

/// A time, if there is one that makes sense: images are not refused for another.
fn nanoseconds(config: &mut Fields, name: &str) -> Option<TimeRatio> {
    let numerator = match config.take(name)? {
        MetadataValue::Integer(ticks) => u64::try_from(ticks).ok()?,
        _ => return None,
    };
    Some(TimeRatio { numerator, denominator: TICKS })
}

/// Where a part lies that is no JSON.
fn blob(parts: &[MessageBytes<'_>], number: usize) -> Result<DataPlace, SeriesError> {
    let missing = || SeriesError::Missing { message: IMAGE, field: "part of pixels".to_owned() };
    let before = parts.iter().take(number).map(|part| part.bytes.len()).sum::<usize>();
    let cut = parts.iter().take(number).map(|part| part.cuts.len()).sum();
    let part = parts.get(number).ok_or_else(missing)?;
    match part.cuts {
        [] => Ok(DataPlace::Within(before..before + part.bytes.len())),
        [only] if part.bytes.is_empty() => Ok(DataPlace::Apart { cut, length: only.length }),
        _ => Err(missing()),
    }
}

/// A part as an object.
fn json(parts: &[MessageBytes<'_>], number: usize, message: &'static str) -> Result<Fields, SeriesError> {
    let missing = || SeriesError::Missing { message, field: format!("part {number}") };
    let part = parts.get(number).filter(|part| part.cuts.is_empty()).ok_or_else(missing)?;
    let wrong = |fault: String| SeriesError::Json { part: number, fault };
    if part.bytes.len() > JSON_MAX {
        return Err(wrong(format!("more than {JSON_MAX} B of JSON")));
    }
    let value: Value = serde_json::from_slice(part.bytes).map_err(|error| wrong(error.to_string()))?;
    match metadata(value) {
        MetadataValue::Map(fields) => Ok(Fields { message, fields }),
        _ => Err(wrong("an object is wanted".to_owned())),
    }
}

fn metadata(value: Value) -> MetadataValue {
    match value {
        Value::Null => MetadataValue::Null,
        Value::Bool(value) => MetadataValue::Bool(value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => MetadataValue::Integer(number.into()),
            (_, Some(number)) => MetadataValue::Integer(number.into()),
            _ => MetadataValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => MetadataValue::Text(text),
        Value::Array(values) => MetadataValue::List(values.into_iter().map(metadata).collect()),
        Value::Object(fields) => {
            let field = |(name, value)| MetadataField { name, value: metadata(value) };
            MetadataValue::Map(fields.into_iter().map(field).collect())
        }
    }
}
