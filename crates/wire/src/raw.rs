//! Packets of unknown content, with or without a serial number.

use nilometer_model::packets::{self, Packets};

use super::{Geometry, Ignored, Known, Near, Packet, Part, WireFormat, filler, serial::Serial};

/// Bytes as received, one packet per frame. Without a serial number every packet counts as the next one.
#[derive(Debug, Clone)]
pub struct RawFormat {
    geometry: Geometry,
    serial: Serial,
    came: u64,
}

impl RawFormat {
    /// Creates the format as the instrument sends it.
    pub fn new(packets: &Packets, raw: &packets::Raw, known: &Known) -> Self {
        let serial = Serial::new(packets, known);
        let prefix = packets.prefix().0 as usize;
        let parts = vec![raw.payload.0 as usize];
        RawFormat {
            geometry: Geometry { prefix, parts, number_bits: serial.bits(), behind: Vec::new() },
            serial,
            came: 0,
        }
    }
}

impl WireFormat for RawFormat {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    fn place(&mut self, packet: Packet<'_>) -> Result<Part, Ignored> {
        let frame = self.serial.read(packet.prefix).unwrap_or(self.came);
        self.came += 1;
        Ok(Part { frame, part: 0 })
    }

    fn fill(&self, _: Option<Near<'_>>, _: usize, into: &mut [u8]) {
        filler::fill(into);
    }

    fn make(&self, number: u64, _: usize, prefix: &mut [u8], _: &mut [u8]) {
        self.serial.write(number, prefix);
    }

    fn of_another_sender(&self) -> Option<Box<dyn WireFormat>> {
        self.serial.is_there().then(|| Box::new(RawFormat { came: 0, ..self.clone() }) as Box<dyn WireFormat>)
    }
}
