//! The wait for a series, before its recording can be prepared. It takes any time, on a thread of its own.
//! Meanwhile the recorder answers questions and accepts a stop.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nilometer_model::Nanos;
use nilometer_storage::Calendar;

use super::{CommandedRecorder, LEAVE};
use crate::{
    background::{self, AwaitedSeries, BackgroundTask, CurrentRecording, TaskOutcome},
    recording::{account::RecordingMetadata, options::RecordOptions, settings::RecordingSettings},
    state::{RefusedOrder, ServiceState},
};

/// The options and metadata of the next of several series.
#[derive(Debug, Clone)]
pub(super) struct NextSeries {
    wishes: RecordOptions,
    metadata: RecordingMetadata,
}

/// The wait for a series.
#[derive(Debug)]
pub(super) struct SeriesWait {
    task: BackgroundTask,
    /// The next series, if every series is to be recorded, even if this one can't be.
    next: Option<NextSeries>,
    /// Set to stop waiting.
    pub(super) stop: Arc<AtomicBool>,
}

impl NextSeries {
    /// The options of the series after a recording, if every series is to be recorded and nobody stopped that.
    pub(super) fn behind(current: &CurrentRecording) -> Option<Self> {
        let is_stopped = current.stop.load(Ordering::Relaxed);
        next_of(&current.settings, &current.metadata).filter(|_| !is_stopped)
    }
}

impl CommandedRecorder {
    /// Starts to wait for a series.
    pub(super) fn await_series(&mut self, awaited: AwaitedSeries) -> Result<(), RefusedOrder> {
        let stop = awaited.stop.clone();
        let name = awaited.opened.name.clone();
        let from = awaited.settings.listens_at();
        let wishes = awaited.settings.wishes();
        let (begins, ends) = (wishes.start, wishes.stop);
        let next = next_of(&awaited.settings, &awaited.metadata);
        let log = self.permission.log;
        let task = BackgroundTask::begin(None, move || background::await_series(awaited, log))?;
        self.awaited = Some(SeriesWait { task, next, stop });
        self.report(|report| {
            report.awaits = Some(from);
            report.name = name;
            report.start = begins;
            report.stop = ends;
            report.show(None);
            if report.state != ServiceState::Waiting {
                // A new order. Between two series the fault of the last one stays visible.
                report.fault = None;
            }
        });
        self.enter(ServiceState::Waiting);
        Ok(())
    }

    /// Awaits the next of all series. The fault of the previous one stays visible until the next begins.
    pub(super) fn await_next(&mut self, next: NextSeries, fault: Option<String>) {
        self.report(|report| report.fault = fault);
        self.enter(ServiceState::Waiting);
        let permission = self.permission.clone();
        let kept = self.kept.clone();
        let NextSeries { wishes, metadata } = next;
        let nothing = RecordOptions::default();
        let work = move || background::arm(&permission, nothing, wishes, metadata, &kept, false);
        match BackgroundTask::begin(None, work) {
            Ok(task) => self.background = Some(task.for_recording(true)),
            Err(RefusedOrder::AskedWrongly(why) | RefusedOrder::Failed(why)) => self.failed(why),
            Err(_) => {}
        }
    }

    /// Closes connections that nobody uses, unless another series began on them: the next order records that
    /// one.
    pub(super) fn close_unused(&mut self) {
        if self.awaited.is_some() || self.background.is_some() {
            return;
        }
        self.kept.close_unused();
        let pending = self.kept.has_next();
        self.report(|report| report.pending_series = pending);
    }

    /// Handles the end of the wait: the series began, failed or was stopped.
    pub(super) fn look_at_awaited(&mut self) {
        let Some(outcome) = self.awaited.as_ref().and_then(|awaited| awaited.task.outcome()) else { return };
        let Some(SeriesWait { stop, next, .. }) = self.awaited.take() else { return };
        let stopped = stop.load(Ordering::Relaxed);
        self.report(|report| report.awaits = None);
        match outcome {
            TaskOutcome::Armed(current, _) if stopped => {
                self.current = Some(*current);
                self.disarm();
            }
            TaskOutcome::Armed(current, begins) => {
                self.kept.take_begun();
                self.armed(*current);
                if begins && let Err(RefusedOrder::Failed(why)) = self.start() {
                    self.failed(why);
                }
            }
            TaskOutcome::Refused(RefusedOrder::AskedWrongly(why) | RefusedOrder::Failed(why)) if !stopped => {
                self.left();
                self.not_recorded(why, next);
            }
            _ => {
                self.left();
                self.configured(ServiceState::Configured);
                self.tell_waiting();
            }
        }
        self.close_unused();
    }

    /// Handles a series that can't be recorded, or the end of the time to wait.
    fn not_recorded(&mut self, why: String, next: Option<NextSeries>) {
        (self.permission.log)(&why);
        let is_over = |next: &NextSeries| {
            next.wishes.stop.is_some_and(|moment| Calendar::left_until(moment) == Nanos(0))
        };
        let begun = self.kept.take_begun();
        match next.filter(|next| begun || is_over(next)) {
            Some(next) if is_over(&next) => self.configured(ServiceState::Configured),
            Some(next) => {
                self.report(|report| report.unrecorded_series += 1);
                self.await_next(next, Some(why));
                return;
            }
            None => self.failed(why),
        }
        self.tell_waiting();
    }

    /// Stops the wait when the service ends.
    pub(super) fn leave_awaited(&mut self) {
        let Some(awaited) = self.awaited.take() else { return };
        awaited.stop.store(true, Ordering::Relaxed);
        if let Some(TaskOutcome::Armed(current, _)) = awaited.task.outcome_within(LEAVE) {
            self.current = Some(*current);
        }
    }
}

/// The options of the next series, if these settings apply to every series.
fn next_of(settings: &RecordingSettings, metadata: &RecordingMetadata) -> Option<NextSeries> {
    let next = || NextSeries { wishes: settings.wishes().clone(), metadata: metadata.clone() };
    settings.records_every_series().then(next)
}
