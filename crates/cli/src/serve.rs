//! `nilometer serve`: a recorder that is commanded, over HTTP and as Mark 5 recorders are. What it is told here; the recorder
//! is the crate `service`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use nilometer_service::{
    AllowedSender, ClientReach, CommandPermission, HTTP_ADDRESS, RecordOptions, ServiceError,
    ServiceListener, ServiceSetup, listen, serve,
};
use nilometer_storage::user_file;
use serde::Deserialize;

use crate::{Blame, Outcome, signals::stop_on_signal, tell};

/// Runs a recorder that is commanded, over HTTP or as Mark 5 recorders are
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// A TOML file: `[record]` with what `nilometer record` can be told, `[service]` with what can be told here; options
    /// win over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    service: Service,
}

/// Where it is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Service {
    /// Where HTTP is answered: a page for browsers; GET /status and /metrics; POST /configure, /arm, /start and /stop; or `off`
    /// [default: 127.0.0.1:9620]
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// Where the commands of Mark 5 recorders are answered, or `off` [default: 127.0.0.1:2620]
    #[arg(long, value_name = "ADDRESS")]
    mark5: Option<String>,
    /// Let other machines command it: there is no password
    #[arg(long)]
    listen_beyond_loopback: bool,
    /// Obey and answer only this client, an address or a network such as 10.0.0.0/24; repeat the option for more [default:
    /// whoever reaches the port]
    #[arg(long, value_name = "ADDRESS|NETWORK")]
    allow_clients: Vec<AllowedSender>,
    /// Instruments may be named by their path if they lie below this directory; may be given several times. Others are
    /// those of the catalogue, and that of the configuration
    #[arg(long, value_name = "DIRECTORY")]
    instruments: Vec<PathBuf>,
}

/// The file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Configured {
    service: Service,
    record: RecordOptions,
}

const MARK5: &str = "127.0.0.1:2620";
const OFF: &str = "off";

impl Serve {
    pub(crate) fn execute(&self) -> Outcome {
        let Configured { service, record } = self.configured().input()?;
        let service = self.service.clone().over(service);
        let beyond = service.listen_beyond_loopback;
        let http = service.listen("http", service.http.as_deref().unwrap_or(HTTP_ADDRESS))?;
        let mark5 = service.listen("mark5", service.mark5.as_deref().unwrap_or(MARK5))?;
        let end = stop_on_signal().run()?;
        let permission =
            CommandPermission { beyond, instruments: service.instruments, file: record, log: tell::log };
        Ok(serve(ServiceSetup { permission, http, mark5 }, &end)?)
    }

    fn configured(&self) -> anyhow::Result<Configured> {
        let Some(file) = &self.config else { return Ok(Configured::default()) };
        let text = user_file::read(file, "configuration")?;
        toml::from_str(&text).with_context(|| file.display().to_string())
    }
}

impl Service {
    fn over(self, below: Service) -> Self {
        Service {
            http: self.http.or(below.http),
            mark5: self.mark5.or(below.mark5),
            listen_beyond_loopback: self.listen_beyond_loopback || below.listen_beyond_loopback,
            allow_clients: if self.allow_clients.is_empty() {
                below.allow_clients
            } else {
                self.allow_clients
            },
            instruments: if self.instruments.is_empty() { below.instruments } else { self.instruments },
        }
    }

    /// A listener at this address, which is said; none if it is `off`.
    fn listen(&self, what: &str, address: &str) -> Result<Option<ServiceListener>, ServiceError> {
        let listens = address != OFF;
        let reach = ClientReach { beyond: self.listen_beyond_loopback, clients: &self.allow_clients };
        listens.then(|| listen(what, address, reach, tell::log)).transpose()
    }
}
