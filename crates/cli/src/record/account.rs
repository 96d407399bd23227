//! What a recording came to, in a file of its own beside it: `NAME.summary.json`. With it belongs what the user wished to
//! have noted, and what the network of the machine counted meanwhile.

use std::{io, path::PathBuf, sync::Arc};

use nilometer_acquisition::{Outcome as Recorded, Status};
use nilometer_model::{Moment, Nanos, packets::VlbiMode};
use nilometer_storage::{Calendar, DetachedTask, target::Directory};
use serde::Serialize;
use serde_json::Value;

use super::{Prepared, Settings, summary::went_well};
use nilometer_storage::network::counters::NetworkCounters;

use crate::recorded::ended_how;

/// What was there before a recording, to compare with.
#[derive(Debug)]
pub(crate) struct Before {
    begun: Moment,
    counters: NetworkCounters,
}

/// See the module.
#[derive(Debug, Serialize)]
pub(crate) struct Account {
    name: String,
    instrument: String,
    mode: Option<String>,
    listened_at: String,
    begun: Moment,
    ended: Moment,
    /// What did not go well.
    fault: Option<String>,
    directories: Vec<Ended>,
    recording: Status,
    /// Counted by the kernel, on all sockets and interfaces.
    network: Network,
    metadata: std::collections::BTreeMap<String, Value>,
    version: &'static str,
}

/// Counters since the machine was started, and what was counted while the recording ran.
#[derive(Debug, Serialize)]
struct Network {
    before: NetworkCounters,
    after: NetworkCounters,
    meanwhile: NetworkCounters,
}

#[derive(Debug, Serialize)]
struct Ended {
    path: PathBuf,
    ended: String,
}

impl Before {
    /// A recording begins now.
    pub(crate) fn now() -> Self {
        Before { begun: Moment(Calendar::now().time), counters: NetworkCounters::now() }
    }

    /// When it began.
    pub(crate) fn begun(&self) -> Moment {
        self.begun
    }
}

impl Network {
    /// Until now.
    fn since(before: &NetworkCounters) -> Self {
        let after = NetworkCounters::now();
        Network { meanwhile: after.since(before), before: before.clone(), after }
    }
}

impl Account {
    /// It has ended just now.
    pub(crate) fn of(
        prepared: &Prepared,
        settings: &Settings,
        before: &Before,
        outcome: &Recorded,
        recording: Status,
    ) -> Self {
        let ended = outcome.endings().map(|(ending, ended)| ended_how(ending, ended));
        let directories = recording.lanes.iter().zip(ended);
        Account {
            name: prepared.name.clone(),
            instrument: settings.instrument().name.clone(),
            mode: VlbiMode::of(settings.instrument()).map(|mode| mode.to_string()),
            listened_at: format!("udp://{}", prepared.at),
            begun: before.begun,
            ended: Moment(Calendar::now().time),
            fault: went_well(outcome).err().map(|error| error.to_string()),
            directories: directories.map(|(lane, ended)| Ended { path: lane.path.clone(), ended }).collect(),
            recording,
            network: Network::since(&before.counters),
            metadata: std::collections::BTreeMap::default(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// With what the user wished to have noted.
    #[must_use]
    pub(crate) fn noting(self, metadata: std::collections::BTreeMap<String, Value>) -> Self {
        Account { metadata, ..self }
    }

    /// The figures at its end.
    pub(crate) fn recording(&self) -> &Status {
        &self.recording
    }

    /// Where packets were lost on their way through the machine.
    pub(crate) fn network_losses(&self) -> Vec<String> {
        self.network.meanwhile.losses()
    }

    /// Writes it into each directory of the recording; that is well if one took it. Storage that hangs is waited for so
    /// long, and then left.
    pub(crate) fn keep(&self, directories: &[Arc<Directory>], at_most: Nanos) -> io::Result<()> {
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
