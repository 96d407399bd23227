//! The options that choose a part of a recording: `--begin` and `--end`.

use std::sync::Arc;

use anyhow::ensure;
use clap::Args;
use nilometer_recording::view::{PartLimit, PartLimitError, PartLimits, RecordingView};

/// The part of a recording that a command takes.
#[derive(Debug, Args)]
pub(crate) struct PartOptions {
    /// Begin with the first frame at or after this time in UTC (2026-11-28T18:00:00 or 2026y332d18h00m00s). Or
    /// write a time after the first frame (+30s) or before the end of the last (-30s). A frame (1200) and a packet
    /// (packet:1200) are possible too
    #[arg(long, value_name = "TIME|NUMBER", allow_hyphen_values = true)]
    begin: Option<PartLimit>,
    /// End before the first frame at or after this, written as for --begin
    #[arg(long, value_name = "TIME|NUMBER", allow_hyphen_values = true)]
    end: Option<PartLimit>,
}

impl PartOptions {
    /// The limits as the user gave them.
    pub(crate) fn limits(&self) -> PartLimits {
        PartLimits { begin: self.begin, end: self.end }
    }

    /// Limits a view to the part.
    pub(crate) fn of(&self, whole: RecordingView) -> Result<Arc<RecordingView>, PartLimitError> {
        whole.limited(&self.limits()).map(Arc::new)
    }

    /// Refuses a part, for this reason.
    pub(crate) fn refuse(&self, why: &str) -> anyhow::Result<()> {
        ensure!(self.begin.is_none() && self.end.is_none(), "--begin, --end: {why}");
        Ok(())
    }
}

/// A line about the part that a view shows. `None` if it shows the whole recording.
pub(crate) fn part_line(whole: &RecordingView) -> Option<String> {
    if !whole.is_part() {
        return None;
    }
    let frames = whole.shown_frames();
    let rate = whole.survey().frames_per_second;
    let from = whole.first_stamp().and_then(|frame| whole.stamp(frame));
    let from = from.map_or_else(String::new, |stamp| format!(", from {}", stamp.moment(rate)));
    Some(format!("frames {} to {}{from}", frames.start, frames.end - 1))
}
