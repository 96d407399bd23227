//! Memory limits of a connection, and the results of a look at it.

use std::io;

use nilometer_wire::zmtp::ZmtpError;

use super::ZmqMessage;

/// Bytes of a message that every connection may keep, however much others keep. An image without its pixels
/// is smaller.
pub(super) const KEPT_LEAST: usize = 64 << 10;

/// The result of a look at a connection.
#[derive(Debug)]
pub(super) enum Looked {
    /// A message.
    Came(ZmqMessage),
    /// A message that exceeded the limits, or for which there was no memory.
    Refused(BeyondLimits),
    /// Nothing is available now.
    Nothing,
    /// There may be more; other connections come first.
    More,
    /// There is no room for the next bytes.
    Full,
}

/// Why a message is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BeyondLimits {
    /// It is longer than any message, or has more parts.
    Message,
    /// A long part of it is not pixels, and there is no memory for it.
    Memory,
}

/// How much of a message a connection may keep now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkAllowance {
    /// It sent a message of a series, or the user named it.
    pub(super) is_trusted: bool,
    /// It may use memory of the receiver.
    pub(super) may_take_room: bool,
    /// Maximum number of a message's strings in memory of the receiver. A good image has one for each
    /// channel.
    pub(super) strings: usize,
    /// Bytes of a message that it may keep now in addition.
    pub(super) kept_now: usize,
    /// The same if no other connection kept any. A message that needs more is refused.
    pub(super) kept_most: usize,
}

impl LinkAllowance {
    /// No limits.
    pub(super) const FULL: LinkAllowance = LinkAllowance {
        is_trusted: true,
        may_take_room: true,
        strings: usize::MAX,
        kept_now: usize::MAX,
        kept_most: usize::MAX,
    };
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// The other end closed it.
    #[error("the other end closed the connection")]
    Closed,
    /// The network failed.
    #[error(transparent)]
    Network(#[from] io::Error),
    /// The other end does not speak a protocol of a sender.
    #[error(transparent)]
    Protocol(#[from] ZmtpError),
    /// A message longer than any receiver would read.
    #[error("a message of {0} B")]
    Endless(u64),
}
