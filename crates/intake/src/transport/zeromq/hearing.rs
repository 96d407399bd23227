//! Decides which connections the socket hears. The logic is pure: it decides by addresses alone.
//!
//! The user names the senders (`--allow`), or hears everybody (`--allow any`). Without either, the socket
//! hears only the address that begins a series, until this series is over.
//!
//! Others may connect meanwhile and get no answer. A ZeroMQ sender sends nothing before the answer, so it
//! loses nothing. The socket hears it when the series is over.

use std::{fmt, net::IpAddr};

use super::super::Allowed;

/// Maximum number of addresses listed.
const NAMED_MAX: usize = 16;

/// Unheard connections, and their addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefusedPeers {
    /// Number of connections.
    pub connections: u64,
    /// Their addresses, each once: the first [`NAMED_MAX`].
    pub addresses: Vec<IpAddr>,
}

impl RefusedPeers {
    /// Counts a connection.
    pub(super) fn note(&mut self, address: IpAddr) {
        self.add(1, &[address]);
    }

    /// Counts connections from these addresses.
    pub(crate) fn add(&mut self, connections: u64, addresses: &[IpAddr]) {
        self.connections += connections;
        for address in addresses {
            if self.addresses.len() < NAMED_MAX && !self.addresses.contains(address) {
                self.addresses.push(*address);
            }
        }
    }
}

/// Writes for example `3 connections from 10.0.0.7, 10.0.0.9`.
impl fmt::Display for RefusedPeers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<_> = self.addresses.iter().map(IpAddr::to_string).collect();
        let connections = if self.connections == 1 { "connection" } else { "connections" };
        write!(formatter, "{} {connections} from {}", self.connections, addresses.join(", "))
    }
}

/// How a new connection is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hearing {
    /// It is read.
    Heard,
    /// It is left unread until the current series is over.
    Later,
    /// It is never read: the user named other addresses.
    Never,
}

/// The addresses that a socket hears.
#[derive(Debug, Default)]
pub(super) struct HeardPeers {
    allowed: Allowed,
    /// The address whose series is being recorded.
    sender: Option<IpAddr>,
}

impl HeardPeers {
    pub(super) fn new(allowed: Allowed) -> Self {
        HeardPeers { allowed, sender: None }
    }

    /// How a connection from this address is treated.
    pub(super) fn of(&self, address: IpAddr) -> Hearing {
        match (&self.allowed, self.sender) {
            (Allowed::Any, _) | (Allowed::First, None) => Hearing::Heard,
            (Allowed::First, Some(sender)) if sender == address => Hearing::Heard,
            (Allowed::First, Some(_)) => Hearing::Later,
            (Allowed::Named(_), _) if self.allowed.names(address) => Hearing::Heard,
            (Allowed::Named(_), _) => Hearing::Never,
        }
    }

    /// Returns true if the user named this address.
    pub(super) fn names(&self, address: IpAddr) -> bool {
        self.allowed.names(address)
    }

    /// Begins a series from this address.
    pub(super) fn begin(&mut self, sender: IpAddr) {
        self.sender.get_or_insert(sender);
    }

    /// Ends the series: any address may begin the next.
    pub(super) fn end(&mut self) {
        self.sender = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [127, 0, 0, last].into()
    }

    #[test]
    fn the_address_that_begins_a_series_is_the_only_one_heard_until_its_end() {
        let mut heard = HeardPeers::new(Allowed::First);
        assert_eq!((heard.of(address(1)), heard.of(address(2))), (Hearing::Heard, Hearing::Heard));
        heard.begin(address(2));
        heard.begin(address(1));
        assert_eq!((heard.of(address(1)), heard.of(address(2))), (Hearing::Later, Hearing::Heard));
        heard.end();
        heard.begin(address(1));
        assert_eq!((heard.of(address(1)), heard.of(address(2))), (Hearing::Heard, Hearing::Later));
    }

    #[test]
    fn whom_the_user_names_is_heard_whoever_began() {
        let named = Allowed::Named(vec![address(1).into(), address(2).into()]);
        for (allowed, third) in [(named, Hearing::Never), (Allowed::Any, Hearing::Heard)] {
            let mut heard = HeardPeers::new(allowed);
            heard.begin(address(1));
            assert_eq!((heard.of(address(2)), heard.of(address(3))), (Hearing::Heard, third));
        }
    }

    #[test]
    fn every_connection_is_counted_and_some_addresses_are_told() {
        let mut refused = RefusedPeers::default();
        (0..40).chain(0..40).for_each(|last| refused.note(address(last)));
        assert_eq!((refused.connections, refused.addresses.len()), (80, NAMED_MAX));
        assert_eq!(refused.addresses[..2], [address(0), address(1)]);
        let mut one = RefusedPeers::default();
        one.note(address(9));
        assert_eq!(one.to_string(), "1 connection from 127.0.0.9");
        one.add(2, &[address(9), address(8)]);
        assert_eq!(one.to_string(), "3 connections from 127.0.0.9, 127.0.0.8");
    }
}
