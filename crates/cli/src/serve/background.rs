//! What an order needs of storage is done on a thread of its own: storage may not answer, and the thread that has the
//! recorder must not wait for it. One task at a time; its outcome is applied by the station.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool, mpsc::SyncSender},
};

use nilometer_model::Nanos;
use nilometer_storage::{DetachedTask, NoOutcome, target::TargetError};

use super::{
    console::Answer,
    permission::{Permission, refused},
    state::{Configuration, Metadata, Refused},
};
use crate::{
    explained,
    record::{Before, Prepared, RecordOptions, Settings},
    recorded::is_taken,
};

/// A recording that is armed or runs.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) prepared: Prepared,
    pub(super) settings: Settings,
    pub(super) metadata: Metadata,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) before: Option<Before>,
}

/// What a background task came to.
#[derive(Debug)]
pub(super) enum TaskOutcome {
    /// What is wished from here on, and how that is told.
    Configured(Box<(RecordOptions, Configuration)>),
    /// A recording that can begin, and whether it is to begin at once.
    Armed(Box<Current>, bool),
    /// What was armed is gone.
    Disarmed,
    /// It did not work.
    Refused(Refused),
}

/// A task that is under way.
#[derive(Debug)]
pub(super) struct BackgroundTask {
    task: DetachedTask<TaskOutcome>,
    /// Where the answer of the order goes.
    pub(super) answer: Option<SyncSender<Answer>>,
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
    pub(super) fn begin(
        answer: Option<SyncSender<Answer>>,
        work: impl FnOnce() -> Result<TaskOutcome, Refused> + Send + 'static,
    ) -> Result<Self, Refused> {
        let run = move |to: &SyncSender<TaskOutcome>| report(to, work().unwrap_or_else(TaskOutcome::Refused));
        let started = DetachedTask::begin_reporting("background", run);
        let task = started.map_err(|error| Refused::Failed(format!("can't start a thread: {error}")))?;
        Ok(BackgroundTask { task, answer })
    }

    /// Its outcome, if it is done.
    pub(super) fn outcome(&self) -> Option<TaskOutcome> {
        done(self.task.outcome())
    }

    /// Its outcome, if it is done within this time.
    pub(super) fn outcome_within(&self, limit: Nanos) -> Option<TaskOutcome> {
        done(self.task.outcome_within(limit))
    }
}

fn done(outcome: Result<TaskOutcome, NoOutcome>) -> Option<TaskOutcome> {
    let broken = || Refused::Failed("a fault of the recorder itself: its log says which".into());
    match outcome {
        Ok(outcome) => Some(outcome),
        Err(NoOutcome::Unfinished) => None,
        Err(NoOutcome::Gone) => Some(TaskOutcome::Refused(broken())),
    }
}

/// Checks what is asked for and keeps it, if it can be recorded with.
pub(super) fn configure(
    permission: &Permission,
    asked: RecordOptions,
    below: &RecordOptions,
) -> Result<TaskOutcome, Refused> {
    let settings = permission.settings(asked, below.clone())?;
    let configuration = Configuration::of(&settings);
    Ok(TaskOutcome::Configured(Box::new((settings.wishes().clone(), configuration))))
}

/// The same for one thing of several that follow: what is still missing is told, and is no fault.
pub(super) fn change(permission: &Permission, asked: RecordOptions, below: &RecordOptions) -> TaskOutcome {
    match configure(permission, asked.clone(), below) {
        Ok(outcome) => outcome,
        Err(Refused::Input(why)) => {
            let wishes = asked.over(below.clone());
            let configuration = Configuration::missing(&wishes, why);
            TaskOutcome::Configured(Box::new((wishes, configuration)))
        }
        Err(refused) => TaskOutcome::Refused(refused),
    }
}

/// Makes a recording ready.
pub(super) fn arm(
    permission: &Permission,
    asked: RecordOptions,
    below: RecordOptions,
    metadata: Metadata,
    begins: bool,
) -> Result<TaskOutcome, Refused> {
    let settings = permission.settings(asked, below)?;
    let stop = Arc::new(AtomicBool::new(false));
    let prepared = settings.prepare(stop.clone()).map_err(refused)?;
    Ok(TaskOutcome::Armed(Box::new(Current { prepared, settings, metadata, stop, before: None }), begins))
}

/// Gives up what is armed.
pub(super) fn disarm(current: Current) -> TaskOutcome {
    current.prepared.discard();
    TaskOutcome::Disarmed
}

/// As Mark 5 recorders do: a letter is put behind a name that is taken.
pub(super) fn free_name(to: &[PathBuf], label: &str) -> Result<String, Refused> {
    let letters = ('a'..='z').chain('A'..='Z').map(|letter| format!("{label}{letter}"));
    for name in std::iter::once(label.to_owned()).chain(letters) {
        let mut places = to.iter().map(|to| is_taken(to, &name));
        let taken = places.try_fold(false, |taken, place| Ok(taken || place?));
        let failed = |error: TargetError| Refused::Failed(explained(&error.into()));
        if !taken.map_err(failed)? {
            return Ok(name);
        }
    }
    Err(Refused::Input(format!("{label} and its 52 variants exist")))
}
