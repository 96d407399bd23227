//! What `nilometer record` shows of itself while it runs, to programs: the same as the service tells, and nothing is
//! commanded there.

use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use nilometer_acquisition::Status;
use nilometer_model::{Moment, Nanos};
use nilometer_storage::Calendar;

use super::{
    console::{Console, News},
    doors::{listen, spawn},
    http,
    state::{Configuration, State},
};
use crate::record::Settings;

/// Where a recording that runs can be looked at.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Shown {
    /// Answer GET /status (JSON) and GET /metrics (Prometheus) at this address and port while it runs, such as
    /// 127.0.0.1:9620
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// Let other machines look too: there is no password
    #[arg(long)]
    listen_beyond_loopback: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Window {
    news: Arc<Mutex<News>>,
    is_open: bool,
    told: Option<Nanos>,
}

/// How often figures are brought up to date.
const TELL: Nanos = Nanos::from_millis(200);

impl Shown {
    /// Opens what was asked for.
    pub(crate) fn open(&self) -> anyhow::Result<Window> {
        let (console, news) = Console::without_orders();
        let beyond = self.listen_beyond_loopback;
        let listener = self.http.as_deref().map(|address| listen("http", address, beyond)).transpose()?;
        let is_open = listener.is_some();
        if let Some(listener) = listener {
            spawn("http", move || http::serve(&listener, &console))?;
        }
        Ok(Window { news, is_open, told: None })
    }
}

impl Window {
    /// A recording is prepared, or runs.
    pub(crate) fn enter(&self, state: State, name: &str, settings: &Settings) {
        let report = &mut self.news.lock().unwrap_or_else(PoisonError::into_inner).report;
        report.state = state;
        report.since = Moment(Calendar::now().time);
        report.start = settings.wishes().start;
        report.stop = settings.wishes().stop;
        report.name = Some(name.to_owned());
        report.configuration = Configuration::of(settings);
        report.version = env!("CARGO_PKG_VERSION");
    }

    /// Tells how the recording is, if somebody may look and it is due.
    pub(crate) fn tell(&mut self, now: Nanos, status: impl FnOnce() -> Status) {
        let due = self.told.is_none_or(|told| now.since(told) >= TELL);
        if self.is_open && due {
            self.told = Some(now);
            self.news.lock().unwrap_or_else(PoisonError::into_inner).report.recording = Some(status());
        }
    }
}
