//! The end that sends messages: each to the next of those that are connected, as long as it takes any.

use std::{
    io::{self, ErrorKind, IoSlice, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    time::Duration,
};

use nilometer_model::Nanos;
use nilometer_wire::zmtp::{ZmtpDecoder, ZmtpNext, ZmtpSocket, greeting, part_header, pong, ready};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::RecvFlags,
};

use super::{ZmqEndpoint, pull::keep_alive};

/// Who takes nothing for so long is not there.
const PATIENCE: Duration = Duration::from_secs(10);
/// From one attempt to connect to the next.
const AGAIN: Duration = Duration::from_millis(50);

/// A connection to one that takes messages.
#[derive(Debug)]
struct PushPeer {
    stream: TcpStream,
    decoder: ZmtpDecoder,
    ready: bool,
}

/// See the module.
#[derive(Debug)]
pub struct PushSocket {
    listener: Option<TcpListener>,
    to: Option<SocketAddr>,
    peers: Vec<PushPeer>,
    turn: usize,
}

impl PushSocket {
    /// Waits there for others, or connects when there is something to send.
    pub fn open(endpoint: ZmqEndpoint) -> io::Result<Self> {
        let (listener, to) = match endpoint {
            ZmqEndpoint::Bind(at) => (Some(TcpListener::bind(at)?), None),
            ZmqEndpoint::Connect(to) => (None, Some(to)),
        };
        if let Some(listener) = &listener {
            listener.set_nonblocking(true)?;
        }
        Ok(PushSocket { listener, to, peers: Vec::new(), turn: 0 })
    }

    /// Where it waits for others.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }

    /// How many take messages.
    pub fn connected(&self) -> usize {
        self.peers.iter().filter(|peer| peer.ready).count()
    }

    /// Looks who came and who went.
    pub fn tend(&mut self) -> io::Result<()> {
        while let Some(listener) = &self.listener {
            match listener.accept() {
                Ok((stream, _)) => self.peers.extend(PushPeer::greet(stream).ok()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if let (Some(to), []) = (self.to, &self.peers[..])
            && let Ok(stream) = TcpStream::connect_timeout(&to, PATIENCE)
        {
            self.peers.extend(PushPeer::greet(stream).ok());
        }
        self.peers.retain_mut(|peer| peer.hear().is_ok());
        Ok(())
    }

    /// Sends a message of these parts, each of pieces that need not touch, to one of those that are connected. Whether there was
    /// one that took it, within `waits` looks of 50 ms each. A connection that fails meanwhile is dropped, and the message sent
    /// to another.
    pub fn send(&mut self, parts: &[&[&[u8]]], waits: u32) -> io::Result<bool> {
        for _ in 0..=waits {
            self.tend()?;
            while let Some(number) = self.next_that_takes()? {
                if self.peers[number].write(parts).is_ok() {
                    return Ok(true);
                }
                self.peers.remove(number);
            }
            self.wait()?;
        }
        Ok(false)
    }

    /// The next peer in turn that takes something at once.
    fn next_that_takes(&mut self) -> io::Result<Option<usize>> {
        let flags = |peer: &PushPeer| if peer.ready { PollFlags::OUT } else { PollFlags::empty() };
        let waited = self.peers.iter().map(|peer| PollFd::from_borrowed_fd(peer.stream.as_fd(), flags(peer)));
        let mut waited: Vec<_> = waited.collect();
        poll(&mut waited, Some(&Timespec::default()))?;
        let takes: Vec<bool> = waited.iter().map(|fd| fd.revents().contains(PollFlags::OUT)).collect();
        let in_turn = (1..=takes.len()).map(|step| (self.turn + step) % takes.len());
        let next = in_turn.into_iter().find(|number| takes[*number]);
        self.turn = next.unwrap_or(self.turn);
        Ok(next)
    }

    /// Until something changes, or for a while.
    fn wait(&self) -> io::Result<()> {
        let flags = |peer: &PushPeer| if peer.ready { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let peers = self.peers.iter().map(|peer| PollFd::from_borrowed_fd(peer.stream.as_fd(), flags(peer)));
        let listener = self.listener.as_ref();
        let listener = listener.map(|listener| PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN));
        let mut waited: Vec<_> = peers.chain(listener).collect();
        let time = Nanos::from_millis(AGAIN.as_millis() as u64).duration();
        let timeout = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
        match poll(&mut waited, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl PushPeer {
    fn greet(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        keep_alive(&stream)?;
        let mut peer = PushPeer { stream, decoder: ZmtpDecoder::new(ZmtpSocket::Push), ready: false };
        peer.stream.write_all(&greeting())?;
        Ok(peer)
    }

    /// Takes what the other end says, without waiting for it.
    fn hear(&mut self) -> io::Result<()> {
        let mut buffer = [0; 512];
        loop {
            let came = match rustix::net::recv(&self.stream, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok((came, _)) => came,
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let mut rest = &buffer[..came];
            while !rest.is_empty() {
                let (used, next) = self.decoder.feed(rest).map_err(io::Error::other)?;
                rest = &rest[used..];
                self.obey(next)?;
            }
        }
    }

    fn obey(&mut self, next: ZmtpNext) -> io::Result<()> {
        match next {
            ZmtpNext::More | ZmtpNext::Command => Ok(()),
            ZmtpNext::Greeted => self.stream.write_all(&ready(ZmtpSocket::Push)),
            ZmtpNext::Ready => {
                self.ready = true;
                Ok(())
            }
            ZmtpNext::Ping { context } => self.stream.write_all(&pong(&context)),
            ZmtpNext::Part { .. } => Err(io::Error::other("one that takes messages sends one")),
        }
    }

    fn write(&mut self, parts: &[&[&[u8]]]) -> io::Result<()> {
        let length = |part: &[&[u8]]| part.iter().map(|piece| piece.len() as u64).sum();
        let last = parts.len().saturating_sub(1);
        let headers: Vec<_> =
            parts.iter().enumerate().map(|(number, part)| part_header(length(part), number < last)).collect();
        let mut slices = Vec::new();
        for (header, part) in headers.iter().zip(parts) {
            slices.push(IoSlice::new(header));
            slices.extend(part.iter().map(|piece| IoSlice::new(piece)));
        }
        let mut rest = slices.as_mut_slice();
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match self.stream.write_vectored(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(taken) => IoSlice::advance_slices(&mut rest, taken),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for PushPeer {
    /// What is on its way arrives: a connection that is closed with something unread is cut off.
    fn drop(&mut self) {
        drop(self.hear());
        drop(self.stream.shutdown(std::net::Shutdown::Write));
    }
}
