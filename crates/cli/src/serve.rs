//! `nilometer serve`: a recorder that obeys commands, over HTTP and in the language of Mark 5 recorders. This
//! file has its options; the recorder is in the crate `service`.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::Context;
use clap::Args;
use nilometer_model::read_toml;
use nilometer_service::{
    AllowedSender, ClientReach, CommandPermission, HTTP_ADDRESS, PreviewListener, PreviewOptions,
    RecordOptions, ServiceError, ServiceListener, ServiceSetup, TlsFiles, listen, serve,
};
use nilometer_storage::user_file;
use serde::Deserialize;

use crate::{Blame, Outcome, signals::stop_on_signal, tell};

/// Run a recorder that obeys commands, over HTTP or as Mark 5 recorders do
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Read options from this TOML file: those of `nilometer record` in `[record]`, those below in
    /// `[service]`. Options of the command line win
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    service: Service,
}

/// The addresses and the clients of the service.
#[derive(Debug, Clone, Default, PartialEq, Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Service {
    /// Answer HTTP at this address, or `off`: a page for browsers; GET /status and /metrics; POST /configure,
    /// /arm, /start, /stop and /dump [default: 127.0.0.1:9620]
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// Answer the commands of Mark 5 recorders at this address, or `off`. These commands know neither tokens
    /// nor certificates [default: 127.0.0.1:2620; off with --tokens or --tls-clients]
    #[arg(long, value_name = "ADDRESS")]
    mark5: Option<String>,
    /// Let other machines send commands. --tokens, --tls-clients and --allow-clients restrict them
    #[arg(long)]
    listen_beyond_loopback: bool,
    /// Answer and obey only this client: an address, or a network such as 10.0.0.0/24. Repeat the option for
    /// more [default: all that reach the port]
    #[arg(long, value_name = "ADDRESS|NETWORK")]
    allow_clients: Vec<AllowedSender>,
    #[command(flatten)]
    tls: TlsFiles,
    /// Answer HTTP only to clients that send a token of this file, as `Authorization: Bearer TOKEN`. A
    /// browser asks for the name and, as password, the token. Each line is NAME TOKEN, or NAME TOKEN read for
    /// clients that must not command
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Let commands name instruments by a path below this directory. Repeat the option for more. The
    /// catalogue and the configuration's instrument are always allowed
    #[arg(long, value_name = "DIRECTORY")]
    instruments: Vec<PathBuf>,
    /// Let clients dump parts of recordings into this directory and those below it (POST /dump). Repeat the
    /// option for more
    #[arg(long, value_name = "DIRECTORY")]
    dumps: Vec<PathBuf>,
    #[command(flatten)]
    preview: PreviewOptions,
}

/// The configuration file.
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
        let preview = service.listen_preview()?;
        let end = stop_on_signal().run()?;
        let dumps = service.dumps;
        let instruments = service.instruments;
        let permission = CommandPermission {
            beyond,
            instruments,
            file: record,
            has_preview: preview.is_some(),
            log: tell::log,
        };
        Ok(serve(ServiceSetup { permission, http, mark5, preview, dumps }, &end)?)
    }

    fn configured(&self) -> anyhow::Result<Configured> {
        let Some(file) = &self.config else { return Ok(Configured::default()) };
        let text = user_file::read(file, "configuration")?;
        read_toml(&text).with_context(|| file.display().to_string())
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
            preview: self.preview.over(below.preview),
            instruments: if self.instruments.is_empty() { below.instruments } else { self.instruments },
            dumps: if self.dumps.is_empty() { below.dumps } else { self.dumps },
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

    fn listen_preview(&self) -> Result<Option<PreviewListener>, ServiceError> {
        let reach = ClientReach { tls: Some(&self.tls), tokens: self.tokens.as_deref(), ..self.reach() };
        PreviewListener::open(&self.preview, reach, tell::log)
    }

    /// The address for Mark 5 commands. If clients of HTTP must prove their identity, it is off by default.
    fn for_stations(&self) -> Result<&str, ServiceError> {
        let knows_clients = self.tokens.is_some() || self.tls.clients.is_some();
        let address = self.mark5.as_deref().unwrap_or(if knows_clients { OFF } else { MARK5 });
        let is_local = address.parse::<SocketAddr>().is_ok_and(|at| at.ip().is_loopback());
        if knows_clients && address != OFF && !is_local && self.allow_clients.is_empty() {
            return Err(ServiceError::AskedWrongly(format!(
                "mark5 = \"{address}\": Mark 5 commands have neither tokens nor TLS: name the permitted clients \
                 with --allow-clients"
            )));
        }
        Ok(address)
    }
}

/// A listener at this address, after a message about it; `None` if the address is `off`.
fn listener(
    what: &str,
    address: &str,
    reach: ClientReach<'_>,
) -> Result<Option<ServiceListener>, ServiceError> {
    let listens = address != OFF;
    listens.then(|| listen(what, address, reach, tell::log)).transpose()
}
