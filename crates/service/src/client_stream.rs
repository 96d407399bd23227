//! The byte stream over a client's connection: plain TCP, or TLS.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use nilometer_model::Nanos;
use nilometer_storage::Clock;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sha2::{Digest, Sha256};

/// A TCP connection with an optional deadline for reads, which holds however slowly bytes arrive.
#[derive(Debug)]
pub(crate) struct TimedSocket {
    stream: TcpStream,
    clock: Clock,
    until: Option<Nanos>,
}

/// A client's connection, with or without TLS.
#[derive(Debug)]
pub(crate) enum ClientStream {
    /// Without encryption.
    Plain(TimedSocket),
    /// With TLS. The first read or write performs the handshake.
    Tls(Box<StreamOwned<ServerConnection, TimedSocket>>),
}

impl TimedSocket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        TimedSocket { stream, clock: Clock::start(), until: None }
    }

    /// Sets a deadline: after `time`, reads fail with [`io::ErrorKind::TimedOut`].
    pub(crate) fn give_up_after(&mut self, time: Nanos) {
        self.until = Some(self.clock.now() + time);
    }
}

impl Read for TimedSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(until) = self.until {
            let left = until.since(self.clock.now());
            if left == Nanos(0) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left.duration().max(Duration::from_millis(1))))?;
        }
        self.stream.read(into)
    }
}

impl Write for TimedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl ClientStream {
    pub(crate) fn plain(socket: TimedSocket) -> Self {
        ClientStream::Plain(socket)
    }

    pub(crate) fn tls(config: Arc<ServerConfig>, socket: TimedSocket) -> Result<Self, rustls::Error> {
        let session = ServerConnection::new(config)?;
        Ok(ClientStream::Tls(Box::new(StreamOwned::new(session, socket))))
    }

    /// Sets a deadline: after `time`, reads and the handshake fail with [`io::ErrorKind::TimedOut`].
    pub(crate) fn give_up_after(&mut self, time: Nanos) {
        let socket = match self {
            ClientStream::Plain(socket) => socket,
            ClientStream::Tls(stream) => stream.get_mut(),
        };
        socket.give_up_after(time);
    }

    /// The SHA-256 of the client's certificate in hexadecimal digits, or `None` if the client showed none. The
    /// digits are those that `openssl x509 -fingerprint -sha256` prints, without colons.
    pub(crate) fn client_certificate(&self) -> Option<String> {
        let ClientStream::Tls(stream) = self else { return None };
        let certificate = stream.conn.peer_certificates()?.first()?;
        let digits = Sha256::digest(certificate).into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let digits: String = digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect();
        Some(digits.to_uppercase())
    }

    /// Ends the stream: with TLS it sends `close_notify`.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if let ClientStream::Tls(stream) = self {
            stream.conn.send_close_notify();
        }
        self.flush()
    }
}

impl Read for ClientStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            ClientStream::Plain(socket) => socket.read(into),
            ClientStream::Tls(stream) => stream.read(into),
        }
    }
}

impl Write for ClientStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ClientStream::Plain(socket) => socket.write(bytes),
            ClientStream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            ClientStream::Plain(socket) => socket.flush(),
            ClientStream::Tls(stream) => stream.flush(),
        }
    }
}
