//! The thread that runs the recorder: it carries out orders, begins and ends recordings at their times, and
//! reports.

mod awaited;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError},
    },
};

use nilometer_acquisition::{Outcome as Recorded, Status};
use nilometer_model::{Moment, Nanos, packets::VlbiMode};
use nilometer_storage::{Calendar, Clock};

use crate::{
    background::{self, BackgroundTask, CurrentRecording, TaskOutcome},
    console::{OrderAnswer, QueuedOrder},
    error::OperatorLog,
    latest_frame::PictureSource,
    permission::CommandPermission,
    preview::PreviewSource,
    publisher::Publisher,
    recording::{
        account::{BeforeRecording, RecordingAccount, RecordingMetadata},
        ended::fault_of,
        kept_connections::KeptConnections,
        options::RecordOptions,
        recorded_file::{CompleteFiles, RecordedFile},
    },
    state::{
        EndedScan, RecorderOrder, RefusedOrder, ServiceConfiguration, ServiceReport, ServiceState,
        StorageSize,
    },
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

    /// Starts the storage work of an order in the background.
    fn send(&mut self, order: RecorderOrder, answer: &SyncSender<OrderAnswer>) {
        let permission = self.permission.clone();
        let wishes = self.wishes.clone();
        let kept = self.kept.clone();
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
            RecorderOrder::Record(label) => Box::new(move || {
                let name = Some(background::free_name(&wishes.to, &label)?);
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
            Ok(task) => self.background = Some(task),
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
        let CurrentRecording { prepared, settings, .. } = &mut current;
        let status = prepared.recorder.status();
        let file = RecordedFile::of(prepared);
        let name = prepared.name.clone();
        let asked = settings.wishes();
        let storage = StorageSize::of(prepared);
        let pictured = Arc::new(PictureSource::of(prepared));
        let previewed = Arc::new(PreviewSource::of(prepared));
        let mut published = self.published.changing();
        published.pictured = Some(pictured);
        published.previewed = Some(previewed);
        drop(published);
        self.configuration = std::mem::take(&mut self.configuration).without_room();
        let configuration = self.configuration.clone();
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
        let recorder = &mut current.prepared.recorder;
        let before = BeforeRecording::now();
        if let Err(error) = recorder.discard().and_then(|()| recorder.begin()) {
            self.disarm();
            return Err(RefusedOrder::Failed(error.to_string()));
        }
        current.before = Some(before);
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

    /// Begins and ends recordings that are due, and reports progress.
    fn look(&mut self) {
        if let Some(outcome) = self.background.as_ref().and_then(BackgroundTask::outcome) {
            let answer = self.background.take().and_then(|task| task.answer);
            let done = self.apply(outcome);
            match (answer, done) {
                (Some(answer), done) => self.answer(&answer, done),
                (None, Err(RefusedOrder::AskedWrongly(why) | RefusedOrder::Failed(why))) => self.failed(why),
                (None, _) => {}
            }
        }
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
        let Some(CurrentRecording { prepared, .. }) = &mut self.current else { return };
        if let Some(outcome) = prepared.recorder.wait(Nanos(0)) {
            let status = prepared.recorder.status();
            self.ended(&outcome, status);
        } else if self.clock.now().since(self.told) >= TELL {
            self.told = self.clock.now();
            let status = prepared.recorder.status();
            let mut published = self.published.changing();
            let before = published.report.degraded.clone();
            published.tell(self.told, status);
            let degraded = published.report.degraded.clone().filter(|now| before.as_ref() != Some(now));
            drop(published);
            if let Some(degraded) = degraded {
                (self.permission.log)(&degraded);
            }
        }
    }

    fn ended(&mut self, outcome: &Recorded, status: Status) {
        let Some(current) = self.current.take() else { return };
        let next = NextSeries::behind(&current);
        let mut scan = current.scan(outcome, &status);
        let fault = scan.fault.clone();
        let broken = is_broken(outcome);
        let kept = current.keep(outcome, &status, self.permission.log);
        scan.joined = kept.joined;
        scan.file = self.published.read(|published| published.report.file.counting(&status));
        scan.file.complete(kept.files, kept.master);
        let mut published = self.published.changing();
        published.report.file = scan.file.clone();
        published.report.show(Some(status));
        published.end(scan);
        drop(published);
        self.left();
        match (fault.filter(|_| broken), next) {
            (fault, Some(next)) => self.await_next(next, fault),
            (Some(why), None) => self.failed(why),
            (None, None) => self.configured(ServiceState::Configured),
        }
        self.close_unused();
        self.tell_waiting();
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

/// The parts of a recording that were made at its end.
#[derive(Debug, Default)]
struct KeptRecording {
    /// The result of joining values to its frames, if there were any.
    joined: Option<String>,
    /// The file that shows the frames of all files.
    master: Option<PathBuf>,
    files: CompleteFiles,
}

/// Returns true if anything failed other than that packets are missing.
fn is_broken(outcome: &Recorded) -> bool {
    let lost = outcome.due.saturating_sub(outcome.stored()) > 0;
    let network = outcome.traffic.as_ref().is_some_and(|traffic| traffic.fault.is_some());
    let network = network || outcome.series.as_ref().is_some_and(|series| series.fault.is_some());
    outcome.hung || lost || network || !outcome.faults.is_empty()
}

impl CurrentRecording {
    /// Writes the summary of a recording if the storage answers, and the files that belong to its end.
    fn keep(self, outcome: &Recorded, status: &Status, log: OperatorLog) -> KeptRecording {
        let CurrentRecording { prepared, settings, metadata, before, .. } = self;
        if outcome.hung {
            // A directory on storage that hangs must not be closed.
            std::mem::forget(prepared);
            return KeptRecording::default();
        }
        let joined = prepared.join_rest(settings.patience());
        let before = before.unwrap_or_else(BeforeRecording::now);
        let tally = joined.as_ref().ok().and_then(Option::as_ref);
        let account = RecordingAccount::of(&prepared, &before, outcome, status.clone());
        let account = account.noting(metadata).joining(tally);
        if let Err(error) = account.keep(&prepared.targets, settings.patience()) {
            log(&format!("{}: can't write its summary: {error}", prepared.name));
        }
        let master = prepared.put_master(settings.patience()).unwrap_or_else(|error| {
            log(&format!("{}: can't write the file over its files: {error}", prepared.name));
            None
        });
        let joined = joined.unwrap_or_else(|error| {
            log(&format!("{}: can't write the rest of the values into its files: {error}", prepared.name));
            None
        });
        let files = CompleteFiles::list(&prepared, settings.patience());
        KeptRecording { joined: joined.and_then(|tally| tally.text()), master, files }
    }

    fn scan(&self, outcome: &Recorded, status: &Status) -> EndedScan {
        EndedScan {
            name: self.prepared.name.clone(),
            paths: self.prepared.targets.iter().map(|target| target.path().to_owned()).collect(),
            begun: self.before.as_ref().map(BeforeRecording::begun).unwrap_or_default(),
            seconds: outcome.wall.seconds(),
            counted_in: status.counted_in,
            packets: status.acknowledged_packets,
            bytes: status.acknowledged_bytes,
            missing_packets: outcome
                .series
                .as_ref()
                .map_or(status.lost.all(), |series| series.lost(outcome.due)),
            joined: None,
            fault: fault_of(outcome),
            file: RecordedFile::default(),
            mode: VlbiMode::of(&self.prepared.instrument),
        }
    }
}

#[cfg(test)]
mod tests;
