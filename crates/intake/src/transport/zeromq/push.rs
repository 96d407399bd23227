//! The end that sends messages: each to the next of those that are connected and have none under way.
//!
//! ```text
//! OutgoingMessage -> offer -> PushPeer (one message under way) -> kernel -> the other end, when it reads
//!                      ^ a connection that ends gives its message back: another one takes it, from its beginning
//! ```
//!
//! Only [`PushSocket::wait`] waits for the other end. A peer that takes nothing delays its own message and no
//! other. It stays connected while its machine answers, for hours if necessary: TCP keeps asking whether it
//! takes more.
//!
//! A dead process is noticed at once. A vanished machine is noticed after 25 s if no message is under way to
//! it. Otherwise it takes until the kernel has sent again often enough (`net.ipv4.tcp_retries2`, about 15
//! minutes).

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
};

use nilometer_model::Nanos;
use nilometer_storage::Clock;
use nilometer_wire::zmtp::{ZmtpDecoder, ZmtpNext, ZmtpSocket, greeting, pong, ready};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{
    ZmqEndpoint,
    outgoing::OutgoingMessage,
    pull::{begin_connecting, keep_alive},
};

/// Time between two attempts to connect, and the longest look at connections in `send`.
const AGAIN: Nanos = Nanos::from_millis(50);
/// Maximum number of incoming connections.
const ACCEPTED_MAX: usize = 64;
/// Time limit for the handshake: a peer that does not complete it frees its place for another.
const HANDSHAKE: Nanos = Nanos::from_millis(30_000);
/// Maximum number of reads from a peer in one turn, so that an endless sender does not keep others waiting.
const HEARD_IN_A_TURN: usize = 16;
/// Maximum bytes of answers that wait to be sent. A peer that asks without reading the answers gets none.
const ANSWERS_MAX: usize = 8 << 10;

/// A connection to a peer that takes messages.
#[derive(Debug)]
struct PushPeer {
    stream: TcpStream,
    decoder: ZmtpDecoder,
    ready: bool,
    /// Time limit for the handshake.
    ready_by: Nanos,
    /// The connection ended.
    gone: bool,
    /// The handshake and answers to heartbeats. They go before the next message.
    out: Vec<u8>,
    message: Option<OutgoingMessage>,
    /// Bytes of the message that the kernel has taken.
    written: usize,
}

/// A ZeroMQ PUSH socket.
#[derive(Debug)]
pub struct PushSocket {
    listener: Option<TcpListener>,
    to: Option<SocketAddr>,
    clock: Clock,
    /// When the next attempt to connect is due.
    again: Nanos,
    peers: Vec<PushPeer>,
    turn: usize,
    /// Messages whose connection ended before they were sent: they go before others.
    returned: VecDeque<OutgoingMessage>,
    /// Messages that the kernel took completely, in that order.
    sent: Vec<OutgoingMessage>,
    bytes: u64,
}

impl PushSocket {
    /// Listens at the endpoint, or connects when there is something to send.
    pub fn open(endpoint: ZmqEndpoint) -> io::Result<Self> {
        let (listener, to) = match endpoint {
            ZmqEndpoint::Bind(at) => (Some(TcpListener::bind(at)?), None),
            ZmqEndpoint::Connect(to) => (None, Some(to)),
        };
        if let Some(listener) = &listener {
            listener.set_nonblocking(true)?;
        }
        Ok(PushSocket {
            listener,
            to,
            clock: Clock::start(),
            again: Nanos(0),
            peers: Vec::new(),
            turn: 0,
            returned: VecDeque::new(),
            sent: Vec::new(),
            bytes: 0,
        })
    }

    /// The address at which it listens. `None`: it connects.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }

    /// Number of peers that take messages.
    pub fn connected(&self) -> usize {
        self.peers.iter().filter(|peer| peer.ready).count()
    }

    /// Bytes of messages that the kernel took, including those of incomplete messages.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Messages that are under way: some of them may be with the kernel already.
    pub fn under_way(&self) -> usize {
        self.peers.iter().filter(|peer| peer.message.is_some()).count() + self.returned.len()
    }

    /// Takes the messages that the kernel took completely since the last call.
    pub fn take_sent(&mut self) -> Vec<OutgoingMessage> {
        std::mem::take(&mut self.sent)
    }

    /// Gives up all messages under way, and returns them. Connections that sent part of one end.
    pub fn give_up(&mut self) -> Vec<OutgoingMessage> {
        let mut unsent: Vec<_> = self.returned.drain(..).collect();
        for peer in &mut self.peers {
            unsent.extend(peer.message.take());
        }
        self.peers.retain(|peer| peer.written == 0);
        unsent
    }

    /// Accepts and closes connections, and sends as much of the messages under way as the network takes now.
    pub fn tend(&mut self) -> io::Result<()> {
        self.accept()?;
        let now = self.clock.now();
        if let (Some(to), []) = (self.to, &self.peers[..])
            && now >= self.again
        {
            self.again = now + AGAIN;
            let begun = begin_connecting(to).map(|stream| PushPeer::new(stream, now + HANDSHAKE));
            self.peers.extend(begun.ok());
        }
        self.advance();
        while let Some(message) = self.returned.pop_front() {
            if let Some(message) = self.hand_over(message)? {
                self.returned.push_front(message);
                break;
            }
        }
        Ok(())
    }

    /// Hands a message to the next peer in turn that is free and takes bytes now. Returns the message if
    /// there is none.
    pub fn offer(&mut self, message: OutgoingMessage) -> io::Result<Option<OutgoingMessage>> {
        if self.returned.is_empty() { self.hand_over(message) } else { Ok(Some(message)) }
    }

    /// Waits until something changes, at most for `at_most`. `more`: a message waits to be handed over.
    pub fn wait(&self, more: bool, at_most: Nanos) -> io::Result<()> {
        let more = more || !self.returned.is_empty();
        let flags = |peer: &PushPeer| {
            let sends = peer.wants_to_send() || more && peer.is_free();
            if sends { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
        };
        let peers = self.peers.iter().map(|peer| PollFd::from_borrowed_fd(peer.stream.as_fd(), flags(peer)));
        let listener = self.listener.as_ref();
        let listener = listener.map(|listener| PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN));
        let mut waited: Vec<_> = peers.chain(listener).collect();
        let connects = self.to.is_some() && self.peers.is_empty();
        let at_most = if connects { at_most.min(AGAIN) } else { at_most };
        let time = at_most.duration();
        let timeout = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
        match poll(&mut waited, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a message of these parts, each of pieces that need not touch, and waits until the kernel has
    /// taken it.
    ///
    /// Returns false if no peer took it within `waits` looks of 50 ms.
    pub fn send(&mut self, parts: &[&[&[u8]]], waits: u32) -> io::Result<bool> {
        let mut message = Some(OutgoingMessage::copied(parts));
        let mut looks = 0;
        loop {
            self.tend()?;
            if let Some(waiting) = message.take() {
                message = self.offer(waiting)?;
            }
            if message.is_none() && self.under_way() == 0 {
                self.sent.clear();
                return Ok(true);
            }
            if self.peers.iter().all(|peer| peer.message.is_none()) {
                looks += 1;
            }
            if looks > waits {
                self.returned.clear();
                return Ok(false);
            }
            self.wait(message.is_some(), AGAIN)?;
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Some(listener) = &self.listener {
            match listener.accept() {
                Ok(_) if self.peers.len() >= ACCEPTED_MAX => {}
                Ok((stream, _)) => {
                    self.peers.extend(PushPeer::accepted(stream, self.clock.now() + HANDSHAKE).ok());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads and sends on every connection. Connections that ended give their message back.
    fn advance(&mut self) {
        let mut ended = false;
        let now = self.clock.now();
        for peer in &mut self.peers {
            let before = peer.written;
            let advanced = peer.hear().and_then(|()| peer.check_handshake(now)).and_then(|()| peer.write());
            self.bytes += (peer.written - before) as u64;
            if advanced.is_err() {
                self.returned.extend(peer.message.take());
                ended = true;
            } else if peer.message.as_ref().is_some_and(|message| message.length() == peer.written) {
                self.sent.extend(peer.message.take());
                peer.written = 0;
            }
            peer.gone = advanced.is_err();
        }
        if ended {
            self.peers.retain(|peer| !peer.gone);
        }
    }

    fn hand_over(&mut self, message: OutgoingMessage) -> io::Result<Option<OutgoingMessage>> {
        let Some(number) = self.next_that_takes()? else { return Ok(Some(message)) };
        self.peers[number].message = Some(message);
        self.advance();
        Ok(None)
    }

    /// The next peer in turn that has no message under way and takes bytes at once.
    fn next_that_takes(&mut self) -> io::Result<Option<usize>> {
        let flags = |peer: &PushPeer| if peer.is_free() { PollFlags::OUT } else { PollFlags::empty() };
        let waited = self.peers.iter().map(|peer| PollFd::from_borrowed_fd(peer.stream.as_fd(), flags(peer)));
        let mut waited: Vec<_> = waited.collect();
        match poll(&mut waited, Some(&Timespec::default())) {
            Err(rustix::io::Errno::INTR) => return Ok(None),
            polled => polled?,
        };
        let takes: Vec<bool> = waited.iter().map(|fd| fd.revents().contains(PollFlags::OUT)).collect();
        let in_turn = (1..=takes.len()).map(|step| (self.turn + step) % takes.len());
        let next = in_turn.into_iter().find(|number| takes[*number]);
        self.turn = next.unwrap_or(self.turn);
        Ok(next)
    }
}

impl PushPeer {
    /// A connection that another end made.
    fn accepted(stream: TcpStream, ready_by: Nanos) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        keep_alive(&stream)?;
        Ok(PushPeer::new(stream, ready_by))
    }

    fn new(stream: TcpStream, ready_by: Nanos) -> Self {
        PushPeer {
            stream,
            decoder: ZmtpDecoder::new(ZmtpSocket::Push),
            ready: false,
            ready_by,
            gone: false,
            out: greeting().to_vec(),
            message: None,
            written: 0,
        }
    }

    fn is_free(&self) -> bool {
        self.ready && self.message.is_none() && self.out.is_empty()
    }

    fn wants_to_send(&self) -> bool {
        self.message.is_some() || !self.out.is_empty()
    }

    /// Reads from the other end, without waiting for it.
    fn hear(&mut self) -> io::Result<()> {
        let mut buffer = [0; 512];
        for _ in 0..HEARD_IN_A_TURN {
            let came = match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(came) => came,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let mut rest = &buffer[..came];
            while !rest.is_empty() {
                let (used, next) = self.decoder.feed(rest).map_err(io::Error::other)?;
                rest = &rest[used..];
                self.obey(next)?;
            }
        }
        Ok(())
    }

    fn check_handshake(&self, now: Nanos) -> io::Result<()> {
        if self.ready || now < self.ready_by { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
    }

    fn obey(&mut self, next: ZmtpNext) -> io::Result<()> {
        match next {
            ZmtpNext::Greeted => self.out.extend(ready(ZmtpSocket::Push)),
            ZmtpNext::Ready => self.ready = true,
            ZmtpNext::Ping { context } if self.out.len() < ANSWERS_MAX => self.out.extend(pong(&context)),
            ZmtpNext::More | ZmtpNext::Command | ZmtpNext::Ping { .. } => {}
            ZmtpNext::Part { .. } => return Err(io::Error::other("one that takes messages sends one")),
        }
        Ok(())
    }

    /// Sends as much as the network takes. Answers go between messages.
    fn write(&mut self) -> io::Result<()> {
        while self.written == 0 && !self.out.is_empty() {
            match taken(self.stream.write(&self.out))? {
                Some(taken) => drop(self.out.drain(..taken)),
                None => return Ok(()),
            }
        }
        let Some(message) = &self.message else { return Ok(()) };
        while self.written < message.length() {
            let rest = message.behind(self.written);
            match taken(self.stream.write_vectored(&rest))? {
                Some(taken) => self.written += taken,
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

/// Number of bytes that the kernel took; `None` if it takes none now.
fn taken(written: io::Result<usize>) -> io::Result<Option<usize>> {
    match written {
        Ok(0) => Err(ErrorKind::WriteZero.into()),
        Ok(taken) => Ok(Some(taken)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Some(0)),
        Err(error) => Err(error),
    }
}

impl Drop for PushPeer {
    /// Reads the rest, so that bytes on their way arrive: the kernel resets a connection that is closed with
    /// unread bytes.
    fn drop(&mut self) {
        drop(self.hear());
    }
}
