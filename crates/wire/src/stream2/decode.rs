//! Decodes a message. First reads everything as named values, then takes the known fields out of these.

use nilometer_model::{Moment, Nanos};

use super::{BITSHUFFLE_LZ4, COMPRESSED, EPOCH, LZ4, ROW_MAJOR, TYPED, typed};
use crate::{
    cbor::{CborError, CborFault, CborItem, CborReader, DEPTH_MAX, MessageBytes},
    series::{
        ArrayData, CHANNELS_MAX, ChannelData, DIMENSIONS_MAX, Fields, ImageTimes, MetadataField,
        MetadataValue, Packing, SeriesAnnouncement, SeriesError, SeriesImage, SeriesMessage,
        SeriesMessageKind, SeriesName, element, positive, ratio, text, unsigned,
    },
};

/// Decodes a message.
pub fn decode(message: MessageBytes<'_>) -> Result<SeriesMessage, SeriesError> {
    let mut reader = CborReader::new(message);
    let top = value(&mut reader, 0)?;
    reader.finish()?;
    let MetadataValue::Map(fields) = top else {
        return Err(CborError { at: 0, fault: CborFault::NoMap }.into());
    };
    let mut fields = Fields::new("the message", fields);
    match fields.text("type")?.as_str() {
        "start" => start(Fields { message: "the start message", ..fields }),
        "image" => image(Fields { message: "the image message", ..fields }),
        "end" => {
            let mut fields = Fields { message: "the end message", ..fields };
            Ok(SeriesMessage::End(fields.series("series_id")?))
        }
        other => {
            let shown: String = other.chars().take(20).collect();
            Err(SeriesError::field("type", format!("{shown:?} is none of start, image, end")))
        }
    }
}

/// Returns the kind of a message from its beginning, because `type` is its first key. `None` if it belongs to
/// no series.
pub fn kind_of(beginning: &[u8]) -> Option<SeriesMessageKind> {
    let mut reader = CborReader::new(MessageBytes::whole(beginning));
    let CborItem::Map(_) = reader.item().ok()? else { return None };
    match (reader.item().ok()?, reader.item().ok()?) {
        (CborItem::Text("type"), CborItem::Text("start")) => Some(SeriesMessageKind::Start),
        (CborItem::Text("type"), CborItem::Text("image")) => Some(SeriesMessageKind::Image),
        (CborItem::Text("type"), CborItem::Text("end")) => Some(SeriesMessageKind::End),
        _ => None,
    }
}

/// Returns true if a message with this beginning is an image. The receiver thus knows that its long byte
/// strings are pixels, before they arrive.
pub fn is_image(beginning: &[u8]) -> bool {
    kind_of(beginning) == Some(SeriesMessageKind::Image)
}

/// Bytes of a message to search for its series. Detectors name it in the first hundred.
const LOOKED_AT: usize = 16 << 10;

/// Returns the series of an image, from the fields in front of its pixels. `None` if these do not name it.
pub fn series_of(beginning: &[u8]) -> Option<SeriesName> {
    let looked_at = &beginning[..beginning.len().min(LOOKED_AT)];
    let mut reader = CborReader::new(MessageBytes::whole(looked_at));
    let CborItem::Map(_) = reader.item().ok()? else { return None };
    let mut head = Vec::new();
    while let Ok(CborItem::Text(name)) = reader.item()
        && name != "data"
    {
        let named = matches!(name, "series_id" | "series_unique_id");
        let Ok(value) = value(&mut reader, 0) else { break };
        head.extend(named.then(|| MetadataField::new(name, value)));
    }
    Fields::new("the image message", head).series("series_id").ok()
}

fn start(mut fields: Fields) -> Result<SeriesMessage, SeriesError> {
    let series = fields.series("series_id")?;
    let rows = fields.optional("image_size_y", positive);
    let columns = fields.optional("image_size_x", positive);
    Ok(SeriesMessage::Start(Box::new(SeriesAnnouncement {
        series,
        images: fields.optional("number_of_images", unsigned).filter(|images| *images > 0),
        shape: rows.zip(columns).map(|(rows, columns)| vec![rows, columns]),
        element: fields.optional("image_dtype", element),
        channels: fields.optional("channels", channel_names),
        fields: fields.fields,
        unread: fields.unread,
    })))
}

fn channel_names(field: &str, value: &MetadataValue) -> Result<Vec<String>, SeriesError> {
    let wanted = || SeriesError::field(field, "names of channels are wanted, each once");
    let MetadataValue::List(list) = value else { return Err(wanted()) };
    if list.is_empty() || list.len() > CHANNELS_MAX {
        return Err(SeriesError::field(field, format!("must be 1 to {CHANNELS_MAX}")));
    }
    let mut names = Vec::new();
    for value in list {
        match value {
            MetadataValue::Text(name) if !names.contains(name) => names.push(name.clone()),
            _ => return Err(wanted()),
        }
    }
    Ok(names)
}

fn image(mut fields: Fields) -> Result<SeriesMessage, SeriesError> {
    let mut unread_channels = Vec::new();
    let channels = channels(fields.needed("data")?, &mut unread_channels)?;
    let times = ImageTimes {
        start: fields.optional("start_time", ratio),
        stop: fields.optional("stop_time", ratio),
        real: fields.optional("real_time", ratio),
        series_date: fields.optional("series_date", text),
    };
    Ok(SeriesMessage::Image(SeriesImage {
        series: fields.series("series_id")?,
        image: fields.unsigned("image_id")?,
        channels,
        times,
        hash: None,
        fields: fields.fields,
        unread: fields.unread,
        unread_channels,
    }))
}

/// Returns the readable channels of an image. Errors of the others join `unread`. Fails if no channel is
/// readable.
fn channels(data: MetadataValue, unread: &mut Vec<SeriesError>) -> Result<Vec<ChannelData>, SeriesError> {
    let MetadataValue::Map(fields) = data else {
        return Err(SeriesError::field("data", "must be a map from channels to arrays"));
    };
    if fields.is_empty() || fields.len() > CHANNELS_MAX {
        return Err(SeriesError::field("data", format!("must have 1 to {CHANNELS_MAX} channels")));
    }
    let mut channels: Vec<ChannelData> = Vec::new();
    for MetadataField { name: channel, value } in fields {
        if channels.iter().any(|data| data.channel == channel) {
            return Err(SeriesError::field("data", "a channel stands there twice"));
        }
        match value {
            MetadataValue::Array(array) => channels.push(ChannelData { channel, array }),
            _ => {
                unread.push(SeriesError::field(
                    "data",
                    "must be an array of numbers (tag 40 of a typed array)",
                ));
            }
        }
    }
    if channels.is_empty() {
        return Err(unread.pop().expect("each channel is read or not"));
    }
    Ok(channels)
}

/// Reads the next value of any kind.
pub(super) fn value(reader: &mut CborReader<'_>, depth: u32) -> Result<MetadataValue, CborError> {
    if depth > DEPTH_MAX {
        reader.skip()?;
        return Ok(MetadataValue::Null);
    }
    let item = reader.item()?;
    Ok(match item {
        CborItem::Integer(number) => MetadataValue::Integer(number),
        CborItem::Bytes(length) => MetadataValue::Bytes(reader.place(length)?),
        CborItem::Text(text) => MetadataValue::Text(text.to_owned()),
        CborItem::Garbled(bytes) => MetadataValue::Text(String::from_utf8_lossy(bytes).into_owned()),
        CborItem::Pieces { text } => pieces(reader, text)?,
        CborItem::Bool(value) => MetadataValue::Bool(value),
        CborItem::Nothing => MetadataValue::Null,
        CborItem::Float(number) => MetadataValue::Float(number),
        CborItem::Array(count) => MetadataValue::List(list(reader, count, depth)?),
        CborItem::Map(count) => MetadataValue::Map(map(reader, count, depth)?),
        CborItem::Tag(tag) => return tagged(reader, tag, depth),
        CborItem::Break => return Err(reader.fault(CborFault::Break)),
    })
}

/// Reads a string in pieces. Joins texts, and skips bytes.
fn pieces(reader: &mut CborReader<'_>, text: bool) -> Result<MetadataValue, CborError> {
    let mut whole = String::new();
    loop {
        let at = reader.clone();
        match reader.item()? {
            CborItem::Break => break,
            CborItem::Text(piece) if text => whole.push_str(piece),
            CborItem::Garbled(piece) if text => whole.push_str(&String::from_utf8_lossy(piece)),
            CborItem::Bytes(length) if !text => {
                reader.place(length)?;
            }
            _ => return Err(at.fault(CborFault::Piece)),
        }
    }
    Ok(if text { MetadataValue::Text(whole) } else { MetadataValue::Null })
}

/// Returns true if a list or map has another item. Reads the break that ends one of unknown length.
fn follows(reader: &mut CborReader<'_>, count: Option<u64>, came: u64) -> Result<bool, CborError> {
    if let Some(count) = count {
        return Ok(came < count);
    }
    let before = reader.clone();
    if reader.item()? == CborItem::Break {
        return Ok(false);
    }
    *reader = before;
    Ok(true)
}

fn list(
    reader: &mut CborReader<'_>,
    count: Option<u64>,
    depth: u32,
) -> Result<Vec<MetadataValue>, CborError> {
    let mut values = Vec::new();
    while follows(reader, count, values.len() as u64)? {
        values.push(value(reader, depth + 1)?);
    }
    Ok(values)
}

fn map(reader: &mut CborReader<'_>, count: Option<u64>, depth: u32) -> Result<Vec<MetadataField>, CborError> {
    let mut fields = Vec::new();
    let mut came = 0;
    while follows(reader, count, came)? {
        came += 1;
        let name = match value(reader, depth + 1)? {
            MetadataValue::Text(name) => name,
            MetadataValue::Integer(number) => number.to_string(),
            // No caller can look it up by name.
            _ => {
                reader.skip()?;
                continue;
            }
        };
        fields.push(MetadataField { name, value: value(reader, depth + 1)? });
    }
    Ok(fields)
}

/// Reads an array if it is valid, or a time since 1970 as a date. Ignores other tags and reads the value after
/// them, because users may add any metadata to images.
fn tagged(reader: &mut CborReader<'_>, tag: u64, depth: u32) -> Result<MetadataValue, CborError> {
    let before = reader.clone();
    if let Ok(Some(array)) = array(reader, tag) {
        return Ok(MetadataValue::Array(array));
    }
    *reader = before;
    let value = value(reader, depth + 1)?;
    Ok(if tag == EPOCH { date_of(value) } else { value })
}

/// Turns seconds since 1970 into a date of RFC 3339. Returns any other value unchanged.
fn date_of(value: MetadataValue) -> MetadataValue {
    let seconds = match value {
        MetadataValue::Integer(seconds) => seconds as f64,
        MetadataValue::Float(seconds) => seconds,
        _ => return value,
    };
    if !(0.0..EPOCH_MAX).contains(&seconds) {
        return value;
    }
    // At today's times a float resolves a microsecond at best.
    #[expect(clippy::cast_sign_loss, reason = "it is in that range")]
    let moment = Moment(Nanos((seconds * 1e6).round() as u64 * 1000));
    MetadataValue::Text(moment.to_string())
}

/// The year 2500, in seconds since 1970. No detector runs later.
const EPOCH_MAX: f64 = 16_725_225_600.0;

/// Reads an array of one or more dimensions. `None` if it is something else.
fn array(reader: &mut CborReader<'_>, tag: u64) -> Result<Option<ArrayData>, CborError> {
    if TYPED.contains(&tag) {
        return typed_array(reader, tag);
    }
    if tag != ROW_MAJOR || reader.item()? != CborItem::Array(Some(2)) {
        return Ok(None);
    }
    let CborItem::Array(Some(dimensions)) = reader.item()? else { return Ok(None) };
    if dimensions > DIMENSIONS_MAX as u64 {
        return Ok(None);
    }
    let mut shape = Vec::new();
    for _ in 0..dimensions {
        let CborItem::Integer(length) = reader.item()? else { return Ok(None) };
        let Ok(length) = u64::try_from(length) else { return Ok(None) };
        shape.push(length);
    }
    let CborItem::Tag(tag) = reader.item()? else { return Ok(None) };
    let flat = typed_array(reader, tag)?;
    let array = flat.map(|flat| ArrayData { shape, ..flat });
    // Compressed data state their own size.
    let fits = |array: &ArrayData| {
        array.packing != Packing::Plain || array.bytes() == Some(array.place.length() as u64)
    };
    Ok(array.filter(fits))
}

/// Reads an array of one dimension.
fn typed_array(reader: &mut CborReader<'_>, tag: u64) -> Result<Option<ArrayData>, CborError> {
    let Some((element, big_endian)) = typed(tag) else { return Ok(None) };
    let (packing, length) = match reader.item()? {
        CborItem::Bytes(length) => (Packing::Plain, length),
        CborItem::Tag(COMPRESSED) => match packing(reader)? {
            Some(packing) => packing,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let place = reader.place(length)?;
    let elements = (place.length() / element.bytes()) as u64;
    // Only the packed bytes state the number of elements, if anything does.
    let shape = if packing == Packing::Plain { vec![elements] } else { Vec::new() };
    Ok(Some(ArrayData { shape, element, big_endian, packing, place }))
}

/// Reads the compression and the number of bytes that follow.
fn packing(reader: &mut CborReader<'_>) -> Result<Option<(Packing, u64)>, CborError> {
    if reader.item()? != CborItem::Array(Some(3)) {
        return Ok(None);
    }
    let packing = match (reader.item()?, reader.item()?) {
        (CborItem::Text(BITSHUFFLE_LZ4), CborItem::Integer(element)) => match u8::try_from(element) {
            Ok(element @ (1 | 2 | 4 | 8)) => Packing::BitshuffleLz4 { element },
            _ => return Ok(None),
        },
        (CborItem::Text(LZ4), _) => Packing::Lz4,
        _ => return Ok(None),
    };
    let CborItem::Bytes(length) = reader.item()? else { return Ok(None) };
    Ok(Some((packing, length)))
}
