//! The readers of a recording during the recording.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::{ByteRate, Ingest, Nanos};

/// Readers of a recording while the recorder makes it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readers {
    /// Number of readers, at most 1000; each reads and checks every frame.
    #[serde(default, deserialize_with = "counted")]
    pub count: u32,
    /// The least delay between the due time of a frame and its reading.
    #[serde(default)]
    pub distance: Nanos,
    /// The highest rate of each reader; `None` means as fast as frames arrive.
    #[serde(default, deserialize_with = "some_rate")]
    pub rate: Option<ByteRate>,
    /// True if one more reader copies all frames to a second target, given on the command line.
    #[serde(default, skip_serializing_if = "is_false")]
    pub copy: bool,
}

const COUNT_MAX: u32 = 1000;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(copy: &bool) -> bool {
    !copy
}

/// Checks the count during deserialization, so that the message shows the line.
fn counted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let count = i64::deserialize(deserializer)?;
    let valid = u32::try_from(count).ok().filter(|count| *count <= COUNT_MAX);
    valid.ok_or_else(|| de::Error::custom(format!("{count} readers: write 0 to {COUNT_MAX}")))
}

fn some_rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteRate>, D::Error> {
    let rate = Option::<ByteRate>::deserialize(deserializer)?;
    match rate {
        Some(rate) if !(rate.0 > 0.0 && rate.0.is_finite()) => {
            Err(de::Error::custom("a reader of no rate reads nothing: write more, or leave the key out"))
        }
        rate => Ok(rate),
    }
}

impl Readers {
    /// True if there are no readers.
    pub fn none(&self) -> bool {
        self.count == 0 && !self.copy
    }
}

impl fmt::Display for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Readers { count, distance, rate, copy } = *self;
        let readers = if count == 1 { "1 reader".to_owned() } else { format!("{count} readers") };
        let copier = if copy { " and a copy" } else { "" };
        write!(f, "{readers}{copier}")?;
        if distance.0 > 0 {
            write!(f, " {distance} behind")?;
        }
        rate.map_or(Ok(()), |rate| write!(f, " at {rate} each"))
    }
}

/// The readers during a recording. Reports compare recordings with the same readers. The order is that of their load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReaderLoad {
    /// Number of readers that checked every frame.
    pub count: usize,
    /// True if one more reader copied the frames to a second target.
    pub copied: bool,
    /// The most bytes of each reader in a second; the greatest number without a limit.
    limit: u64,
}

impl ReaderLoad {
    /// No readers.
    pub const NONE: ReaderLoad = ReaderLoad { count: 0, copied: false, limit: u64::MAX };

    /// The readers during a recording, without those after it.
    pub fn of(ingest: &Ingest) -> Self {
        let mut load = ReaderLoad::NONE;
        for reader in ingest.readers.iter().filter(|reader| !reader.after) {
            load.count += usize::from(!reader.copies);
            load.copied |= reader.copies;
            load.limit = load.limit.min(reader.limit_per_second.map_or(u64::MAX, |limit| limit.0));
        }
        load
    }

    /// The limit of each reader. `None` without a limit.
    pub fn limit(&self) -> Option<ByteRate> {
        (self.limit < u64::MAX).then_some(ByteRate(self.limit as f64))
    }
}

impl fmt::Display for ReaderLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readers = match self.count {
            0 => None,
            1 => Some("1 reader".to_owned()),
            count => Some(format!("{count} readers")),
        };
        let copy = self.copied.then(|| "a copy".to_owned());
        f.write_str(&readers.into_iter().chain(copy).collect::<Vec<_>>().join(" and "))?;
        self.limit().map_or(Ok(()), |limit| write!(f, " at {limit} each"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, ReaderTotals};

    #[test]
    fn readers_are_described() {
        let readers = Readers { count: 2, distance: Nanos::from_millis(1000), ..Readers::default() };
        assert_eq!(readers.to_string(), "2 readers 1 s behind");
        let copied = Readers { count: 1, copy: true, rate: Some(ByteRate(1e8)), ..Readers::default() };
        assert_eq!(copied.to_string(), "1 reader and a copy at 100 MB/s each");
    }

    #[test]
    fn recordings_with_other_limits_have_other_readers() {
        let with = |limit: Option<u64>, copies: bool| {
            let reader =
                ReaderTotals { limit_per_second: limit.map(Bytes), copies, ..ReaderTotals::default() };
            let after = ReaderTotals { after: true, ..ReaderTotals::default() };
            ReaderLoad::of(&Ingest { readers: vec![reader, after], ..Ingest::default() })
        };
        let fast = with(None, false);
        let slow = with(Some(100_000_000), false);
        assert!(ReaderLoad::NONE < slow && slow < fast);
        assert_eq!([slow.to_string(), fast.to_string()], ["1 reader at 100 MB/s each", "1 reader"]);
        assert_eq!(with(Some(1_000_000), true).to_string(), "a copy at 1 MB/s each");
        assert_eq!((slow.limit(), fast.limit()), (Some(ByteRate(1e8)), None));
    }

    #[test]
    fn nonsense_is_refused() {
        for (text, part) in [
            ("count = -1", "0 to 1000"),
            ("count = 1001", "0 to 1000"),
            ("count = 1\nrate = \"0 B/s\"", "leave the key out"),
            ("cuont = 1", "`distance`"),
        ] {
            let error = toml::from_str::<Readers>(text).expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
        let all =
            toml::from_str::<Readers>("count = 2\ndistance = \"1 s\"\nrate = \"1 GB/s\"").expect("valid");
        assert_eq!((all.count, all.distance, all.rate), (2, Nanos::from_millis(1000), Some(ByteRate(1e9))));
    }
}
