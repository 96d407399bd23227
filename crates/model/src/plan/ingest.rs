//! One recording of an instrument: what comes, at which pace, who reads it meanwhile.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ByteRate, Bytes, Instrument, Nanos};

/// An instrument to be recorded onto a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IngestCell {
    /// What delivers frames.
    pub instrument: Instrument,
    /// So many of it, each with a recorder of its own.
    pub count: u32,
    /// What the recording is to show.
    pub goal: Goal,
    /// How long frames come at the most.
    pub duration: Nanos,
    /// Memory of each ring.
    pub buffer: Bytes,
    /// Older frames are removed when a recording is larger than this.
    pub keep: Bytes,
    /// How often it is measured.
    pub repeats: u32,
    /// Who reads it while it is made.
    pub readers: Readers,
    /// What is recorded at the same time: all cells of a plan with the same number.
    pub company: Option<u32>,
}

/// What a recording is to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// How fast the storage takes frames: they come as soon as there is room.
    Limit,
    /// Whether the instrument is carried: frames come when they are due.
    #[default]
    Pace,
    /// The highest rate without loss: many recordings, each at a rate that follows from the ones before.
    Search,
    /// The smallest buffer without loss at the instrument's pace: many recordings, each with a buffer that follows from the
    /// ones before.
    Buffer,
}

/// Who reads a recording while it is made.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readers {
    /// How many, each reading every frame and checking it.
    #[serde(default)]
    pub count: u32,
    /// How long after it was due a frame is read, at the earliest.
    #[serde(default)]
    pub distance: Nanos,
    /// How fast each reads, at the most; as fast as frames come, if none.
    #[serde(default)]
    pub rate: Option<ByteRate>,
    /// One more copies all frames to the plan's second target.
    #[serde(default)]
    pub copy: bool,
}

impl Goal {
    /// All of them.
    pub const ALL: [Goal; 4] = [Goal::Limit, Goal::Pace, Goal::Search, Goal::Buffer];

    /// The word in the record.
    pub const fn name(self) -> &'static str {
        match self {
            Goal::Limit => "limit",
            Goal::Pace => "pace",
            Goal::Search => "search",
            Goal::Buffer => "buffer",
        }
    }

    /// A recording is one trial of many.
    pub const fn searches(self) -> bool {
        matches!(self, Goal::Search | Goal::Buffer)
    }

    /// The opposite of [`Goal::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Goal::ALL.into_iter().find(|goal| goal.name() == name)
    }
}

impl Readers {
    /// Nobody reads.
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

impl IngestCell {
    /// The instrument, and how many of it.
    pub fn who(&self) -> String {
        let name = &self.instrument.name;
        if self.count == 1 { name.clone() } else { format!("{} x {name}", self.count) }
    }

    /// What comes from all of them.
    pub fn rate(&self) -> ByteRate {
        ByteRate(self.instrument.rate().0 * f64::from(self.count))
    }
}

impl fmt::Display for IngestCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pace = match self.goal {
            Goal::Limit => "as fast as it is taken".into(),
            Goal::Pace => format!("at {}", self.rate()),
            Goal::Search => "at the highest rate without loss".into(),
            Goal::Buffer => format!("at {}, with the smallest buffer without loss", self.rate()),
        };
        write!(f, "{} {pace} for {}, buffer {}", self.who(), self.duration, self.buffer)?;
        if !self.readers.none() {
            write!(f, ", {}", self.readers)?;
        }
        if let Some(number) = self.company {
            write!(f, ", in company {}", number + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_described() {
        let readers = Readers { count: 2, distance: Nanos::from_millis(1000), ..Readers::default() };
        assert_eq!(readers.to_string(), "2 readers 1 s behind");
        let copied = Readers { count: 1, copy: true, rate: Some(ByteRate(1e8)), ..Readers::default() };
        assert_eq!(copied.to_string(), "1 reader and a copy at 100 MB/s each");
        for goal in Goal::ALL {
            assert_eq!(Goal::from_name(goal.name()), Some(goal));
        }
    }
}
