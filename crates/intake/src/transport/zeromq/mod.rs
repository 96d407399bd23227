//! Messages over TCP as ZeroMQ sends them, for detectors that stream: PULL takes them, PUSH sends them, as a simulator does.
//!
//! ```text
//! coming    PullLink (one a connection: ZMTP, long byte strings found) -> PullSocket -> ZmqMessage
//!                          | asks for memory: MessageRoom
//! leaving   OutgoingMessage, in pieces -> PushSocket -> the connections in turn, one message under way on each
//! ```
//!
//! Sockets of the kernel and no library: what is long in a message (the pixels of one channel of an image) is read from the
//! connection into memory that the receiver gives, a slot of its ring, and nowhere else before. Nothing is queued here: a
//! message that has no room is left in the kernel, and the sender waits.

mod endpoint;
mod hearing;
mod link;
mod looked;
mod message;
mod outgoing;
mod patience;
#[cfg(test)]
mod peer_tests;
mod places;
mod pull;
mod pull_peer;
mod push;
#[cfg(test)]
mod tests;

pub use endpoint::ZmqEndpoint;
pub use hearing::RefusedPeers;
pub use message::{MessagePeer, MessageRoom, RoomAnswer, RoomRequest, ZmqMessage};
pub use outgoing::{OutgoingMessage, OutgoingPiece, SharedBytes};
pub use pull::{PullSocket, ZmqCounts};
pub use push::PushSocket;

/// A byte string, or a part of a message behind the first, of so many bytes or more is given memory of its own.
pub const LONG_BYTES: u64 = 4096;

/// What a message may be. A larger one costs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageLimits {
    /// Bytes of all its parts.
    pub bytes: u64,
    /// Its parts.
    pub parts: usize,
    /// Bytes that are kept of all messages that are coming, without those that lie in memory of the receiver. A connection of
    /// somebody whom the user did not name has a half of it at the most.
    pub memory: u64,
}

impl Default for MessageLimits {
    /// The longest that detectors send are starts with masks and flat fields of all channels: 16 million pixels of 4 bytes each.
    fn default() -> Self {
        MessageLimits { bytes: 1 << 30, parts: 64, memory: 512 << 20 }
    }
}
