//! The summary of a recording in a file beside it: `NAME.summary.json`. It includes the user's metadata, and the
//! network counters of the machine during the recording.

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc};

use nilometer_acquisition::{Outcome as Recorded, Status};
use nilometer_intake::joined::{DatasetTally, JoinedTally};
use nilometer_model::{Moment, Nanos, observed::ClockReading, packets::VlbiMode};
use nilometer_storage::{
    Calendar, DetachedTask, clock::clock_reading, network::counters::NetworkCounters, target::KeptDirectory,
};
use serde::Serialize;
use serde_json::Value;

use super::{
    ended::{ended_how, fault_of},
    prepare::PreparedRecording,
};

/// Metadata that the user adds to a recording, by name.
pub type RecordingMetadata = BTreeMap<String, Value>;

/// The time at which a recording began, and the network counters of the machine then.
#[derive(Debug)]
pub struct BeforeRecording {
    begun: Moment,
    clock: Option<ClockReading>,
    counters: NetworkCounters,
}

/// The summary of a recording that has ended, written as JSON. It has the recording's figures, the end of each
/// directory, the network counters meanwhile, and the user's metadata.
#[derive(Debug, Serialize)]
pub struct RecordingAccount {
    name: String,
    instrument: String,
    mode: Option<String>,
    came_from: String,
    begun: Moment,
    ended: Moment,
    /// The faults of the recording, or `None` if all went well.
    fault: Option<String>,
    directories: Vec<EndedDirectory>,
    recording: Status,
    /// If files have several datasets of frames: the number of frames in each, and the reasons for the default
    /// one.
    #[serde(skip_serializing_if = "Option::is_none")]
    datasets: Option<DatasetTally>,
    clock: ClockMeanwhile,
    /// Counted by the kernel, on all sockets and interfaces.
    network: NetworkMeanwhile,
    metadata: RecordingMetadata,
    version: &'static str,
}

/// Counters since the start of the machine, and their growth during the recording.
#[derive(Debug, Serialize)]
struct NetworkMeanwhile {
    before: NetworkCounters,
    after: NetworkCounters,
    meanwhile: NetworkCounters,
}

/// The kernel's estimate of the machine's clock, or `None` if the kernel refuses to give it.
#[derive(Debug, Serialize)]
struct ClockMeanwhile {
    before: Option<ClockReading>,
    after: Option<ClockReading>,
}

#[derive(Debug, Serialize)]
struct EndedDirectory {
    path: PathBuf,
    ended: String,
}

impl BeforeRecording {
    /// Takes the time and the network counters at the beginning of a recording.
    pub fn now() -> Self {
        BeforeRecording {
            begun: Moment(Calendar::now().time),
            clock: clock_reading(),
            counters: NetworkCounters::now(),
        }
    }

    /// The time at which the recording began.
    pub fn begun(&self) -> Moment {
        self.begun
    }
}

impl NetworkMeanwhile {
    /// Takes the counters now, and compares them with those before.
    fn since(before: &NetworkCounters) -> Self {
        let after = NetworkCounters::now();
        NetworkMeanwhile { meanwhile: after.since(before), before: before.clone(), after }
    }
}

impl RecordingAccount {
    /// The summary of a recording that has just ended.
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
            clock: ClockMeanwhile { before: before.clock, after: clock_reading() },
            network: NetworkMeanwhile::since(&before.counters),
            metadata: RecordingMetadata::new(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// Adds the result of joining values to frames.
    #[must_use]
    pub fn joining(self, tally: Option<&JoinedTally>) -> Self {
        RecordingAccount { datasets: tally.and_then(|tally| tally.datasets.clone()), ..self }
    }

    /// Adds the user's metadata.
    #[must_use]
    pub fn noting(self, metadata: RecordingMetadata) -> Self {
        RecordingAccount { metadata, ..self }
    }

    /// The figures at the end of the recording.
    pub fn recording(&self) -> &Status {
        &self.recording
    }

    /// The places on the machine at which the network lost packets.
    pub fn network_losses(&self) -> Vec<String> {
        self.network.meanwhile.losses()
    }

    /// Writes the summary into each directory of the recording, and succeeds if one took it. It waits for each
    /// directory up to `at_most`, and then leaves storage that hangs.
    pub fn keep(&self, directories: &[Arc<dyn KeptDirectory>], at_most: Nanos) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).expect("numbers and texts can be written") + "\n";
        let name = format!("{}.summary.json", self.name);
        let mut kept = Vec::new();
        // Try all: no directory is special.
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
