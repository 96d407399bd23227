//! The end that sends messages: each to the next of those that are connected and have none under way.
//!
//! ```text
//! OutgoingMessage -> offer -> SendingPeer (one message under way) -> kernel -> the other end, when it reads
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
    io::{self, ErrorKind},
    net::{SocketAddr, TcpListener},
    os::fd::AsFd,
};

use nilometer_model::Nanos;
use nilometer_storage::Clock;
use nilometer_wire::zmtp::ZmtpSocket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{
    ZmqEndpoint,
    outgoing::OutgoingMessage,
    pull::begin_connecting,
    sending_peer::{HANDSHAKE, SendingPeer},
};

/// Time between two attempts to connect, and the longest look at connections in `send`.
const AGAIN: Nanos = Nanos::from_millis(50);
/// Maximum number of incoming connections.
const ACCEPTED_MAX: usize = 64;

/// A ZeroMQ PUSH socket.
#[derive(Debug)]
pub struct PushSocket {
    listener: Option<TcpListener>,
    to: Option<SocketAddr>,
    clock: Clock,
    /// When the next attempt to connect is due.
    again: Nanos,
    peers: Vec<SendingPeer>,
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
        Ok(PushSocket { listener, to, ..PushSocket::connecting(None) })
    }

    /// Connects to this address when there is something to send.
    pub(crate) fn connecting(to: Option<SocketAddr>) -> Self {
        PushSocket {
            listener: None,
            to,
            clock: Clock::start(),
            again: Nanos(0),
            peers: Vec::new(),
            turn: 0,
            returned: VecDeque::new(),
            sent: Vec::new(),
            bytes: 0,
        }
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
            let begun = begin_connecting(to)
                .map(|stream| SendingPeer::new(stream, ZmtpSocket::Push, now + HANDSHAKE));
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
        let flags = |peer: &SendingPeer| {
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
                    self.peers.extend(
                        SendingPeer::accepted(stream, ZmtpSocket::Push, self.clock.now() + HANDSHAKE).ok(),
                    );
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
            let advanced = peer.advance(now);
            self.bytes += (peer.written - before) as u64;
            if advanced.is_err() {
                self.returned.extend(peer.message.take());
                ended = true;
            } else {
                self.sent.extend(peer.take_sent());
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
        let flags = |peer: &SendingPeer| if peer.is_free() { PollFlags::OUT } else { PollFlags::empty() };
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
