//! Several addresses that one thread listens at: ports, addresses of this machine, and groups. Their packets
//! become one recording, on one clock.
//!
//! A look takes the packets of one socket, and the next look begins with the next socket. A sender keeps its
//! number at all of them, so a stream that a sender spreads over several addresses stays one stream. Its
//! packets leave their order by as much as one look brings; looks are short for this reason.

use std::{io, net::SocketAddr};

use nilometer_model::Nanos;

use super::{
    super::{Received, SenderId, Transport, TransportCounts},
    receive::{Listening, UdpInlet, wait_for_any},
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
        Ok(UdpTogether { inlets, last: 0, heard: HeardSenders::default(), from: Vec::new() })
    }

    /// Gives the senders of the last look their numbers among the senders at all sockets.
    fn number_senders(&mut self) {
        self.from.clear();
        let inlet = &self.inlets[self.last];
        for run in inlet.senders().chunk_by(|one, next| one == next) {
            let sender = self.heard.count(inlet.sender(run[0]), run.len() as u64);
            self.from.extend(std::iter::repeat_n(sender, run.len()));
        }
    }
}

impl Transport for UdpTogether {
    fn receive(&mut self, spots: &mut [Spot<'_>]) -> io::Result<Received> {
        for _ in 0..self.inlets.len() {
            self.last = (self.last + 1) % self.inlets.len();
            let look = spots.len().min(LOOK);
            let received = self.inlets[self.last].receive(&mut spots[..look])?;
            if received.packets() > 0 || received.dropped > 0 {
                self.number_senders();
                // The other sockets may have packets too.
                return Ok(Received { more: true, ..received });
            }
        }
        self.from.clear();
        Ok(Received::default())
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
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    const WAIT: Nanos = Nanos::from_millis(20_000);

    fn opened(count: usize) -> (UdpTogether, Vec<SocketAddr>) {
        let any = Listening::at((Ipv4Addr::LOCALHOST, 0).into());
        let together = UdpTogether::open(&vec![any; count]).expect("ports are free");
        let places = together.inlets.iter().map(|inlet| inlet.address().expect("it is bound")).collect();
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
