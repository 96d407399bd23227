//! What a recording came to, in a file of its own beside it: `NAME.summary.json`. With it belongs what the user wished to
//! have noted, and what the network of the machine counted meanwhile.

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc};

use nilometer_acquisition::{Outcome as Recorded, Status};
use nilometer_intake::joined::{DatasetTally, JoinedTally};
use nilometer_model::{Moment, Nanos, packets::VlbiMode};
use nilometer_storage::{Calendar, DetachedTask, network::counters::NetworkCounters, target::KeptDirectory};
use serde::Serialize;
use serde_json::Value;

use super::{
    ended::{ended_how, fault_of},
    prepare::PreparedRecording,
};

/// Whatever the user wished to be written beside a recording, by name.
pub type RecordingMetadata = BTreeMap<String, Value>;

/// The time at which a recording began, and the network counters of the machine then.
#[derive(Debug)]
pub struct BeforeRecording {
    begun: Moment,
    counters: NetworkCounters,
}

/// The summary of a recording that has ended: its figures, how each directory ended, what the network counted meanwhile,
/// and the metadata of the user. Written as JSON.
#[derive(Debug, Serialize)]
pub struct RecordingAccount {
    name: String,
    instrument: String,
    mode: Option<String>,
    came_from: String,
    begun: Moment,
    ended: Moment,
    /// What did not go well.
    fault: Option<String>,
    directories: Vec<EndedDirectory>,
    recording: Status,
    /// Where files have several datasets of frames: how many went into which, and why into the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    datasets: Option<DatasetTally>,
    /// Counted by the kernel, on all sockets and interfaces.
    network: NetworkMeanwhile,
    metadata: RecordingMetadata,
    version: &'static str,
}

/// Counters since the machine was started, and what was counted while the recording ran.
#[derive(Debug, Serialize)]
struct NetworkMeanwhile {
    before: NetworkCounters,
    after: NetworkCounters,
    meanwhile: NetworkCounters,
}

#[derive(Debug, Serialize)]
struct EndedDirectory {
    path: PathBuf,
    ended: String,
}

impl BeforeRecording {
    /// A recording begins now.
    pub fn now() -> Self {
        BeforeRecording { begun: Moment(Calendar::now().time), counters: NetworkCounters::now() }
    }

    /// When it began.
    pub fn begun(&self) -> Moment {
        self.begun
    }
}

impl NetworkMeanwhile {
    /// Until now.
    fn since(before: &NetworkCounters) -> Self {
        let after = NetworkCounters::now();
        NetworkMeanwhile { meanwhile: after.since(before), before: before.clone(), after }
    }
}

impl RecordingAccount {
    /// It has ended just now.
    pub fn of(
        prepared: &PreparedRecording,
        before: &BeforeRecording,
        outcome: &Recorded,
        recording: Status,
    ) -> Self {
        let ended = outcome.endings().map(|(ending, ended)| ended_how(ending, ended));
        let directories = recording.lanes.iter().zip(ended);
        RecordingAccount {
            name: prepared.name.clone(),
            instrument: prepared.instrument.name.clone(),
            mode: VlbiMode::of(&prepared.instrument).map(|mode| mode.to_string()),
            came_from: prepared.from.clone(),
            begun: before.begun,
            ended: Moment(Calendar::now().time),
            fault: fault_of(outcome),
            directories: directories
                .map(|(lane, ended)| EndedDirectory { path: lane.path.clone(), ended })
                .collect(),
            recording,
            datasets: None,
            network: NetworkMeanwhile::since(&before.counters),
            metadata: RecordingMetadata::new(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// With what came of values that were joined to its frames.
    #[must_use]
    pub fn joining(self, tally: Option<&JoinedTally>) -> Self {
        RecordingAccount { datasets: tally.and_then(|tally| tally.datasets.clone()), ..self }
    }

    /// With what the user wished to have noted.
    #[must_use]
    pub fn noting(self, metadata: RecordingMetadata) -> Self {
        RecordingAccount { metadata, ..self }
    }

    /// The figures at its end.
    pub fn recording(&self) -> &Status {
        &self.recording
    }

    /// Where packets were lost on their way through the machine.
    pub fn network_losses(&self) -> Vec<String> {
        self.network.meanwhile.losses()
    }

    /// Writes it into each directory of the recording; that is well if one took it. Storage that hangs is waited for so
    /// long, and then left.
    pub fn keep(&self, directories: &[Arc<dyn KeptDirectory>], at_most: Nanos) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).expect("numbers and texts can be written") + "\n";
        let name = format!("{}.summary.json", self.name);
        let mut kept = Vec::new();
        // All are tried: no directory is special.
        for directory in directories {
            let directory = directory.clone();
            let name = name.clone();
            let text = text.clone();
            let put = DetachedTask::begin("summary", move || directory.put(&name, text.as_bytes()));
            let in_time = put.map(|put| put.outcome_within(at_most));
            kept.push(in_time.and_then(|done| done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))));
        }
        kept.into_iter().reduce(io::Result::or).unwrap_or(Ok(()))
    }
}
