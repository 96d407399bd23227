//! The senders from which a port takes packets: named ones, everybody, or those that sent the first packets
//! of the stream.
//!
//! Instruments send from one address or from a few. Each module of a detector may send to its own port, and
//! several boards of a digital backend to the same one. Within the first second the port learns each address
//! at its 64th packet of the stream.
//!
//! A sender that begins later is a stranger, unless the others were silent for a while. The port thus follows
//! an instrument that got another address, and forgets no sender that it knew. Until it knows a sender, it
//! hears everybody.

use std::net::{IpAddr, SocketAddr};

use nilometer_model::Nanos;

use super::super::{Allowed, PortSenders, SenderId};

/// Number of packets of the stream that make a sender known.
const ENOUGH: u64 = 64;
/// How long the port learns further senders after the first.
const LEARN: Nanos = Nanos::from_millis(1000);
/// Silence of all known senders after which the port learns others.
const SILENT: Nanos = Nanos::from_millis(2000);
/// Maximum for known senders at a port, and for candidates.
const MOST: usize = 256;

/// The senders of a port.
#[derive(Debug)]
pub(super) struct Senders {
    allowed: Allowed,
    known: Vec<IpAddr>,
    /// Packets of the stream from other addresses, while these may become known.
    seen: Vec<(IpAddr, u64)>,
    /// When the first sender became known.
    since: Option<Nanos>,
    /// When a known sender last sent a packet.
    heard: Nanos,
    learns: bool,
}

impl Senders {
    pub(super) fn new(allowed: &Allowed) -> Self {
        let known = Vec::new();
        let learns = *allowed == Allowed::First;
        Senders { allowed: allowed.clone(), known, seen: Vec::new(), since: None, heard: Nanos(0), learns }
    }

    /// Returns true if the user named the senders, which excludes all others.
    pub(super) fn are_named(&self) -> bool {
        matches!(self.allowed, Allowed::Named(_))
    }

    /// Returns true if the port may learn senders. It then takes each message by itself.
    pub(super) fn learns(&self) -> bool {
        self.learns
    }

    pub(super) fn hears(&self, sender: Option<IpAddr>) -> bool {
        let is_known =
            || sender.is_some_and(|sender| self.known.contains(&sender) || self.allowed.names(sender));
        self.allowed == Allowed::Any || self.learns || is_known()
    }

    /// Learns from a look that brought this many packets of the stream from `sender`. If the port hears no
    /// others, these may be from several known senders.
    pub(super) fn came(&mut self, now: Nanos, sender: Option<IpAddr>, packets: u64) {
        if self.allowed != Allowed::First {
            return;
        }
        if let Some(sender) = sender.filter(|_| packets > 0) {
            if self.known.contains(&sender) {
                self.heard = now;
            } else if self.learns {
                self.learn(now, sender, packets);
            }
        }
        let is_over = self.since.is_some_and(|since| now.since(since) >= LEARN);
        self.learns = !is_over || now.since(self.heard) >= SILENT;
        if !self.learns {
            self.seen.clear();
        }
    }

    fn learn(&mut self, now: Nanos, sender: IpAddr, packets: u64) {
        let at = self.seen.iter().position(|(seen, _)| *seen == sender).unwrap_or_else(|| {
            self.seen.truncate(MOST - 1);
            self.seen.push((sender, 0));
            self.seen.len() - 1
        });
        self.seen[at].1 += packets;
        if self.seen[at].1 >= ENOUGH && self.known.len() < MOST {
            self.known.push(self.seen.remove(at).0);
            self.since.get_or_insert(now);
            self.heard = now;
        }
    }

    /// Forgets all senders, since packets so far are not part of the recording.
    pub(super) fn forget(&mut self) {
        *self = Senders::new(&self.allowed);
    }
}

/// Number of senders that are counted one by one at a port. All others share one number.
const COUNTED: usize = 255;

/// Number of packets from each sender to a port, by address and port. Two boards of one machine count
/// separately.
#[derive(Debug, Default)]
pub(super) struct HeardSenders {
    senders: Vec<(SocketAddr, u64)>,
    /// The last sender: most often the next packet is from the same one.
    last: usize,
}

impl HeardSenders {
    /// Counts packets of a sender and returns its number.
    #[inline]
    pub(super) fn count(&mut self, sender: Option<SocketAddr>, packets: u64) -> SenderId {
        let Some(sender) = sender else { return SenderId::default() };
        let is_it = |(heard, _): &(SocketAddr, u64)| *heard == sender;
        if !self.senders.get(self.last).is_some_and(is_it) {
            let found = self.senders.iter().position(is_it);
            if found.is_none() && self.senders.len() < COUNTED {
                self.senders.push((sender, 0));
            }
            self.last = found.unwrap_or(self.senders.len() - 1);
            if found.is_none() && !is_it(&self.senders[self.last]) {
                return SenderId(COUNTED as u16);
            }
        }
        self.senders[self.last].1 += packets;
        SenderId(self.last as u16)
    }

    /// The address of a sender.
    pub(super) fn address(&self, sender: SenderId) -> Option<SocketAddr> {
        self.senders.get(usize::from(sender.0)).map(|(address, _)| *address)
    }

    /// All addresses, in the order of their first packets.
    pub(super) fn addresses(&self) -> impl ExactSizeIterator<Item = SocketAddr> {
        self.senders.iter().map(|(address, _)| *address)
    }

    /// The sender of all packets so far. `None` if there are several, or none.
    pub(super) fn sole(&self) -> Option<SenderId> {
        (self.senders.len() == 1).then_some(SenderId(0))
    }

    /// Returns the two that sent most, and the number of senders with at least [`ENOUGH`] packets.
    pub(super) fn summary(&self) -> PortSenders {
        let mut most: Vec<_> = self.senders.iter().filter(|(_, count)| *count >= ENOUGH).collect();
        most.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let named = |at: usize| most.get(at).map(|(sender, _)| *sender);
        PortSenders { count: most.len() as u32, most: [named(0), named(1)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn heard(senders: &Senders) -> Vec<u8> {
        (1..9).filter(|last| senders.hears(Some(address(*last)))).collect()
    }

    #[test]
    fn those_that_send_the_stream_at_first_are_its_senders() {
        let mut senders = Senders::new(&Allowed::First);
        senders.came(Nanos(0), Some(address(7)), 2);
        assert_eq!(heard(&senders).len(), 8, "nobody is known");
        // Two boards, one of which begins a little later.
        senders.came(Nanos(MS), Some(address(1)), 64);
        (0..8).for_each(|at| senders.came(Nanos((500 + at) * MS), Some(address(2)), 8));
        senders.came(Nanos(1000 * MS), Some(address(8)), 63);
        senders.came(Nanos(1002 * MS), Some(address(1)), 1);
        assert_eq!(heard(&senders), [1, 2], "others sent too little");
        senders.came(Nanos(1003 * MS), Some(address(3)), 1000);
        assert_eq!(heard(&senders), [1, 2]);
    }

    #[test]
    fn an_instrument_that_got_another_address_is_followed() {
        let mut senders = Senders::new(&Allowed::First);
        senders.came(Nanos(0), Some(address(1)), 64);
        senders.came(Nanos(1500 * MS), Some(address(1)), 5);
        senders.came(Nanos(3499 * MS), None, 0);
        assert_eq!(heard(&senders), [1]);
        senders.came(Nanos(3500 * MS), None, 0);
        senders.came(Nanos(3501 * MS), Some(address(4)), 100);
        senders.came(Nanos(3502 * MS), Some(address(4)), 1);
        assert_eq!(heard(&senders), [1, 4], "and the other is not forgotten");
        senders.forget();
        assert_eq!(heard(&senders).len(), 8);
    }

    #[test]
    fn who_is_named_is_heard_and_nobody_else_is_learned() {
        let mut senders = Senders::new(&Allowed::Named(vec!["::ffff:10.0.0.2".parse().expect("an address")]));
        senders.came(Nanos(0), Some(address(3)), 1000);
        assert_eq!((heard(&senders), senders.hears(None)), (vec![2], false));
        let any = Senders::new(&Allowed::Any);
        assert!(any.hears(None) && !any.are_named());
    }
}
