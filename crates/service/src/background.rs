//! What an order needs of storage is done on a thread of its own: storage may not answer, and the thread that has the
//! recorder must not wait for it. One task at a time; its outcome is applied by that thread.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool, mpsc::SyncSender},
};

use nilometer_model::{Nanos, TargetAddress};
use nilometer_remote::is_taken;
use nilometer_storage::{DetachedTask, NoOutcome};

use crate::{
    console::OrderAnswer,
    error::{OperatorLog, with_causes},
    permission::{CommandPermission, refused},
    recording::{
        account::{BeforeRecording, RecordingMetadata},
        kept_connections::KeptConnections,
        options::RecordOptions,
        prepare::PreparedRecording,
        series::OpenedSeries,
        settings::RecordingSettings,
    },
    state::{RefusedOrder, ServiceConfiguration},
};

/// A recording that is armed or runs.
#[derive(Debug)]
pub(crate) struct CurrentRecording {
    pub(crate) prepared: PreparedRecording,
    pub(crate) settings: RecordingSettings,
    pub(crate) metadata: RecordingMetadata,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) before: Option<BeforeRecording>,
}

/// A series that is to be recorded when it begins.
#[derive(Debug)]
pub(crate) struct AwaitedSeries {
    pub(crate) opened: OpenedSeries,
    pub(crate) settings: RecordingSettings,
    pub(crate) metadata: RecordingMetadata,
    /// Nobody waits for it any more.
    pub(crate) stop: Arc<AtomicBool>,
}

/// What a background task came to.
#[derive(Debug)]
pub(crate) enum TaskOutcome {
    /// What is wished from here on, and how that is told.
    Configured(Box<(RecordOptions, ServiceConfiguration)>),
    /// A series may begin now.
    Awaited(Box<AwaitedSeries>),
    /// A recording that can begin, and whether it is to begin at once.
    Armed(Box<CurrentRecording>, bool),
    /// What was armed is gone.
    Disarmed,
    /// It did not work.
    Refused(RefusedOrder),
}

/// A task that is under way.
#[derive(Debug)]
pub(crate) struct BackgroundTask {
    task: DetachedTask<TaskOutcome>,
    /// Where the answer of the order goes.
    pub(crate) answer: Option<SyncSender<OrderAnswer>>,
}

/// Where the service has ended meanwhile, what was armed for it is given up.
fn report(to: &SyncSender<TaskOutcome>, outcome: TaskOutcome) {
    if let Err(unheard) = to.send(outcome)
        && let TaskOutcome::Armed(current, _) = unheard.0
    {
        current.prepared.discard();
    }
}

impl BackgroundTask {
    /// Begins a task; the answer to the order goes there when its outcome is applied.
    pub(crate) fn begin(
        answer: Option<SyncSender<OrderAnswer>>,
        work: impl FnOnce() -> Result<TaskOutcome, RefusedOrder> + Send + 'static,
    ) -> Result<Self, RefusedOrder> {
        let run = move |to: &SyncSender<TaskOutcome>| report(to, work().unwrap_or_else(TaskOutcome::Refused));
        let started = DetachedTask::begin_reporting("background", run);
        let task = started.map_err(|error| RefusedOrder::Failed(format!("can't start a thread: {error}")))?;
        Ok(BackgroundTask { task, answer })
    }

    /// Its outcome, if it is done.
    pub(crate) fn outcome(&self) -> Option<TaskOutcome> {
        done(self.task.outcome())
    }

    /// Its outcome, if it is done within this time.
    pub(crate) fn outcome_within(&self, limit: Nanos) -> Option<TaskOutcome> {
        done(self.task.outcome_within(limit))
    }
}

fn done(outcome: Result<TaskOutcome, NoOutcome>) -> Option<TaskOutcome> {
    let broken = || RefusedOrder::Failed("a fault of the recorder itself: its log says which".into());
    match outcome {
        Ok(outcome) => Some(outcome),
        Err(NoOutcome::Unfinished) => None,
        Err(NoOutcome::Gone) => Some(TaskOutcome::Refused(broken())),
    }
}

/// Checks what is asked for and keeps it, if it can be recorded with.
pub(crate) fn configure(
    permission: &CommandPermission,
    asked: RecordOptions,
    below: &RecordOptions,
) -> Result<TaskOutcome, RefusedOrder> {
    let settings = permission.settings(asked, below.clone())?;
    let configuration = ServiceConfiguration::of(&settings);
    Ok(TaskOutcome::Configured(Box::new((settings.wishes().clone(), configuration))))
}

/// The same for one thing of several that follow: what is still missing is told, and is no fault.
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

/// Makes a recording ready; of a series, its connections: those that were kept, if there are any.
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
    let prepared = settings.prepare(stop.clone(), permission.log).map_err(refused)?;
    Ok(TaskOutcome::Armed(
        Box::new(CurrentRecording { prepared, settings, metadata, stop, before: None }),
        begins,
    ))
}

/// Waits for a series, however long that takes, and makes its recording ready. It begins at once, if it has no time to.
pub(crate) fn await_series(awaited: AwaitedSeries, log: OperatorLog) -> Result<TaskOutcome, RefusedOrder> {
    let AwaitedSeries { opened, settings, metadata, stop } = awaited;
    let prepared = settings.prepare_series(opened, stop.clone(), log).map_err(refused)?;
    let begins = settings.wishes().start.is_none();
    Ok(TaskOutcome::Armed(
        Box::new(CurrentRecording { prepared, settings, metadata, stop, before: None }),
        begins,
    ))
}

/// Gives up what is armed.
pub(crate) fn disarm(current: CurrentRecording) -> TaskOutcome {
    current.prepared.discard();
    TaskOutcome::Disarmed
}

/// As Mark 5 recorders do: a letter is put behind a name that is taken.
pub(crate) fn free_name(to: &[PathBuf], label: &str) -> Result<String, RefusedOrder> {
    let letters = ('a'..='z').chain('A'..='Z').map(|letter| format!("{label}{letter}"));
    for name in std::iter::once(label.to_owned()).chain(letters) {
        let mut taken = false;
        for to in to {
            let address = TargetAddress::of_named(to);
            let address = address.map_err(|error| RefusedOrder::AskedWrongly(error.to_string()))?;
            taken |= is_taken(&address, &name).map_err(|error| RefusedOrder::Failed(with_causes(&error)))?;
        }
        if !taken {
            return Ok(name);
        }
    }
    Err(RefusedOrder::AskedWrongly(format!("{label} and its 52 variants exist")))
}
