//! The entry of a recording among those that have ended, in reports and events.

use std::path::PathBuf;

use nilometer_acquisition::{Outcome as Recorded, Status};
use nilometer_model::{Moment, Nanos, packets::VlbiMode};

use crate::{
    recording::{
        account::BeforeRecording,
        ended::fault_of,
        prepare::PreparedRecording,
        recorded_file::{CompleteFiles, RecordedFile},
    },
    state::EndedScan,
};

/// The recording of a [`StatusServer`](crate::StatusServer) at its end.
#[derive(Debug)]
pub struct RecordingAtEnd<'a> {
    /// The recording.
    pub prepared: &'a PreparedRecording,
    /// Its beginning.
    pub before: &'a BeforeRecording,
    /// Its end.
    pub outcome: &'a Recorded,
    /// The last figures.
    pub status: &'a Status,
    /// The result of joining values to its frames, or `None` if there were none.
    pub joined: Option<String>,
    /// The file that shows the frames of all files, or `None` if there is no such file.
    pub master: Option<PathBuf>,
    /// The longest wait for each of its directories.
    pub patience: Nanos,
}

impl RecordingAtEnd<'_> {
    /// Makes the entry, and lists the complete files if the storage answers.
    pub(crate) fn entry(self, file: &RecordedFile) -> EndedScan {
        let RecordingAtEnd { prepared, before, outcome, status, joined, master, patience } = self;
        // Storage that hangs lists nothing.
        let files =
            if outcome.hung { CompleteFiles::default() } else { CompleteFiles::list(prepared, patience) };
        let mut entry = EndedScan { joined, ..EndedScan::of(prepared, before.begun(), outcome, status) };
        entry.file = file.counting(status);
        entry.file.complete(files, master);
        entry
    }
}

impl EndedScan {
    /// The entry without the files and the result of joining values.
    pub(crate) fn of(
        prepared: &PreparedRecording,
        begun: Moment,
        outcome: &Recorded,
        status: &Status,
    ) -> Self {
        EndedScan {
            name: prepared.name.clone(),
            paths: prepared.targets.iter().map(|target| target.path().to_owned()).collect(),
            begun,
            seconds: outcome.wall.seconds(),
            counted_in: status.counted_in,
            packets: status.acknowledged_packets,
            bytes: status.acknowledged_bytes,
            missing_packets: outcome
                .series
                .as_ref()
                .map_or(status.lost.all(), |series| series.lost(outcome.due)),
            joined: None,
            fault: fault_of(outcome),
            file: RecordedFile::default(),
            mode: VlbiMode::of(&prepared.instrument),
        }
    }
}

/// Returns true if anything failed other than that packets are missing.
pub(crate) fn is_broken(outcome: &Recorded) -> bool {
    let lost = outcome.due.saturating_sub(outcome.stored()) > 0;
    let network = outcome.traffic.as_ref().is_some_and(|traffic| traffic.fault.is_some());
    let network = network || outcome.series.as_ref().is_some_and(|series| series.fault.is_some());
    outcome.hung || lost || network || !outcome.faults.is_empty()
}
