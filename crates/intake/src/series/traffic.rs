//! What came of a series so far, when it is over, and how it ended.

use nilometer_model::{ByteRate, Nanos};
use nilometer_ring::StoredTotals;

use super::SeriesTally;
use crate::transport::zeromq::ZmqCounts;

/// When a series is over though frames are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesUntil {
    /// No series begins for so long.
    pub begin: Nanos,
    /// Nothing of it comes for so long.
    pub silence: Nanos,
    /// The same, once its end message came: images on other connections may be on their way.
    pub after_end: Nanos,
    /// So long after its first frame.
    pub duration: Nanos,
    /// All its frames are there, and nothing of it comes for so long: neither its end message, whose sender would wait for ever if
    /// nobody took it, nor frames beyond those that were announced.
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
    /// None began.
    NoSeries,
    /// It was told to end.
    Stopped,
}

/// What came, as anybody may ask while it comes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeriesTraffic {
    /// What became of frames.
    pub tally: SeriesTally,
    /// What the connections counted.
    pub counted: ZmqCounts,
    /// Frames that the series announced, once it began. None if it did not say how many.
    pub frames: Option<u64>,
    /// Frames that did not come of those before the last that did.
    pub missing: u64,
    /// When the first frame and the last were there.
    pub first: Option<Nanos>,
    /// The same of the last; 0 if none was.
    pub last: Nanos,
    /// What the lanes had stored when this was counted. None once nothing comes any more, and if nobody asked for it.
    pub stored: Option<StoredTotals>,
    /// How it ended, once it did.
    pub ending: Option<SeriesEnding>,
    /// Why nothing comes any more, if that is so.
    pub fault: Option<String>,
}

impl SeriesTraffic {
    /// Frames that should be there, of a recording that ends behind the last that came: all that were announced, if it was not
    /// ended here.
    pub fn expected(&self, recorded: u64) -> u64 {
        match self.ending {
            Some(SeriesEnding::Stopped) => recorded,
            _ => recorded.max(self.frames.unwrap_or(0)),
        }
    }

    /// Frames of these that are not there.
    pub fn lost(&self, recorded: u64) -> u64 {
        self.expected(recorded).saturating_sub(self.tally.frames)
    }

    /// Bytes a second as they came, from the first frame to the last; none if all came at once.
    pub fn mean_rate(&self) -> Option<ByteRate> {
        let seconds = self.last.since(self.first?).seconds();
        (seconds > 0.0).then(|| ByteRate(self.tally.bytes as f64 / seconds))
    }
}
