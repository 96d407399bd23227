//! Limits the number of connections. The logic is pure: it gets a list of connections and names the one to
//! close for a newcomer.
//!
//! There is a limit for all connections and one for each address. Connections that sent no message of a
//! series never keep a newcomer out: one of them is closed. It prefers, in this order, an unheard one, one of
//! the address that has most, one without a handshake, the oldest.
//!
//! A detector therefore finds a place among any number of strangers, and one address can't take the places of
//! others.

use std::{cmp::Reverse, net::IpAddr};

use nilometer_model::Nanos;

/// Maximum number of incoming connections.
pub(super) const ACCEPTED_MAX: usize = 64;
/// Maximum number of incoming connections from one address.
pub(super) const OF_ADDRESS_MAX: usize = 32;

/// An incoming connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlaceHolder {
    pub(super) address: IpAddr,
    /// It sent a message of a series and keeps its place.
    pub(super) is_trusted: bool,
    /// It is left unread.
    pub(super) is_unheard: bool,
    /// The handshake is complete.
    pub(super) is_ready: bool,
    /// When it began.
    pub(super) since: Nanos,
}

/// The place for a newcomer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundPlace {
    /// There is a free place.
    Free,
    /// The place of the holder with this index, which is closed.
    Instead(usize),
    /// There is none: all holders keep their places.
    Nowhere,
}

/// Looks for a place for a connection from this address.
pub(super) fn find_place(newcomer: IpAddr, is_unheard: bool, holders: &[PlaceHolder]) -> FoundPlace {
    let count_of = |address: IpAddr| holders.iter().filter(|holder| holder.address == address).count();
    let is_address_full = count_of(newcomer) >= OF_ADDRESS_MAX;
    if !is_address_full && holders.len() < ACCEPTED_MAX {
        return FoundPlace::Free;
    }
    let may_go = |holder: &PlaceHolder| {
        let gives_way = !holder.is_trusted && (holder.is_unheard || !is_unheard);
        gives_way && (!is_address_full || holder.address == newcomer)
    };
    let rank = |holder: &PlaceHolder| {
        (!holder.is_unheard, Reverse(count_of(holder.address)), holder.is_ready, holder.since)
    };
    let candidates = holders.iter().enumerate().filter(|(_, holder)| may_go(holder));
    let least = candidates.min_by_key(|(_, holder)| rank(holder));
    least.map_or(FoundPlace::Nowhere, |(at, _)| FoundPlace::Instead(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(last: u8, since: u64) -> PlaceHolder {
        let address = [127, 0, 0, last].into();
        PlaceHolder { address, is_trusted: false, is_unheard: false, is_ready: true, since: Nanos(since) }
    }

    fn address(last: u8) -> IpAddr {
        [127, 0, 0, last].into()
    }

    #[test]
    fn a_newcomer_takes_the_place_of_a_stranger_of_the_address_that_has_most() {
        let mut holders: Vec<_> = (0..20).map(|at| holder(1, at)).collect();
        holders.extend((0..44).map(|at| holder(2 + at as u8 / 22, 100 - at)));
        assert_eq!(holders.len(), ACCEPTED_MAX);
        // Addresses 2 and 3 have 22 each. The oldest of these goes, which is the last.
        assert_eq!(find_place(address(9), false, &holders), FoundPlace::Instead(63));
        holders[30].is_ready = false;
        assert_eq!(find_place(address(9), false, &holders), FoundPlace::Instead(30));
        holders[0].is_unheard = true;
        assert_eq!(find_place(address(9), false, &holders), FoundPlace::Instead(0));
        holders.pop();
        assert_eq!(find_place(address(9), false, &holders), FoundPlace::Free);
    }

    #[test]
    fn an_address_takes_no_place_of_others() {
        let mut holders: Vec<_> = (0..OF_ADDRESS_MAX as u64).map(|at| holder(1, 50 + at)).collect();
        holders.push(holder(2, 0));
        assert_eq!(find_place(address(1), false, &holders), FoundPlace::Instead(0));
        assert_eq!(find_place(address(2), false, &holders), FoundPlace::Free);
        for holder in &mut holders {
            holder.is_trusted = true;
        }
        assert_eq!(find_place(address(1), false, &holders), FoundPlace::Nowhere);
    }

    #[test]
    fn who_is_not_heard_closes_nobody_who_is() {
        let mut holders: Vec<_> = (0..ACCEPTED_MAX as u64).map(|at| holder(at as u8, at)).collect();
        assert_eq!(find_place(address(200), true, &holders), FoundPlace::Nowhere);
        holders[40].is_unheard = true;
        assert_eq!(find_place(address(200), true, &holders), FoundPlace::Instead(40));
        holders[40].is_trusted = true;
        assert_eq!(find_place(address(200), true, &holders), FoundPlace::Nowhere);
    }
}
