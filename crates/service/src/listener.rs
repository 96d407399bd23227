//! The TCP ports of a recorder. They listen at loopback unless the operator allows more, and accept only the
//! clients of the options, if there are any.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, BorrowedFd},
    path::Path,
    sync::{Mutex, PoisonError},
    thread,
};

use nilometer_intake::transport::Allowed;

use crate::{
    access::{AccessSecrets, TlsFiles},
    error::{OperatorLog, ServiceError, caused, require},
    recording::allowed_sender::AllowedSender,
};

/// The default address of HTTP: this machine only.
pub const HTTP_ADDRESS: &str = "127.0.0.1:9620";

/// An address for each other port, as an example in messages.
const OTHER_EXAMPLES: [(&str, &str); 2] = [("mark5", "127.0.0.1:2620"), ("preview", "127.0.0.1:9630")];

/// The most addresses of refused clients that the log names.
const SAID_MAX: usize = 16;

/// The clients that may reach a recorder.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientReach<'a> {
    /// True if other machines may connect.
    pub beyond: bool,
    /// The only clients that may connect. If the list is empty, every client may.
    pub clients: &'a [AllowedSender],
    /// The files for TLS. If there are none, the port does not encrypt.
    pub tls: Option<&'a TlsFiles>,
    /// A file of tokens, one of which each client needs. If there is none, clients need no token.
    pub tokens: Option<&'a Path>,
}

/// A listener that accepts only permitted clients.
#[derive(Debug)]
pub struct ServiceListener {
    listener: TcpListener,
    what: String,
    clients: Allowed,
    /// The refused clients that the log has named.
    refused: Mutex<Vec<IpAddr>>,
    secrets: AccessSecrets,
    log: OperatorLog,
}

impl ServiceListener {
    /// The address at which it listens.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Makes [`Self::accept`] return at once, with an error if nobody waits.
    pub(crate) fn set_nonblocking(&self) -> io::Result<()> {
        self.listener.set_nonblocking(true)
    }

    /// The log for commands.
    pub(crate) fn log(&self) -> OperatorLog {
        self.log
    }

    /// The certificates and tokens of this port.
    pub(crate) fn secrets(&self) -> &AccessSecrets {
        &self.secrets
    }

    /// The next connection of a permitted client. The listener closes connections of others.
    pub(crate) fn accept(&self) -> io::Result<TcpStream> {
        loop {
            let (stream, from) = self.listener.accept()?;
            if self.lets_in(from.ip().to_canonical()) {
                return Ok(stream);
            }
        }
    }

    /// Returns true if a client at this address is permitted. The log names each refused address once.
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

impl AsFd for ServiceListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Listens at this address and port, and logs that. `what` names the port in messages.
///
/// # Errors
///
/// The address is invalid, taken, or open to other machines without permission. The clients contradict each
/// other. A file of TLS or of tokens can't be used, or tokens would travel between machines unencrypted.
pub fn listen(
    what: &str,
    address: &str,
    reach: ClientReach<'_>,
    log: OperatorLog,
) -> Result<ServiceListener, ServiceError> {
    let ClientReach { beyond, clients, tls, tokens } = reach;
    let clients = AllowedSender::all("--allow-clients", clients)?;
    let at = address.parse::<SocketAddr>().map_err(|_| {
        let example = OTHER_EXAMPLES.iter().find(|(port, _)| *port == what).map_or(HTTP_ADDRESS, |of| of.1);
        let hint = format!("write an address and a port, such as {example}");
        ServiceError::AskedWrongly(format!("{what} = \"{address}\": {hint}"))
    })?;
    require(at.ip().is_loopback() || beyond, || {
        format!(
            "{what} = \"{address}\": other machines could reach the recorder; to allow that, add \
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

/// Starts a thread that nobody joins.
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
        let error = listen("preview", "9630", HERE, silent).expect_err("no address").to_string();
        assert!(
            error.contains("preview = \"9630\": write an address and a port, such as 127.0.0.1:9630"),
            "{error}"
        );
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
