//! ZeroMQ messages over TCP, for detectors that stream: PULL receives them, PUSH sends them, as a simulator
//! does, and PUB shows them to viewers.
//!
//! ```text
//! coming    PullLink (one a connection: ZMTP, long byte strings found) -> PullSocket -> ZmqMessage
//!                          | asks for memory: MessageRoom
//! leaving   OutgoingMessage, in pieces -> PushSocket -> the connections in turn, one message under way on each
//!                                        -> PublishSocket -> every subscriber that is free
//! ```
//!
//! It uses the kernel's sockets and no ZeroMQ library. It reads long parts of a message, such as the pixels
//! of one channel of an image, directly into a slot of the receiver's ring.
//!
//! Nothing is queued here: a message without room stays in the kernel, and the sender waits.

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
mod publish;
mod pull;
mod pull_peer;
mod push;
mod sending_peer;
#[cfg(test)]
mod tests;
mod topics;

pub use endpoint::ZmqEndpoint;
pub use hearing::RefusedPeers;
pub use message::{MessagePeer, MessageRoom, RoomAnswer, RoomRequest, ZmqMessage};
pub use outgoing::{OutgoingMessage, OutgoingPiece, SharedBytes};
pub use publish::{PublishCounts, PublishSocket, SEND_BUFFER, SUBSCRIBERS_MAX};
pub use pull::{PullSocket, ZmqCounts};
pub use push::PushSocket;

/// Minimum length of a byte string, or of a part after the first, that gets its own memory.
pub const LONG_BYTES: u64 = 4096;

/// Limits for a message. A larger one is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageLimits {
    /// Maximum bytes in all its parts.
    pub bytes: u64,
    /// Maximum number of parts.
    pub parts: usize,
    /// Maximum bytes kept of all incoming messages, not counting those in memory of the receiver. A
    /// connection that the user did not name gets at most half of it.
    pub memory: u64,
}

impl Default for MessageLimits {
    /// Detectors' longest messages are starts with masks and flat fields of all channels: 16 million pixels
    /// of 4 bytes each.
    fn default() -> Self {
        MessageLimits { bytes: 1 << 30, parts: 64, memory: 512 << 20 }
    }
}
