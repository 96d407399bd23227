//! ZMTP, the protocol of ZeroMQ on a TCP connection: versions 3.0 and 3.1 with the mechanism NULL, between PUSH and PULL, and
//! of what a publisher says to SUB.
//!
//! Source: rfc.zeromq.org, 23 (ZMTP 3.0) and 37 (ZMTP 3.1). Both ends send the same:
//!
//! ```text
//! greeting, 64 B   ff 8 padding 7f | major minor | mechanism, 20 B | as-server | 31 B of 0
//! READY            04 size | 05 "READY" | properties: size name, size (4 B) value; Socket-Type is one of them
//! messages         flags size | bytes        flags: 1 more parts follow, 2 the size has 8 B instead of 1
//! PING, PONG       commands of 3.1: a ping is answered with what it carries
//! ```
//!
//! The decoder is fed what came and says what is next. It never sees the bytes of messages: whoever reads them knows where they
//! are to lie.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{ZmtpDecoder, ZmtpNext};
pub use encode::{GREETING_BYTES, greeting, part_header, ping, pong, ready, subscription};

/// What is sent and what is taken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZmtpSocket {
    /// Sends messages, each to one of those that are connected.
    Push,
    /// Takes messages.
    Pull,
    /// Sends messages, each to all that are connected and subscribed to it.
    Publish,
    /// Takes those that it subscribed to.
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

    /// What the other end has to be.
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

/// Why a connection is of no use. It costs this connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZmtpError {
    /// The first bytes are not those of ZMTP.
    #[error("the other end does not speak ZMTP (byte {at} of its greeting)")]
    NotZmtp {
        /// Counted from 0.
        at: usize,
    },
    /// An older version.
    #[error("the other end speaks ZMTP {major}; 3.0 or later is wanted")]
    Old {
        /// As it says.
        major: u8,
    },
    /// A mechanism of security that is not spoken here.
    #[error("the other end wants the mechanism {mechanism:?}; NULL is spoken here")]
    Mechanism {
        /// As it says.
        mechanism: String,
    },
    /// A socket of another type.
    #[error("the other end is a socket of type {is:?}; {wanted} is wanted")]
    Socket {
        /// As it says.
        is: String,
        /// The only one that makes sense.
        wanted: &'static str,
    },
    /// The other end says that something is wrong.
    #[error("the other end refuses: {reason:?}")]
    Refused {
        /// In its words.
        reason: String,
    },
    /// A frame that makes no sense at its place.
    #[error("{fault}")]
    Frame {
        /// What is wrong.
        fault: &'static str,
    },
}
