//! What a commanded recorder is doing, and what it may be told in each state.

use std::path::PathBuf;

use nilometer_acquisition::Status;
use nilometer_model::{ByteRate, Bytes, Instrument, Moment, TargetDescription, packets::VlbiMode};
use serde::Serialize;

use crate::recording::{
    account::RecordingMetadata,
    options::RecordOptions,
    prepare::PreparedRecording,
    settings::{RecordingSettings, reserve_of},
};

/// In which state a recorder is that is commanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceState {
    /// Nothing says yet what is recorded and where it goes.
    #[default]
    Idle,
    /// It can be armed.
    Configured,
    /// A series over TCP is awaited: the recording begins with it.
    Waiting,
    /// Directory, memory and socket are there: it can begin at once.
    Armed,
    /// Packets are recorded.
    Recording,
    /// The last recording did not end well; it can be armed again.
    Failed,
}

/// What a recorder is told.
#[derive(Debug)]
pub(crate) enum RecorderOrder {
    /// This is to be recorded; the file of the service says the rest.
    Configure(RecordOptions),
    /// This is to be recorded instead; the rest stays.
    Change(RecordOptions),
    /// Make everything ready; the wishes hold for this recording only.
    Arm(RecordOptions, RecordingMetadata),
    /// Begin.
    Start,
    /// Arm under this name, or one that is like it if it is taken, and begin.
    Record(String),
    /// End in order. What is only armed is given up.
    Stop,
}

/// Why an order was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RefusedOrder {
    /// Not in this state.
    WrongState(String),
    /// What was asked can't be.
    AskedWrongly(String),
    /// It was tried and did not work.
    Failed(String),
    /// Others are served first.
    Busy,
}

impl ServiceState {
    /// All of them.
    pub(crate) const ALL: [ServiceState; 6] = [
        ServiceState::Idle,
        ServiceState::Configured,
        ServiceState::Waiting,
        ServiceState::Armed,
        ServiceState::Recording,
        ServiceState::Failed,
    ];

    /// As it is told.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            ServiceState::Idle => "idle",
            ServiceState::Configured => "configured",
            ServiceState::Waiting => "waiting",
            ServiceState::Armed => "armed",
            ServiceState::Recording => "recording",
            ServiceState::Failed => "failed",
        }
    }

    /// Whether this may be told now; otherwise what to do instead.
    pub(crate) fn allows(self, order: &RecorderOrder) -> Result<(), RefusedOrder> {
        use ServiceState::{Armed, Configured, Failed, Idle, Recording, Waiting};
        let instead = match (order, self) {
            (RecorderOrder::Configure(_) | RecorderOrder::Change(_), Idle | Configured | Failed)
            | (RecorderOrder::Arm(..) | RecorderOrder::Record(_), Configured | Failed)
            | (RecorderOrder::Start, Armed)
            | (RecorderOrder::Stop, Armed | Recording | Waiting) => return Ok(()),
            (RecorderOrder::Arm(..) | RecorderOrder::Record(_), Idle) => "configure it first",
            (RecorderOrder::Start, Recording) => "it records already",
            (RecorderOrder::Start, Waiting) => "the recording begins by itself, with the series",
            (RecorderOrder::Start, _) => "arm it first",
            (RecorderOrder::Stop, _) => "there is nothing to stop",
            (_, _) => "stop it first",
        };
        Err(RefusedOrder::WrongState(format!("it is {}: {instead}", self.name())))
    }
}

/// All that is told of a recorder, as JSON or in words.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct ServiceReport {
    pub(crate) state: ServiceState,
    /// Since when it is in this state.
    pub(crate) since: Moment,
    /// Its end was ordered, and what is there is still being stored.
    pub(crate) stopping: bool,
    /// From where a series is awaited, in the state `waiting`.
    pub(crate) awaits: Option<String>,
    /// Of the recording that is awaited, armed or runs.
    pub(crate) name: Option<String>,
    /// When it is to begin by itself.
    pub(crate) start: Option<Moment>,
    /// When it is to end by itself.
    pub(crate) stop: Option<Moment>,
    /// Why it failed.
    pub(crate) fault: Option<String>,
    pub(crate) configuration: ServiceConfiguration,
    /// The recording that runs, or the last one.
    pub(crate) recording: Option<Status>,
    /// The storage that its directories are on, in their order.
    pub(crate) storage: Vec<StorageSize>,
    /// Recordings of this service that have ended.
    pub(crate) recordings: u64,
    /// A series over TCP began behind the last one, and waits to be armed.
    pub(crate) pending_series: bool,
    /// Series over TCP that began and could not be recorded, while every one was to be.
    pub(crate) unrecorded_series: u64,
    /// The last of them.
    pub(crate) last: Option<EndedScan>,
    pub(crate) version: &'static str,
}

/// The storage below a directory that is recorded into.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct StorageSize {
    pub(crate) path: PathBuf,
    pub(crate) size_bytes: u64,
    pub(crate) file_system: String,
}

impl StorageSize {
    /// As it was when the recording was prepared.
    pub(crate) fn of(prepared: &PreparedRecording) -> Vec<Self> {
        let described = prepared.targets.iter().map(|target| target.description());
        let size = |description: &TargetDescription| StorageSize {
            path: description.address.to_string().into(),
            size_bytes: description.space.size.0,
            file_system: description.file_system.clone(),
        };
        described.map(size).collect()
    }
}

/// What is to be recorded, as far as that is said.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct ServiceConfiguration {
    pub(crate) instrument: Option<String>,
    /// Its data format in one word, if it has one.
    #[serde(serialize_with = "as_text")]
    pub(crate) mode: Option<VlbiMode>,
    /// Where recordings go.
    pub(crate) to: Vec<PathBuf>,
    /// Where packets are awaited, or frames come from.
    pub(crate) listen: Option<String>,
    /// What is still missing or wrong.
    pub(crate) missing: Option<String>,
    /// What is to be stored, headers of frames included, pauses apart.
    #[serde(skip)]
    pub(crate) rate: Option<ByteRate>,
    /// What stays free on each storage.
    #[serde(rename = "reserve_bytes", serialize_with = "as_number")]
    pub(crate) reserve: Bytes,
}

impl ServiceConfiguration {
    /// Of settings that can be recorded with.
    pub(crate) fn of(settings: &RecordingSettings) -> Self {
        let instrument = settings.instrument();
        let mode = instrument.and_then(VlbiMode::of);
        let rate = mode.map(stored_rate).or_else(|| instrument.map(Instrument::rate));
        ServiceConfiguration {
            instrument: instrument.map(|instrument| instrument.name.clone()),
            mode,
            to: settings.wishes().to.clone(),
            listen: Some(settings.listens_at()),
            missing: None,
            rate,
            reserve: settings.reserve(),
        }
    }

    /// Of what can't be recorded with yet, and why.
    pub(crate) fn missing(wishes: &RecordOptions, why: String) -> Self {
        let mode = wishes.mode;
        let to = wishes.to.clone();
        let rate = mode.map(stored_rate);
        let reserve = reserve_of(wishes);
        let missing = Some(why);
        ServiceConfiguration { mode, to, missing, rate, reserve, ..ServiceConfiguration::default() }
    }
}

/// What is stored of a mode, whose rate is that of the samples alone.
fn stored_rate(mode: VlbiMode) -> ByteRate {
    let share = mode.frame_size().0 as f64 / mode.payload().0 as f64;
    ByteRate(mode.megabits() as f64 * 125_000.0 * share)
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn as_text<S: serde::Serializer>(mode: &Option<VlbiMode>, serializer: S) -> Result<S::Ok, S::Error> {
    mode.map(|mode| mode.to_string()).serialize(serializer)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn as_number<S: serde::Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(bytes.0)
}

/// A recording that has ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct EndedScan {
    pub(crate) name: String,
    /// Its directories.
    pub(crate) paths: Vec<PathBuf>,
    /// When it began.
    pub(crate) begun: Moment,
    /// From the first packet to the end.
    pub(crate) seconds: f64,
    /// What these are: `packets`, or `frames` of a series.
    pub(crate) counted_in: &'static str,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) missing_packets: u64,
    /// What came of values that were joined to its frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) joined: Option<String>,
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
                RecorderOrder::Configure(RecordOptions::default()),
                RecorderOrder::Change(RecordOptions::default()),
                RecorderOrder::Arm(RecordOptions::default(), RecordingMetadata::new()),
                RecorderOrder::Start,
                RecorderOrder::Record(String::new()),
                RecorderOrder::Stop,
            ]
        };
        let allowed =
            ServiceState::ALL.map(|state| orders().map(|order| u8::from(state.allows(&order).is_ok())));
        assert_eq!(
            allowed,
            [
                [1, 1, 0, 0, 0, 0],
                [1, 1, 1, 0, 1, 0],
                [0, 0, 0, 0, 0, 1],
                [0, 0, 0, 1, 0, 1],
                [0, 0, 0, 0, 0, 1],
                [1, 1, 1, 0, 1, 0]
            ]
        );
        let Err(RefusedOrder::WrongState(why)) =
            ServiceState::Recording.allows(&RecorderOrder::Configure(RecordOptions::default()))
        else {
            panic!("it records")
        };
        assert_eq!(why, "it is recording: stop it first");
    }
}
