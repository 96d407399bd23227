//! A moment of the calendar, in UTC, as schedules write it: `2026-11-22T18:00:00Z`, or as VEX files do
//! `2026y326d18h00m00s` (the day of the year from 1). Seconds may have decimals. Leap seconds are not counted.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Nanos;

/// Nanoseconds since 1970-01-01 00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Moment(pub Nanos);

/// A text that is no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}`: write a time in UTC, such as 2026-11-22T18:00:00Z, or 2026y326d18h00m00s; from 1970 to {YEAR_MAX}"
)]
pub struct MomentError(String);

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400;
const YEAR_MAX: u64 = 2500;
/// Days before each month of a year without a leap day.
const BEFORE_MONTH: [u64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

/// Days from the beginning of 1970 to that of a year.
const fn days_before(year: u64) -> u64 {
    let last = year - 1;
    let leaps = last / 4 - last / 100 + last / 400;
    (year - 1970) * 365 + leaps - (1969 / 4 - 1969 / 100 + 1969 / 400)
}

/// Days of a year before a month, from 1 to 13.
const fn days_before_month(year: u64, month: u64) -> u64 {
    BEFORE_MONTH[month as usize - 1] + (month > 2 && is_leap(year)) as u64
}

/// Of a day, 0 the first: the year, and which day of it, 0 the first.
fn year_of(day: u64) -> (u64, u64) {
    // Never later than the right one, and a little too early.
    let year = 1970 + day / 366;
    let year = (year..year + 9).find(|year| days_before(year + 1) > day).unwrap_or(year);
    (year, day - days_before(year))
}

/// A number of exactly so many digits in front of a text, and what stands behind the character after it.
fn number<'a>(text: &mut &'a str, digits: usize, mark: &str) -> Option<u64> {
    let (number, rest): (&'a str, &'a str) = text.split_at_checked(digits)?;
    *text = rest.strip_prefix(mark)?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
}

/// Seconds below 60 with up to nine decimals, in nanoseconds; nothing stands behind the mark.
fn seconds(text: &str, mark: char) -> Option<u64> {
    let text = text.strip_suffix(mark)?;
    let (mut whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let seconds = number(&mut whole, 2, "").filter(|seconds| whole.is_empty() && *seconds < 60)?;
    if !(1..=9).contains(&decimals.len()) || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u64 = format!("{decimals:0<9}").parse().ok()?;
    Some(seconds * SECOND + fraction)
}

impl Moment {
    fn new(year: u64, day_of_year: u64, hours: u64, minutes: u64, nanos: u64) -> Option<Self> {
        let days = 365 + u64::from(is_leap(year));
        let valid = (1970..=YEAR_MAX).contains(&year) && (1..=days).contains(&day_of_year);
        if !valid || hours > 23 || minutes > 59 {
            return None;
        }
        let days = days_before(year) + day_of_year - 1;
        Some(Moment(Nanos((days * DAY + hours * 3600 + minutes * 60) * SECOND + nanos)))
    }

    /// `2026-11-22T18:00:00Z`.
    fn iso(mut text: &str) -> Option<Self> {
        let rest = &mut text;
        let year = number(rest, 4, "-")?;
        let month = number(rest, 2, "-")?;
        let day = number(rest, 2, "T")?;
        let hours = number(rest, 2, ":")?;
        let minutes = number(rest, 2, ":")?;
        let nanos = seconds(rest, 'Z')?;
        if !(1..=12).contains(&month) || year < 1970 {
            return None;
        }
        let before = days_before_month(year, month);
        let days = days_before_month(year, month + 1) - before;
        (1..=days).contains(&day).then(|| Moment::new(year, before + day, hours, minutes, nanos))?
    }

    /// `2026y326d18h00m00s`.
    fn of_vex(mut text: &str) -> Option<Self> {
        let rest = &mut text;
        let year = number(rest, 4, "y")?;
        let day = number(rest, 3, "d")?;
        let hours = number(rest, 2, "h")?;
        let minutes = number(rest, 2, "m")?;
        Moment::new(year, day, hours, minutes, seconds(rest, 's')?)
    }

    /// Year, day of the year from 1, hours, minutes, nanoseconds of the minute.
    fn parts(self) -> [u64; 5] {
        let second = self.0.0 / SECOND;
        let (year, day) = year_of(second / DAY);
        let of_day = second % DAY;
        let nanos = of_day % 60 * SECOND + self.0.0 % SECOND;
        [year, day + 1, of_day / 3600, of_day / 60 % 60, nanos]
    }

    /// As VEX files write it, with four decimals: `2026y326d18h00m00.0000s`.
    pub fn vex(self) -> String {
        let [year, day, hours, minutes, nanos] = self.parts();
        let seconds = nanos / SECOND;
        let fraction = nanos % SECOND / 100_000;
        format!("{year:04}y{day:03}d{hours:02}h{minutes:02}m{seconds:02}.{fraction:04}s")
    }
}

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Self, MomentError> {
        let trimmed = text.trim();
        Moment::iso(trimmed).or_else(|| Moment::of_vex(trimmed)).ok_or_else(|| MomentError(text.into()))
    }
}

impl fmt::Display for Moment {
    /// `2026-11-22T18:00:00Z`, with decimals where there are any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, day, hours, minutes, nanos] = self.parts();
        let month = (1..=12).rev().find(|month| days_before_month(year, *month) < day).unwrap_or(1);
        let day = day - days_before_month(year, month);
        let seconds = nanos / SECOND;
        write!(f, "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}")?;
        match nanos % SECOND {
            0 => f.write_str("Z"),
            fraction => write!(f, ".{}Z", format!("{fraction:09}").trim_end_matches('0')),
        }
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moment(seconds: u64) -> Moment {
        Moment(Nanos(seconds * SECOND))
    }

    #[test]
    fn both_forms_mean_what_the_calendar_says() {
        // By `date -u -d 2026-11-22T18:00:00Z +%s` and so on, and `date -u -d @SECONDS +%j` for the day of the year.
        for (iso, vex, unix) in [
            ("1970-01-01T00:00:00Z", "1970y001d00h00m00s", 0),
            ("2000-02-29T23:59:59Z", "2000y060d23h59m59s", 951_868_799),
            ("2024-12-31T12:30:00Z", "2024y366d12h30m00s", 1_735_648_200),
            ("2026-11-22T18:00:00Z", "2026y326d18h00m00s", 1_795_370_400),
            ("2100-03-01T00:00:00Z", "2100y060d00h00m00s", 4_107_542_400),
        ] {
            assert_eq!(iso.parse(), Ok(moment(unix)), "{iso}");
            assert_eq!(vex.parse(), Ok(moment(unix)), "{vex}");
            assert_eq!(moment(unix).to_string(), iso);
            assert_eq!(moment(unix).vex().replace(".0000", ""), vex);
        }
        let half = Moment(Nanos(1_795_370_400 * SECOND + 250_000_000));
        assert_eq!("2026-11-22T18:00:00.25Z".parse(), Ok(half));
        assert_eq!(half.to_string(), "2026-11-22T18:00:00.25Z");
        assert_eq!(half.vex(), "2026y326d18h00m00.2500s");
    }

    #[test]
    fn what_is_no_moment_is_told_how_to_write_one() {
        for wrong in [
            "",
            "now",
            "2026-11-22T18:00:00",
            "2026-11-22T18:00:00+01:00",
            "2026-11-22 18:00:00Z",
            "2026-11-31T18:00:00Z",
            "2026-02-29T18:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-12-32T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-11-22T24:00:00Z",
            "2026-11-22T18:60:00Z",
            "2026-11-22T18:00:60Z",
            "2026-11-22T18:00:00.Z",
            "2026-11-22T18:00:00.1234567890Z",
            "1969-12-31T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "2026y366d18h00m00s",
            "2026y000d18h00m00s",
            "2026y326d18h00m",
            "2026y326d18h00m00",
            "+026y326d18h00m00s",
        ] {
            let error = wrong.parse::<Moment>().expect_err(wrong).to_string();
            assert!(error.contains(&format!("`{wrong}`")) && error.contains("2026y326d18h00m00s"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn moments_are_shown_as_they_are_read(nanos in 0..16_725_225_600_u64 * SECOND) {
            let moment = Moment(Nanos(nanos));
            prop_assert_eq!(moment.to_string().parse(), Ok(moment));
            let tenths = Moment(Nanos(nanos / 100_000 * 100_000));
            prop_assert_eq!(moment.vex().parse(), Ok(tenths));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,30}") {
            let found = text.parse::<Moment>();
            prop_assert!(found.is_err() || text.contains(['Z', 's']));
        }

        #[test]
        fn no_text_that_is_almost_right_panics(text in "[0-9]{4}[-y][0-9]{2,3}[-d][0-9]{2}[Th:][0-9]{2}[:m][0-9]{2}[Zs:]") {
            let found = text.parse::<Moment>();
            prop_assert!(found.is_err() || text.contains(['Z', 's']));
        }
    }
}
