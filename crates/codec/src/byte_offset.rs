//! Differences of pixels in as few bytes as possible: `x-CBF_BYTE_OFFSET`, the format of Pilatus detectors.
//!
//! The format stores the difference to the previous pixel (0 before the first) as a signed byte. Beyond ±127
//! it is the byte 0x80 and 16 bits; beyond ±32767 then 0x8000 and 32 bits. Beyond ±(2^31 - 1) it is then
//! 0x8000 0000 and 64 bits. All are little-endian. (International Tables for Crystallography G, section 5.6,
//! and `cbf_byte_offset.c` of the reference library.)

use crate::CodecError;

/// Pixels that are coded together, if each difference fits into one byte.
const RUN: usize = 16;
/// Marks that the difference follows in 16 bits.
const WIDER: u8 = 0x80;
/// Bytes of the widest difference with its marks.
const WIDEST: usize = 15;

/// Appends the differences of these pixels.
pub fn encode(pixels: &[i32], encoded: &mut Vec<u8>) {
    let (runs, rest) = pixels.as_chunks();
    put_runs(runs.iter().copied(), rest, encoded);
}

/// Does the same with pixels as in memory and raw files: little-endian, 4 bytes each. A trailing part of a
/// pixel is left out.
pub fn encode_bytes(pixels: &[u8], encoded: &mut Vec<u8>) {
    let (runs, rest) = pixels.as_chunks::<4>().0.as_chunks::<RUN>();
    let rest: Vec<i32> = rest.iter().map(|pixel| i32::from_le_bytes(*pixel)).collect();
    put_runs(runs.iter().map(|run| run.map(i32::from_le_bytes)), &rest, encoded);
}

/// Returns the most bytes for `pixels` pixels.
pub const fn encoded_max(pixels: u64) -> u64 {
    pixels * WIDEST as u64
}

#[inline]
fn put_runs(runs: impl ExactSizeIterator<Item = [i32; RUN]>, rest: &[i32], encoded: &mut Vec<u8>) {
    encoded.reserve(RUN * runs.len() + rest.len() + WIDEST);
    let mut before = 0;
    for run in runs {
        match small(before, &run) {
            Some(bytes) => encoded.extend_from_slice(&bytes),
            None => put_each(before, &run, encoded),
        }
        before = run[RUN - 1];
    }
    put_each(before, rest, encoded);
}

/// Returns the differences of a run, if each fits into a byte.
#[inline]
fn small(before: i32, run: &[i32; RUN]) -> Option<[u8; RUN]> {
    let mut previous = [before; RUN];
    previous[1..].copy_from_slice(&run[..RUN - 1]);
    let mut bytes = [0; RUN];
    let mut beyond = false;
    for ((byte, pixel), previous) in bytes.iter_mut().zip(run).zip(previous) {
        let (difference, overflows) = pixel.overflowing_sub(previous);
        beyond |= overflows | !(-127..=127).contains(&difference);
        *byte = difference.to_le_bytes()[0];
    }
    (!beyond).then_some(bytes)
}

#[cold]
fn put_each(mut before: i32, pixels: &[i32], encoded: &mut Vec<u8>) {
    for &pixel in pixels {
        put(i64::from(pixel) - i64::from(before), encoded);
        before = pixel;
    }
}

fn put(difference: i64, encoded: &mut Vec<u8>) {
    if let Some(byte) = narrow::<i8>(difference) {
        return encoded.push(byte.cast_unsigned());
    }
    encoded.push(WIDER);
    if let Some(short) = narrow::<i16>(difference) {
        return encoded.extend(short.to_le_bytes());
    }
    encoded.extend(i16::MIN.to_le_bytes());
    if let Some(word) = narrow::<i32>(difference) {
        return encoded.extend(word.to_le_bytes());
    }
    encoded.extend(i32::MIN.to_le_bytes());
    encoded.extend(difference.to_le_bytes());
}

/// Returns the difference in a narrower type; the least value of the type is a mark and no difference.
fn narrow<T: TryFrom<i64> + PartialEq + Least>(difference: i64) -> Option<T> {
    T::try_from(difference).ok().filter(|value| *value != T::LEAST)
}

/// The least value of a type.
trait Least {
    const LEAST: Self;
}

impl Least for i8 {
    const LEAST: Self = i8::MIN;
}

impl Least for i16 {
    const LEAST: Self = i16::MIN;
}

impl Least for i32 {
    const LEAST: Self = i32::MIN;
}

/// Decodes into exactly these pixels. After an error their content is undefined.
pub fn decode(encoded: &[u8], pixels: &mut [i32]) -> Result<(), CodecError> {
    let (mut at, mut done, mut before) = (0, 0, 0);
    while done < pixels.len() {
        if let (Some(run), Some(bytes)) = (pixels[done..].first_chunk_mut(), encoded[at..].first_chunk())
            && let Some(last) = take_small(before, bytes, run)
        {
            before = last;
            at += RUN;
            done += RUN;
            continue;
        }
        // Decode a run with a wide difference, or the last pixels, one by one.
        let end = pixels.len().min(done + RUN);
        for pixel in &mut pixels[done..end] {
            let (difference, next) = take(encoded, at)?;
            let value = i64::from(before).checked_add(difference);
            let value = value.and_then(|value| i32::try_from(value).ok());
            before = value.ok_or(CodecError::Pixel { pixel: done })?;
            *pixel = before;
            at = next;
            done += 1;
        }
    }
    match encoded.len() - at {
        0 => Ok(()),
        bytes => Err(CodecError::Trailing { bytes }),
    }
}

/// Decodes a run whose differences are bytes and returns its last pixel; `None` if one is wider or overflows.
#[inline]
fn take_small(before: i32, bytes: &[u8; RUN], run: &mut [i32; RUN]) -> Option<i32> {
    // Without a branch, so that the compiler can handle all bytes at once.
    let wide = bytes.iter().fold(0, |wide, byte| wide | u8::from(*byte == WIDER));
    // The run moves a pixel by at most 16 x 127.
    if wide != 0 || before.unsigned_abs() > i32::MAX as u32 - 4096 {
        return None;
    }
    let mut value = before;
    for (pixel, byte) in run.iter_mut().zip(bytes) {
        value += i32::from(byte.cast_signed());
        *pixel = value;
    }
    Some(value)
}

/// Returns the difference at a place, and the position of the next one.
fn take(encoded: &[u8], at: usize) -> Result<(i64, usize), CodecError> {
    let byte = i8::from_le_bytes(bytes(encoded, at)?);
    if byte != i8::MIN {
        return Ok((i64::from(byte), at + 1));
    }
    let short = i16::from_le_bytes(bytes(encoded, at + 1)?);
    if short != i16::MIN {
        return Ok((i64::from(short), at + 3));
    }
    let word = i32::from_le_bytes(bytes(encoded, at + 3)?);
    if word != i32::MIN {
        return Ok((i64::from(word), at + 7));
    }
    Ok((i64::from_le_bytes(bytes(encoded, at + 7)?), at + WIDEST))
}

fn bytes<const N: usize>(encoded: &[u8], at: usize) -> Result<[u8; N], CodecError> {
    let found = encoded.get(at..).and_then(<[u8]>::first_chunk);
    found.copied().ok_or(CodecError::Short { at: encoded.len(), what: "a pixel" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(pixels: &[i32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(pixels, &mut bytes);
        bytes
    }

    /// Small steps, as in background, with spots, gaps and the extremes of the type between them.
    fn pixels() -> impl Strategy<Value = Vec<i32>> {
        let pixel = prop_oneof![
            100 => -2..4_i32,
            1 => -40_000..40_000_i32,
            1 => any::<i32>(),
            1 => prop::sample::select(vec![i32::MIN, i32::MAX, 127, -127, 128, -128, 32767, -32767, 32768]),
        ];
        prop::collection::vec(pixel, 0..3000)
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(pixels in pixels()) {
            let bytes = encoded(&pixels);
            let mut back = vec![7; pixels.len()];
            prop_assert_eq!(decode(&bytes, &mut back), Ok(()));
            prop_assert_eq!(back, pixels);
        }

        #[test]
        fn runs_are_written_as_single_pixels_are(pixels in pixels()) {
            let mut one_by_one = Vec::new();
            put_each(0, &pixels, &mut one_by_one);
            prop_assert_eq!(encoded(&pixels), one_by_one);
        }

        #[test]
        fn bytes_of_pixels_are_encoded_as_pixels_are(pixels in pixels()) {
            let bytes: Vec<u8> = pixels.iter().flat_map(|pixel| pixel.to_le_bytes()).collect();
            let mut from_bytes = Vec::new();
            encode_bytes(&bytes, &mut from_bytes);
            prop_assert!(from_bytes.len() as u64 <= encoded_max(pixels.len() as u64));
            prop_assert_eq!(from_bytes, encoded(&pixels));
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0x80), Just(0)], 0..300),
            count in 0..200_usize,
        ) {
            let mut pixels = vec![0; count];
            if decode(&bytes, &mut pixels).is_ok() {
                // Wider marks than needed are allowed, so this is never longer.
                prop_assert!(encoded(&pixels).len() <= bytes.len());
            }
        }
    }

    #[test]
    fn differences_take_the_bytes_that_the_format_says() {
        for (difference, bytes) in [
            (127, &[0x7f][..]),
            (-127, &[0x81]),
            (-128, &[0x80, 0x80, 0xff]),
            (128, &[0x80, 0x80, 0]),
            (-32767, &[0x80, 1, 0x80]),
            (-32768, &[0x80, 0, 0x80, 0, 0x80, 0xff, 0xff]),
            (i32::MAX, &[0x80, 0, 0x80, 0xff, 0xff, 0xff, 0x7f]),
            (i32::MIN, &[0x80, 0, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0x80, 0xff, 0xff, 0xff, 0xff]),
        ] {
            assert_eq!(encoded(&[difference]), bytes, "{difference}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        let mut pixels = [0; 2];
        let mut decode = |bytes: &[u8]| decode(bytes, &mut pixels).expect_err("it is wrong").to_string();
        assert_eq!(decode(&[1]), "ends at byte 1, within a pixel");
        assert_eq!(decode(&[1, 0x80, 0]), "ends at byte 3, within a pixel");
        assert_eq!(decode(&[1, 1, 1]), "1 B follow its end");
        assert_eq!(decode(&[0x80, 0, 0x80, 0xff, 0xff, 0xff, 0x7f, 1]), "pixel 1 is beyond 32 bits");
    }
}
