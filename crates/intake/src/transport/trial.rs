//! A format and an outlet for tests: packets behind their serial number, kept in memory.

use std::{
    io,
    sync::{Arc, Mutex},
};

use super::{Outlet, Sent};
use nilometer_wire::{Geometry, Ignored, Near, Packet, Part, WireFormat};

/// A test format: a little-endian serial number of 64 bits counts packets, and each part begins with the
/// frame's number.
#[derive(Debug, Clone)]
pub(crate) struct Numbered(Geometry);

impl Numbered {
    pub(crate) fn new(parts: &[usize]) -> Self {
        Numbered(Geometry { prefix: 8, parts: parts.to_vec(), number_bits: 64, behind: Vec::new() })
    }
}

impl WireFormat for Numbered {
    fn geometry(&self) -> &Geometry {
        &self.0
    }

    fn place(&mut self, packet: Packet<'_>) -> Result<Part, Ignored> {
        let parts = self.0.parts.len() as u64;
        let serial = packet.prefix.try_into().map(u64::from_le_bytes).map_err(|_| Ignored::Size)?;
        Ok(Part { frame: serial / parts, part: (serial % parts) as usize })
    }

    fn fill(&self, _near: Option<Near<'_>>, _part: usize, into: &mut [u8]) {
        into.fill(0);
    }

    fn make(&self, number: u64, part: usize, prefix: &mut [u8], body: &mut [u8]) {
        let serial = number * self.0.parts.len() as u64 + part as u64;
        prefix.copy_from_slice(&serial.to_le_bytes());
        body[..8].copy_from_slice(&number.to_le_bytes());
    }
}

/// An outlet that keeps all packets. Clones share the same memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<Vec<u8>>>>);

impl Kept {
    pub(crate) fn packets(&self) -> Vec<Vec<u8>> {
        self.0.lock().expect("nobody panics while holding it").clone()
    }
}

impl Outlet for Kept {
    fn send(&mut self, packets: &[Packet<'_>]) -> io::Result<()> {
        let packets = packets.iter().map(|packet| [packet.prefix, packet.body].concat());
        self.0.lock().expect("nobody panics while holding it").extend(packets);
        Ok(())
    }

    fn burst(&self, _packet_size: usize) -> usize {
        8
    }

    fn room(&self) -> u64 {
        u64::MAX
    }

    fn totals(&self) -> Sent {
        Sent { packets: self.packets().len() as u64, ..Sent::default() }
    }
}
