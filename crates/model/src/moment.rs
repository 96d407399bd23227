//! A moment of the calendar in UTC. Its text is that of schedules (`2026-11-22T18:00:00Z`) or of VEX files
//! (`2026y326d18h00m00s`, with the day of the year from 1). Seconds may have decimals. Leap seconds are not
//! counted.

use std::{fmt, str::FromStr};

use jiff::{Timestamp, civil::DateTime, tz::Offset};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Nanos;

/// Nanoseconds since 1970-01-01 00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Moment(pub Nanos);

/// A text that is not a moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}`: write a time in UTC, such as 2026-11-22T18:00:00Z, or 2026y326d18h00m00s; from 1970 to {YEAR_MAX}"
)]
pub struct MomentError(String);

const SECOND: u64 = 1_000_000_000;
const YEAR_MAX: i16 = 2500;
/// The two forms, up to the decimals of their seconds.
const ISO: &str = "%Y-%m-%dT%H:%M:%S";
const VEX: &str = "%Yy%jd%Hh%Mm%S";

impl Moment {
    /// Reads a text of this form, whose seconds may have up to nine decimals and end in `mark`.
    fn read(text: &str, form: &str, mark: char) -> Option<Self> {
        let text = text.strip_suffix(mark)?;
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        if !(1..=9).contains(&decimals.len()) || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let time = strict(whole, form)?;
        let seconds = Offset::UTC.to_timestamp(time).ok()?.as_second();
        let fraction: u64 = format!("{decimals:0<9}").parse().ok()?;
        Some(Moment(Nanos(u64::try_from(seconds).ok()? * SECOND + fraction)))
    }

    /// The moment as a type of the calendar library, whose years go far beyond 2554, where `u64` nanoseconds
    /// end.
    fn timestamp(self) -> Timestamp {
        Timestamp::from_nanosecond(self.0.0.into()).unwrap_or(Timestamp::MAX)
    }

    /// The time of the day in UTC: `18:00:00 UTC`.
    pub fn time_of_day(self) -> String {
        self.timestamp().strftime("%H:%M:%S UTC").to_string()
    }

    /// The form of headers of CBF files, in UTC with three decimals: `2026-11-22T18:00:00.000`.
    pub fn milliseconds(self) -> String {
        self.timestamp().strftime("%Y-%m-%dT%H:%M:%S%.3f").to_string()
    }

    /// The form of VEX files, with four decimals: `2026y326d18h00m00.0000s`.
    pub fn vex(self) -> String {
        self.timestamp().strftime("%Yy%jd%Hh%Mm%S%.4fs").to_string()
    }
}

/// Reads a time of the calendar in exactly this form. The library also accepts fewer digits, blanks and a
/// 60th second.
fn strict(text: &str, form: &str) -> Option<DateTime> {
    let time = DateTime::strptime(form, text).ok()?;
    let is_exact = time.strftime(form).to_string() == text;
    (is_exact && (1970..=YEAR_MAX).contains(&time.year())).then_some(time)
}

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Self, MomentError> {
        let trimmed = text.trim();
        Moment::read(trimmed, ISO, 'Z')
            .or_else(|| Moment::read(trimmed, VEX, 's'))
            .ok_or_else(|| MomentError(text.into()))
    }
}

impl fmt::Display for Moment {
    /// `2026-11-22T18:00:00Z`, with decimals where there are any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(f)
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
        // Made with `date -u -d 2026-11-22T18:00:00Z +%s`, and `date -u -d @SECONDS +%j` for the day of the
        // year.
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
