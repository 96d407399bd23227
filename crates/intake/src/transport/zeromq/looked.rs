//! What a connection may keep of a message, and what a look at it brings.

use std::io;

use nilometer_wire::zmtp::ZmtpError;

use super::ZmqMessage;

/// Bytes of a message that every connection may keep, whatever others keep: an image without its pixels is less.
pub(super) const KEPT_LEAST: usize = 64 << 10;

/// What a look at a connection brought.
#[derive(Debug)]
pub(super) enum Looked {
    /// A message.
    Came(ZmqMessage),
    /// One that was beyond the limits, or for which there was no memory.
    Refused(BeyondLimits),
    /// Nothing more is there now.
    Nothing,
    /// There may be more: others come first.
    More,
    /// What is there has no room.
    Full,
}

/// Why a message is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BeyondLimits {
    /// It is longer than any message, or has more parts.
    Message,
    /// What is long in it is not pixels, and has no memory.
    Memory,
}

/// How much of a message a connection may keep now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkAllowance {
    /// It brought something of a series, or the user named it.
    pub(super) is_trusted: bool,
    /// It may take memory of the receiver.
    pub(super) may_take_room: bool,
    /// Strings of a message that lie in memory of the receiver, at the most: a good image has one for each channel.
    pub(super) strings: usize,
    /// Bytes that it may keep of a message beside these, now.
    pub(super) kept_now: usize,
    /// The same, if nobody else kept any. A message that needs more is refused.
    pub(super) kept_most: usize,
}

impl LinkAllowance {
    /// All that there is.
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
    /// The network.
    #[error(transparent)]
    Network(#[from] io::Error),
    /// The other end is none that messages can come from.
    #[error(transparent)]
    Protocol(#[from] ZmtpError),
    /// A message that is longer than anybody would read.
    #[error("a message of {0} B")]
    Endless(u64),
}
