//! A facility: instruments that deliver at the same time, the readers of their data, and how long data stay.
//! Each is one TOML file in `facilities/`.
//!
//! ```toml
//! title = "Two beamlines"
//! copy_out = "10 Gbit/s"
//! retention = "3 days"
//!
//! [[instrument]]
//! name = "pilatus-6m"
//! count = 6
//! duty = 0.5
//! readers = { count = 2 }
//! ```

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::{ByteRate, Bytes, Nanos, Readers, TomlError, read_toml};

/// Instruments that share a storage system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facility {
    /// A description in one line.
    pub title: String,
    /// The publication of the figures, if there is one.
    #[serde(default)]
    pub source: Option<String>,
    /// The instruments, at least one.
    #[serde(rename = "instrument", deserialize_with = "some_members")]
    pub instruments: Vec<Member>,
    /// How fast the facility copies data to an archive. `None` if it does not.
    #[serde(default, deserialize_with = "some_rate")]
    pub copy_out: Option<ByteRate>,
    /// How long data stay at least after they arrive. `None` if they may go as soon as they are copied.
    #[serde(default, deserialize_with = "some_time")]
    pub retention: Option<Nanos>,
    /// The space for data. `None` if Nilometer computes the space needed.
    #[serde(default, deserialize_with = "some_space")]
    pub capacity: Option<Bytes>,
}

/// Instruments of one kind in a facility.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// A name of the catalogue, or the path of an instrument's file.
    pub name: String,
    /// Number of instruments of this kind: 1 to 100 000.
    #[serde(default = "one", deserialize_with = "counted")]
    pub count: u64,
    /// Share of each day in which it delivers, its own pauses included: above 0, at most 1.
    #[serde(default = "whole", deserialize_with = "share")]
    pub duty: f64,
    /// The readers of each instrument's data while it delivers. `None` means the usual readers of that
    /// instrument.
    #[serde(default)]
    pub readers: Option<Readers>,
}

/// A facility's file that can't be used: invalid TOML, unknown or missing keys, or a value that makes no
/// sense.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {source}")]
pub struct FacilityError {
    /// The file as the user named it.
    pub file: String,
    /// The TOML error with line, word and valid choices.
    pub source: TomlError,
}

const COUNT_MAX: u64 = 100_000;

const fn one() -> u64 {
    1
}

const fn whole() -> f64 {
    1.0
}

/// Checks the count during deserialization, so that the message shows the line.
fn counted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let count = i64::deserialize(deserializer)?;
    let valid = u64::try_from(count).ok().filter(|count| (1..=COUNT_MAX).contains(count));
    valid.ok_or_else(|| de::Error::custom(format!("{count} is no count: write 1 to {COUNT_MAX}")))
}

fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let share = f64::deserialize(deserializer)?;
    let valid = share > 0.0 && share <= 1.0;
    let wrong =
        || de::Error::custom(format!("{share} is no share of a day: write more than 0 and at most 1"));
    valid.then_some(share).ok_or_else(wrong)
}

fn some_rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteRate>, D::Error> {
    let rate = ByteRate::deserialize(deserializer)?;
    above_zero(rate, rate.0 > 0.0 && rate.0.is_finite(), "a rate of zero carries nothing")
}

fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Nanos>, D::Error> {
    let time = Nanos::deserialize(deserializer)?;
    above_zero(time, time.0 > 0, "no time at all")
}

fn some_space<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    let space = Bytes::deserialize(deserializer)?;
    above_zero(space, space.0 > 0, "no space at all")
}

fn above_zero<T, E: de::Error>(value: T, is: bool, why: &str) -> Result<Option<T>, E> {
    let wrong = || E::custom(format!("{why}: write more, or leave the key out"));
    is.then_some(Some(value)).ok_or_else(wrong)
}

fn some_members<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Member>, D::Error> {
    let members = Vec::deserialize(deserializer)?;
    let none = || de::Error::custom("a facility without instruments: write at least one [[instrument]]");
    (!members.is_empty()).then_some(members).ok_or_else(none)
}

impl Facility {
    /// Reads a facility. Messages call it `file`. This resolves no instruments, only their names.
    pub fn parse(text: &str, file: &str) -> Result<Self, FacilityError> {
        read_toml(text).map_err(|source| FacilityError { file: file.into(), source })
    }

    /// A facility of one instrument, with its usual readers and without archive.
    pub fn of(instrument: &crate::Instrument) -> Self {
        let member = Member { name: instrument.name.clone(), count: 1, duty: 1.0, readers: None };
        Facility {
            title: instrument.title.clone(),
            source: None,
            instruments: vec![member],
            copy_out: None,
            retention: None,
            capacity: None,
        }
    }

    /// Returns true if the text is a facility rather than an instrument: it lists instruments.
    pub fn is_meant(text: &str) -> bool {
        text.lines()
            .any(|line| line.trim_start().starts_with("[[instrument]]") || line.starts_with("instrument"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"title = "a test"
copy_out = "10 Gbit/s"
retention = "3 days"
capacity = "1 PB"

[[instrument]]
name = "pilatus-6m"
count = 6
duty = 0.5
readers = { count = 2, rate = "100 MB/s" }

[[instrument]]
name = "mine.toml"
"#;

    #[test]
    fn all_that_can_be_said_is_read_and_the_rest_is_usual() {
        let facility = Facility::parse(TWO, "f.toml").expect("valid");
        assert_eq!(facility.copy_out, Some(ByteRate(1.25e9)));
        assert_eq!(facility.retention, Some(Nanos(3 * 86_400_000_000_000)));
        assert_eq!(facility.capacity, Some(Bytes(1_000_000_000_000_000)));
        let [six, mine] = facility.instruments.as_slice() else { panic!("{facility:?}") };
        assert_eq!((six.count, six.duty), (6, 0.5));
        let readers = six.readers.expect("they are said");
        assert_eq!((readers.count, readers.rate), (2, Some(ByteRate(1e8))));
        assert_eq!((mine.name.as_str(), mine.count, mine.duty, mine.readers), ("mine.toml", 1, 1.0, None));
    }

    #[test]
    fn nonsense_is_refused_at_its_line() {
        for (from, to, parts) in [
            ("count = 6", "count = 0", ["line 8", "0 is no count: write 1 to 100000"]),
            ("count = 6", "count = -1", ["line 8", "-1 is no count"]),
            ("count = 6", "cuont = 6", ["line 8", "`count`"]),
            ("0.5", "0.0", ["line 9", "more than 0 and at most 1"]),
            ("0.5", "1.5", ["line 9", "more than 0 and at most 1"]),
            ("count = 2", "count = -2", ["line 10", "0 to 1000"]),
            ("100 MB/s", "0 B/s", ["line 10", "leave the key out"]),
            ("100 MB/s", "100 MB", ["line 10", "Gbit/s"]),
            ("10 Gbit/s", "0 Gbit/s", ["line 2", "a rate of zero carries nothing"]),
            ("3 days", "3 weeks", ["line 3", "min, h, days"]),
            ("3 days", "0 s", ["line 3", "no time at all"]),
            ("1 PB", "0 B", ["line 4", "no space at all"]),
            ("copy_out", "copyout", ["line 2", "`copy_out`"]),
        ] {
            let error = Facility::parse(&TWO.replace(from, to), "f.toml").expect_err(to).to_string();
            for part in parts.iter().chain(&["f.toml"]) {
                assert!(error.contains(part), "{part} is missing in: {error}");
            }
        }
        for (text, part) in [
            ("title = \"t\"", "the key `instrument` is missing"),
            ("title = \"t\"\ninstrument = []", "at least one"),
        ] {
            let error = Facility::parse(text, "f.toml").expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_facility_is_told_from_an_instrument() {
        assert!(Facility::is_meant(TWO));
        assert!(!Facility::is_meant("name = \"camera\"\ntitle = \"an instrument\"\n"));
    }
}
