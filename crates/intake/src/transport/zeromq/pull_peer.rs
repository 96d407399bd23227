//! A peer of a PULL socket: an address to connect to, or an incoming connection.

use std::net::{SocketAddr, TcpStream};

use nilometer_model::Nanos;

use super::{
    MessagePeer,
    hearing::Hearing,
    link::PullLink,
    looked::KEPT_LEAST,
    patience::{SENDER_STANDS, STRANGER_STANDS, Standstill},
    places::PlaceHolder,
};

/// The first byte of a ZeroMQ greeting.
const GREETING: u8 = 0xff;
/// Interval between looks at an unheard connection.
const UNHEARD_LOOK: Nanos = Nanos::from_millis(200);
/// How long a message waits for memory that others hold. Then it is refused.
const MEMORY_WAIT: Nanos = Nanos::from_millis(5_000);

/// An address to connect to, or an incoming connection.
#[derive(Debug)]
pub(super) struct PullPeer {
    /// The address it connects to. `None` if the other end connected.
    pub(super) to: Option<SocketAddr>,
    pub(super) peer: MessagePeer,
    pub(super) link: Option<PullLink<TcpStream>>,
    /// When the next attempt is made.
    pub(super) again: Nanos,
    /// It sent a message of the series.
    is_proven: bool,
    /// It is left unread.
    pub(super) is_unheard: bool,
    /// It was counted as an unheard connection that wants to send.
    is_counted: bool,
    /// When to look at it next, while it is unheard.
    unheard_look: Nanos,
    standstill: Standstill,
    /// How long its message has waited for memory.
    waited_for_memory: Nanos,
}

/// The result of a look at an unheard connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnheardPeer {
    /// Nothing new.
    Silent,
    /// It wants to send. This is reported once.
    WantsToSend,
    /// It is in the middle of a message, for which memory is held.
    InMessage,
    /// The connection ended.
    Gone,
}

impl PullPeer {
    /// Makes a peer to connect to.
    pub(super) fn to(to: SocketAddr) -> Self {
        PullPeer {
            to: Some(to),
            ..Self::of(MessagePeer { connection: 0, address: to.ip().to_canonical() }, None)
        }
    }

    /// Makes a peer of an incoming connection.
    pub(super) fn accepted(peer: MessagePeer, link: PullLink<TcpStream>, hearing: Hearing) -> Self {
        let is_unheard = hearing != Hearing::Heard;
        // A connection that the user did not allow was counted on arrival.
        let is_counted = hearing == Hearing::Never;
        PullPeer { is_unheard, is_counted, ..Self::of(peer, Some(link)) }
    }

    fn of(peer: MessagePeer, link: Option<PullLink<TcpStream>>) -> Self {
        PullPeer {
            to: None,
            peer,
            link,
            again: Nanos(0),
            is_proven: false,
            is_unheard: false,
            is_counted: false,
            unheard_look: Nanos(0),
            standstill: Standstill::default(),
            waited_for_memory: Nanos(0),
        }
    }

    /// Returns true if the user named it, or if it sent a message of the series.
    pub(super) fn is_trusted(&self) -> bool {
        self.to.is_some() || self.is_proven
    }

    /// Marks that it sent a message of the series.
    pub(super) fn prove(&mut self) {
        self.is_proven = true;
    }

    /// Ends the series: its peer is one of many that may begin the next.
    pub(super) fn begin_anew(&mut self, now: Nanos, is_unheard: bool) {
        self.is_proven = false;
        let was_unheard = std::mem::replace(&mut self.is_unheard, is_unheard);
        if was_unheard
            && !is_unheard
            && let Some(link) = &mut self.link
        {
            self.is_counted = false;
            // Its handshake waited for this.
            link.since = now;
        }
    }

    /// Its entry among the holders of places. `None` if this end connected, or the connection is over.
    pub(super) fn place(&self) -> Option<PlaceHolder> {
        let link = self.link.as_ref().filter(|_| self.to.is_none())?;
        Some(PlaceHolder {
            address: self.peer.address,
            is_trusted: self.is_proven,
            is_unheard: self.is_unheard,
            is_ready: link.is_ready(),
            since: link.since,
        })
    }

    /// Returns true if its message waits for room or memory.
    pub(super) fn wants_room(&self) -> bool {
        self.link.as_ref().is_some_and(PullLink::wants_room)
    }

    /// Returns true if its message holds memory of the receiver.
    pub(super) fn holds_room(&self) -> bool {
        self.link.as_ref().is_some_and(PullLink::holds_room)
    }

    /// Bytes that it keeps of its message in addition to that.
    pub(super) fn kept(&self) -> usize {
        self.link.as_ref().map_or(0, PullLink::kept)
    }

    /// Returns true if its message holds memory and has stood still for too long while others waited.
    pub(super) fn stands_too_long(&mut self, others_wait: bool, waited: Nanos) -> bool {
        let at_most = if self.is_trusted() { SENDER_STANDS } else { STRANGER_STANDS };
        let Some(link) = &self.link else { return false };
        let holds = link.holds_room() || link.kept() > KEPT_LEAST;
        if !others_wait || !holds || link.wants_room() {
            self.standstill.clear(link.bytes);
            return false;
        }
        self.standstill.is_too_long(waited, link.bytes, at_most)
    }

    /// Returns true if its message has waited for memory for too long.
    pub(super) fn lacks_memory_too_long(&mut self, waited: Nanos) -> bool {
        let waits = self.link.as_ref().is_some_and(PullLink::wants_memory);
        self.waited_for_memory = if waits { self.waited_for_memory + waited } else { Nanos(0) };
        self.waited_for_memory >= MEMORY_WAIT
    }

    /// Looks at it without reading.
    pub(super) fn look_unheard(&mut self, now: Nanos) -> UnheardPeer {
        let Some(link) = &self.link else { return UnheardPeer::Silent };
        if link.is_in_message() {
            return UnheardPeer::InMessage;
        }
        if now < self.unheard_look {
            return UnheardPeer::Silent;
        }
        self.unheard_look = now + UNHEARD_LOOK;
        let mut first = [0];
        match link.stream.peek(&mut first) {
            Ok(0) => UnheardPeer::Gone,
            Ok(_) if !self.is_counted && (link.is_ready() || first[0] == GREETING) => {
                self.is_counted = true;
                UnheardPeer::WantsToSend
            }
            Ok(_) => UnheardPeer::Silent,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => UnheardPeer::Silent,
            Err(_) => UnheardPeer::Gone,
        }
    }
}
