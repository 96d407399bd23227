//! From what is to be said to the parts of a message, for simulators and tests.

use md5::{Digest, Md5};
use serde_json::{Value, json};

use super::{
    BITSHUFFLE, CONFIG, END, HEADER, IMAGE, LZ4, PIXELS, PLAIN, TICKS, configuration::configuration,
};
use crate::{
    series::{ImageTimes, Packing, SeriesError, SeriesName, SeriesStart, TimeRatio},
    stream2::{ImageChannel, MessagePiece},
};

/// A header with `header_detail` basic, as the parts of a message: all keys of a detector's configuration, with the fields of the
/// start in their places, by the names of version 1 where it has another.
///
/// # Errors
/// If images have other than two dimensions.
pub fn encode_header(start: &SeriesStart) -> Result<Vec<Vec<u8>>, SeriesError> {
    let [rows, columns] = start.shape[..] else {
        return Err(SeriesError::field("shape", "images of version 1 have rows and columns"));
    };
    let first = json!({ "htype": HEADER, "series": start.series.number, "header_detail": "basic" });
    Ok(vec![written(&first), written(&configuration(start, rows, columns))])
}

/// What a receiver may compare the pixels of an image with, as they are sent: their MD5 in hexadecimal digits.
pub fn hash_of(pixels: &[u8]) -> String {
    Md5::digest(pixels).iter().fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"))
}

/// An image of one channel, as the parts of a message; `hash` is that of its pixels.
///
/// # Errors
/// If pixels are packed in a way that version 1 has no word for, or have other than two dimensions.
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

/// The end of a series, as the only part of a message.
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
