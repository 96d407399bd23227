//! The DECTRIS stream, version 1: messages of several parts, JSON and blobs, for decoding and encoding.
//!
//! Source: SIMPLON API of EIGER detectors, "Stream interface". Detectors send on TCP port 9999 from a PUSH
//! socket. Every message begins with a JSON object whose `htype` gives its kind:
//!
//! ```text
//! dheader-1.0       | configuration, if `header_detail` is basic or all | flat field and pixel mask, if it is all | appendix
//! dimage-1.0        | dimage_d-1.0: shape, type, encoding | pixels | dconfig-1.0: times | appendix of the user, if any
//! dseries_end-1.0
//! ```

mod configuration;
mod encode;
mod json;
#[cfg(test)]
mod tests;

pub use encode::{digest_of, encode_end, encode_header, encode_image, hash_of};

use crate::{
    cbor::{DataPlace, MessageBytes},
    series::{
        ArrayData, ChannelData, ElementType, Fields, ImageTimes, MetadataField, MetadataValue, Packing,
        SeriesAnnouncement, SeriesError, SeriesImage, SeriesMessage, SeriesMessageKind, SeriesName,
        TimeRatio, positive, unsigned,
    },
};
use json::{first_object, json, value_of};

/// TCP port on which detectors send.
pub const PORT: u16 = 9999;
/// The name of the only channel.
pub const CHANNEL: &str = "image";

const HEADER: &str = "dheader-1.0";
const IMAGE: &str = "dimage-1.0";
const PIXELS: &str = "dimage_d-1.0";
const CONFIG: &str = "dconfig-1.0";
const END: &str = "dseries_end-1.0";
/// Limit on the bytes of a JSON part. Reading it takes about fifty times as much memory.
pub const JSON_MAX: usize = 4 << 20;
/// Bytes of a message within which its kind appears.
const KIND_WITHIN: usize = 256;
/// Ticks per second: times are in nanoseconds.
const TICKS: u64 = 1_000_000_000;
/// Encodings: the compression, and `<` for little-endian.
const PLAIN: &str = "<";
const LZ4: &str = "lz4<";
const BITSHUFFLE: [(&str, u8); 3] = [("bs8-lz4<", 1), ("bs16-lz4<", 2), ("bs32-lz4<", 4)];

/// Returns true if a message that begins with this part has version 1, not 2.
pub fn is_json(first: &[u8]) -> bool {
    first.trim_ascii_start().first() == Some(&b'{')
}

/// Returns true if part `part` of a message holds pixels, judged by the bytes `before` it. The receiver thus
/// knows before the part arrives.
pub fn is_pixels(before: &[u8], part: usize) -> bool {
    part == 2 && kind_of(before) == Some(SeriesMessageKind::Image)
}

/// Returns the kind of the message that begins with these bytes. `None` if it belongs to no series.
pub fn kind_of(beginning: &[u8]) -> Option<SeriesMessageKind> {
    let beginning = &beginning[..beginning.len().min(KIND_WITHIN)];
    let names = |word: &str| beginning.windows(word.len()).any(|bytes| bytes == word.as_bytes());
    match is_json(beginning) {
        true if names(HEADER) => Some(SeriesMessageKind::Start),
        true if names(IMAGE) => Some(SeriesMessageKind::Image),
        true if names(END) => Some(SeriesMessageKind::End),
        _ => None,
    }
}

/// Returns the series of an image, from the beginning of its first part. `None` if that has no name.
pub fn series_of(beginning: &[u8]) -> Option<SeriesName> {
    let MetadataValue::Map(fields) = first_object(beginning)? else { return None };
    Fields::new(IMAGE, fields).series("series").ok()
}

/// Decodes a message of these parts. A part with a cut must have been taken out as a whole. Its cut counts
/// among those of all parts.
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
    let mut config = optional_json(parts, 1, "the configuration", &mut first.unread);
    let triggers = config.optional("ntrigger", positive).unwrap_or(1);
    let images = config.optional("nimages", unsigned).map(|images| images.saturating_mul(triggers));
    let rows = config.optional("y_pixels_in_detector", positive);
    let columns = config.optional("x_pixels_in_detector", positive);
    let element = config.optional("bit_depth_image", element_of_bits);
    config.fields.extend(header_appendix(parts));
    config.fields.extend(tables(parts, &mut first.unread));
    first.unread.append(&mut config.unread);
    Ok(SeriesMessage::Start(Box::new(SeriesAnnouncement {
        series,
        images: images.filter(|images| *images > 0),
        shape: rows.zip(columns).map(|(rows, columns)| vec![rows, columns]),
        element,
        channels: Some(vec![CHANNEL.to_owned()]),
        fields: config.fields,
        unread: first.unread,
    })))
}

fn element_of_bits(field: &str, value: &MetadataValue) -> Result<ElementType, SeriesError> {
    match unsigned(field, value)? {
        8 => Ok(ElementType::Uint8),
        16 => Ok(ElementType::Uint16),
        32 => Ok(ElementType::Uint32),
        _ => Err(SeriesError::field(field, "must be 8, 16 or 32")),
    }
}

/// The arrays of pixels in a header with all details, and their names in version 2.
const TABLES: [(&str, &str); 2] = [("dflatfield-1.0", "flatfield"), ("dpixelmask-1.0", "pixel_mask")];

/// Returns the arrays of a header, which follow its configuration in pairs: description and bytes.
fn tables(parts: &[MessageBytes<'_>], unread: &mut Vec<SeriesError>) -> Vec<MetadataField> {
    let mut found = Vec::new();
    for number in (2..parts.len().saturating_sub(1)).step_by(2) {
        let Ok(mut fields) = json(parts, number, HEADER) else { continue };
        let kind = fields.text("htype").unwrap_or_default();
        let Some((_, name)) = TABLES.iter().find(|(table, _)| *table == kind) else { continue };
        match table(fields, parts, number + 1) {
            Ok(array) => found.push(MetadataField::new(name, MetadataValue::Array(array))),
            Err(fault) => unread.push(fault),
        }
    }
    found
}

fn table(mut fields: Fields, parts: &[MessageBytes<'_>], number: usize) -> Result<ArrayData, SeriesError> {
    Ok(ArrayData {
        shape: shape(&fields.needed("shape")?)?,
        element: fields.element("type")?,
        big_endian: false,
        packing: Packing::Plain,
        place: blob(parts, number)?,
    })
}

/// Returns the user's own part of a header, which follows all others. The others come in pairs: header and
/// configuration, then description and bytes of each array.
fn header_appendix(parts: &[MessageBytes<'_>]) -> Option<MetadataField> {
    let last = parts.last().filter(|part| parts.len() > 2 && parts.len() % 2 == 1 && part.cuts.is_empty())?;
    let text = String::from_utf8_lossy(last.bytes);
    let value = value_of(last.bytes).unwrap_or_else(|_| MetadataValue::Text(text.into_owned()));
    Some(MetadataField { name: "header_appendix".to_owned(), value })
}

/// Reads an optional part. A missing one has no fields. A broken one has none either, and its error joins
/// `unread`.
fn optional_json(
    parts: &[MessageBytes<'_>],
    number: usize,
    message: &'static str,
    unread: &mut Vec<SeriesError>,
) -> Fields {
    if number >= parts.len() {
        return Fields::new(message, Vec::new());
    }
    json(parts, number, message).unwrap_or_else(|fault| {
        unread.push(fault);
        Fields::new(message, Vec::new())
    })
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
    let mut config = optional_json(parts, 3, CONFIG, &mut first.unread);
    let times = ImageTimes {
        start: config.optional("start_time", nanoseconds),
        stop: config.optional("stop_time", nanoseconds),
        real: config.optional("real_time", nanoseconds),
        series_date: None,
    };
    first.unread.append(&mut config.unread);
    let appendix = parts.get(4).map(|part| String::from_utf8_lossy(part.bytes).into_owned());
    let appendix = appendix.map(|text| MetadataField::new("user_data", MetadataValue::Text(text)));
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
        hash: first.optional("hash", hash).flatten(),
        fields: appendix.into_iter().collect(),
        unread: first.unread,
        unread_channels: Vec::new(),
    }))
}

/// Returns rows and columns, which the message states in the other order.
fn shape(value: &MetadataValue) -> Result<Vec<u64>, SeriesError> {
    let wanted = || SeriesError::field("shape", "must be [columns, rows]");
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

/// Returns the MD5 in 32 hexadecimal digits. `None` if the text is empty: the sender states none.
fn hash(field: &str, value: &MetadataValue) -> Result<Option<[u8; 16]>, SeriesError> {
    let wanted = || SeriesError::field(field, "must be the MD5 of the pixels in 32 hexadecimal digits");
    let MetadataValue::Text(text) = value else { return Err(wanted()) };
    if text.is_empty() {
        return Ok(None);
    }
    let is_hash = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hash).ok_or_else(wanted)?;
    Ok(Some(number.to_be_bytes()))
}

fn nanoseconds(field: &str, value: &MetadataValue) -> Result<TimeRatio, SeriesError> {
    Ok(TimeRatio { numerator: unsigned(field, value)?, denominator: TICKS })
}

/// Returns the position of a part that is no JSON.
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
