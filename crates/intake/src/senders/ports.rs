//! The ports of a stream: the receiver keeps them together, and reports the packets that the kernel dropped at each.

use nilometer_model::Nanos;

use super::SenderStreams;
use crate::assembly::PortTally;

impl SenderStreams {
    /// How many of `most` packets may be taken from a port now: none if other ports have to catch up.
    pub fn may_take(&self, port: usize, most: usize) -> usize {
        if self.ports() == 1 { most } else { self.first().may_take(port, most) }
    }

    /// Ends a look at a port.
    pub fn looked(&mut self, now: Nanos, port: usize) {
        if self.ports() > 1 {
            self.streams[0].assembly.looked(now, port);
        }
    }

    /// The kernel dropped at most this many packets before those that are taken next.
    pub fn dropped(&mut self, port: usize, packets: u64) {
        self.streams.iter_mut().for_each(|stream| stream.assembly.dropped(port, packets));
    }

    /// The packets of each port. Empty if ports do not distinguish parts of the instrument.
    pub fn port_tallies(&self) -> Vec<PortTally> {
        if self.ports() == 1 { Vec::new() } else { self.first().port_tallies() }
    }
}
