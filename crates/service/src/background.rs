//! The storage work of an order, on a thread of its own. Storage may not answer, and the thread that has the
//! recorder must not wait for it. One task runs at a time; the recorder's thread applies its outcome.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool, mpsc::SyncSender},
};

use nilometer_acquisition::{DataStreamWatch, Outcome as Recorded};
use nilometer_model::{Nanos, TargetAddress};
use nilometer_remote::is_taken;
use nilometer_storage::{DetachedTask, NoOutcome, in_time};

use crate::{
    console::OrderAnswer,
    error::{OperatorLog, with_causes},
    permission::{CommandPermission, refused},
    recording::{
        account::{BeforeRecording, RecordingMetadata},
        data_streams::StreamSettings,
        kept_connections::KeptConnections,
        options::RecordOptions,
        prepare::PreparedRecording,
        series::OpenedSeries,
        settings::RecordingSettings,
    },
    state::{RefusedOrder, ServiceConfiguration},
    storage_space::{PATIENCE, why_unwritable},
};

/// A recording that is armed or runs. With data streams it is the recording of the first, and has the others.
#[derive(Debug)]
pub(crate) struct CurrentRecording {
    pub(crate) prepared: PreparedRecording,
    pub(crate) settings: RecordingSettings,
    pub(crate) metadata: RecordingMetadata,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) before: Option<BeforeRecording>,
    /// The name of the scan: that of the recording, without the suffix of a data stream.
    pub(crate) scan: String,
    /// The recordings of the other data streams. They begin and stop with this one.
    pub(crate) beside: Vec<CurrentRecording>,
    /// Its outcome, while others still run.
    pub(crate) outcome: Option<Recorded>,
    /// Sees all data streams together.
    pub(crate) watch: DataStreamWatch,
}

impl CurrentRecording {
    /// A prepared recording by itself.
    fn new(
        prepared: PreparedRecording,
        settings: RecordingSettings,
        metadata: RecordingMetadata,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let scan = prepared.name.clone();
        CurrentRecording {
            prepared,
            settings,
            metadata,
            stop,
            before: None,
            scan,
            beside: Vec::new(),
            outcome: None,
            watch: DataStreamWatch::default(),
        }
    }

    /// Removes everything made for the recording, and for those beside it.
    fn discard(self) {
        self.prepared.discard();
        for other in self.beside {
            other.prepared.discard();
        }
    }
}

/// A series that is to be recorded as soon as it begins.
#[derive(Debug)]
pub(crate) struct AwaitedSeries {
    pub(crate) opened: OpenedSeries,
    pub(crate) settings: RecordingSettings,
    pub(crate) metadata: RecordingMetadata,
    /// Set to stop waiting for the series.
    pub(crate) stop: Arc<AtomicBool>,
}

/// The outcome of a background task.
#[derive(Debug)]
pub(crate) enum TaskOutcome {
    /// New options, and the configuration that reports show.
    Configured(Box<(RecordOptions, ServiceConfiguration)>),
    /// The wait for a series may begin.
    Awaited(Box<AwaitedSeries>),
    /// A recording is ready; true if it should begin at once.
    Armed(Box<CurrentRecording>, bool),
    /// The armed recording is discarded.
    Disarmed,
    /// The task failed or refused the order.
    Refused(RefusedOrder),
}

/// A task that is under way.
#[derive(Debug)]
pub(crate) struct BackgroundTask {
    task: DetachedTask<TaskOutcome>,
    /// The receiver of the order's answer, if a client waits for one.
    pub(crate) answer: Option<SyncSender<OrderAnswer>>,
    /// True if it makes a recording ready, so that an order to stop concerns it.
    pub(crate) is_arming: bool,
    /// True if such an order arrived: its recording must not begin.
    pub(crate) is_withdrawn: bool,
}

/// Sends the outcome. If the service has ended meanwhile, it discards an armed recording.
fn report(to: &SyncSender<TaskOutcome>, outcome: TaskOutcome) {
    if let Err(unheard) = to.send(outcome)
        && let TaskOutcome::Armed(current, _) = unheard.0
    {
        current.discard();
    }
}

impl BackgroundTask {
    /// Begins a task. The recorder sends the order's answer to `answer` when it applies the outcome.
    pub(crate) fn begin(
        answer: Option<SyncSender<OrderAnswer>>,
        work: impl FnOnce() -> Result<TaskOutcome, RefusedOrder> + Send + 'static,
    ) -> Result<Self, RefusedOrder> {
        let run = move |to: &SyncSender<TaskOutcome>| report(to, work().unwrap_or_else(TaskOutcome::Refused));
        let started = DetachedTask::begin_reporting("background", run);
        let task = started.map_err(|error| RefusedOrder::Failed(format!("can't start a thread: {error}")))?;
        Ok(BackgroundTask { task, answer, is_arming: false, is_withdrawn: false })
    }

    /// The same task, as one that makes a recording ready if `is_arming`.
    #[must_use]
    pub(crate) fn for_recording(self, is_arming: bool) -> Self {
        BackgroundTask { is_arming, ..self }
    }

    /// The outcome, if the task is done.
    pub(crate) fn outcome(&self) -> Option<TaskOutcome> {
        done(self.task.outcome())
    }

    /// The outcome, if the task is done within this time.
    pub(crate) fn outcome_within(&self, limit: Nanos) -> Option<TaskOutcome> {
        done(self.task.outcome_within(limit))
    }
}

fn done(outcome: Result<TaskOutcome, NoOutcome>) -> Option<TaskOutcome> {
    let broken = || RefusedOrder::Failed("a fault of the recorder itself: see its log".into());
    match outcome {
        Ok(outcome) => Some(outcome),
        Err(NoOutcome::Unfinished) => None,
        Err(NoOutcome::Gone) => Some(TaskOutcome::Refused(broken())),
    }
}

/// Checks new options and keeps them if a recording can use them.
pub(crate) fn configure(
    permission: &CommandPermission,
    asked: RecordOptions,
    below: &RecordOptions,
) -> Result<TaskOutcome, RefusedOrder> {
    let settings = permission.settings(asked, below.clone())?;
    check_writable(settings.wishes().to.clone())?;
    let configuration = ServiceConfiguration::of(&settings).with_room(&settings);
    Ok(TaskOutcome::Configured(Box::new((settings.wishes().clone(), configuration))))
}

/// Refuses directories in which the recorder can't make files. Storage that does not answer may do so later.
fn check_writable(to: Vec<PathBuf>) -> Result<(), RefusedOrder> {
    let first = to.first().cloned().unwrap_or_default();
    let why = in_time(PATIENCE, first, move || why_unwritable(&to)).ok().flatten();
    why.map_or(Ok(()), |why| Err(RefusedOrder::AskedWrongly(why)))
}

/// Like [`configure`], for one of several options that arrive one by one. Missing options are no fault; the
/// configuration names them.
pub(crate) fn change(
    permission: &CommandPermission,
    asked: RecordOptions,
    below: &RecordOptions,
) -> TaskOutcome {
    match configure(permission, asked.clone(), below) {
        Ok(outcome) => outcome,
        Err(RefusedOrder::AskedWrongly(why)) => {
            let wishes = asked.over(below.clone());
            let configuration = ServiceConfiguration::missing(&wishes, why);
            TaskOutcome::Configured(Box::new((wishes, configuration)))
        }
        Err(refused) => TaskOutcome::Refused(refused),
    }
}

/// Makes a recording ready. For a series it opens connections, or takes those kept from the series before.
pub(crate) fn arm(
    permission: &CommandPermission,
    asked: RecordOptions,
    below: RecordOptions,
    metadata: RecordingMetadata,
    kept: &KeptConnections,
    begins: bool,
) -> Result<TaskOutcome, RefusedOrder> {
    let settings = permission.settings(asked, below)?;
    let stop = Arc::new(AtomicBool::new(false));
    if let Some(opened) = settings.open_series(Some(kept), permission.log).map_err(refused)? {
        return Ok(TaskOutcome::Awaited(Box::new(AwaitedSeries { opened, settings, metadata, stop })));
    }
    let streams = settings.streams().map_err(refused)?;
    let current = if streams.is_empty() {
        let prepared = settings.prepare(stop.clone(), permission.log).map_err(refused)?;
        CurrentRecording::new(prepared, settings, metadata, stop)
    } else {
        of_streams(streams, &metadata, &stop, permission.log)?
    };
    Ok(TaskOutcome::Armed(Box::new(current), begins))
}

/// Makes the recordings of all data streams ready. If one of them fails, it removes the others.
fn of_streams(
    streams: Vec<StreamSettings>,
    metadata: &RecordingMetadata,
    stop: &Arc<AtomicBool>,
    log: OperatorLog,
) -> Result<CurrentRecording, RefusedOrder> {
    let mut ready: Vec<CurrentRecording> = Vec::new();
    for StreamSettings { scan, settings } in streams {
        let prepared = match settings.prepare(stop.clone(), log) {
            Ok(prepared) => prepared,
            Err(error) => {
                ready.into_iter().for_each(CurrentRecording::discard);
                return Err(refused(error));
            }
        };
        let current = CurrentRecording::new(prepared, settings, metadata.clone(), stop.clone());
        ready.push(CurrentRecording { scan, ..current });
    }
    let beside = ready.split_off(1.min(ready.len()));
    let first = ready.pop().ok_or_else(|| RefusedOrder::Failed("there is no data stream".into()))?;
    Ok(CurrentRecording { beside, ..first })
}

/// Waits for a series, however long that takes, and makes its recording ready. The recording begins at once
/// unless the options have a start time.
pub(crate) fn await_series(awaited: AwaitedSeries, log: OperatorLog) -> Result<TaskOutcome, RefusedOrder> {
    let AwaitedSeries { opened, settings, metadata, stop } = awaited;
    let prepared = settings.prepare_series(opened, stop.clone(), log).map_err(refused)?;
    let begins = settings.wishes().start.is_none();
    Ok(TaskOutcome::Armed(Box::new(CurrentRecording::new(prepared, settings, metadata, stop)), begins))
}

/// Discards an armed recording.
pub(crate) fn disarm(current: CurrentRecording) -> TaskOutcome {
    current.discard();
    TaskOutcome::Disarmed
}

/// A free name for a recording. Like Mark 5 recorders, it appends a letter to a name that exists, alone or with one
/// of these suffixes of data streams.
pub(crate) fn free_name(to: &[PathBuf], label: &str, suffixes: &[String]) -> Result<String, RefusedOrder> {
    let letters = ('a'..='z').chain('A'..='Z').map(|letter| format!("{label}{letter}"));
    for name in std::iter::once(label.to_owned()).chain(letters) {
        let mut taken = false;
        for to in to {
            let address = TargetAddress::of_named(to);
            let address = address.map_err(|error| RefusedOrder::AskedWrongly(error.to_string()))?;
            for suffix in std::iter::once("").chain(suffixes.iter().map(String::as_str)) {
                let is_taken = is_taken(&address, &format!("{name}{suffix}"));
                taken |= is_taken.map_err(|error| RefusedOrder::Failed(with_causes(&error)))?;
            }
        }
        if !taken {
            return Ok(name);
        }
    }
    Err(RefusedOrder::AskedWrongly(format!("{label} and its 52 variants exist")))
}
