//! A format for tests: packets behind a serial number that counts them, which their bodies repeat.

use nilometer_wire::{Geometry, Ignored, Near, Packet, Part, WireFormat};

/// Packets with a little-endian serial number of 8 bytes in front of a body that begins with the same number.
#[derive(Debug, Clone)]
pub struct SerialFormat {
    geometry: Geometry,
    mark: fn(&mut [u8]),
}

impl SerialFormat {
    /// Makes a format whose bodies have `body` bytes. `mark` marks the fill for a missing packet: it gets the
    /// bytes behind the number.
    pub fn new(body: usize, mark: fn(&mut [u8])) -> Self {
        let geometry = Geometry { prefix: 8, parts: vec![body], number_bits: 64, behind: Vec::new() };
        SerialFormat { geometry, mark }
    }
}

impl WireFormat for SerialFormat {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn place(&mut self, packet: Packet<'_>) -> Result<Part, Ignored> {
        let frame = packet.prefix.try_into().map(u64::from_le_bytes).map_err(|_| Ignored::Size)?;
        Ok(Part { frame, part: 0 })
    }

    fn fill(&self, near: Option<Near<'_>>, _part: usize, into: &mut [u8]) {
        let near = near.expect("a packet came before one was missed");
        into.copy_from_slice(&near.bytes[..into.len()]);
        let serial = u64::from_le_bytes(near.bytes[..8].try_into().expect("8 bytes"));
        into[..8].copy_from_slice(&serial.wrapping_add_signed(near.ahead).to_le_bytes());
        (self.mark)(&mut into[8..]);
    }

    fn make(&self, _number: u64, _part: usize, _prefix: &mut [u8], _body: &mut [u8]) {}

    fn of_another_sender(&self) -> Option<Box<dyn WireFormat>> {
        Some(Box::new(self.clone()))
    }
}
