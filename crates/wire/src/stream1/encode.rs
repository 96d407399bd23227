//! Encodes messages as their parts, for simulators and tests.

use md5::{Digest, Md5};
use serde_json::{Value, json};

use super::{
    BITSHUFFLE, CONFIG, END, HEADER, IMAGE, LZ4, PIXELS, PLAIN, TICKS, configuration::configuration,
};
use crate::{
    series::{ImageTimes, Packing, SeriesError, SeriesName, SeriesStart, TimeRatio},
    stream2::{ImageChannel, MessagePiece},
};

/// Encodes a header with `header_detail` basic as the parts of a message. It has all keys of a detector's
/// configuration, with values from the fields of the start. Keys use the names of version 1.
///
/// # Errors
/// If images do not have two dimensions.
pub fn encode_header(start: &SeriesStart) -> Result<Vec<Vec<u8>>, SeriesError> {
    let [rows, columns] = start.shape[..] else {
        return Err(SeriesError::field("shape", "images of version 1 have rows and columns"));
    };
    let first = json!({ "htype": HEADER, "series": start.series.number, "header_detail": "basic" });
    Ok(vec![written(&first), written(&configuration(start, rows, columns))])
}

/// Returns the MD5 of pixels as sent.
pub fn digest_of(pixels: &[u8]) -> [u8; 16] {
    Md5::digest(pixels).into()
}

/// Returns the MD5 of pixels as sent, in hexadecimal digits. Receivers may compare pixels with it.
pub fn hash_of(pixels: &[u8]) -> String {
    digest_of(pixels).iter().fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"))
}

/// Encodes an image of one channel as the parts of a message. `hash` is that of its pixels.
///
/// # Errors
/// If version 1 has no word for the packing, or pixels do not have two dimensions.
pub fn encode_image<'a>(
    series: &SeriesName,
    image: u64,
    times: &ImageTimes,
    channel: &ImageChannel<'a>,
    hash: &str,
) -> Result<Vec<MessagePiece<'a>>, SeriesError> {
    let [rows, columns] = channel.shape[..] else {
        return Err(SeriesError::field("shape", "images of version 1 have rows and columns"));
    };
    let first = json!({ "htype": IMAGE, "series": series.number, "frame": image, "hash": hash });
    let pixels = json!({
        "htype": PIXELS,
        "shape": [columns, rows],
        "type": channel.element.name(),
        "encoding": encoding(channel.packing)?,
        "size": channel.bytes.len(),
    });
    let config = json!({
        "htype": CONFIG,
        "start_time": nanoseconds(times.start),
        "stop_time": nanoseconds(times.stop),
        "real_time": nanoseconds(times.real),
    });
    Ok(vec![
        MessagePiece::Made(written(&first)),
        MessagePiece::Made(written(&pixels)),
        MessagePiece::Pixels(channel.bytes),
        MessagePiece::Made(written(&config)),
    ])
}

/// Encodes the end of a series as the only part of a message.
pub fn encode_end(series: &SeriesName) -> Vec<u8> {
    written(&json!({ "htype": END, "series": series.number }))
}

fn encoding(packing: Packing) -> Result<&'static str, SeriesError> {
    let bitshuffle = |element| BITSHUFFLE.iter().find(|(_, size)| *size == element).map(|(name, _)| *name);
    let name = match packing {
        Packing::Plain => Some(PLAIN),
        Packing::Lz4Block => Some(LZ4),
        Packing::BitshuffleLz4 { element } => bitshuffle(element),
        Packing::Lz4 => None,
    };
    name.ok_or_else(|| SeriesError::field("encoding", "version 1 has no word for it"))
}

fn nanoseconds(time: Option<TimeRatio>) -> u64 {
    let ticks = |time: TimeRatio| {
        u128::from(time.numerator) * u128::from(TICKS) / u128::from(time.denominator.max(1))
    };
    time.map_or(0, |time| u64::try_from(ticks(time)).unwrap_or(u64::MAX))
}

fn written(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
