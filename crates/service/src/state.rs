//! The states of a commanded recorder, and the orders that each allows.

use std::path::PathBuf;

use nilometer_acquisition::{DataStreamStatus, LaneStatus, Status};
use nilometer_model::{
    ByteRate, Bytes, Instrument, Moment, Nanos, StorageRoom, TargetDescription, packets::VlbiMode,
};
use nilometer_storage::in_time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    preview::PreviewReport,
    recording::{
        account::RecordingMetadata,
        addresses::LabelledSender,
        options::RecordOptions,
        prepare::PreparedRecording,
        recorded_file::RecordedFile,
        settings::{RecordingSettings, reserve_of},
    },
    storage_space::{PATIENCE, space_of},
};

/// The state of a commanded recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceState {
    /// The source or the place of recordings is not configured yet.
    #[default]
    Idle,
    /// The recorder can be armed.
    Configured,
    /// The recorder waits for a series over TCP, and begins with it.
    Waiting,
    /// Directory, memory and socket are ready: the recording can begin at once.
    Armed,
    /// The recorder stores packets.
    Recording,
    /// The last recording did not end well. The recorder can be armed again.
    Failed,
}

/// An order to the recorder.
#[derive(Debug)]
pub(crate) enum RecorderOrder {
    /// Use these options over those in the service's file.
    Configure(RecordOptions),
    /// Use these options over the current ones.
    Change(RecordOptions),
    /// Prepare a recording. The options hold for this recording only.
    Arm(RecordOptions, RecordingMetadata),
    /// Begin.
    Start,
    /// Arm under this name, or a similar one if it exists, and begin. The data streams replace those of the current
    /// options, unless they are `None`.
    Record(String, Option<Vec<LabelledSender>>),
    /// End in order. If nothing has begun, discard the armed recording.
    Stop,
}

/// The reason why the recorder refused an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RefusedOrder {
    /// The current state does not allow it.
    WrongState(String),
    /// The request is invalid.
    AskedWrongly(String),
    /// The recorder tried and failed.
    Failed(String),
    /// Other orders go first.
    Busy,
}

impl ServiceState {
    /// All states.
    pub(crate) const ALL: [ServiceState; 6] = [
        ServiceState::Idle,
        ServiceState::Configured,
        ServiceState::Waiting,
        ServiceState::Armed,
        ServiceState::Recording,
        ServiceState::Failed,
    ];

    /// The name in reports.
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

    /// Checks that the state allows an order. The error names an order that the state allows.
    pub(crate) fn allows(self, order: &RecorderOrder) -> Result<(), RefusedOrder> {
        use ServiceState::{Armed, Configured, Failed, Idle, Recording, Waiting};
        let instead = match (order, self) {
            (RecorderOrder::Configure(_) | RecorderOrder::Change(_), Idle | Configured | Failed)
            | (RecorderOrder::Arm(..) | RecorderOrder::Record(..), Configured | Failed)
            | (RecorderOrder::Start, Armed)
            | (RecorderOrder::Stop, Armed | Recording | Waiting) => return Ok(()),
            (RecorderOrder::Arm(..) | RecorderOrder::Record(..), Idle) => "configure it first",
            (RecorderOrder::Start, Recording) => "it records already",
            (RecorderOrder::Start, Waiting) => "the recording begins by itself, with the series",
            (RecorderOrder::Start, _) => "arm it first",
            (RecorderOrder::Stop, _) => "there is nothing to stop",
            (_, _) => "stop it first",
        };
        Err(RefusedOrder::WrongState(format!("it is {}: {instead}", self.name())))
    }
}

/// The full report on a recorder, in JSON or in words.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct ServiceReport {
    pub(crate) state: ServiceState,
    /// The time at which it entered this state.
    #[schemars(with = "String")]
    pub(crate) since: Moment,
    /// True if its end was ordered and the rest is still being stored.
    pub(crate) stopping: bool,
    /// The source of the awaited series, in the state `waiting`.
    pub(crate) awaits: Option<String>,
    /// The name of the awaited, armed or running recording.
    pub(crate) name: Option<String>,
    /// The time at which it begins by itself.
    #[schemars(with = "Option<String>")]
    pub(crate) start: Option<Moment>,
    /// The time at which it ends by itself.
    #[schemars(with = "Option<String>")]
    pub(crate) stop: Option<Moment>,
    /// The reason of the last failure.
    pub(crate) fault: Option<String>,
    /// The directories of this recording that take no more, while it goes on.
    pub(crate) degraded: Option<String>,
    /// Seconds until its storage is full: at the rate written so far, before that at the instrument's rate.
    pub(crate) room_seconds: Option<f64>,
    pub(crate) configuration: ServiceConfiguration,
    /// The figures and files of the armed or running recording, or of the last one.
    pub(crate) recording: Option<ReportedRecording>,
    /// The files of that recording, without counts.
    #[serde(skip)]
    pub(crate) file: RecordedFile,
    /// The storage that its directories are on, in their order.
    pub(crate) storage: Vec<StorageSize>,
    /// The stream of frames for viewers, or `None` without one.
    pub(crate) preview: Option<PreviewReport>,
    /// The number of recordings of this service that have ended.
    pub(crate) recordings: u64,
    /// True if a series over TCP began after the last one, and waits for you to arm.
    pub(crate) pending_series: bool,
    /// The number of series over TCP that began and could not be recorded, while every series should be.
    pub(crate) unrecorded_series: u64,
    /// The recording that ended last.
    pub(crate) last: Option<EndedScan>,
    pub(crate) version: &'static str,
}

/// The figures of a recording, and its files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ReportedRecording {
    #[serde(flatten)]
    pub(crate) status: Status,
    /// The files, for programs that read them.
    pub(crate) file: RecordedFile,
}

/// The storage below a directory for recordings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct StorageSize {
    pub(crate) path: PathBuf,
    pub(crate) size_bytes: u64,
    pub(crate) file_system: String,
}

impl ServiceReport {
    /// Takes over the figures of a recording, or removes those of the last one.
    pub(crate) fn show(&mut self, status: Option<Status>) {
        self.degraded = status.as_ref().and_then(|status| degraded(&status.lanes));
        self.room_seconds = status.as_ref().and_then(|status| self.room_of(status));
        let reported = |status: Status| {
            let file = self.file.counting(&status);
            ReportedRecording { status, file }
        };
        self.recording = status.map(reported);
    }

    /// The figures of the recording; empty without one.
    pub(crate) fn figures(&self) -> Status {
        self.recording.as_ref().map(|recording| recording.status.clone()).unwrap_or_default()
    }

    /// The lines that an operator has to see, without figures that change.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let streams = self.recording.iter().flat_map(|recording| &recording.status.data_streams);
        self.degraded.iter().cloned().chain(streams.flat_map(DataStreamStatus::warnings)).collect()
    }

    fn room_of(&self, status: &Status) -> Option<f64> {
        let announced = || {
            let room = StorageRoom { usable: Bytes(status.usable_bytes?), rate: self.configuration.rate? };
            room.seconds()
        };
        status.room_seconds.or_else(announced)
    }
}

/// The directories of a recording that take no more: `1 of 4 directories FAILED: /disk2 (EIO)`.
fn degraded(lanes: &[LaneStatus]) -> Option<String> {
    let failed = lanes.iter().filter(|lane| lane.has_dropped_out());
    let why = |lane: &LaneStatus| {
        let why = lane.fault.clone().unwrap_or_else(|| lane.state.into());
        format!("{} ({why})", lane.path.display())
    };
    let failed: Vec<_> = failed.map(why).collect();
    let text = || format!("{} of {} directories FAILED: {}", failed.len(), lanes.len(), failed.join(", "));
    (!failed.is_empty()).then(text)
}

impl StorageSize {
    /// The storage of a recording, as it was at its preparation.
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

/// The configuration, as far as it is complete.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ServiceConfiguration {
    pub(crate) instrument: Option<String>,
    /// Its data format in one word, if it has one.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "Option<String>")]
    pub(crate) mode: Option<VlbiMode>,
    /// The directories for recordings.
    pub(crate) to: Vec<PathBuf>,
    /// The address at which packets arrive, or the source of frames.
    pub(crate) listen: Option<String>,
    /// The data streams by sender, as `LABEL=SENDER`. Empty if none are configured.
    pub(crate) data_stream: Vec<String>,
    /// The reason why recordings are not possible yet.
    pub(crate) missing: Option<String>,
    /// Seconds from the first packet or frame until a recording ends by itself. `None` without `duration`.
    #[serde(rename = "duration_seconds", serialize_with = "as_seconds")]
    #[schemars(with = "Option<f64>")]
    pub(crate) duration: Option<Nanos>,
    /// The rate to store, with headers of frames and without pauses.
    #[serde(skip)]
    pub(crate) rate: Option<ByteRate>,
    /// The bytes that stay free on each storage.
    #[serde(rename = "reserve_bytes", serialize_with = "as_number")]
    #[schemars(with = "u64")]
    pub(crate) reserve: Bytes,
    /// The bytes that a recording could fill when this was configured. `None` if unknown, for a ring, and after
    /// the first recording, which has figures of its own.
    pub(crate) usable_bytes: Option<u64>,
    /// Seconds until these bytes are full at the instrument's rate.
    pub(crate) room_seconds: Option<f64>,
}

impl ServiceConfiguration {
    /// The configuration of complete settings.
    pub(crate) fn of(settings: &RecordingSettings) -> Self {
        let instrument = settings.instrument();
        let mode = instrument.and_then(VlbiMode::of);
        let rate = mode.map(stored_rate).or_else(|| instrument.map(Instrument::rate));
        ServiceConfiguration {
            instrument: instrument.map(|instrument| instrument.name.clone()),
            mode,
            to: settings.wishes().to.clone(),
            listen: Some(settings.listens_at()),
            data_stream: data_streams(settings.wishes()),
            missing: None,
            duration: settings.wishes().duration,
            rate,
            reserve: settings.reserve(),
            ..ServiceConfiguration::default()
        }
    }

    /// Adds the room that the directories have now. Storage that does not answer gets none.
    pub(crate) fn with_room(self, settings: &RecordingSettings) -> Self {
        let wishes = settings.wishes();
        let to = wishes.to.clone();
        let reserve = self.reserve;
        let first = to.first().cloned().unwrap_or_default();
        let asked = in_time(PATIENCE, first, move || space_of(&to, reserve));
        let space = asked.ok().and_then(Result::ok).filter(|_| wishes.keep.is_none());
        let usable = space.map(|space| space.recordable);
        let room = usable.zip(self.rate).map(|(usable, rate)| StorageRoom { usable, rate });
        ServiceConfiguration {
            usable_bytes: usable.map(|usable| usable.0),
            room_seconds: room.and_then(|room| room.seconds()),
            ..self
        }
    }

    /// Without the room, which a recording is about to change.
    pub(crate) fn without_room(self) -> Self {
        ServiceConfiguration { usable_bytes: None, room_seconds: None, ..self }
    }

    /// The configuration of incomplete options, with the reason.
    pub(crate) fn missing(wishes: &RecordOptions, why: String) -> Self {
        let mode = wishes.mode;
        let to = wishes.to.clone();
        let rate = mode.map(stored_rate);
        let reserve = reserve_of(wishes);
        let missing = Some(why);
        let data_stream = data_streams(wishes);
        ServiceConfiguration {
            mode,
            to,
            data_stream,
            missing,
            duration: wishes.duration,
            rate,
            reserve,
            ..ServiceConfiguration::default()
        }
    }
}

/// The data streams by sender in their written form.
fn data_streams(wishes: &RecordOptions) -> Vec<String> {
    wishes.data_stream.iter().map(ToString::to_string).collect()
}

/// The rate to store for a mode. The mode's own rate counts samples only.
fn stored_rate(mode: VlbiMode) -> ByteRate {
    let share = mode.frame_size().0 as f64 / mode.payload().0 as f64;
    ByteRate(mode.rate().megabits() * 125_000.0 * share)
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn as_text<S: serde::Serializer>(mode: &Option<VlbiMode>, serializer: S) -> Result<S::Ok, S::Error> {
    mode.map(|mode| mode.to_string()).serialize(serializer)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn as_number<S: serde::Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(bytes.0)
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn as_seconds<S: serde::Serializer>(time: &Option<Nanos>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(Nanos::seconds).serialize(serializer)
}

/// A recording that has ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub(crate) struct EndedScan {
    pub(crate) name: String,
    /// Its directories.
    pub(crate) paths: Vec<PathBuf>,
    /// The time at which it began.
    #[schemars(with = "String")]
    pub(crate) begun: Moment,
    /// From the first packet to the end.
    pub(crate) seconds: f64,
    /// The unit of the counts: `packets`, or `frames` of a series.
    pub(crate) counted_in: &'static str,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) missing_packets: u64,
    /// The result of joining values to its frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) joined: Option<String>,
    /// The faults of the recording, or `None` if all went well.
    pub(crate) fault: Option<String>,
    /// The files of the recording, all of them complete.
    pub(crate) file: RecordedFile,
    #[serde(skip)]
    pub(crate) mode: Option<VlbiMode>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_tells_when_its_recordings_end_by_themselves() {
        let told = |duration| {
            let wishes = RecordOptions { duration, ..RecordOptions::default() };
            serde_json::json!(ServiceConfiguration::missing(&wishes, "`to`".into()))["duration_seconds"]
                .clone()
        };
        assert_eq!(told(Some(Nanos::from_millis(5000))), 5.0);
        assert_eq!(told(None), serde_json::Value::Null);
    }

    #[test]
    fn a_recording_that_lost_a_directory_is_degraded() {
        let lane = |path: &str, state, fault: Option<&str>| LaneStatus {
            path: path.into(),
            state,
            fault: fault.map(str::to_owned),
            ..LaneStatus::default()
        };
        let lanes = vec![lane("/disk1", "writing", None), lane("/disk2", "failed", Some("EIO"))];
        let rate = Some(ByteRate(50.0));
        let configuration = ServiceConfiguration { rate, ..ServiceConfiguration::default() };
        let mut report = ServiceReport { configuration, ..ServiceReport::default() };
        let status = Status { lanes, usable_bytes: Some(500), ..Status::default() };
        report.show(Some(status.clone()));
        assert_eq!(report.degraded.as_deref(), Some("1 of 2 directories FAILED: /disk2 (EIO)"));
        assert_eq!(report.room_seconds, Some(10.0), "at the instrument's rate, before anything was written");
        report.show(Some(Status { room_seconds: Some(7.0), lanes: Vec::new(), ..status }));
        assert_eq!((report.degraded.clone(), report.room_seconds), (None, Some(7.0)));
        report.show(None);
        assert_eq!((report.recording, report.room_seconds), (None, None));
    }

    #[test]
    fn orders_are_carried_out_in_their_state_only() {
        let orders = || {
            [
                RecorderOrder::Configure(RecordOptions::default()),
                RecorderOrder::Change(RecordOptions::default()),
                RecorderOrder::Arm(RecordOptions::default(), RecordingMetadata::new()),
                RecorderOrder::Start,
                RecorderOrder::Record(String::new(), None),
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
