//! Frames in turn: the share of each process in a common recording, and the ways of storing that do not allow
//! it.

use anyhow::ensure;
use nilometer_cluster::{SharedRecording, StoredPart};
use nilometer_model::{Format, Instrument, RecordingLayout, Storing};
use nilometer_ring::FrameTurn;
use nilometer_storage::target::run_id;

use super::Asked;
use crate::{
    together::{Together, machines_of},
    version,
};

/// The recording in the words of this process's command line.
pub(super) fn shared(name: Option<&str>, asked: &Asked) -> SharedRecording {
    let id = run_id().0;
    SharedRecording {
        version: version::SHORT.into(),
        id,
        name: name.map_or_else(|| format!("{}-{id:016x}", asked.instrument.name), Into::into),
        is_series: false,
        key: 0,
        instrument: what_is_recorded(&asked.instrument),
        duration: asked.duration,
        frames: asked.frames,
        seed: asked.seed,
    }
}

/// The part that must be the same for all processes. The number of encoders is each process's own.
fn what_is_recorded(instrument: &Instrument) -> String {
    let mut instrument = instrument.clone();
    instrument.recording.encoders = None;
    serde_json::to_string(&instrument).unwrap_or_default()
}

impl Together<'_> {
    /// The recording as this process makes it. In HDF5, frames in turn stand at their own numbers. Each
    /// process has one file for all its frames, so the limit of frames a file does not apply.
    pub(super) fn own(&self, asked: &Asked) -> Asked {
        let mut instrument = asked.instrument.clone();
        if self.is_shared() && instrument.recording.format == Format::Hdf5 {
            instrument.recording.frames_per_file = None;
        }
        Asked { instrument, ..*asked }
    }

    /// Checks that frames in turn can be stored this way.
    pub(super) fn check_storing(&self, storing: Storing, recording: &RecordingLayout) -> anyhow::Result<()> {
        if !self.is_shared() {
            return Ok(());
        }
        if recording.format == Format::Hdf5 {
            ensure!(
                matches!(storing, Storing::Growing | Storing::Shared),
                "several processes that record HDF5 have a file each: name one directory with --to, and one of --writers; with \
                 --storing shared they have one file"
            );
        }
        // A file with a picture has the number of the frame, which no other process records.
        let is_alone = recording.format == Format::Cbf && storing == Storing::Positions;
        ensure!(
            is_alone || !matches!(storing, Storing::Positions | Storing::Scattered),
            "--storing {}: its files are numbered over all writers, and several processes know nothing of each other's; choose \
             another, or start one process",
            storing.name()
        );
        Ok(())
    }

    /// The frames that this process records: every n-th, or whole lines of a scan.
    pub(super) fn turn(&self, recording: &RecordingLayout) -> FrameTurn {
        let line = recording.scan.map_or(1, |scan| scan.line());
        FrameTurn { first: self.rank(), of: self.size(), line }
    }
}

/// The results of all processes, one line each, and the directories of all.
pub(super) fn told_of_all(parts: &[StoredPart], recording: &RecordingLayout) -> Vec<String> {
    let machines = machines_of(parts);
    let turns = if recording.scan.is_some() { "lines" } else { "frames" };
    let mut lines = vec![format!("recorders   {} processes on {machines}, {turns} in turn", parts.len())];
    for (rank, part) in parts.iter().enumerate() {
        lines.push(format!("process {rank} on {}: {} frames", part.node, part.stored));
        lines.extend(part.lines.iter().map(|line| format!("  {line}")));
    }
    lines
}
