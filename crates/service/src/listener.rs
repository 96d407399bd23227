//! Where a recorder is reached: TCP, at loopback unless told otherwise, by the clients that are named, if some are.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    sync::{Mutex, PoisonError},
    thread,
};

use nilometer_intake::transport::Allowed;

use crate::{
    access::{AccessSecrets, TlsFiles},
    error::{OperatorLog, ServiceError, caused, require},
    recording::options::AllowedSender,
};

/// Where HTTP is answered unless told otherwise: this machine only.
pub const HTTP_ADDRESS: &str = "127.0.0.1:9620";

/// Addresses of refused clients that are said, at the most.
const SAID_MAX: usize = 16;

/// Who may reach a recorder.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientReach<'a> {
    /// Other machines may.
    pub beyond: bool,
    /// Only these clients may. If there are none, everybody may who can.
    pub clients: &'a [AllowedSender],
    /// Files by which the port speaks TLS. If there are none, it speaks in the clear.
    pub tls: Option<&'a TlsFiles>,
    /// A file of tokens, of which each client needs one. If there is none, nobody does.
    pub tokens: Option<&'a Path>,
}

/// Listens for those who may reach a recorder.
#[derive(Debug)]
pub struct ServiceListener {
    listener: TcpListener,
    what: String,
    clients: Allowed,
    /// Those that were refused, as far as it is said.
    refused: Mutex<Vec<IpAddr>>,
    secrets: AccessSecrets,
    log: OperatorLog,
}

impl ServiceListener {
    /// Where it listens.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where commands are noted.
    pub(crate) fn log(&self) -> OperatorLog {
        self.log
    }

    /// By what clients are known.
    pub(crate) fn secrets(&self) -> &AccessSecrets {
        &self.secrets
    }

    /// The next connection of a client that may reach the recorder. Those of others are closed.
    pub(crate) fn accept(&self) -> io::Result<TcpStream> {
        loop {
            let (stream, from) = self.listener.accept()?;
            if self.lets_in(from.ip().to_canonical()) {
                return Ok(stream);
            }
        }
    }

    /// Whether a client at this address may. If not, that is said once.
    fn lets_in(&self, client: IpAddr) -> bool {
        if !matches!(self.clients, Allowed::Named(_)) || self.clients.names(client) {
            return true;
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < SAID_MAX && !refused.contains(&client) {
            refused.push(client);
            (self.log)(&format!("{}: {client} is refused: --allow-clients names others", self.what));
        }
        false
    }
}

/// A listener at this address and port, which is said. `what` names it; those reach it who may.
///
/// # Errors
///
/// The address is none, is one that other machines reach and may not, or is taken. The clients contradict each other. A file
/// of TLS or of tokens can't be used, or tokens would be sent between machines in the clear.
pub fn listen(
    what: &str,
    address: &str,
    reach: ClientReach<'_>,
    log: OperatorLog,
) -> Result<ServiceListener, ServiceError> {
    let ClientReach { beyond, clients, tls, tokens } = reach;
    let clients = AllowedSender::all("--allow-clients", clients)?;
    let at = address.parse::<SocketAddr>().map_err(|_| {
        let hint = format!("write an address and a port, such as {HTTP_ADDRESS}");
        ServiceError::AskedWrongly(format!("{what} = \"{address}\": {hint}"))
    })?;
    require(at.ip().is_loopback() || beyond, || {
        format!(
            "{what} = \"{address}\": other machines could reach the recorder; if that is meant, say \
             --listen-beyond-loopback"
        )
    })?;
    let secrets = AccessSecrets::read(tls.unwrap_or(&TlsFiles::default()), tokens, log)?;
    require(tokens.is_none() || secrets.has_tls() || at.ip().is_loopback(), || {
        format!(
            "{what} = \"{address}\": tokens would be sent in the clear: name --tls-certificate and --tls-key"
        )
    })?;
    let listener = TcpListener::bind(at).map_err(|error| {
        ServiceError::AskedWrongly(caused(&format!("{what}: can't listen at {at}"), &error))
    })?;
    let beyond = if at.ip().is_loopback() { "" } else { ", for other machines too" };
    let bound = listener.local_addr().map_err(ServiceError::asked_wrongly)?;
    let by = secrets.described();
    log(&format!("{what} at {bound}{beyond}{by}"));
    Ok(ServiceListener { listener, what: what.to_owned(), clients, refused: Mutex::default(), secrets, log })
}

/// A thread that nobody waits for.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), ServiceError> {
    let started = thread::Builder::new().name(name.into()).spawn(work);
    started.map(drop).map_err(|error| ServiceError::Failed(caused("can't start a thread", &error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silent(_: &str) {}

    const HERE: ClientReach<'_> = ClientReach { beyond: false, clients: &[], tls: None, tokens: None };
    const BEYOND: ClientReach<'_> = ClientReach { beyond: true, ..HERE };

    #[test]
    fn nothing_listens_beyond_loopback_unless_that_is_told() {
        for beyond in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let error = listen("http", beyond, HERE, silent).expect_err(beyond).to_string();
            assert!(error.contains("--listen-beyond-loopback"), "{error}");
        }
        assert!(listen("http", "0.0.0.0:0", BEYOND, silent).is_ok(), "it was told");
        assert!(listen("http", "127.0.0.1:0", HERE, silent).is_ok(), "this machine");
        let error = listen("http", "localhost", HERE, silent).expect_err("no port").to_string();
        assert!(error.contains(HTTP_ADDRESS), "{error}");
    }

    #[test]
    fn only_named_clients_are_let_in() {
        let named = |text: &str| text.parse::<AllowedSender>().expect("an address or a network");
        let clients = [named("10.0.0.2"), named("fd00::/8")];
        let reach = ClientReach { clients: &clients, ..BEYOND };
        let listener = listen("http", "127.0.0.1:0", reach, silent).expect("a free port");
        let lets_in = |address: &str| listener.lets_in(address.parse().expect("an address"));
        assert!(lets_in("10.0.0.2") && lets_in("fd00::9"));
        assert!(!lets_in("10.0.0.3") && !lets_in("127.0.0.1"));
        let any = [AllowedSender::Any];
        for clients in [&[][..], &any] {
            let reach = ClientReach { clients, ..BEYOND };
            let listener = listen("http", "127.0.0.1:0", reach, silent).expect("a free port");
            assert!(listener.lets_in([203, 0, 113, 9].into()));
        }
    }
}
