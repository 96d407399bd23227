//! The state of a series during its reception, its time limits, and how it ended.

use nilometer_model::{ByteRate, Nanos};
use nilometer_ring::StoredTotals;

use super::SeriesTally;
use crate::transport::zeromq::ZmqCounts;

/// Time limits after which a series is over although frames are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesUntil {
    /// Time without the beginning of a series.
    pub begin: Nanos,
    /// Silence of a series that has begun.
    pub silence: Nanos,
    /// The same after its end message: images on other connections may be on their way.
    pub after_end: Nanos,
    /// Time after its first frame.
    pub duration: Nanos,
    /// Silence after all its frames arrived. The receiver still takes the end message, whose sender would
    /// otherwise wait for ever, and frames beyond the announced ones.
    pub after_last: Nanos,
}

impl Default for SeriesUntil {
    fn default() -> Self {
        let seconds = |seconds: u64| Nanos::from_millis(1000 * seconds);
        SeriesUntil {
            begin: Nanos::MAX,
            silence: seconds(60),
            after_end: seconds(5),
            duration: Nanos::MAX,
            after_last: seconds(5),
        }
    }
}

/// How a series ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesEnding {
    /// All its frames are there.
    Complete,
    /// Its sender ended it, and frames are missing.
    Ended,
    /// Another series began behind it, and frames are missing: its sender aborted it.
    Followed,
    /// Nothing of it came for too long.
    Silent,
    /// No series began.
    NoSeries,
    /// A caller ended it.
    Stopped,
}

/// The state of a series. Any thread may read it during a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeriesTraffic {
    /// Counts of frames.
    pub tally: SeriesTally,
    /// Counters of the connections.
    pub counted: ZmqCounts,
    /// Number of announced frames, once the series began. `None` if its start does not state it.
    pub frames: Option<u64>,
    /// Missing frames before the last one received. 0 for a share: other processes have them.
    pub missing: u64,
    /// True if other processes record the rest of its frames.
    pub is_share: bool,
    /// When the first frame was complete.
    pub first: Option<Nanos>,
    /// When the last frame was complete; 0 if there is none.
    pub last: Nanos,
    /// Totals that the lanes had stored at the time of these counts. `None` after the end, or if they are not
    /// counted.
    pub stored: Option<StoredTotals>,
    /// How it ended, once it did.
    pub ending: Option<SeriesEnding>,
    /// The error after which nothing can arrive, if there was one.
    pub fault: Option<String>,
}

impl SeriesTraffic {
    /// Number of expected frames, for a recording that ends behind the last one received. These are all
    /// announced frames, unless the recording was stopped. A process that records a share expects only those that
    /// came to it.
    pub fn expected(&self, recorded: u64) -> u64 {
        match self.ending {
            _ if self.is_share => self.tally.frames,
            Some(SeriesEnding::Stopped) => recorded,
            _ => recorded.max(self.frames.unwrap_or(0)),
        }
    }

    /// Number of expected frames of the whole series, also if this process records a share of it.
    pub fn of_whole(&self, recorded: u64) -> u64 {
        SeriesTraffic { is_share: false, ..self.clone() }.expected(recorded)
    }

    /// Number of these that are missing.
    pub fn lost(&self, recorded: u64) -> u64 {
        self.expected(recorded).saturating_sub(self.tally.frames)
    }

    /// Received bytes a second, from the first frame to the last. `None` if all arrived at once.
    pub fn mean_rate(&self) -> Option<ByteRate> {
        let seconds = self.last.since(self.first?).seconds();
        (seconds > 0.0).then(|| ByteRate(self.tally.bytes as f64 / seconds))
    }
}
