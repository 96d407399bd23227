//! Packets leave as fast as the kernel takes them, many with one call.

use std::io;

use nilometer_datagram::{Sent, UdpOutlet};
use nilometer_wire::Packet;

use crate::transport::Outlet;

impl Outlet for UdpOutlet {
    fn send(&mut self, packets: &[Packet<'_>]) -> io::Result<()> {
        UdpOutlet::send(self, packets)
    }

    fn burst(&self, packet_size: usize) -> usize {
        UdpOutlet::burst(self, packet_size)
    }

    fn room(&self) -> u64 {
        UdpOutlet::room(self)
    }

    fn totals(&self) -> Sent {
        UdpOutlet::totals(self)
    }
}
