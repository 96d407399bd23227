//! The end that takes messages, on any number of connections, in turn. It connects again when a connection ends.

use std::{
    io::{self, ErrorKind},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    time::Duration,
};

use nilometer_model::Nanos;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{AddressFamily, SocketFlags, SocketType, sockopt},
};

use super::{
    MessageLimits, MessageRoom, ZmqEndpoint, ZmqMessage,
    link::{Looked, PullLink},
};

/// Connections that others made, at the most.
const ACCEPTED_MAX: usize = 64;
/// A connection on which no handshake came to an end for so long is given up.
const HANDSHAKE: Nanos = Nanos::from_millis(10_000);
/// From the end of a connection to the next attempt.
const AGAIN: Nanos = Nanos::from_millis(100);
/// While a string waits for room, it is looked for so often.
const ROOM_LOOK: Nanos = Nanos::from_millis(1);
/// A connection on which nothing comes is asked whether it is there after so long, so often, so many times.
const ALIVE_AFTER: Duration = Duration::from_secs(10);
const ALIVE_EACH: Duration = Duration::from_secs(5);
const ALIVE_TIMES: u32 = 3;

/// What was counted on all connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ZmqCounts {
    /// Messages that came, without those that were refused.
    pub messages: u64,
    /// Bytes that came, with headers.
    pub bytes: u64,
    /// Messages beyond the limits.
    pub too_large: u64,
    /// Messages that ended with their connection.
    pub cut_off: u64,
    /// Connections that are ready now.
    pub connected: usize,
    /// Connections that were ready, and ended.
    pub ended: u64,
    /// Why the last connection ended, or none came about.
    pub fault: Option<String>,
}

/// A place to connect to, or a connection that another end made.
#[derive(Debug)]
struct PullPeer {
    /// None if the other end connected.
    to: Option<SocketAddr>,
    link: Option<PullLink<TcpStream>>,
    /// When the next attempt is made.
    again: Nanos,
}

/// See the module.
#[derive(Debug)]
pub struct PullSocket {
    listeners: Vec<TcpListener>,
    peers: Vec<PullPeer>,
    /// The peer that is looked at first.
    turn: usize,
    limits: MessageLimits,
    /// Publishers are subscribed to.
    publishers: bool,
    counts: ZmqCounts,
}

impl PullSocket {
    /// Takes messages from all of these. An address that can't be waited at is an error; one that nobody waits at is tried again
    /// and again.
    pub fn open(endpoints: &[ZmqEndpoint], limits: MessageLimits) -> io::Result<Self> {
        let mut listeners = Vec::new();
        let mut peers = Vec::new();
        for endpoint in endpoints {
            match endpoint {
                ZmqEndpoint::Bind(at) => {
                    let listener = TcpListener::bind(at)
                        .map_err(|error| io::Error::new(error.kind(), format!("{endpoint}: {error}")))?;
                    listener.set_nonblocking(true)?;
                    listeners.push(listener);
                }
                ZmqEndpoint::Connect(to) => {
                    peers.push(PullPeer { to: Some(*to), link: None, again: Nanos(0) });
                }
            }
        }
        let counts = ZmqCounts::default();
        Ok(PullSocket { listeners, peers, turn: 0, limits, publishers: false, counts })
    }

    /// The same, of senders that publish too: each connection is PULL or SUB, as suits the other end.
    pub fn open_to_publishers(endpoints: &[ZmqEndpoint], limits: MessageLimits) -> io::Result<Self> {
        Ok(PullSocket { publishers: true, ..Self::open(endpoints, limits)? })
    }

    fn link(&self, stream: TcpStream, now: Nanos) -> PullLink<TcpStream> {
        let link = PullLink::new(stream, self.limits, now);
        if self.publishers { link.of_publishers_too() } else { link }
    }

    /// Where it waits for others.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// What was counted so far.
    pub fn counted(&self) -> ZmqCounts {
        let ready = |peer: &&PullPeer| peer.link.as_ref().is_some_and(PullLink::is_ready);
        let open = self.peers.iter().filter_map(|peer| peer.link.as_ref());
        ZmqCounts {
            connected: self.peers.iter().filter(ready).count(),
            bytes: self.counts.bytes + open.map(|link| link.bytes).sum::<u64>(),
            ..self.counts.clone()
        }
    }

    /// The next message, of whichever connection. None if none is whole within this time; it may return sooner. A connection
    /// that fails is none of the caller's business: an error is one that none would come after.
    pub fn receive(
        &mut self,
        now: Nanos,
        at_most: Nanos,
        room: &mut dyn MessageRoom,
    ) -> io::Result<Option<ZmqMessage>> {
        self.connect(now);
        self.accept(now)?;
        let message = self.look(now, room);
        if message.is_none() {
            self.wait(now, at_most)?;
        }
        Ok(message)
    }

    /// Looks at each connection, up to a message.
    fn look(&mut self, now: Nanos, room: &mut dyn MessageRoom) -> Option<ZmqMessage> {
        for _ in 0..self.peers.len() {
            self.turn = (self.turn + 1) % self.peers.len();
            let Some(link) = &mut self.peers[self.turn].link else { continue };
            let fault = match link.look(room) {
                Ok(Looked::Came(message)) => {
                    self.counts.messages += 1;
                    return Some(message);
                }
                Ok(Looked::Refused) => {
                    self.counts.too_large += 1;
                    continue;
                }
                Ok(Looked::Nothing | Looked::Full)
                    if link.is_ready() || now.since(link.since) < HANDSHAKE =>
                {
                    continue;
                }
                Ok(Looked::Nothing | Looked::Full) => "no handshake in 10 s".to_owned(),
                Err(error) => error.to_string(),
            };
            self.end(self.turn, now, fault, room);
        }
        self.peers.retain(|peer| peer.to.is_some() || peer.link.is_some());
        None
    }

    /// A connection is over.
    fn end(&mut self, peer: usize, now: Nanos, fault: String, room: &mut dyn MessageRoom) {
        let peer = &mut self.peers[peer];
        peer.again = now + AGAIN;
        let Some(mut link) = peer.link.take() else { return };
        self.counts.cut_off += u64::from(link.give_up(room));
        self.counts.ended += u64::from(link.is_ready());
        self.counts.bytes += link.bytes;
        self.counts.fault = Some(match peer.to {
            Some(to) => format!("tcp://{to}: {fault}"),
            None => fault,
        });
    }

    /// Begins connections that are due.
    fn connect(&mut self, now: Nanos) {
        for peer in 0..self.peers.len() {
            let PullPeer { to, link, again } = &self.peers[peer];
            let Some(to) = to.filter(|_| link.is_none() && now >= *again) else { continue };
            match begin_connecting(to) {
                Ok(stream) => self.peers[peer].link = Some(self.link(stream, now)),
                Err(error) => {
                    self.peers[peer].again = now + AGAIN;
                    self.counts.fault = Some(format!("tcp://{to}: {error}"));
                }
            }
        }
    }

    /// Takes the connections that others made.
    fn accept(&mut self, now: Nanos) -> io::Result<()> {
        for listener in &self.listeners {
            loop {
                let stream = match listener.accept() {
                    Ok((stream, _)) => stream,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // Those that went away again before they were taken.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                let accepted = self.peers.iter().filter(|peer| peer.to.is_none()).count();
                if accepted >= ACCEPTED_MAX {
                    self.counts.fault = Some(format!("more than {ACCEPTED_MAX} connections"));
                    continue;
                }
                stream.set_nonblocking(true)?;
                keep_alive(&stream)?;
                let link = self.link(stream, now);
                self.peers.push(PullPeer { to: None, link: Some(link), again: now });
            }
        }
        Ok(())
    }

    /// Until something comes, or can be sent, or an attempt to connect is due, or for so long.
    fn wait(&self, now: Nanos, at_most: Nanos) -> io::Result<()> {
        let mut at_most = at_most;
        let mut waited = Vec::new();
        for listener in &self.listeners {
            waited.push(PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN));
        }
        for peer in &self.peers {
            match &peer.link {
                None => at_most = at_most.min(peer.again.since(now)),
                Some(link) if link.wants_room() => at_most = at_most.min(ROOM_LOOK),
                Some(link) => {
                    let sends = if link.wants_to_send() { PollFlags::OUT } else { PollFlags::empty() };
                    waited.push(PollFd::from_borrowed_fd(link.stream.as_fd(), PollFlags::IN | sends));
                }
            }
        }
        let time = at_most.duration();
        let timeout = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
        match poll(&mut waited, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A connection that comes about by itself, or fails when it is looked at.
pub(super) fn begin_connecting(to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    keep_alive(&stream)?;
    Ok(stream)
}

/// A connection whose other end vanished without a word ends too.
pub(super) fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, ALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, ALIVE_EACH)?;
    sockopt::set_tcp_keepcnt(stream, ALIVE_TIMES)?;
    Ok(())
}
