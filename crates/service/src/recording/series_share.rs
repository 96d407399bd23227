//! The share of a series that one of several processes records, and the options that several processes refuse.

use std::{
    net::IpAddr,
    sync::{Arc, atomic::AtomicBool},
};

use nilometer_intake::series::SeriesRelay;
use nilometer_model::Moment;
use nilometer_storage::Clock;

use super::{
    options::{RecordOptions, SeriesChoice},
    prepare::PreparedRecording,
    settings::RecordingSettings,
    source::SeriesSource,
};
use crate::error::{OperatorLog, ServiceError, require};

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
    /// That moment, by the calendar of process 0.
    pub start: Moment,
}

impl RecordingSettings {
    /// The settings of one of several processes that record a series.
    #[must_use]
    pub fn of_series_share(self, share: SeriesShare) -> Self {
        RecordingSettings { share: Some(share), ..self }
    }

    /// Returns true if other processes record the rest of its series.
    pub fn is_series_share(&self) -> bool {
        self.share.is_some()
    }

    /// Opens the end at which other processes of the recording pass on starts and ends, with `key` as the number that
    /// only they know.
    ///
    /// # Errors
    ///
    /// The recorder can't listen at this address.
    pub fn open_relay(&self, at: IpAddr, key: u64) -> Result<SeriesRelay, ServiceError> {
        let opened = SeriesRelay::open(at, key, self.message_limits());
        opened.map_err(|error| {
            ServiceError::Failed(format!("can't listen to the other processes at {at}: {error}"))
        })
    }

    /// Prepares this process's share of a series, once the series begins.
    ///
    /// # Errors
    ///
    /// The same as those of [`Self::prepare`].
    pub fn prepare_share(
        &self,
        relay: SeriesRelay,
        stop: Arc<AtomicBool>,
        log: OperatorLog,
    ) -> Result<PreparedRecording, ServiceError> {
        let opened = self.open_share(relay, log)?;
        self.prepare_series(opened, stop, log)
    }

    /// Refuses a layout whose files hold frames in order: those in between came to other processes.
    pub(super) fn check_share_layout(&self) -> Result<(), ServiceError> {
        let several = self.layout.as_ref().is_some_and(|layout| layout.has_several_datasets());
        require(!several, || {
            "--layout: one with several datasets for frames needs all of them in order, and several processes get some \
             each; leave it out or start one process"
                .into()
        })
    }
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
