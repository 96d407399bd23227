//! ZMTP, the protocol of ZeroMQ on a TCP connection. Supports versions 3.0 and 3.1 with the mechanism NULL,
//! between PUSH and PULL, and from PUB to SUB.
//!
//! Source: rfc.zeromq.org, 23 (ZMTP 3.0) and 37 (ZMTP 3.1). Both ends send the same:
//!
//! ```text
//! greeting, 64 B   ff 8 padding 7f | major minor | mechanism, 20 B | as-server | 31 B of 0
//! READY            04 size | 05 "READY" | properties: size name, size (4 B) value; Socket-Type is one of them
//! messages         flags size | bytes        flags: 1 more parts follow, 2 the size has 8 B instead of 1
//! PING, PONG       commands of 3.1: a ping is answered with what it carries
//! SUBSCRIBE,       commands of 3.1: the first bytes of the messages that a subscriber wants. A subscriber of 3.0
//! CANCEL           sends a message instead: 1 or 0, and these bytes
//! ```
//!
//! Feed the decoder the received bytes, and it returns the next event. It never sees the bytes of messages,
//! because their reader knows the memory for them.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{ZmtpDecoder, ZmtpNext};
pub use encode::{GREETING_BYTES, cancel, greeting, part_header, ping, pong, ready, subscribe, subscription};

/// The type of a socket: the messages that it sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZmtpSocket {
    /// Sends each message to one of the connected ends.
    Push,
    /// Receives messages.
    Pull,
    /// Sends each message to all connected ends that have subscribed to it.
    Publish,
    /// Receives the messages that it subscribed to.
    Subscribe,
}

impl ZmtpSocket {
    /// The word on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            ZmtpSocket::Push => "PUSH",
            ZmtpSocket::Pull => "PULL",
            ZmtpSocket::Publish => "PUB",
            ZmtpSocket::Subscribe => "SUB",
        }
    }

    /// Returns the type that the other end must have.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            ZmtpSocket::Push => ZmtpSocket::Pull,
            ZmtpSocket::Pull => ZmtpSocket::Push,
            ZmtpSocket::Publish => ZmtpSocket::Subscribe,
            ZmtpSocket::Subscribe => ZmtpSocket::Publish,
        }
    }
}

/// The reason why a connection is unusable. Only this connection fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZmtpError {
    /// The first bytes are no ZMTP greeting.
    #[error("the other end does not speak ZMTP (byte {at} of its greeting)")]
    NotZmtp {
        /// Position of the wrong byte, from 0.
        at: usize,
    },
    /// The other end has an older version.
    #[error("the other end speaks ZMTP {major}; it must speak 3.0 or later")]
    Old {
        /// Major version of the other end.
        major: u8,
    },
    /// The other end requires another security mechanism.
    #[error("the other end wants the mechanism {mechanism:?}; NULL is spoken here")]
    Mechanism {
        /// Mechanism of the other end.
        mechanism: String,
    },
    /// The other end has the wrong socket type.
    #[error("the other end is a socket of type {is:?}; it must be {wanted}")]
    Socket {
        /// Type of the other end.
        is: String,
        /// The required type.
        wanted: &'static str,
    },
    /// The other end reports an error.
    #[error("the other end refuses: {reason:?}")]
    Refused {
        /// Its error message.
        reason: String,
    },
    /// A frame that is invalid at this point.
    #[error("{fault}")]
    Frame {
        /// The fault.
        fault: &'static str,
    },
}
