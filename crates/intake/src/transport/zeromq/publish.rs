//! The end that publishes messages: each goes to every subscriber that is free, and to no other.
//!
//! ```text
//! publish -> SendingPeer, SendingPeer, ... (one message under way on each) -> kernel -> subscribers
//!               a subscriber whose last message is still under way misses this one
//! ```
//!
//! Nothing waits for a subscriber, and nothing is queued for it. All peers share the bytes of a message.

use std::{
    collections::BTreeSet,
    io,
    net::TcpStream,
    os::fd::{AsFd, BorrowedFd},
};

use nilometer_model::Nanos;
use nilometer_storage::Clock;
use nilometer_wire::zmtp::ZmtpSocket;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::sockopt,
};

use super::{
    outgoing::{OutgoingMessage, OutgoingPiece, SharedBytes},
    sending_peer::{HANDSHAKE, SendingPeer},
};

/// The most subscribers at once.
pub const SUBSCRIBERS_MAX: usize = 16;
/// Bytes that the kernel keeps for a subscriber, as this end asks for. Linux takes twice as many (socket(7)).
pub const SEND_BUFFER: usize = 1 << 20;

/// Counts of a publisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PublishCounts {
    /// Messages offered to subscribers.
    pub messages: u64,
    /// Messages that the kernel took completely, counted for each subscriber.
    pub sent: u64,
    /// Messages that a subscriber did not get, counted for each subscriber.
    pub dropped: u64,
    /// Connections that this end closed, because their message was too old.
    pub closed: u64,
}

/// A ZeroMQ PUB socket. The caller accepts its connections.
#[derive(Debug)]
pub struct PublishSocket {
    clock: Clock,
    peers: Vec<SendingPeer>,
    counts: PublishCounts,
}

impl Default for PublishSocket {
    fn default() -> Self {
        PublishSocket { clock: Clock::start(), peers: Vec::new(), counts: PublishCounts::default() }
    }
}

impl PublishSocket {
    /// Takes a connection in. With as many subscribers as it may have, it closes this one.
    pub fn admit(&mut self, stream: TcpStream) {
        if self.peers.len() >= SUBSCRIBERS_MAX
            || sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER).is_err()
        {
            return;
        }
        let ready_by = self.clock.now() + HANDSHAKE;
        self.peers.extend(SendingPeer::accepted(stream, ZmtpSocket::Publish, ready_by).ok());
    }

    /// Number of peers that subscribed to anything.
    pub fn subscribers(&self) -> usize {
        self.peers.iter().filter(|peer| peer.topics.is_subscribed()).count()
    }

    /// The counts so far.
    pub fn counts(&self) -> PublishCounts {
        self.counts
    }

    /// Number of different messages that are under way.
    pub fn under_way(&self) -> usize {
        let tags = self.peers.iter().filter_map(|peer| Some(peer.message.as_ref()?.tag));
        tags.collect::<BTreeSet<_>>().len()
    }

    /// Reads subscriptions and sends, without waiting. Ends connections that failed.
    pub fn tend(&mut self) {
        let now = self.clock.now();
        for peer in &mut self.peers {
            peer.gone = peer.advance(now).is_err();
            self.counts.sent += u64::from(peer.take_sent().is_some());
        }
        let unsent = self.peers.iter().filter(|peer| peer.gone && peer.message.is_some());
        self.counts.dropped += unsent.count() as u64;
        self.peers.retain(|peer| !peer.gone);
    }

    /// Gives a message of two parts to each subscriber that is free. The others miss it.
    pub fn publish(&mut self, head: &[u8], body: &SharedBytes) {
        self.counts.messages += 1;
        let tag = self.counts.messages;
        for peer in self.peers.iter_mut().filter(|peer| peer.topics.wants(head)) {
            if peer.is_free() {
                let head = vec![OutgoingPiece::Made(head.to_vec())];
                let body = vec![OutgoingPiece::Shared(body.clone())];
                peer.message = Some(OutgoingMessage::new(tag, vec![head, body]));
            } else {
                self.counts.dropped += 1;
            }
        }
        self.tend();
    }

    /// Closes the connections that still send the oldest message. Their subscribers may connect again.
    pub fn close_slowest(&mut self) {
        let tag = |peer: &SendingPeer| peer.message.as_ref().map(|message| message.tag);
        let Some(oldest) = self.peers.iter().filter_map(tag).min() else { return };
        let before = self.peers.len();
        self.peers.retain(|peer| tag(peer) != Some(oldest));
        let closed = (before - self.peers.len()) as u64;
        self.counts.closed += closed;
        self.counts.dropped += closed;
    }

    /// Waits until a peer or the listener has news, at most for `at_most`.
    pub fn wait(&self, listener: BorrowedFd<'_>, at_most: Nanos) -> io::Result<()> {
        let flags = |peer: &SendingPeer| {
            if peer.wants_to_send() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
        };
        let peers = self.peers.iter().map(|peer| PollFd::from_borrowed_fd(peer.stream.as_fd(), flags(peer)));
        let listener = PollFd::from_borrowed_fd(listener, PollFlags::IN);
        let mut waited: Vec<_> = peers.chain([listener]).collect();
        let time = at_most.duration();
        let timeout = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
        match poll(&mut waited, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
