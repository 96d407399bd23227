//! A socket that takes messages from any number of connections, in turn. It reconnects when a connection
//! ends.
//!
//! Anybody may connect to a listening socket, so there are limits:
//!
//! - on connections, in all and for each address ([`super::places`]);
//! - on memory kept of messages ([`MessageLimits::memory`]) and given by the receiver
//!   ([`STRANGERS_WITH_ROOM`]);
//! - on the time that a message may hold memory and stand still while others wait ([`super::patience`]).
//!
//! A connection that sent a message of the current series gets more.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    time::Duration,
};

use nilometer_model::Nanos;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{AddressFamily, SocketFlags, SocketType, sockopt},
};

use super::{
    super::Allowed,
    MessageLimits, MessagePeer, MessageRoom, RefusedPeers, ZmqEndpoint, ZmqMessage,
    hearing::{HeardPeers, Hearing},
    link::PullLink,
    looked::{BeyondLimits, KEPT_LEAST, LinkAllowance, Looked},
    patience::LookClock,
    places::{FoundPlace, PlaceHolder, find_place},
    pull_peer::{PullPeer, UnheardPeer},
};

/// Connections accepted at a look. In between, the socket reads the existing ones, however many others
/// connect.
const ACCEPTED_AT_ONCE: usize = 16;
/// Number of strangers whose messages may hold memory of the receiver at the same time. A stranger's first
/// good image ends that state.
const STRANGERS_WITH_ROOM: usize = 2;
/// Long strings of an image in addition to its pixels, such as data of the user.
const OTHER_STRINGS: usize = 4;
/// Time limit for the handshake of a connection.
const HANDSHAKE: Nanos = Nanos::from_millis(10_000);
/// Time from the end of a connection to the next attempt.
const AGAIN: Nanos = Nanos::from_millis(100);
/// Interval at which it asks again for room, while a string waits for it.
const ROOM_LOOK: Nanos = Nanos::from_millis(1);
/// TCP keepalive: the idle time before the first probe, the interval between probes, and their number.
const ALIVE_AFTER: Duration = Duration::from_secs(10);
const ALIVE_EACH: Duration = Duration::from_secs(5);
const ALIVE_TIMES: u32 = 3;

/// The counters of all connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ZmqCounts {
    /// Messages received, without those refused.
    pub messages: u64,
    /// Bytes received, with headers.
    pub bytes: u64,
    /// Messages beyond the limits.
    pub too_large: u64,
    /// Messages for which there was no memory.
    pub no_memory: u64,
    /// Messages that ended with their connection.
    pub cut_off: u64,
    /// Connections that were closed because their message held memory and stood still while others waited.
    pub stalled: u64,
    /// Connections that were closed or refused because there were too many.
    pub crowded: u64,
    /// Connections from addresses that the user did not name. Nothing was read from them.
    pub refused: RefusedPeers,
    /// Connections that wanted to send while the series of another address was being recorded.
    pub unheard: RefusedPeers,
    /// Connections that are ready and heard now.
    pub connected: usize,
    /// Connections that were ready, and ended.
    pub ended: u64,
    /// Why the last connection ended or failed.
    pub fault: Option<String>,
}

impl ZmqCounts {
    /// Connections that were refused or not heard, by reason.
    pub fn refused_connections(&self) -> [(&'static str, u64); 4] {
        [
            ("not allowed", self.refused.connections),
            ("beside the sender of the series", self.unheard.connections),
            ("too many", self.crowded),
            ("stood still", self.stalled),
        ]
    }

    /// The addresses of unheard connections, each once.
    pub fn not_heard(&self) -> Vec<IpAddr> {
        let mut all = self.refused.addresses.clone();
        all.extend(self.unheard.addresses.iter().filter(|address| !self.refused.addresses.contains(address)));
        all
    }
}

/// A ZeroMQ PULL socket.
#[derive(Debug)]
pub struct PullSocket {
    listeners: Vec<TcpListener>,
    peers: Vec<PullPeer>,
    /// The last peer looked at. The next look begins with the one after it.
    turn: usize,
    limits: MessageLimits,
    /// True if it also subscribes to publishers.
    publishers: bool,
    heard: HeardPeers,
    /// Channels of the series. An image has a long string for each.
    channels: usize,
    /// Number of connections so far.
    connections: u64,
    clock: LookClock,
    /// When connections are accepted again, after an error.
    accept_again: Nanos,
    counts: ZmqCounts,
}

impl PullSocket {
    /// Takes messages from all of these endpoints.
    ///
    /// An address at which it can't listen is an error. An address that refuses its connection is tried again
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
                    peers.push(PullPeer::to(*to));
                }
            }
        }
        Ok(PullSocket {
            listeners,
            peers,
            turn: 0,
            limits,
            publishers: false,
            heard: HeardPeers::new(Allowed::Any),
            channels: usize::MAX,
            connections: 0,
            clock: LookClock::default(),
            accept_again: Nanos(0),
            counts: ZmqCounts::default(),
        })
    }

    /// Limits incoming connections to these senders.
    #[must_use]
    pub fn allowing(self, allowed: Allowed) -> Self {
        PullSocket { heard: HeardPeers::new(allowed), ..self }
    }

    /// Begins a series with a message of this connection. Its images have `channels` channels. Unless the
    /// user named the senders, the socket hears no other address until the series is over.
    pub fn begin_series(&mut self, peer: MessagePeer, channels: usize) {
        self.heard.begin(peer.address);
        self.channels = channels;
        self.prove(peer);
        for other in self.peers.iter_mut().filter(|other| other.to.is_none()) {
            other.is_unheard = self.heard.of(other.peer.address) != Hearing::Heard;
        }
    }

    /// Marks a connection that sent a message of the series.
    pub fn prove(&mut self, peer: MessagePeer) {
        let found = self.peers.iter_mut().find(|found| found.peer == peer && found.to.is_none());
        found.into_iter().for_each(PullPeer::prove);
    }

    /// Ends the series: the socket hears all allowed addresses again.
    pub fn end_series(&mut self, now: Nanos) {
        self.heard.end();
        self.channels = usize::MAX;
        for peer in &mut self.peers {
            let is_unheard = peer.to.is_none() && self.heard.of(peer.peer.address) != Hearing::Heard;
            peer.begin_anew(now, is_unheard);
        }
    }

    /// The same, but senders may also be publishers: each connection becomes PULL or SUB, as suits the other
    /// end.
    pub fn open_to_publishers(endpoints: &[ZmqEndpoint], limits: MessageLimits) -> io::Result<Self> {
        Ok(PullSocket { publishers: true, ..Self::open(endpoints, limits)? })
    }

    fn link(&self, stream: TcpStream, now: Nanos) -> PullLink<TcpStream> {
        let link = PullLink::new(stream, self.limits, now);
        if self.publishers { link.of_publishers_too() } else { link }
    }

    /// The addresses at which it listens.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// Resets all counters: each recording has its own.
    pub fn count_anew(&mut self) {
        self.counts = ZmqCounts::default();
        for link in self.peers.iter_mut().filter_map(|peer| peer.link.as_mut()) {
            link.bytes = 0;
        }
    }

    /// The counters so far.
    pub fn counted(&self) -> ZmqCounts {
        let ready = |peer: &&PullPeer| !peer.is_unheard && peer.link.as_ref().is_some_and(PullLink::is_ready);
        let open = self.peers.iter().filter_map(|peer| peer.link.as_ref());
        ZmqCounts {
            connected: self.peers.iter().filter(ready).count(),
            bytes: self.counts.bytes + open.map(|link| link.bytes).sum::<u64>(),
            ..self.counts.clone()
        }
    }

    /// Returns the next message of any connection. `None`: none is complete within this time; it may return
    /// sooner.
    ///
    /// # Errors Only if no message can arrive any more. The failure of one connection is none.
    pub fn receive(
        &mut self,
        now: Nanos,
        at_most: Nanos,
        room: &mut dyn MessageRoom,
    ) -> io::Result<Option<ZmqMessage>> {
        self.connect(now);
        self.accept(now, room)?;
        self.give_up_standing(now, room);
        let message = self.look(now, room);
        if message.is_none() {
            self.wait(now, at_most)?;
        }
        Ok(message)
    }

    /// Looks at each connection, until one has a message.
    fn look(&mut self, now: Nanos, room: &mut dyn MessageRoom) -> Option<ZmqMessage> {
        for _ in 0..self.peers.len() {
            self.turn = (self.turn + 1) % self.peers.len();
            let message = if self.peers[self.turn].is_unheard {
                self.look_unheard(self.turn, now, room);
                None
            } else {
                self.look_at(self.turn, now, room)
            };
            if message.is_some() {
                return message;
            }
        }
        self.peers.retain(|peer| peer.to.is_some() || peer.link.is_some());
        None
    }

    fn look_at(&mut self, at: usize, now: Nanos, room: &mut dyn MessageRoom) -> Option<ZmqMessage> {
        let allowance = self.allowance(at);
        let peer = &mut self.peers[at];
        let link = peer.link.as_mut()?;
        link.allowance = allowance;
        let fault = match link.look(room) {
            Ok(Looked::Came(mut message)) => {
                self.counts.messages += 1;
                message.peer = Some(peer.peer);
                return Some(message);
            }
            Ok(Looked::Refused(BeyondLimits::Message)) => {
                self.counts.too_large += 1;
                return None;
            }
            Ok(Looked::Refused(BeyondLimits::Memory)) => {
                self.counts.no_memory += 1;
                return None;
            }
            Ok(Looked::Nothing | Looked::More | Looked::Full)
                if link.is_ready() || now.since(link.since) < HANDSHAKE =>
            {
                return None;
            }
            Ok(Looked::Nothing | Looked::More | Looked::Full) => "no handshake in 10 s".to_owned(),
            Err(error) => error.to_string(),
        };
        self.end(at, now, fault, room);
        None
    }

    /// Looks at an unheard connection while the recorder takes the series of another address.
    fn look_unheard(&mut self, at: usize, now: Nanos, room: &mut dyn MessageRoom) {
        let peer = &mut self.peers[at];
        let address = peer.peer.address;
        match peer.look_unheard(now) {
            UnheardPeer::Silent => {}
            UnheardPeer::WantsToSend => self.counts.unheard.note(address),
            UnheardPeer::InMessage => {
                self.counts.unheard.note(address);
                let fault = format!("ignored {address}: the recorder takes the series of another address");
                self.end(at, now, fault, room);
            }
            UnheardPeer::Gone => self.end(at, now, "the other end closed the connection".to_owned(), room),
        }
    }

    /// How much a connection may keep of its message now.
    fn allowance(&self, at: usize) -> LinkAllowance {
        let peer = &self.peers[at];
        let is_trusted = peer.is_trusted();
        let all = usize::try_from(self.limits.memory).unwrap_or(usize::MAX);
        let is_named = is_trusted || self.heard.names(peer.peer.address);
        let most = if is_named { all } else { all / 2 };
        let kept: usize = self.peers.iter().map(PullPeer::kept).sum();
        let left = all.saturating_sub(kept - peer.kept());
        let strangers = self.peers.iter().filter(|peer| !peer.is_trusted() && peer.holds_room());
        LinkAllowance {
            is_trusted,
            may_take_room: is_trusted || peer.holds_room() || strangers.count() < STRANGERS_WITH_ROOM,
            strings: if is_trusted { usize::MAX } else { self.channels.saturating_add(OTHER_STRINGS) },
            kept_now: left.min(most).max(KEPT_LEAST),
            kept_most: most.max(KEPT_LEAST),
        }
    }

    /// Ends connections whose message stands still while others wait for its memory. Refuses messages that
    /// waited for memory too long.
    fn give_up_standing(&mut self, now: Nanos, room: &mut dyn MessageRoom) {
        let waited = self.clock.look(now);
        let others_wait = room.is_awaited() || self.peers.iter().any(PullPeer::wants_room);
        for at in 0..self.peers.len() {
            let peer = &mut self.peers[at];
            if peer.stands_too_long(others_wait, waited) {
                self.counts.stalled += 1;
                let address = peer.peer.address;
                let fault = format!("{address}: a message stood still while others waited for its memory");
                self.end(at, now, fault, room);
            } else if peer.lacks_memory_too_long(waited)
                && let Some(link) = &mut peer.link
            {
                link.refuse_message(BeyondLimits::Memory, room);
            }
        }
    }

    /// Ends a connection.
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
            let PullPeer { to, link, again, .. } = &self.peers[peer];
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

    /// Accepts connections.
    fn accept(&mut self, now: Nanos, room: &mut dyn MessageRoom) -> io::Result<()> {
        if now < self.accept_again {
            return Ok(());
        }
        for listener in 0..self.listeners.len() {
            for _ in 0..ACCEPTED_AT_ONCE {
                match self.listeners[listener].accept() {
                    Ok((stream, from)) => self.admit(stream, from.ip().to_canonical(), now, room),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if is_of_listener(&error) => return Err(error),
                    // The connection ended before it was accepted, or this machine's limits are reached.
                    Err(error) => {
                        self.counts.fault = Some(error.to_string());
                        self.accept_again = now + AGAIN;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Keeps a connection or closes it. A connection that the user does not allow is kept unheard, because it
    /// would return at once if it were closed.
    fn admit(&mut self, stream: TcpStream, address: IpAddr, now: Nanos, room: &mut dyn MessageRoom) {
        let hearing = self.heard.of(address);
        if hearing == Hearing::Never {
            self.counts.refused.note(address);
        }
        // A connection that has already ended fails here.
        if stream.set_nonblocking(true).and_then(|()| keep_alive(&stream)).is_err() {
            return;
        }
        let is_unheard = hearing != Hearing::Heard;
        let held: Vec<(usize, PlaceHolder)> =
            self.peers.iter().enumerate().filter_map(|(at, peer)| Some((at, peer.place()?))).collect();
        let holders: Vec<_> = held.iter().map(|(_, holder)| *holder).collect();
        let place = find_place(address, is_unheard, &holders);
        if place != FoundPlace::Free {
            self.counts.crowded += 1;
        }
        self.connections += 1;
        let peer = MessagePeer { connection: self.connections, address };
        let newcomer = PullPeer::accepted(peer, self.link(stream, now), hearing);
        match place {
            FoundPlace::Free => self.peers.push(newcomer),
            FoundPlace::Instead(index) => {
                let at = held[index].0;
                self.end(at, now, format!("too many connections: one of {address} took its place"), room);
                self.peers[at] = newcomer;
            }
            FoundPlace::Nowhere => self.counts.fault = Some(format!("{address}: too many connections")),
        }
    }

    /// Waits until bytes arrive or can be sent, or an attempt to connect is due, at most for `at_most`.
    fn wait(&self, now: Nanos, at_most: Nanos) -> io::Result<()> {
        let mut at_most = at_most;
        let mut waited = Vec::new();
        if now < self.accept_again {
            at_most = at_most.min(self.accept_again.since(now));
        }
        for listener in self.listeners.iter().filter(|_| now >= self.accept_again) {
            waited.push(PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN));
        }
        for peer in self.peers.iter().filter(|peer| !peer.is_unheard) {
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

/// Returns true if the listener itself is broken, so that no connection can arrive any more.
fn is_of_listener(error: &io::Error) -> bool {
    let broken = [rustix::io::Errno::BADF, rustix::io::Errno::INVAL, rustix::io::Errno::NOTSOCK];
    broken.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Begins to connect. The connection completes by itself, or fails at the next look.
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

/// Sets TCP keepalive, so that a connection ends if the other machine vanished.
pub(super) fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, ALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, ALIVE_EACH)?;
    sockopt::set_tcp_keepcnt(stream, ALIVE_TIMES)?;
    Ok(())
}
