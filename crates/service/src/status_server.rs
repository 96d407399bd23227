//! The status of a recording that takes no commands, for programs that watch it. It is the same as the status of
//! the service.

use std::sync::{Arc, Mutex, PoisonError};

use nilometer_acquisition::Status;
use nilometer_model::{Moment, Nanos};
use nilometer_storage::Calendar;

use crate::{
    console::{Console, Published},
    error::{OperatorLog, ServiceError},
    http,
    latest_frame::PictureSource,
    listener::{ClientReach, listen, spawn},
    recording::{prepare::PreparedRecording, settings::RecordingSettings},
    state::{ServiceConfiguration, ServiceState, StorageSize},
};

/// Answers queries about a recording over HTTP, and takes no orders.
#[derive(Debug)]
pub struct StatusServer {
    published: Arc<Mutex<Published>>,
    is_open: bool,
    told: Option<Nanos>,
}

/// The interval at which reports get new figures.
const TELL: Nanos = Nanos::from_millis(200);

impl StatusServer {
    /// Listens at this address and port, for the clients in `reach`. Without an address it answers nobody.
    ///
    /// # Errors
    ///
    /// It can't listen there, or has no permission to.
    pub fn open(at: Option<&str>, reach: ClientReach<'_>, log: OperatorLog) -> Result<Self, ServiceError> {
        let (console, published) = Console::without_orders();
        let listener = at.map(|address| listen("http", address, reach, log)).transpose()?;
        let is_open = listener.is_some();
        if let Some(listener) = listener {
            spawn("http", move || http::serve(&listener, &console))?;
        }
        Ok(StatusServer { published, is_open, told: None })
    }

    /// Reports the wait for a series, if the settings are for one: nothing can be prepared before it begins.
    pub fn awaits(&self, settings: &RecordingSettings) {
        if !settings.is_series() {
            return;
        }
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        let report = &mut published.report;
        report.state = ServiceState::Waiting;
        report.since = Moment(Calendar::now().time);
        report.awaits = Some(settings.listens_at());
        report.start = settings.wishes().start;
        report.stop = settings.wishes().stop;
        report.name.clone_from(&settings.wishes().name);
        report.configuration = ServiceConfiguration::of(settings);
        report.version = env!("CARGO_PKG_VERSION");
    }

    /// Reports that a recording is ready or running.
    pub fn enter(&self, state: ServiceState, prepared: &PreparedRecording, settings: &RecordingSettings) {
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        published.pictured = Some(Arc::new(PictureSource::of(prepared)));
        let report = &mut published.report;
        report.state = state;
        report.since = Moment(Calendar::now().time);
        report.awaits = None;
        report.start = settings.wishes().start;
        report.stop = settings.wishes().stop;
        report.name = Some(prepared.name.clone());
        report.storage = StorageSize::of(prepared);
        report.configuration = ServiceConfiguration::of(settings);
        report.version = env!("CARGO_PKG_VERSION");
    }

    /// Publishes the figures of the recording every 200 ms, if the server is open.
    pub fn tell(&mut self, now: Nanos, status: impl FnOnce() -> Status) {
        let due = self.told.is_none_or(|told| now.since(told) >= TELL);
        if self.is_open && due {
            self.told = Some(now);
            let status = status();
            self.published.lock().unwrap_or_else(PoisonError::into_inner).tell(now, status);
        }
    }
}
