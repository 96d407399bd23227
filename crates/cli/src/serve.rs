//! `nilometer serve`: a recorder that is commanded, over HTTP and as Mark 5 recorders are. What it is told here; the recorder
//! is the crate `service`.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::Context;
use clap::Args;
use nilometer_service::{
    AllowedSender, ClientReach, CommandPermission, HTTP_ADDRESS, RecordOptions, ServiceError,
    ServiceListener, ServiceSetup, TlsFiles, listen, serve,
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
    /// Where the commands of Mark 5 recorders are answered, or `off` [default: 127.0.0.1:2620; off with --tokens or --tls-clients,
    /// since these commands know neither]
    #[arg(long, value_name = "ADDRESS")]
    mark5: Option<String>,
    /// Let other machines command it; --tokens, --tls-clients and --allow-clients say who may
    #[arg(long)]
    listen_beyond_loopback: bool,
    /// Obey and answer only this client, an address or a network such as 10.0.0.0/24; repeat the option for more [default:
    /// whoever reaches the port]
    #[arg(long, value_name = "ADDRESS|NETWORK")]
    allow_clients: Vec<AllowedSender>,
    #[command(flatten)]
    tls: TlsFiles,
    /// Answer HTTP only to clients that send a token of this file, as `Authorization: Bearer TOKEN`; a browser asks for the name and,
    /// as password, the token. Each line is NAME TOKEN, or NAME TOKEN read for somebody who must not command
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
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
        let stations = service.for_stations()?;
        let http = service.listen_http()?;
        let mark5 = listener("mark5", stations, service.reach())?;
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
            tls: self.tls.over(below.tls),
            tokens: self.tokens.or(below.tokens),
            instruments: if self.instruments.is_empty() { below.instruments } else { self.instruments },
        }
    }

    fn reach(&self) -> ClientReach<'_> {
        ClientReach {
            beyond: self.listen_beyond_loopback,
            clients: &self.allow_clients,
            ..ClientReach::default()
        }
    }

    fn listen_http(&self) -> Result<Option<ServiceListener>, ServiceError> {
        let tls = Some(&self.tls);
        let reach = ClientReach { tls, tokens: self.tokens.as_deref(), ..self.reach() };
        listener("http", self.http.as_deref().unwrap_or(HTTP_ADDRESS), reach)
    }

    /// Where Mark 5 commands are taken. Nowhere, unless it is asked for, if whoever commands over HTTP has to prove who they are.
    fn for_stations(&self) -> Result<&str, ServiceError> {
        let knows_clients = self.tokens.is_some() || self.tls.clients.is_some();
        let address = self.mark5.as_deref().unwrap_or(if knows_clients { OFF } else { MARK5 });
        let is_local = address.parse::<SocketAddr>().is_ok_and(|at| at.ip().is_loopback());
        if knows_clients && address != OFF && !is_local && self.allow_clients.is_empty() {
            return Err(ServiceError::AskedWrongly(format!(
                "mark5 = \"{address}\": Mark 5 commands have neither tokens nor TLS: say who may give them, with --allow-clients"
            )));
        }
        Ok(address)
    }
}

/// A listener at this address, which is said; none if it is `off`.
fn listener(
    what: &str,
    address: &str,
    reach: ClientReach<'_>,
) -> Result<Option<ServiceListener>, ServiceError> {
    let listens = address != OFF;
    listens.then(|| listen(what, address, reach, tell::log)).transpose()
}
