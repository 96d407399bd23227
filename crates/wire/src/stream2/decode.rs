//! From a message to what it says. First all of it is read as values with names, then what is known is taken out of these.

use super::{BITSHUFFLE_LZ4, COMPRESSED, LZ4, ROW_MAJOR, TYPED, typed};
use crate::{
    cbor::{CborError, CborFault, CborItem, CborReader, DEPTH_MAX, MessageBytes},
    series::{
        ArrayData, CHANNELS_MAX, ChannelData, DIMENSIONS_MAX, Fields, ImageTimes, MetadataField,
        MetadataValue, Packing, SeriesError, SeriesImage, SeriesMessage, SeriesStart,
    },
};

/// What a message says.
pub fn decode(message: MessageBytes<'_>) -> Result<SeriesMessage, SeriesError> {
    let mut reader = CborReader::new(message);
    let top = value(&mut reader, 0)?;
    reader.finish()?;
    let MetadataValue::Map(fields) = top else {
        return Err(CborError { at: 0, fault: CborFault::NoMap }.into());
    };
    let mut fields = Fields { message: "the message", fields };
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

/// Whether a message of which this is the beginning is an image: `type` is the first key of a message. So it is known whose
/// long byte strings are pixels, before they came.
pub fn is_image(beginning: &[u8]) -> bool {
    let mut reader = CborReader::new(MessageBytes::whole(beginning));
    let mut item = || reader.item().ok();
    matches!(item(), Some(CborItem::Map(_)))
        && item() == Some(CborItem::Text("type"))
        && item() == Some(CborItem::Text("image"))
}

fn start(mut fields: Fields) -> Result<SeriesMessage, SeriesError> {
    let rows = fields.unsigned("image_size_y")?;
    let columns = fields.unsigned("image_size_x")?;
    Ok(SeriesMessage::Start(Box::new(SeriesStart {
        series: fields.series("series_id")?,
        images: fields.unsigned("number_of_images")?,
        shape: vec![rows, columns],
        element: fields.element("image_dtype")?,
        channels: channel_names(fields.needed("channels")?)?,
        fields: fields.fields,
    })))
}

fn channel_names(value: MetadataValue) -> Result<Vec<String>, SeriesError> {
    let wanted = || SeriesError::field("channels", "names of channels are wanted, each once");
    let MetadataValue::List(list) = value else { return Err(wanted()) };
    if list.is_empty() || list.len() > CHANNELS_MAX {
        return Err(SeriesError::field("channels", format!("1 to {CHANNELS_MAX} are wanted")));
    }
    let mut names = Vec::new();
    for value in list {
        match value {
            MetadataValue::Text(name) if !names.contains(&name) => names.push(name),
            _ => return Err(wanted()),
        }
    }
    Ok(names)
}

fn image(mut fields: Fields) -> Result<SeriesMessage, SeriesError> {
    let times = ImageTimes {
        start: fields.ratio("start_time")?,
        stop: fields.ratio("stop_time")?,
        real: fields.ratio("real_time")?,
        series_date: fields.optional_text("series_date")?,
    };
    Ok(SeriesMessage::Image(SeriesImage {
        series: fields.series("series_id")?,
        image: fields.unsigned("image_id")?,
        channels: channels(fields.needed("data")?)?,
        times,
        fields: fields.fields,
    }))
}

fn channels(data: MetadataValue) -> Result<Vec<ChannelData>, SeriesError> {
    let MetadataValue::Map(fields) = data else {
        return Err(SeriesError::field("data", "a map from channels to arrays is wanted"));
    };
    if fields.is_empty() || fields.len() > CHANNELS_MAX {
        return Err(SeriesError::field("data", format!("1 to {CHANNELS_MAX} channels are wanted")));
    }
    let mut channels: Vec<ChannelData> = Vec::new();
    for MetadataField { name: channel, value } in fields {
        if channels.iter().any(|data| data.channel == channel) {
            return Err(SeriesError::field("data", "a channel stands there twice"));
        }
        let MetadataValue::Array(array) = value else {
            let wanted = "an array of numbers is wanted (tag 40 of a typed array)";
            return Err(SeriesError::field("data", wanted));
        };
        channels.push(ChannelData { channel, array });
    }
    Ok(channels)
}

/// The next value, whatever it is.
fn value(reader: &mut CborReader<'_>, depth: u32) -> Result<MetadataValue, CborError> {
    if depth > DEPTH_MAX {
        return Err(reader.fault(CborFault::Deep));
    }
    let item = reader.item()?;
    Ok(match item {
        CborItem::Integer(number) => MetadataValue::Integer(number),
        CborItem::Bytes(length) => MetadataValue::Bytes(reader.place(length)?),
        CborItem::Text(text) => MetadataValue::Text(text.to_owned()),
        CborItem::Bool(value) => MetadataValue::Bool(value),
        CborItem::Nothing => MetadataValue::Null,
        CborItem::Float(number) => MetadataValue::Float(number),
        CborItem::Array(count) => MetadataValue::List(list(reader, count, depth)?),
        CborItem::Map(count) => MetadataValue::Map(map(reader, count, depth)?),
        CborItem::Tag(tag) => return tagged(reader, tag, depth),
        CborItem::Break => return Err(reader.fault(CborFault::Break)),
    })
}

/// Whether another item of a list or a map follows: a break ends one of unknown length, and is read.
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
    while follows(reader, count, fields.len() as u64)? {
        let at = reader.clone();
        let name = match reader.item()? {
            CborItem::Text(name) => name.to_owned(),
            CborItem::Integer(number) => number.to_string(),
            _ => return Err(at.fault(CborFault::Key)),
        };
        fields.push(MetadataField { name, value: value(reader, depth + 1)? });
    }
    Ok(fields)
}

/// An array, if it is one as it should be. What stands behind another tag is taken as if the tag were not there: users may say
/// of their images what they like.
fn tagged(reader: &mut CborReader<'_>, tag: u64, depth: u32) -> Result<MetadataValue, CborError> {
    let before = reader.clone();
    if let Ok(Some(array)) = array(reader, tag) {
        return Ok(MetadataValue::Array(array));
    }
    *reader = before;
    value(reader, depth + 1)
}

/// An array of one or more dimensions. None if it is something else.
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
    // What is compressed says its size itself.
    let fits = |array: &ArrayData| {
        array.packing != Packing::Plain || array.bytes() == Some(array.place.length() as u64)
    };
    Ok(array.filter(fits))
}

/// Elements in one dimension.
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
    // How many are packed is said by the bytes themselves, if by nothing else.
    let shape = if packing == Packing::Plain { vec![elements] } else { Vec::new() };
    Ok(Some(ArrayData { shape, element, big_endian, packing, place }))
}

/// How bytes are compressed, and how many follow.
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
