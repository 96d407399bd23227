//! The thread that runs the recorder: it carries out orders, begins and ends recordings at their times, and
//! reports.

mod at_end;
mod awaited;
mod beside;
mod withdrawal;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError},
};

use nilometer_acquisition::Status;
use nilometer_model::{Moment, Nanos};
use nilometer_storage::{Calendar, Clock};

use crate::{
    background::{self, BackgroundTask, CurrentRecording, TaskOutcome},
    console::{OrderAnswer, QueuedOrder},
    ended_scan::is_broken,
    latest_frame::PictureSource,
    permission::CommandPermission,
    preview::PreviewSource,
    publisher::Publisher,
    recording::{
        account::RecordingMetadata, kept_connections::KeptConnections, options::RecordOptions,
        recorded_file::RecordedFile,
    },
    state::{RecorderOrder, RefusedOrder, ServiceConfiguration, ServiceReport, ServiceState, StorageSize},
};

use awaited::{NextSeries, SeriesWait};

/// A recorder with its current recording. It carries out orders one after the other.
#[derive(Debug)]
pub(crate) struct CommandedRecorder {
    permission: Arc<CommandPermission>,
    /// The configured options, and the configuration that reports show.
    wishes: RecordOptions,
    configuration: ServiceConfiguration,
    /// The storage work of the current order.
    background: Option<BackgroundTask>,
    published: Publisher,
    /// The wait for the beginning of a series.
    awaited: Option<SeriesWait>,
    /// Connections kept between two series.
    kept: KeptConnections,
    current: Option<CurrentRecording>,
    /// The last recording that began. Clients see its frames again if an armed one never begins.
    begun: Vec<Arc<PictureSource>>,
    /// Receivers of an answer at the end of the recording.
    waiting: Vec<SyncSender<OrderAnswer>>,
    clock: Clock,
    told: Nanos,
}

/// The longest pause between two looks at orders and times.
const LOOK: Nanos = Nanos::from_millis(20);
/// The interval at which reports get new figures.
const TELL: Nanos = Nanos::from_millis(200);
/// The most clients that may wait for the end of a recording at once.
const WAITING: usize = 64;
/// The longest that the end of the service waits for storage to which nothing is being recorded.
const LEAVE: Nanos = Nanos::from_millis(5_000);

impl CommandedRecorder {
    pub(crate) fn new(permission: CommandPermission, published: Publisher) -> Self {
        let wishes = permission.file.clone();
        let configuration = match background::change(&permission, RecordOptions::default(), &wishes) {
            TaskOutcome::Configured(configured) => configured.1,
            _ => ServiceConfiguration::missing(&wishes, "nothing is configured".into()),
        };
        let recorder = CommandedRecorder {
            permission: Arc::new(permission),
            wishes,
            configuration,
            background: None,
            published,
            awaited: None,
            kept: KeptConnections::default(),
            current: None,
            begun: Vec::new(),
            waiting: Vec::new(),
            clock: Clock::start(),
            told: Nanos(0),
        };
        recorder.configured(ServiceState::Idle);
        recorder
    }

    /// Runs until a signal sets `end`, then ends a recording in order.
    pub(crate) fn run(&mut self, orders: &Receiver<QueuedOrder>, end: &AtomicBool) {
        while !end.load(Ordering::Relaxed) {
            match orders.recv_timeout(LOOK.duration()) {
                Ok(asked) => self.hear(asked),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.look();
        }
        self.leave();
    }

    /// Ends a recording in order and discards an armed one. It does not wait for storage that does not answer:
    /// the process ends without it.
    fn leave(&mut self) {
        if let Some(TaskOutcome::Armed(current, _)) =
            self.background.take().and_then(|task| task.outcome_within(LEAVE))
        {
            self.current = Some(*current);
        }
        self.leave_awaited();
        if self.state() != ServiceState::Recording
            && let Some(current) = self.current.take()
        {
            let given_up = BackgroundTask::begin(None, move || Ok(background::disarm(current)));
            drop(given_up.map(|task| task.outcome_within(LEAVE)));
        }
        self.stop_recording();
        while self.current.is_some() {
            std::thread::sleep(LOOK.duration());
            self.look();
        }
    }

    fn state(&self) -> ServiceState {
        self.published.read(|published| published.report.state)
    }

    fn report<T>(&self, change: impl FnOnce(&mut ServiceReport) -> T) -> T {
        change(&mut self.published.changing().report)
    }

    fn enter(&self, state: ServiceState) {
        let mut published = self.published.changing();
        published.enter(state);
        published.report.stopping = false;
    }

    fn hear(&mut self, QueuedOrder { order, answer }: QueuedOrder) {
        if matches!(order, RecorderOrder::Stop) && self.is_arming() {
            self.withdraw(answer);
            return;
        }
        if matches!(order, RecorderOrder::Arm(..) | RecorderOrder::Record(..)) {
            self.look_at_storage_again();
        }
        if let Err(why) = self.allows(&order) {
            drop(answer.try_send(Err(why)));
            return;
        }
        match order {
            RecorderOrder::Start => {
                let done = self.start();
                self.answer(&answer, done);
            }
            RecorderOrder::Stop if self.state() != ServiceState::Armed => {
                self.stop_recording();
                self.waiting.push(answer);
            }
            order => self.send(order, &answer),
        }
    }

    /// Completes the configuration if a directory that was missing, or could not be written, is there now.
    fn look_at_storage_again(&mut self) {
        if self.state() != ServiceState::Idle || self.background.is_some() {
            return;
        }
        let changed = background::change(&self.permission, RecordOptions::default(), &self.wishes);
        if let TaskOutcome::Configured(configured) = changed {
            self.configuration = configured.1;
            self.configured(ServiceState::Idle);
        }
    }

    /// Starts the storage work of an order in the background.
    fn send(&mut self, order: RecorderOrder, answer: &SyncSender<OrderAnswer>) {
        let permission = self.permission.clone();
        let wishes = self.wishes.clone();
        let kept = self.kept.clone();
        let is_arming = matches!(order, RecorderOrder::Arm(..) | RecorderOrder::Record(..));
        let work: Box<dyn FnOnce() -> Result<TaskOutcome, RefusedOrder> + Send> = match order {
            RecorderOrder::Configure(asked) => {
                Box::new(move || background::configure(&permission, asked, &permission.file))
            }
            RecorderOrder::Change(asked) => {
                Box::new(move || Ok(background::change(&permission, asked, &wishes)))
            }
            RecorderOrder::Arm(asked, metadata) => {
                Box::new(move || background::arm(&permission, asked, wishes, metadata, &kept, false))
            }
            RecorderOrder::Record(label, streams) => Box::new(move || {
                let data_stream = streams.unwrap_or_else(|| wishes.data_stream.clone());
                let wishes = RecordOptions { data_stream, ..wishes };
                let name = Some(background::free_name(&wishes.to, &label, &wishes.stream_suffixes())?);
                // The start time in the configuration belongs to a schedule; this is a command.
                let wishes = RecordOptions { start: None, ..wishes };
                background::arm(
                    &permission,
                    RecordOptions { name, ..RecordOptions::default() },
                    wishes,
                    RecordingMetadata::new(),
                    &kept,
                    true,
                )
            }),
            RecorderOrder::Start | RecorderOrder::Stop => {
                let Some(current) = self.current.take() else { return };
                Box::new(move || Ok(background::disarm(current)))
            }
        };
        match BackgroundTask::begin(Some(answer.clone()), work) {
            Ok(task) => self.background = Some(task.for_recording(is_arming)),
            Err(why) => self.answer(answer, Err(why)),
        }
    }

    /// Applies the outcome of a background task.
    fn apply(&mut self, outcome: TaskOutcome) -> Result<(), RefusedOrder> {
        match outcome {
            TaskOutcome::Configured(configured) => {
                (self.wishes, self.configuration) = *configured;
                self.configured(self.state());
            }
            TaskOutcome::Awaited(awaited) => return self.await_series(*awaited),
            TaskOutcome::Armed(current, begins) => {
                self.armed(*current);
                if begins {
                    return self.start();
                }
            }
            TaskOutcome::Disarmed => {
                self.left();
                self.published.changing().pictured.clone_from(&self.begun);
                // The reason of a failure stays visible until the next order.
                if self.state() != ServiceState::Failed {
                    self.configured(ServiceState::Configured);
                }
                self.tell_waiting();
            }
            TaskOutcome::Refused(why) => return Err(why),
        }
        Ok(())
    }

    fn answer(&self, answer: &SyncSender<OrderAnswer>, done: Result<(), RefusedOrder>) {
        let told = answer.try_send(done.map(|()| self.published.read(|published| published.report.clone())));
        // A client that stopped waiting learned only that the order had begun. The report must show the failure.
        if let Err(TrySendError::Disconnected(Err(
            RefusedOrder::AskedWrongly(why) | RefusedOrder::Failed(why),
        ))) = told
        {
            self.failed(why);
        }
    }

    /// Checks that the recorder can take this order now.
    fn allows(&self, order: &RecorderOrder) -> Result<(), RefusedOrder> {
        if self.background.is_some() || matches!(order, RecorderOrder::Stop) && self.waiting.len() >= WAITING
        {
            return Err(RefusedOrder::Busy);
        }
        let missing = self.published.read(|published| published.report.configuration.missing.clone());
        self.state().allows(order).map_err(|refused| match (refused, missing) {
            (RefusedOrder::WrongState(why), Some(missing)) if self.state() == ServiceState::Idle => {
                RefusedOrder::WrongState(format!("{why}: {missing}"))
            }
            (refused, _) => refused,
        })
    }

    /// Publishes the configuration. If it is incomplete, the recorder stays failed if `before` is that, and is
    /// idle otherwise.
    fn configured(&self, before: ServiceState) {
        let state = match (&self.configuration.missing, before) {
            (None, _) => ServiceState::Configured,
            (Some(_), ServiceState::Failed) => ServiceState::Failed,
            (Some(_), _) => ServiceState::Idle,
        };
        self.report(|report| {
            report.configuration = self.configuration.clone();
            report.fault = None;
        });
        self.enter(state);
    }

    fn armed(&mut self, mut current: CurrentRecording) {
        let status = current.status(self.clock.now());
        let name = current.scan.clone();
        let pictured = current.pictured();
        let CurrentRecording { prepared, settings, .. } = &mut current;
        let file = RecordedFile::of(prepared);
        let asked = settings.wishes();
        let storage = StorageSize::of(prepared);
        let previewed = Arc::new(PreviewSource::of(prepared));
        let mut published = self.published.changing();
        published.pictured = pictured;
        published.previewed = Some(previewed);
        drop(published);
        self.configuration = std::mem::take(&mut self.configuration).without_room();
        let configuration = ServiceConfiguration { duration: asked.duration, ..self.configuration.clone() };
        self.report(|report| {
            report.file = file;
            report.storage = storage;
            report.configuration = configuration;
            report.name = Some(name);
            report.start = asked.start;
            report.stop = asked.stop;
            report.fault = None;
            report.show(Some(status));
        });
        self.current = Some(current);
        self.enter(ServiceState::Armed);
    }

    /// Begins the armed recording. It discards packets received since arming.
    fn start(&mut self) -> Result<(), RefusedOrder> {
        let Some(current) = &mut self.current else {
            return Err(RefusedOrder::Failed("nothing is armed".into()));
        };
        if let Err(error) = current.begin() {
            // Another data stream's recorder may have begun.
            current.stop.store(true, Ordering::Relaxed);
            self.disarm();
            return Err(RefusedOrder::Failed(error.to_string()));
        }
        self.begun = self.published.read(|published| published.pictured.clone());
        self.enter(ServiceState::Recording);
        Ok(())
    }

    /// Discards the armed recording.
    fn disarm(&mut self) {
        let Some(current) = self.current.take() else { return };
        match BackgroundTask::begin(None, move || Ok(background::disarm(current))) {
            Ok(task) => self.background = Some(task),
            Err(_) => drop(self.apply(TaskOutcome::Disarmed)),
        }
    }

    /// Clears the name and times in the report: no recording is armed or running.
    fn left(&self) {
        self.report(|report| {
            report.name = None;
            report.start = None;
            report.stop = None;
        });
    }

    fn stop_recording(&mut self) {
        let awaited = self.awaited.as_ref().map(|awaited| &awaited.stop);
        if let Some(stop) = self.current.as_ref().map(|current| &current.stop).or(awaited) {
            stop.store(true, Ordering::Relaxed);
            self.report(|report| report.stopping = true);
        }
    }

    /// Applies the outcome of the storage work, if that is done.
    fn look_at_background(&mut self) {
        let Some(outcome) = self.background.as_ref().and_then(BackgroundTask::outcome) else { return };
        let Some(BackgroundTask { answer, is_withdrawn, .. }) = self.background.take() else { return };
        let done = if is_withdrawn { self.apply_withdrawn(outcome) } else { self.apply(outcome) };
        match (answer, done) {
            (Some(answer), done) => self.answer(&answer, done),
            (None, Err(RefusedOrder::AskedWrongly(why) | RefusedOrder::Failed(why))) => self.failed(why),
            (None, _) => {}
        }
    }

    /// Begins and ends recordings that are due, and reports progress.
    fn look(&mut self) {
        self.look_at_background();
        self.look_at_awaited();
        let Some(current) = &mut self.current else { return };
        let asked = current.settings.wishes();
        let is_over =
            |moment: Option<Moment>| moment.is_some_and(|moment| Calendar::left_until(moment) == Nanos(0));
        if current.before.is_none() {
            let begins = is_over(asked.start);
            let ends = is_over(asked.stop);
            if ends {
                self.disarm();
            } else if begins && let Err(RefusedOrder::Failed(why)) = self.start() {
                self.failed(why);
            }
            return;
        }
        if is_over(asked.stop) && !current.stop.load(Ordering::Relaxed) {
            self.stop_recording();
        }
        self.follow();
    }

    fn follow(&mut self) {
        let Some(current) = &mut self.current else { return };
        let now = self.clock.now();
        if current.has_ended() {
            let status = current.status(now);
            self.ended(&status);
        } else if now.since(self.told) >= TELL {
            self.told = now;
            let status = current.status(now);
            let mut published = self.published.changing();
            let before = published.report.warnings();
            published.tell(now, status);
            let new = published.report.warnings();
            drop(published);
            for warning in new.iter().filter(|warning| !before.contains(warning)) {
                (self.permission.log)(warning);
            }
        }
    }

    /// Handles the end of all recordings of a scan, which have this status together.
    fn ended(&mut self, status: &Status) {
        let Some(current) = self.current.take() else { return };
        let next = NextSeries::behind(&current);
        let streams = 1 + current.beside.len();
        let less = current.with_less_data();
        let mut faults = Vec::new();
        for (number, one) in current.apart().enumerate() {
            let name = one.prepared.name.clone();
            let less = less.iter().find(|(other, _)| *other == name).map(|(_, why)| why.as_str());
            let fault = self.keep_ended(one, number == 0, status, less);
            faults.extend(fault.map(|why| if streams > 1 { format!("{name}: {why}") } else { why }));
        }
        self.left();
        match ((!faults.is_empty()).then(|| faults.join("; ")), next) {
            (fault, Some(next)) => self.await_next(next, fault),
            (Some(why), None) => self.failed(why),
            (None, None) => self.configured(ServiceState::Configured),
        }
        self.close_unused();
        self.tell_waiting();
    }

    /// Completes a recording that has ended, and publishes it together with the last status of all. The report shows
    /// the files of the first data stream. `less` is the reason to look at a data stream that brought less than
    /// another one. Returns the reason if the recording failed.
    fn keep_ended(
        &self,
        mut current: CurrentRecording,
        is_first: bool,
        all: &Status,
        less: Option<&str>,
    ) -> Option<String> {
        let outcome = current.outcome.take()?;
        let status = current.prepared.recorder.status();
        let mut scan = current.scan(&outcome, &status);
        let fault = scan.fault.clone().filter(|_| is_broken(&outcome));
        scan.fault = scan.fault.or_else(|| less.map(str::to_owned));
        let file = if is_first {
            self.published.read(|published| published.report.file.clone())
        } else {
            RecordedFile::of(&current.prepared)
        };
        let kept = current.keep(&outcome, &status, self.permission.log);
        scan.joined = kept.joined;
        scan.file = file.counting(&status);
        scan.file.complete(kept.files, kept.master);
        let mut published = self.published.changing();
        if is_first {
            published.report.file = scan.file.clone();
        }
        published.report.show(Some(all.clone()));
        published.end(scan);
        drop(published);
        fault
    }

    /// Answers the clients that waited for the end of the recording.
    fn tell_waiting(&mut self) {
        let report = self.published.read(|published| published.report.clone());
        for answer in self.waiting.drain(..) {
            drop(answer.try_send(Ok(report.clone())));
        }
    }

    fn failed(&self, why: String) {
        self.report(|report| report.fault = Some(why));
        self.enter(ServiceState::Failed);
    }
}

#[cfg(test)]
mod tests;
