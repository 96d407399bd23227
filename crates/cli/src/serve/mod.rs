//! `nilometer serve`: a recorder that is commanded, over HTTP and as Mark 5 recorders are.
//!
//! ```text
//! http, mark5, socket -> Console -> Station (one thread: the only one that has the recorder) -> Recorder
//! ```

mod console;
mod http;
mod mark5;
mod metrics;
mod state;
mod station;
mod visitors;

use std::{
    fs,
    io::{ErrorKind, Write},
    net::{SocketAddr, TcpListener},
    os::unix::{
        fs::FileTypeExt,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde::Deserialize;

use crate::{Blame, Outcome, evaluate::stop_on_signal, record::Wishes};
use console::Console;
use station::Station;

/// Runs a recorder that is commanded: over HTTP, and with the commands of Mark 5 recorders
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
    /// Where HTTP is answered: GET /status and /metrics; POST /configure, /arm, /start and /stop; or `off`
    /// [default: 127.0.0.1:9620]
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// Where the commands of Mark 5 recorders are answered, or `off` [default: 127.0.0.1:2620]
    #[arg(long, value_name = "ADDRESS")]
    mark5: Option<String>,
    /// A unix socket that tells the status as JSON to whoever connects
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Let other machines command it: there is no password
    #[arg(long)]
    listen_beyond_loopback: bool,
}

/// The file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Configured {
    service: Service,
    record: Wishes,
}

const HTTP: &str = "127.0.0.1:9620";
const MARK5: &str = "127.0.0.1:2620";
const OFF: &str = "off";
/// How long a client of the unix socket may take.
const PATIENCE: Duration = Duration::from_secs(1);

impl Serve {
    pub(crate) fn execute(&self) -> Outcome {
        let Configured { service, record } = self.configured().input()?;
        let service = self.service.clone().over(service);
        let http = service.listen("http", service.http.as_deref().unwrap_or(HTTP)).input()?;
        let mark5 = service.listen("mark5", service.mark5.as_deref().unwrap_or(MARK5)).input()?;
        let bound = |path| anyhow::Ok((bind(path)?, path));
        let socket = service.socket.as_deref().map(bound).transpose().input()?;
        let end = stop_on_signal().run()?;
        let (console, orders, news) = Console::new();
        let mut station = Station::new(record, news);
        let beyond = service.listen_beyond_loopback;
        if let Some(listener) = http {
            let console = console.clone();
            spawn("http", move || http::serve(&listener, &console)).run()?;
        }
        if let Some(listener) = mark5 {
            let console = console.clone();
            spawn("mark5", move || mark5::serve(&listener, &console, beyond)).run()?;
        }
        if let Some((listener, _)) = &socket {
            let (listener, console) = (listener.try_clone().run()?, console.clone());
            spawn("socket", move || tell(&listener, &console)).run()?;
        }
        eprintln!("ready: {}", console.report().state.name());
        station.run(&orders, &end);
        if let Some((_, path)) = socket {
            drop(fs::remove_file(path));
        }
        eprintln!("ended");
        Ok(())
    }

    fn configured(&self) -> anyhow::Result<Configured> {
        let Some(file) = &self.config else { return Ok(Configured::default()) };
        let name = file.display();
        let text =
            fs::read_to_string(file).with_context(|| format!("can't read the configuration {name}"))?;
        toml::from_str(&text).with_context(|| name.to_string())
    }
}

impl Service {
    fn over(self, below: Service) -> Self {
        Service {
            http: self.http.or(below.http),
            mark5: self.mark5.or(below.mark5),
            socket: self.socket.or(below.socket),
            listen_beyond_loopback: self.listen_beyond_loopback || below.listen_beyond_loopback,
        }
    }

    /// A listener at this address, which is said; none if it is `off`.
    fn listen(&self, what: &str, address: &str) -> anyhow::Result<Option<TcpListener>> {
        if address == OFF {
            return Ok(None);
        }
        let at: SocketAddr = address.parse().ok().with_context(|| {
            format!("{what} = \"{address}\": write an address and a port, such as {HTTP}, or off")
        })?;
        ensure!(
            at.ip().is_loopback() || self.listen_beyond_loopback,
            "{what} = \"{address}\": other machines could command the recorder, without a password; if that is meant, \
             say --listen-beyond-loopback"
        );
        let listener = TcpListener::bind(at).with_context(|| format!("{what}: can't listen at {at}"))?;
        let beyond = if at.ip().is_loopback() { "" } else { ", for other machines too" };
        eprintln!("{what} at {}{beyond}", listener.local_addr()?);
        Ok(Some(listener))
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    thread::Builder::new().name(name.into()).spawn(work).context("can't start a thread")?;
    Ok(())
}

/// A unix socket at a path. One that nobody listens to any more is replaced; anything else stays.
fn bind(path: &Path) -> anyhow::Result<UnixListener> {
    let shown = path.display();
    match UnixListener::bind(path) {
        Ok(listener) => return Ok(listener),
        Err(error) if error.kind() != ErrorKind::AddrInUse => {
            return Err(error).with_context(|| format!("can't make the socket {shown}"));
        }
        Err(_) => {}
    }
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if !is_socket || UnixStream::connect(path).is_ok() {
        bail!("{shown} exists and is in use, or is no socket: name another --socket");
    }
    fs::remove_file(path).with_context(|| format!("can't replace the socket {shown}"))?;
    UnixListener::bind(path).with_context(|| format!("can't make the socket {shown}"))
}

/// Tells everybody who connects how it is. A report is shorter than what a socket holds: nobody is waited for.
fn tell(listener: &UnixListener, console: &Console) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else {
            thread::sleep(PATIENCE);
            continue;
        };
        let text = serde_json::json!(console.report()).to_string() + "\n";
        // Who does not listen any more needs no answer.
        drop(stream.set_write_timeout(Some(PATIENCE)).and_then(|()| stream.write_all(text.as_bytes())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_listens_beyond_loopback_unless_that_is_told() {
        let careful = Service::default();
        for beyond in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let error = careful.listen("http", beyond).expect_err(beyond).to_string();
            assert!(error.contains("--listen-beyond-loopback"), "{error}");
        }
        let told = Service { listen_beyond_loopback: true, ..Service::default() };
        assert!(told.listen("http", "0.0.0.0:0").expect("it was told").is_some());
        assert!(careful.listen("http", "127.0.0.1:0").expect("this machine").is_some());
        assert!(careful.listen("http", OFF).expect("nothing").is_none());
        assert!(careful.listen("http", "localhost").expect_err("no port").to_string().contains(HTTP));
    }

    #[test]
    fn a_socket_that_was_left_behind_is_replaced_and_nothing_else_is() {
        let below = tempfile::tempdir().expect("a temporary directory");
        let path = below.path().join("status.sock");
        drop(bind(&path).expect("new"));
        assert!(path.exists());
        let listener = bind(&path).expect("nobody listens there");
        assert!(bind(&path).is_err(), "somebody listens there");
        drop(listener);
        let file = below.path().join("file");
        fs::write(&file, "mine").expect("space");
        assert!(bind(&file).is_err() && file.exists());
    }
}
