//! Addresses of messages, in the notation of ZeroMQ.

use std::{
    fmt, io,
    net::{SocketAddr, ToSocketAddrs},
};

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZmqEndpoint {
    /// The other end listens there: this one connects, again and again.
    Connect(SocketAddr),
    /// This end listens there for any number of others.
    Bind(SocketAddr),
}

impl ZmqEndpoint {
    /// The socket address: of the other end, or where this one listens.
    pub fn socket(&self) -> SocketAddr {
        let (ZmqEndpoint::Connect(address) | ZmqEndpoint::Bind(address)) = self;
        *address
    }

    /// Parses `tcp://HOST:PORT` to connect to. It resolves the name now.
    pub fn connect(text: &str) -> io::Result<Self> {
        let address = address(text, "tcp://detector:31001")?;
        let mut found = address.to_socket_addrs().map_err(|error| named(text, &error))?;
        found.next().map(ZmqEndpoint::Connect).ok_or_else(|| wrong(text, "this name has no address"))
    }

    /// Parses `tcp://ADDRESS:PORT` to listen at. The address may be `*` for all addresses of this machine.
    pub fn bind(text: &str) -> io::Result<Self> {
        let address = address(text, "tcp://*:31001")?.replacen("*:", "0.0.0.0:", 1);
        let mut found = address.to_socket_addrs().map_err(|error| named(text, &error))?;
        found.next().map(ZmqEndpoint::Bind).ok_or_else(|| wrong(text, "this name has no address"))
    }
}

impl fmt::Display for ZmqEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "tcp://{}", self.socket())
    }
}

/// Returns the address after the scheme.
fn address<'a>(text: &'a str, example: &str) -> io::Result<&'a str> {
    let address = text.strip_prefix("tcp://").filter(|address| address.contains(':'));
    address.ok_or_else(|| wrong(text, &format!("write it as {example}")))
}

fn wrong(text: &str, fault: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{text}: {fault}"))
}

fn named(text: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{text}: {error}"))
}
