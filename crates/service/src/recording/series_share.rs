//! The share of a series that one of several processes records, and the options that several processes refuse.

use nilometer_model::Moment;
use nilometer_storage::Clock;

use super::{
    options::{RecordOptions, SeriesChoice},
    source::SeriesSource,
};
use crate::error::ServiceError;

/// The place of this process in a recording that several make of one series. Each stores the images that come to it,
/// at their numbers, in a file of its own.
#[derive(Debug, Clone)]
pub struct SeriesShare {
    /// The number of the recording, the same in the journals of all processes.
    pub id: u64,
    /// The name of this process's directories.
    pub directory: String,
    /// The number of this process's first lane.
    pub first_lane: u32,
    /// The number of lanes of all processes.
    pub lanes: u32,
    /// A clock that is at zero at the same moment in all processes.
    pub clock: Clock,
    /// The calendar's time at that moment, on the machine of process 0.
    pub start: Moment,
}

impl SeriesSource {
    /// Checks that several processes can record it.
    pub(super) fn check_share(&self, wishes: &RecordOptions) -> Result<(), ServiceError> {
        let refused = [
            (
                "--series every",
                wishes.series == Some(SeriesChoice::Every),
                "several processes record one series",
            ),
            ("--frames-per-file", wishes.frames_per_file.is_some(), "each of several processes has one file"),
            ("--scan", self.scan.is_some(), "a line of the scan would come to several processes"),
            ("--keep", wishes.keep.is_some(), "several processes do not know which frames are the latest"),
            (
                "--layout dectris",
                self.is_dectris(),
                "its files have consecutive frames, and a process gets others",
            ),
        ];
        let refused = refused.into_iter().find(|(_, given, _)| *given);
        refused.map_or(Ok(()), |(option, _, why)| {
            Err(ServiceError::AskedWrongly(format!("{option}: {why}; leave it out or start one process")))
        })
    }
}
