//! A limit of a part of a recording, by time or by number, as written at the command line.

use std::{fmt, str::FromStr};

use nilometer_model::{Moment, Nanos};

/// A position in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartLimit {
    /// A time of the calendar, by the headers of frames.
    Time(Moment),
    /// A time after the first frame.
    After(Nanos),
    /// A time before the end of the last frame.
    BeforeEnd(Nanos),
    /// The number of a frame, as `scan` and `verify` count them.
    Frame(u64),
    /// The number of a packet.
    Packet(u64),
    /// A time on the recording's own clock, by the journals. Users don't write it: a view makes it.
    Due(Nanos),
}

/// The begin and the end of a part. `None` is that of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartLimits {
    /// The part begins with the first frame at or after this position.
    pub begin: Option<PartLimit>,
    /// The part ends before the first frame at or after this position.
    pub end: Option<PartLimit>,
}

/// The place of a limit among the frames that a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitPosition {
    /// It lies before the first frame.
    Before,
    /// The first frame at or after it, counted from the view's first frame. At the end of the view this is the
    /// number of its frames.
    At(u64),
    /// It lies after the last frame.
    Beyond,
}

/// Why a limit selects no part.
#[derive(Debug, thiserror::Error)]
pub enum PartLimitError {
    /// The text is no limit.
    #[error(
        "`{0}`: write 2026-11-28T18:00:00 or 2026y332d18h00m00s in UTC, +30s after the first frame, -30s before the \
         end, a number such as 1200, or packet:1200"
    )]
    Text(String),
    /// The frames have no times of the calendar.
    #[error(
        "{limit}: frames of {name} have no times of the calendar; write +30s after its first frame, -30s before its \
         end, or a number; {range}"
    )]
    NoTimes {
        /// The limit as the user wrote it.
        limit: PartLimit,
        /// The recording.
        name: String,
        /// The range of the recording.
        range: String,
    },
    /// The limit lies outside the recording.
    #[error("{limit} lies outside {name}; {range}")]
    Outside {
        /// The limit as the user wrote it.
        limit: PartLimit,
        /// The recording.
        name: String,
        /// The range of the recording.
        range: String,
    },
    /// No frame lies between the limits.
    #[error("no frame of {name} lies between the two limits; {range}")]
    NoFrame {
        /// The recording.
        name: String,
        /// The range of the recording.
        range: String,
    },
    /// A journal can't be read.
    #[error("can't read the times in a journal of {name}: {source}")]
    Journal {
        /// The recording.
        name: String,
        /// The error of the storage.
        source: std::io::Error,
    },
}

impl FromStr for PartLimit {
    type Err = PartLimitError;

    fn from_str(text: &str) -> Result<Self, PartLimitError> {
        let wrong = || PartLimitError::Text(text.into());
        let number = |digits: &str| digits.parse().map_err(|_| wrong());
        if let Some(packet) = text.strip_prefix("packet:") {
            return Ok(PartLimit::Packet(number(packet)?));
        }
        if let Some(duration) = text.strip_prefix('+') {
            return duration.parse().map(PartLimit::After).map_err(|_| wrong());
        }
        if let Some(duration) = text.strip_prefix('-') {
            return duration.parse().map(PartLimit::BeforeEnd).map_err(|_| wrong());
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(PartLimit::Frame(number(text)?));
        }
        // The times here are always in UTC, so its letter may be left out.
        let time = text.parse().or_else(|_| format!("{text}Z").parse());
        time.map(PartLimit::Time).map_err(|_| wrong())
    }
}

impl fmt::Display for PartLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartLimit::Time(time) => time.fmt(f),
            PartLimit::After(wait) => write!(f, "+{wait}"),
            PartLimit::BeforeEnd(time) => write!(f, "-{time}"),
            PartLimit::Frame(number) => write!(f, "frame {number}"),
            PartLimit::Packet(number) => write!(f, "packet {number}"),
            PartLimit::Due(time) => write!(f, "{time} on the recorder's clock"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_stations_write_them() {
        let time = "2026-11-28T18:00:00Z".parse().map(PartLimit::Time).expect("a time");
        for text in ["2026-11-28T18:00:00", "2026-11-28T18:00:00Z", "2026y332d18h00m00s"] {
            assert_eq!(text.parse::<PartLimit>().expect(text), time);
        }
        assert_eq!(
            "+30s".parse::<PartLimit>().expect("a time"),
            PartLimit::After(Nanos::from_millis(30_000))
        );
        assert_eq!(
            "-30s".parse::<PartLimit>().expect("a time"),
            PartLimit::BeforeEnd(Nanos::from_millis(30_000))
        );
        assert_eq!("1200".parse::<PartLimit>().expect("a number"), PartLimit::Frame(1200));
        assert_eq!("packet:7".parse::<PartLimit>().expect("a number"), PartLimit::Packet(7));
        for wrong in
            ["", "x", "+", "-5", "packet:", "packet:x", "2026-13-01T00:00:00", "99999999999999999999"]
        {
            let why = wrong.parse::<PartLimit>().expect_err(wrong).to_string();
            assert!(why.contains("2026y332d18h00m00s"), "{why}");
        }
    }
}
