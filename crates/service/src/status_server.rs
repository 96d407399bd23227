//! The status of a recording that takes no commands, for programs that watch it. It is the same as the status of
//! the service.

use std::{path::PathBuf, sync::Arc, time::Duration};

use nilometer_acquisition::Status;
use nilometer_model::Nanos;

use crate::{
    console::Console,
    dump::{Dumps, check_roots},
    ended_scan::{RecordingAtEnd, is_broken},
    error::{OperatorLog, ServiceError},
    http,
    latest_frame::PictureSource,
    listener::{ClientReach, listen, spawn},
    preview::{PreviewListener, PreviewSource},
    publisher::Publisher,
    recording::{prepare::PreparedRecording, recorded_file::RecordedFile, settings::RecordingSettings},
    state::{ServiceConfiguration, ServiceState, StorageSize},
};

/// Answers queries about a recording over HTTP, and takes no orders.
#[derive(Debug)]
pub struct StatusServer {
    published: Publisher,
    dumps: Dumps,
    log: OperatorLog,
    is_open: bool,
    told: Option<Nanos>,
}

/// The longest wait for clients that follow events, at the end of the program.
const LAST_NEWS: Duration = Duration::from_secs(2);
/// The interval at which reports get new figures.
const TELL: Nanos = Nanos::from_millis(200);

impl StatusServer {
    /// Listens at this address and port, for the clients in `reach`. Without an address it answers nobody. Clients
    /// may dump parts of the recording into the directories `dumps`, and those below them.
    ///
    /// # Errors
    ///
    /// It can't listen there, or has no permission to.
    pub fn open(
        at: Option<&str>,
        reach: ClientReach<'_>,
        dumps: Vec<PathBuf>,
        log: OperatorLog,
    ) -> Result<Self, ServiceError> {
        check_roots(&dumps)?;
        let (console, published) = Console::without_orders(dumps);
        let dumps = console.dumps().clone();
        let listener = at.map(|address| listen("http", address, reach, log)).transpose()?;
        let is_open = listener.is_some();
        if let Some(listener) = listener {
            spawn("http", move || http::serve(&listener, &console))?;
        }
        Ok(StatusServer { published, dumps, log, is_open, told: None })
    }

    /// Reports the wait for a series, if the settings are for one: nothing can be prepared before it begins.
    pub fn awaits(&self, settings: &RecordingSettings) {
        if !settings.is_series() {
            return;
        }
        let configuration = ServiceConfiguration::of(settings);
        let wishes = settings.wishes();
        let mut published = self.published.changing();
        published.enter(ServiceState::Waiting);
        let report = &mut published.report;
        report.awaits = Some(settings.listens_at());
        report.start = wishes.start;
        report.stop = wishes.stop;
        report.name.clone_from(&wishes.name);
        report.configuration = configuration;
    }

    /// Reports that a recording is ready or running.
    pub fn enter(&self, state: ServiceState, prepared: &mut PreparedRecording, settings: &RecordingSettings) {
        let status = prepared.recorder.status();
        let file = RecordedFile::of(prepared);
        let storage = StorageSize::of(prepared);
        let configuration = ServiceConfiguration::of(settings);
        let mut published = self.published.changing();
        published.pictured = Some(Arc::new(PictureSource::of(prepared)));
        published.previewed = Some(Arc::new(PreviewSource::of(prepared)));
        published.enter(state);
        let report = &mut published.report;
        report.awaits = None;
        report.start = settings.wishes().start;
        report.stop = settings.wishes().stop;
        report.name = Some(prepared.name.clone());
        report.storage = storage;
        report.configuration = configuration;
        report.file = file;
        report.show(Some(status));
    }

    /// Reports the end of a recording, with its complete files. The server has no state for a program that ends: the
    /// last one is that of a service which could be armed again, or `failed`.
    pub fn end(&self, ended: RecordingAtEnd<'_>) {
        if !self.is_open {
            return;
        }
        let is_broken = is_broken(ended.outcome);
        let status = ended.status.clone();
        let file = self.published.read(|published| published.report.file.clone());
        let entry = ended.entry(&file);
        let mut published = self.published.changing();
        let report = &mut published.report;
        report.file = entry.file.clone();
        report.fault = entry.fault.clone().filter(|_| is_broken);
        report.name = None;
        report.start = None;
        report.stop = None;
        report.show(Some(status));
        published.end(entry);
        published.enter(if is_broken { ServiceState::Failed } else { ServiceState::Configured });
    }

    /// Shows viewers the recordings of this program.
    ///
    /// # Errors
    ///
    /// A thread can't be started.
    pub fn show_preview(&mut self, listener: PreviewListener) -> Result<(), ServiceError> {
        self.is_open = true;
        listener.show(self.published.clone())
    }

    /// Publishes the figures of the recording every 200 ms, if the server is open.
    pub fn tell(&mut self, now: Nanos, status: impl FnOnce() -> Status) {
        let due = self.told.is_none_or(|told| now.since(told) >= TELL);
        if self.is_open && due {
            self.told = Some(now);
            let status = status();
            self.published.changing().tell(now, status);
        }
    }
}

impl Drop for StatusServer {
    /// Dumps end with the program. They leave no partial files behind. Clients of events get the last ones.
    fn drop(&mut self) {
        self.dumps.leave(self.log);
        self.published.end_news(LAST_NEWS);
    }
}
