//! A series that is awaited before its recording can be prepared: for as long as it takes, on a thread of its own, while questions
//! are answered and a stop is heard.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{CommandedRecorder, LEAVE};
use crate::{
    background::{self, AwaitedSeries, BackgroundTask, TaskOutcome},
    state::{RefusedOrder, ServiceState},
};

/// The wait for a series.
#[derive(Debug)]
pub(super) struct SeriesWait {
    task: BackgroundTask,
    /// It is not to be waited for any more.
    pub(super) stop: Arc<AtomicBool>,
}

impl CommandedRecorder {
    /// From now on a series may begin.
    pub(super) fn await_series(&mut self, awaited: AwaitedSeries) -> Result<(), RefusedOrder> {
        let stop = awaited.stop.clone();
        let name = awaited.opened.name.clone();
        let from = awaited.settings.listens_at();
        let wishes = awaited.settings.wishes();
        let (begins, ends) = (wishes.start, wishes.stop);
        let log = self.permission.log;
        let task = BackgroundTask::begin(None, move || background::await_series(awaited, log))?;
        self.awaited = Some(SeriesWait { task, stop });
        self.report(|report| {
            report.awaits = Some(from);
            report.name = Some(name);
            report.start = begins;
            report.stop = ends;
            report.fault = None;
            report.recording = None;
        });
        self.enter(ServiceState::Waiting);
        Ok(())
    }

    /// Whether it began, or is not waited for any more.
    pub(super) fn look_at_awaited(&mut self) {
        let Some(outcome) = self.awaited.as_ref().and_then(|awaited| awaited.task.outcome()) else { return };
        let stopped = self.awaited.take().is_some_and(|awaited| awaited.stop.load(Ordering::Relaxed));
        self.report(|report| report.awaits = None);
        match outcome {
            TaskOutcome::Armed(current, _) if stopped => {
                self.current = Some(*current);
                self.disarm();
            }
            TaskOutcome::Armed(current, begins) => {
                self.armed(*current);
                if begins && let Err(RefusedOrder::Failed(why)) = self.start() {
                    self.failed(why);
                }
            }
            TaskOutcome::Refused(RefusedOrder::AskedWrongly(why) | RefusedOrder::Failed(why)) if !stopped => {
                self.left();
                self.failed(why);
                self.tell_waiting();
            }
            _ => {
                self.left();
                self.configured(ServiceState::Configured);
                self.tell_waiting();
            }
        }
    }

    /// The service ends.
    pub(super) fn leave_awaited(&mut self) {
        let Some(awaited) = self.awaited.take() else { return };
        awaited.stop.store(true, Ordering::Relaxed);
        if let Some(TaskOutcome::Armed(current, _)) = awaited.task.outcome_within(LEAVE) {
            self.current = Some(*current);
        }
    }
}
