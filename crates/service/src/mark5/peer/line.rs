//! A connection to another recorder. Reads and writes wait as long as the other recorder takes, until a command
//! ends the transfer.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use nilometer_intake::transport::Allowed;
use nilometer_storage::network::unacknowledged;
use rustix::net::sockopt::set_socket_linger;

use super::progress::{TICK, TransferProgress};

/// The longest that a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// The time between looks at the bytes that are not acknowledged.
const NAP: Duration = Duration::from_millis(1);
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

/// How the receiver of a stream ended the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// It closed the connection behind the end of the stream.
    Closed,
    /// Its kernel acknowledged all bytes, and it did not close the connection: nobody knows if it stored them.
    KeptOpen,
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

    /// Ends a stream, and waits until the receiver has closed the connection too. If it keeps it open for a while,
    /// its kernel must at least have acknowledged all bytes.
    pub(crate) fn finish(self) -> io::Result<StreamEnd> {
        self.finish_within(LOOKS)
    }

    fn finish_within(mut self, looks: usize) -> io::Result<StreamEnd> {
        set_socket_linger(&self.stream, None)?;
        self.stream.shutdown(Shutdown::Write)?;
        if self.closes_within(looks)? {
            return Ok(StreamEnd::Closed);
        }
        while unacknowledged(&self.stream)? > 0 {
            if self.is_closed()? {
                return Ok(StreamEnd::Closed);
            }
        }
        Ok(StreamEnd::KeptOpen)
    }

    /// Waits for a while until the other recorder has closed the connection.
    pub(crate) fn await_close(mut self) -> io::Result<()> {
        self.closes_within(LOOKS).map(|_| ())
    }

    /// Returns true if the other recorder closes the connection within this number of looks.
    fn closes_within(&mut self, looks: usize) -> io::Result<bool> {
        for _ in 0..looks {
            if self.is_closed()? {
                return Ok(true);
            }
        }
        Ok(false)
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
            Ok(0) => self.await_acknowledged().map(|()| true),
            Ok(_) => Ok(false),
            Err(error) if is_passing(&error) || is_late(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits until the kernel of the other recorder, which has closed the connection, has acknowledged all bytes. If
    /// that recorder died before they came, its kernel resets the connection instead.
    fn await_acknowledged(&self) -> io::Result<()> {
        while unacknowledged(&self.stream)? > 0 {
            self.progress.check()?;
            if let Some(error) = self.stream.take_error()? {
                return Err(error);
            }
            thread::sleep(NAP);
        }
        Ok(())
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

/// Returns true if the other recorder did nothing within `TICK`. `TimedOut` is the end of the connection: the kernel
/// sent bytes again and again, and nobody acknowledged them.
fn is_late(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Console;

    /// A connection that sends, and its other end.
    fn connected(progress: &TransferProgress) -> (PeerLine<'_>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("it is bound");
        let line = PeerLine::connect(to, progress).expect("it listens");
        (line, listener.accept().expect("it connects").0)
    }

    fn progress() -> TransferProgress {
        TransferProgress::new(Console::without_orders(Vec::new()).0)
    }

    #[test]
    fn a_receiver_that_keeps_the_connection_open_has_at_least_all_bytes() {
        let progress = progress();
        for closes in [true, false] {
            let (mut line, mut receiver) = connected(&progress);
            line.begin_stream().expect("a socket");
            let receiving = thread::spawn(move || {
                let mut all = Vec::new();
                let read = receiver.read_to_end(&mut all).map(|_| all.len());
                (read, (!closes).then_some(receiver))
            });
            line.write_all(&vec![1; 1 << 20]).expect("it is read");
            // A receiver that closes may run late.
            let looks = if closes { usize::MAX } else { 1 };
            let end = line.finish_within(looks).expect("it is read");
            let (read, open) = receiving.join().expect("it does not panic");
            assert_eq!(read.expect("no reset"), 1 << 20);
            assert_eq!(end, if closes { StreamEnd::Closed } else { StreamEnd::KeptOpen });
            drop(open);
        }
    }

    #[test]
    fn a_receiver_that_closes_before_it_has_all_bytes_is_an_error() {
        let progress = progress();
        let (mut line, receiver) = connected(&progress);
        line.begin_stream().expect("a socket");
        line.write_all(&[1; 1 << 12]).expect("the kernel takes them");
        drop(receiver);
        assert!(line.finish_within(LOOKS).is_err(), "nobody read these bytes");
    }

    #[test]
    fn a_receiver_that_takes_nothing_is_never_done() {
        let progress = progress();
        let (mut line, receiver) = connected(&progress);
        line.begin_stream().expect("a socket");
        line.stream.set_nonblocking(true).expect("a socket");
        while line.stream.write(&[1; 1 << 12]).is_ok() {}
        line.stream.set_nonblocking(false).expect("a socket");
        let stream = line.stream.try_clone().expect("a descriptor");
        assert!(unacknowledged(&stream).expect("a socket") > 0);
        thread::scope(|scope| {
            let finishing = scope.spawn(|| line.finish_within(0));
            // Only a command ends it: nobody reads.
            progress.stop();
            assert!(finishing.join().expect("it does not panic").is_err(), "bytes are not acknowledged");
        });
        drop(receiver);
    }
}
