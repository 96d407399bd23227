//! A connection to another recorder. Reads and writes wait as long as the other recorder takes, until a command
//! ends the transfer.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use nilometer_intake::transport::Allowed;
use rustix::net::sockopt::set_socket_linger;

use super::progress::{TICK, TransferProgress};

/// The longest that a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How often a sender looks whether the receiver has closed the connection, `TICK` apart.
const LOOKS: usize = 200;

/// Listens for another recorder. Other machines reach it if `beyond` is true.
pub(crate) fn listen(port: u16, beyond: bool) -> io::Result<TcpListener> {
    let host = if beyond { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
    let listener = TcpListener::bind((host, port))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Returns true if a recorder at this address may send.
fn is_permitted(senders: &Allowed, address: IpAddr) -> bool {
    !matches!(senders, Allowed::Named(_)) || senders.names(address.to_canonical())
}

/// A connection to another recorder.
#[derive(Debug)]
pub(crate) struct PeerLine<'a> {
    stream: TcpStream,
    progress: &'a TransferProgress,
}

impl<'a> PeerLine<'a> {
    fn over(stream: TcpStream, progress: &'a TransferProgress) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(TICK))?;
        Ok(PeerLine { stream, progress })
    }

    pub(crate) fn connect(to: SocketAddr, progress: &'a TransferProgress) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&to, CONNECT)
            .map_err(|error| io::Error::new(error.kind(), format!("can't connect to {to}, {error}")))?;
        PeerLine::over(stream, progress)
    }

    /// Waits for the next permitted sender, and closes connections of others.
    pub(crate) fn accept(
        listener: &TcpListener,
        senders: &Allowed,
        progress: &'a TransferProgress,
    ) -> io::Result<Self> {
        loop {
            progress.check()?;
            match listener.accept() {
                Ok((stream, from)) if is_permitted(senders, from.ip()) => {
                    return PeerLine::over(stream, progress);
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(TICK),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Resets the connection if this program dies before [`PeerLine::finish`]. The receiver of a stream without a
    /// length would take the part for the whole.
    pub(crate) fn begin_stream(&self) -> io::Result<()> {
        Ok(set_socket_linger(&self.stream, Some(Duration::ZERO))?)
    }

    /// Ends a stream, and waits until the receiver has closed the connection too. One that keeps it open counts as
    /// done after a while.
    pub(crate) fn finish(self) -> io::Result<()> {
        set_socket_linger(&self.stream, None)?;
        self.stream.shutdown(Shutdown::Write)?;
        self.await_close()
    }

    /// Waits for a while until the other recorder has closed the connection.
    pub(crate) fn await_close(mut self) -> io::Result<()> {
        for _ in 0..LOOKS {
            if self.is_closed()? {
                break;
            }
        }
        Ok(())
    }

    /// Waits until the other recorder has closed the connection, which says that it has stored a chunk.
    pub(crate) fn await_stored(mut self) -> io::Result<()> {
        while !self.is_closed()? {}
        Ok(())
    }

    /// Returns true if the other recorder has closed the connection, or closes it within `TICK`.
    fn is_closed(&mut self) -> io::Result<bool> {
        self.progress.check()?;
        match self.stream.read(&mut [0; 64]) {
            Ok(count) => Ok(count == 0),
            Err(error) if is_passing(&error) || is_late(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Resets the connection, so that the other recorder learns of a failure.
    pub(crate) fn break_off(self) {
        // If the socket refuses that, the receiver sees a short stream.
        set_socket_linger(&self.stream, Some(Duration::ZERO)).unwrap_or_default();
    }
}

/// Returns true for an error after which the call may be made again.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted)
}

/// Returns true if the other recorder did nothing within `TICK`.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl Read for PeerLine<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            self.progress.check()?;
            match self.stream.read(into) {
                Err(error) if is_late(&error) => {}
                outcome => return outcome,
            }
        }
    }
}

impl Write for PeerLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.progress.check()?;
            match self.stream.write(bytes) {
                Err(error) if is_late(&error) => {}
                outcome => return outcome,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
