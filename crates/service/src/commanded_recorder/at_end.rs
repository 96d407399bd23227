//! The end of a recording: its summary, the files that belong to its end, and its entry among the recordings that
//! have ended.

use std::path::PathBuf;

use nilometer_acquisition::{Outcome as Recorded, Status};

use crate::{
    background::CurrentRecording,
    error::OperatorLog,
    recording::{
        account::{BeforeRecording, RecordingAccount},
        recorded_file::CompleteFiles,
    },
    state::EndedScan,
};

/// The parts of a recording that were made at its end.
#[derive(Debug, Default)]
pub(super) struct KeptRecording {
    /// The result of joining values to its frames, if there were any.
    pub(super) joined: Option<String>,
    /// The file that shows the frames of all files.
    pub(super) master: Option<PathBuf>,
    pub(super) files: CompleteFiles,
}

impl CurrentRecording {
    /// Writes the summary of a recording if the storage answers, and the files that belong to its end.
    pub(super) fn keep(self, outcome: &Recorded, status: &Status, log: OperatorLog) -> KeptRecording {
        let CurrentRecording { prepared, settings, metadata, before, .. } = self;
        if outcome.hung {
            // A directory on storage that hangs must not be closed.
            std::mem::forget(prepared);
            return KeptRecording::default();
        }
        let joined = prepared.join_rest(settings.patience());
        let before = before.unwrap_or_else(BeforeRecording::now);
        let tally = joined.as_ref().ok().and_then(Option::as_ref);
        let account = RecordingAccount::of(&prepared, &before, outcome, status.clone());
        let account = account.noting(metadata).joining(tally);
        if let Err(error) = account.keep(&prepared.targets, settings.patience()) {
            log(&format!("{}: can't write its summary: {error}", prepared.name));
        }
        let master = prepared.put_master(settings.patience()).unwrap_or_else(|error| {
            log(&format!("{}: can't write the file over its files: {error}", prepared.name));
            None
        });
        let joined = joined.unwrap_or_else(|error| {
            log(&format!("{}: can't write the rest of the values into its files: {error}", prepared.name));
            None
        });
        let files = CompleteFiles::list(&prepared, settings.patience());
        KeptRecording { joined: joined.and_then(|tally| tally.text()), master, files }
    }

    pub(super) fn scan(&self, outcome: &Recorded, status: &Status) -> EndedScan {
        let begun = self.before.as_ref().map(BeforeRecording::begun).unwrap_or_default();
        EndedScan::of(&self.prepared, begun, outcome, status)
    }
}
