//! The part of a recording that `scan_set` selects, by offsets in bytes or time. There is no I/O here.
//!
//! Sources in the repository of jive5ab: "jive5ab command set" (doc/source/jive5ab-commands-sets.rst), `scan_set`,
//! and `src/mk5command/scan_set_vbs.cc`. Start and stop are relative to the begin of the recording, with `-` to
//! its end; `+` before a stop is relative to the start.

use std::ops::Range;

use nilometer_model::{Moment, Nanos};

/// A recording as a stream of bytes with times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ScanExtent {
    /// Bytes of the recording, including those that fill gaps.
    pub(super) bytes: u64,
    /// Bytes of a frame. A part of a recording has whole frames.
    pub(super) frame: u64,
    /// The time of the first frame and the duration in seconds, or `None` if frames have no times.
    pub(super) times: Option<(Moment, f64)>,
}

/// The bytes between the start and the end of a recording that `c`, `e` and `s+` leave out.
const NEAR_END: u64 = 1_000_000;
const PAST_START: u64 = 65_536;

/// A sign in front of an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OffsetSign {
    /// From the start of a recording or a part.
    Plus,
    /// From the end of the recording.
    Minus,
    /// A time of the calendar.
    Absent,
}

impl ScanExtent {
    /// Returns the bytes from a start to a stop; an empty text is the default. The error says how to write them.
    pub(super) fn part(&self, start: &str, stop: &str) -> Result<Range<u64>, &'static str> {
        let begin = match start {
            "" | "s" => 0,
            "c" => self.bytes / 2,
            "e" => self.bytes.saturating_sub(NEAR_END),
            "s+" => PAST_START,
            _ => self.position(start, 0)?,
        };
        let end = if stop.is_empty() { self.bytes } else { self.position(stop, begin)? };
        let part = self.whole_frames(begin)..self.whole_frames(end);
        if part.is_empty() || part.end > self.bytes {
            return Err("start and stop must be in the recording, in this order");
        }
        Ok(part)
    }

    fn whole_frames(&self, byte: u64) -> u64 {
        byte / self.frame.max(1) * self.frame.max(1)
    }

    /// Returns the position of an offset. With `+` it counts from `from`.
    fn position(&self, text: &str, from: u64) -> Result<u64, &'static str> {
        let (sign, amount) = match text.as_bytes().first() {
            Some(b'+') => (OffsetSign::Plus, &text[1..]),
            Some(b'-') => (OffsetSign::Minus, &text[1..]),
            _ => (OffsetSign::Absent, text),
        };
        let outside = "an offset lies outside the recording";
        let bytes = match sign {
            OffsetSign::Absent => return self.at(amount),
            _ if amount.ends_with(|last: char| last.is_ascii_digit()) => {
                amount.parse().map_err(|_| "write an offset in bytes as +BYTES or -BYTES")?
            }
            _ => self.bytes_in(seconds_of(amount).ok_or(FORM)?)?,
        };
        match sign {
            OffsetSign::Minus => self.bytes.checked_sub(bytes).ok_or(outside),
            _ => from.checked_add(bytes).ok_or(outside),
        }
    }

    /// Returns the bytes that the recording has in a time.
    fn bytes_in(&self, seconds: f64) -> Result<u64, &'static str> {
        let (_, all) = self.times.filter(|(_, all)| *all > 0.0).ok_or(NO_TIMES)?;
        #[expect(clippy::cast_sign_loss, reason = "times of the command are not negative")]
        let frames = (seconds / all * self.bytes as f64 / self.frame.max(1) as f64).round() as u64;
        Ok(frames.saturating_mul(self.frame))
    }

    /// Returns the position of a time of the calendar: the first such time from the begin on.
    fn at(&self, text: &str) -> Result<u64, &'static str> {
        let (begin, _) = self.times.ok_or(NO_TIMES)?;
        let time = first_from(begin, text).ok_or(FORM)?;
        self.bytes_in(time.0.since(begin.0).seconds())
    }
}

const NO_TIMES: &str = "its frames have no times, write offsets in bytes";
const FORM: &str = "write +0.2s, -1m30s, +BYTES, -BYTES, 30s, or a time such as 2026y326d18h00m00s";

/// The units of a VEX time below the year, with their seconds.
const UNITS: [(char, f64); 4] = [('d', 86_400.0), ('h', 3_600.0), ('m', 60.0), ('s', 1.0)];

/// Reads the seconds of a time such as `1m30.5s`, with units in this order.
fn seconds_of(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut seconds = 0.0;
    for (unit, length) in UNITS {
        let Some((number, behind)) = rest.split_once(unit) else { continue };
        let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let number: f64 = number.parse().ok().filter(|_| plain)?;
        seconds += number * length;
        rest = behind;
    }
    (rest.is_empty() && !text.is_empty()).then_some(seconds)
}

/// Returns the first time from `begin` on with these values. A text without hours, for example, is the first
/// such minute and second.
fn first_from(begin: Moment, text: &str) -> Option<Moment> {
    let year = begin.vex().split_once('y').map(|(year, _)| year.to_owned())?;
    let given = seconds_of(text.split_once('y').map_or(text, |(_, behind)| behind))?;
    let written_year = text.split_once('y').map(|(year, _)| year.to_owned());
    if written_year.is_some() || text.contains('d') {
        let start = format!("{}y001d00h00m00s", written_year.unwrap_or(year)).parse::<Moment>().ok()?;
        let time = start.0 + Nanos::from_seconds((given - 86_400.0).max(0.0));
        return Some(Moment(time.max(begin.0))).filter(|_| given >= 86_400.0);
    }
    let largest = UNITS.iter().position(|(unit, _)| text.contains(*unit))?;
    // The unit above the largest one given: an unwritten value repeats with it.
    let period = UNITS[largest.checked_sub(1)?].1;
    let within = begin.0.seconds().rem_euclid(period);
    let ahead = (given - within).rem_euclid(period);
    (given < period).then(|| Moment(begin.0 + Nanos::from_seconds(ahead)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds of 1000 frames of 8032 B each.
    fn extent() -> ScanExtent {
        let begin = "2026y326d18h00m05s".parse().expect("a time");
        ScanExtent { bytes: 80_320_000, frame: 8032, times: Some((begin, 10.0)) }
    }

    #[test]
    fn offsets_are_from_the_start_the_end_or_the_start_of_the_part() {
        let of = |start, stop| extent().part(start, stop).map(|part| (part.start / 8032, part.end / 8032));
        assert_eq!(of("", ""), Ok((0, 10_000)));
        assert_eq!(of("-0.2s", "+0.2s"), Ok((9800, 10_000)), "as dbbc3 stations check a recording");
        assert_eq!(of("+1s", "+2.5s"), Ok((1000, 3500)));
        assert_eq!(of("+0m1s", "-2s"), Ok((1000, 8000)));
        assert_eq!(of("+16064", "+8032"), Ok((2, 3)));
        assert_eq!(of("-16070", ""), Ok((9997, 10_000)), "whole frames");
        assert_eq!(of("c", "e"), Err(FORM), "letters are starts only");
        assert_eq!(of("c", ""), Ok((5000, 10_000)));
        assert_eq!(of("s+", "-8032"), Ok((8, 9999)));
        assert_eq!(of("e", ""), Ok((9875, 10_000)));
    }

    #[test]
    fn times_of_the_calendar_are_the_first_from_the_begin_on() {
        let of = |start, stop| extent().part(start, stop).map(|part| (part.start / 8032, part.end / 8032));
        assert_eq!(of("07s", "12.5s"), Ok((2000, 7500)));
        assert_eq!(of("18h00m06s", "00m07s"), Ok((1000, 2000)));
        assert_eq!(of("326d18h00m06s", ""), Ok((1000, 10_000)));
        assert_eq!(of("2026y326d18h00m14s", ""), Ok((9000, 10_000)));
        assert!(of("04s", "").is_err(), "a minute later");
    }

    #[test]
    fn nonsense_is_refused() {
        let outside = "start and stop must be in the recording, in this order";
        let of = |start, stop| extent().part(start, stop);
        for (start, stop) in [("+2s", "+20s"), ("+10s", ""), ("-1s", "-2s"), ("", "+0s")] {
            assert_eq!(of(start, stop), Err(outside), "{start} {stop}");
        }
        assert_eq!(of("-20s", ""), Err("an offset lies outside the recording"));
        for wrong in ["5", "x", "+", "-", "+1x", "+s", "1.2.3s", "+1s2m", "+-1s", "61s", "25h"] {
            assert!(of(wrong, "").is_err(), "{wrong}");
        }
        let timeless = ScanExtent { times: None, ..extent() };
        assert_eq!(timeless.part("+1s", ""), Err(NO_TIMES));
        assert_eq!(timeless.part("+8032", ""), Ok(8032..80_320_000));
    }
}
