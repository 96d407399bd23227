//! Several addresses that one thread listens at: ports, addresses of this machine, and groups. Their packets
//! become one recording, on one clock.
//!
//! A look takes the packets of one socket, and the next look begins with the next socket. A sender keeps its
//! number at all of them, so a stream that a sender spreads over several addresses stays one stream. Its
//! packets leave their order by as much as one look brings; looks are short for this reason.
//!
//! Boards often send to a port each. While a socket has heard only one sender, the receiver prepares spots in
//! the stream of that sender, and the kernel writes the packets of the next look there.

use std::{io, net::SocketAddr};

use nilometer_model::Nanos;

use super::{
    super::{Received, SenderId, Transport, TransportCounts},
    receive::{Listening, UdpInlet, have_packets, wait_for_any},
    senders::HeardSenders,
};
use crate::assembly::Spot;

/// Packets of a look. The reorder window has to hold those of one look at each other socket.
const LOOK: usize = 64;

/// Several sockets, each at an address of its own.
#[derive(Debug)]
pub struct UdpTogether {
    inlets: Vec<UdpInlet>,
    /// The socket of the last look.
    last: usize,
    /// The sender of all packets of each socket so far. `None` if there are several, or none.
    sole: Vec<Option<SenderId>>,
    /// The sockets that may still have packets in this round, which ends when none has.
    waiting: Vec<bool>,
    /// The senders at all sockets.
    heard: HeardSenders,
    /// The senders of the packets of the last look.
    from: Vec<SenderId>,
}

impl UdpTogether {
    /// Opens a socket at each of these addresses.
    ///
    /// # Errors
    /// An address is not one of this machine, or its port is taken.
    pub fn open(addresses: &[Listening]) -> io::Result<Self> {
        let opened = addresses.iter().map(|listening| {
            let named =
                |error: io::Error| io::Error::new(error.kind(), format!("udp://{}: {error}", listening.at));
            UdpInlet::open(listening).map_err(named)
        });
        let mut inlets = opened.collect::<io::Result<Vec<_>>>()?;
        for inlet in &mut inlets {
            inlet.take_at_most(LOOK);
        }
        let waiting = vec![true; inlets.len()];
        let sole = vec![None; inlets.len()];
        Ok(UdpTogether { inlets, last: 0, sole, waiting, heard: HeardSenders::default(), from: Vec::new() })
    }

    /// The addresses at which it listens.
    ///
    /// # Errors
    /// The kernel does not know the address of a socket.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.inlets.iter().map(UdpInlet::address).collect()
    }

    /// The socket of the next look. It begins a round if no socket has packets.
    fn next(&self) -> usize {
        let after = (self.last + 1..).take(self.inlets.len()).map(|socket| socket % self.inlets.len());
        let first = (self.last + 1) % self.inlets.len();
        after.into_iter().find(|socket| self.waiting[*socket]).unwrap_or(first)
    }

    /// Asks which sockets have packets now: some may have come behind the last look at a socket.
    fn find_waiting(&mut self) -> io::Result<()> {
        let inlets: Vec<&UdpInlet> = self.inlets.iter().collect();
        self.waiting = have_packets(&inlets)?;
        Ok(())
    }

    /// Takes packets of one socket.
    fn look(&mut self, spots: &mut [Spot<'_>]) -> io::Result<Received> {
        let received = self.inlets[self.last].receive(spots)?;
        self.waiting[self.last] = received.more;
        if !self.waiting.contains(&true) {
            self.find_waiting()?;
        }
        Ok(Received { more: self.waiting.contains(&true), ..received })
    }

    /// Gives the senders of the last look their numbers among the senders at all sockets.
    fn number_senders(&mut self) {
        self.from.clear();
        let inlet = &self.inlets[self.last];
        for run in inlet.senders().chunk_by(|one, next| one == next) {
            let sender = self.heard.count(inlet.sender(run[0]), run.len() as u64);
            self.from.extend(std::iter::repeat_n(sender, run.len()));
        }
        self.sole[self.last] = inlet.next_sender().and(self.from.first().copied());
    }
}

impl Transport for UdpTogether {
    fn receive(&mut self, spots: &mut [Spot<'_>]) -> io::Result<Received> {
        let most = spots.len().min(LOOK);
        let expected = self.next_sender();
        if !self.waiting.contains(&true) {
            self.waiting.fill(true);
        }
        while self.waiting.contains(&true) {
            self.last = self.next();
            // The spots belong to the stream of the expected sender.
            let is_expected = self.sole[self.last] == expected;
            let received = self.look(if is_expected { &mut spots[..most] } else { &mut [] })?;
            if received.packets() > 0 || received.dropped > 0 {
                self.number_senders();
                return Ok(received);
            }
        }
        self.from.clear();
        Ok(Received::default())
    }

    fn next_sender(&self) -> Option<SenderId> {
        self.sole[self.next()]
    }

    fn take_at_most(&mut self, packets: usize) {
        for inlet in &mut self.inlets {
            inlet.take_at_most(packets.min(LOOK));
        }
    }

    fn accepted(&mut self, now: Nanos, packets: u64) {
        self.inlets[self.last].accepted(now, packets);
    }

    fn aside(&self, number: usize) -> &[u8] {
        self.inlets[self.last].aside(number)
    }

    fn senders(&self) -> &[SenderId] {
        &self.from
    }

    fn sender(&self, sender: SenderId) -> Option<SocketAddr> {
        self.heard.address(sender)
    }

    fn discard(&mut self) -> io::Result<()> {
        self.heard = HeardSenders::default();
        self.sole.fill(None);
        self.inlets.iter_mut().try_for_each(UdpInlet::discard)
    }

    fn wait(&mut self, at_most: Nanos) -> io::Result<()> {
        let inlets: Vec<&UdpInlet> = self.inlets.iter().collect();
        wait_for_any(&inlets, at_most)
    }

    fn room(&self) -> u64 {
        self.inlets.iter().map(UdpInlet::room).min().unwrap_or(0)
    }

    fn counted(&self) -> TransportCounts {
        let counted = self.inlets.iter().map(UdpInlet::counted);
        let all = counted.fold(TransportCounts::default(), TransportCounts::and);
        TransportCounts { senders: self.heard.summary(), ..all }
    }

    fn bytes(&self) -> u64 {
        self.inlets.iter().map(UdpInlet::bytes).sum()
    }

    fn sockets(&self) -> u64 {
        self.inlets.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    const WAIT: Nanos = Nanos::from_millis(20_000);

    fn opened(count: usize) -> (UdpTogether, Vec<SocketAddr>) {
        let any = Listening::at((Ipv4Addr::LOCALHOST, 0).into());
        let together = UdpTogether::open(&vec![any; count]).expect("ports are free");
        let places = together.addresses().expect("all are bound");
        (together, places)
    }

    fn sender() -> UdpSocket {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free")
    }

    #[test]
    fn several_addresses_are_a_proper_transport() {
        crate::conformance::transport_suite(&mut || {
            let (inlet, places) = opened(3);
            let socket = sender();
            let send = move |packet: &[u8]| {
                assert_eq!(socket.send_to(packet, places[1]).expect("sent"), packet.len());
            };
            (Box::new(inlet), Box::new(send))
        });
    }

    /// The next look that brings a packet, with one spot of this length. Returns true if the packet lies there.
    fn lies_in_spot(inlet: &mut UdpTogether, length: usize) -> bool {
        loop {
            let mut body = vec![0; length];
            let received = inlet.receive(&mut [Spot { prefix: &mut [], body: &mut body }]).expect("it looks");
            if received.packets() > 0 {
                return received.spots == 1;
            }
            inlet.wait(WAIT).expect("it waits");
        }
    }

    #[test]
    fn spots_are_for_the_sender_that_is_expected() {
        let (mut inlet, places) = opened(2);
        inlet.discard().expect("nothing waits");
        let senders = [sender(), sender()];
        assert_eq!(inlet.next_sender(), None, "nobody was heard");
        for (socket, place) in senders.iter().zip(&places) {
            // The next look is at the other socket.
            while inlet.receive(&mut []).expect("it looks").more {}
            socket.send_to(&[1], place).expect("sent");
            assert!(lies_in_spot(&mut inlet, 1), "spots are for all as long as nobody was heard there");
        }
        while inlet.receive(&mut []).expect("it looks").more {}
        let expected = inlet.next_sender().expect("one sender was heard at each socket");
        let is_first = inlet.sender(expected) == Some(senders[0].local_addr().expect("it is bound"));
        let other = usize::from(is_first);
        senders[other].send_to(&[2], places[other]).expect("sent");
        assert!(!lies_in_spot(&mut inlet, 1), "the spot is for the other sender");
        assert_eq!(inlet.aside(0), [2]);
        senders[other].send_to(&[3], places[1 - other]).expect("sent");
        lies_in_spot(&mut inlet, 1);
        while inlet.receive(&mut []).expect("it looks").more {}
        let expected: Vec<_> = (0..2).map(|socket| inlet.sole[socket]).collect();
        assert_eq!(
            expected.iter().flatten().count(),
            1,
            "two senders were heard at one socket: {expected:?}"
        );
    }

    #[test]
    fn a_round_ends_when_no_socket_has_packets() {
        let (mut inlet, places) = opened(3);
        inlet.discard().expect("nothing waits");
        let socket = sender();
        for round in 0..3_u8 {
            for place in &places {
                socket.send_to(&[round], place).expect("sent");
            }
            let mut came = 0;
            while came < places.len() {
                inlet.wait(WAIT).expect("it waits");
                let received = inlet.receive(&mut []).expect("it looks");
                came += received.packets();
            }
            let mut looks = 0;
            while inlet.receive(&mut []).expect("it looks").more {
                looks += 1;
            }
            assert!(looks <= places.len(), "{looks} looks in vain");
        }
    }

    #[test]
    fn a_sender_has_one_number_at_all_addresses() {
        let (mut inlet, places) = opened(2);
        inlet.discard().expect("nothing waits");
        let senders = [sender(), sender()];
        for number in 0..4_u8 {
            let socket = &senders[usize::from(number) / 2];
            socket.send_to(&[number], places[usize::from(number) % 2]).expect("sent");
        }
        let mut from = Vec::new();
        while from.len() < 4 {
            inlet.wait(WAIT).expect("it waits");
            let received = inlet.receive(&mut []).expect("it looks");
            assert!(received.packets() > 0, "all four are on their way: {from:?}");
            let packets = (0..received.aside).map(|number| inlet.aside(number)[0]);
            from.extend(packets.zip(inlet.senders().iter().copied()));
        }
        for (number, sender) in from {
            let expected = senders[usize::from(number) / 2].local_addr().expect("it is bound");
            assert_eq!(inlet.sender(sender), Some(expected), "packet {number}");
        }
        assert_eq!(inlet.counted().packets, 4);
    }
}
