//! What a commanded recorder is doing, and what it may be told in each state.

use std::{collections::BTreeMap, path::PathBuf};

use nilometer_acquisition::Status;
use nilometer_model::{Moment, packets::VlbiMode};
use serde::Serialize;

use crate::record::{RecordOptions, Settings};

/// In which state a recorder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// Nothing says yet what is recorded and where it goes.
    #[default]
    Idle,
    /// It can be armed.
    Configured,
    /// Directory, memory and socket are there: it can begin at once.
    Armed,
    /// Packets are recorded.
    Recording,
    /// The last recording did not end well; it can be armed again.
    Failed,
}

/// What a recorder is told.
#[derive(Debug)]
pub(crate) enum Order {
    /// This is to be recorded; the file of the service says the rest.
    Configure(RecordOptions),
    /// This is to be recorded instead; the rest stays.
    Change(RecordOptions),
    /// Make everything ready; the wishes hold for this recording only.
    Arm(RecordOptions, Metadata),
    /// Begin.
    Start,
    /// Arm under this name, or one that is like it if it is taken, and begin.
    Record(String),
    /// End in order. What is only armed is given up.
    Stop,
}

/// Whatever is to be written beside a recording.
pub(crate) type Metadata = BTreeMap<String, serde_json::Value>;

/// Why an order was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Not in this state.
    Order(String),
    /// What was asked can't be.
    Input(String),
    /// It was tried and did not work.
    Failed(String),
    /// Others are served first.
    Busy,
}

impl State {
    /// All of them.
    pub(crate) const ALL: [State; 5] =
        [State::Idle, State::Configured, State::Armed, State::Recording, State::Failed];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Configured => "configured",
            State::Armed => "armed",
            State::Recording => "recording",
            State::Failed => "failed",
        }
    }

    /// Whether this may be told now; otherwise what to do instead.
    pub(crate) fn allows(self, order: &Order) -> Result<(), Refused> {
        use State::{Armed, Configured, Failed, Idle, Recording};
        let instead = match (order, self) {
            (Order::Configure(_) | Order::Change(_), Idle | Configured | Failed)
            | (Order::Arm(..) | Order::Record(_), Configured | Failed)
            | (Order::Start, Armed)
            | (Order::Stop, Armed | Recording) => return Ok(()),
            (Order::Arm(..) | Order::Record(_), Idle) => "configure it first",
            (Order::Start, Recording) => "it records already",
            (Order::Start, _) => "arm it first",
            (Order::Stop, _) => "there is nothing to stop",
            (_, _) => "stop it first",
        };
        Err(Refused::Order(format!("it is {}: {instead}", self.name())))
    }
}

/// All that is told of a recorder.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) state: State,
    /// Since when it is in this state.
    pub(crate) since: Moment,
    /// Its end was ordered, and what is there is still being stored.
    pub(crate) stopping: bool,
    /// Of the recording that is armed or runs.
    pub(crate) name: Option<String>,
    /// When it is to begin by itself.
    pub(crate) start: Option<Moment>,
    /// When it is to end by itself.
    pub(crate) stop: Option<Moment>,
    /// Why it failed.
    pub(crate) fault: Option<String>,
    pub(crate) configuration: Configuration,
    /// The recording that runs, or the last one.
    pub(crate) recording: Option<Status>,
    /// Recordings of this service that have ended.
    pub(crate) recordings: u64,
    /// The last of them.
    pub(crate) last: Option<Scan>,
    pub(crate) version: &'static str,
}

/// What is to be recorded, as far as that is said.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Configuration {
    pub(crate) instrument: Option<String>,
    /// Its data format in one word, if it has one.
    #[serde(serialize_with = "as_text")]
    pub(crate) mode: Option<VlbiMode>,
    /// Where recordings go.
    pub(crate) to: Vec<PathBuf>,
    /// Where packets are awaited.
    pub(crate) listen: Option<String>,
    /// What is still missing or wrong.
    pub(crate) missing: Option<String>,
}

impl Configuration {
    /// Of settings that can be recorded with.
    pub(crate) fn of(settings: &Settings) -> Self {
        Configuration {
            instrument: Some(settings.instrument().name.clone()),
            mode: VlbiMode::of(settings.instrument()),
            to: settings.wishes().to.clone(),
            listen: Some(settings.listens_at()),
            missing: None,
        }
    }

    /// Of what can't be recorded with yet, and why.
    pub(crate) fn missing(wishes: &RecordOptions, why: String) -> Self {
        let mode = wishes.mode;
        let to = wishes.to.clone();
        Configuration { mode, to, missing: Some(why), ..Configuration::default() }
    }
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn as_text<S: serde::Serializer>(mode: &Option<VlbiMode>, serializer: S) -> Result<S::Ok, S::Error> {
    mode.map(|mode| mode.to_string()).serialize(serializer)
}

/// A recording that has ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Scan {
    pub(crate) name: String,
    /// Its directories.
    pub(crate) paths: Vec<PathBuf>,
    /// When it began.
    pub(crate) begun: Moment,
    /// From the first packet to the end.
    pub(crate) seconds: f64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) missing_packets: u64,
    /// What did not go well.
    pub(crate) fault: Option<String>,
    #[serde(skip)]
    pub(crate) mode: Option<VlbiMode>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_carried_out_in_their_state_only() {
        let orders = || {
            [
                Order::Configure(RecordOptions::default()),
                Order::Change(RecordOptions::default()),
                Order::Arm(RecordOptions::default(), Metadata::new()),
                Order::Start,
                Order::Record(String::new()),
                Order::Stop,
            ]
        };
        let allowed = State::ALL.map(|state| orders().map(|order| u8::from(state.allows(&order).is_ok())));
        assert_eq!(
            allowed,
            [
                [1, 1, 0, 0, 0, 0],
                [1, 1, 1, 0, 1, 0],
                [0, 0, 0, 1, 0, 1],
                [0, 0, 0, 0, 0, 1],
                [1, 1, 1, 0, 1, 0]
            ]
        );
        let Err(Refused::Order(why)) = State::Recording.allows(&Order::Configure(RecordOptions::default()))
        else {
            panic!("it records")
        };
        assert_eq!(why, "it is recording: stop it first");
    }
}
