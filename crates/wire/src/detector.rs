//! Frames of detectors whose packets have a description: EXCALIBUR, JUNGFRAU, EIGER, odin-data's test stream,
//! or the user's own.

use nilometer_model::packets::{self, Marks, Module};

use super::{Geometry, Ignored, Known, Near, Packet, Part, WireFormat};

/// A detector with a description of its packets.
#[derive(Debug)]
pub struct DetectorFormat {
    geometry: Geometry,
    layout: packets::Detector,
    /// The module that sends to this port, if ports distinguish modules.
    module: u64,
    /// Its name.
    name: String,
}

impl DetectorFormat {
    /// Creates the format from a description. `name` is that of the part which sends to this port.
    pub fn new(layout: packets::Detector, name: String, known: &Known) -> Result<Self, String> {
        if layout.module == Module::Port && known.port >= layout.modules {
            return Err(format!("port {} of a detector with {} modules", known.port, layout.modules));
        }
        let count = layout.packets * layout.all_subframes();
        let trailer = layout.trailer.0 as usize;
        let is_last = |part: u64| (part + 1).is_multiple_of(layout.packets);
        let size = |part: u64| {
            if is_last(part) { layout.last_payload().0 as usize - trailer } else { layout.payload.0 as usize }
        };
        let behind = |part: u64| if is_last(part) { trailer } else { 0 };
        let geometry = Geometry {
            prefix: layout.header.0 as usize,
            parts: (0..count).map(size).collect(),
            behind: if trailer > 0 { (0..count).map(behind).collect() } else { Vec::new() },
            number_bits: layout.frame.width() - layout.subframes.trailing_zeros(),
        };
        Ok(DetectorFormat { geometry, module: u64::from(known.port), name, layout })
    }

    fn subframes(&self) -> u64 {
        u64::from(self.layout.subframes)
    }

    /// Returns the number of a packet in its sub-frame, with the marks of first and last packet.
    fn marked(&self, packet: u64) -> u64 {
        let Some(Marks { first, last }) = self.layout.marks else { return packet };
        let first = if packet == 0 { 1 << first } else { 0 };
        let last = if packet + 1 == self.layout.packets { 1 << last } else { 0 };
        packet | first | last
    }
}

impl WireFormat for DetectorFormat {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    fn place(&mut self, packet: Packet<'_>) -> Result<Part, Ignored> {
        let layout = &self.layout;
        let prefix = packet.prefix;
        if layout.constants.iter().any(|constant| constant.field().read(prefix) != constant.value) {
            return Err(Ignored::Foreign);
        }
        let module = match layout.module {
            Module::Port => self.module,
            Module::At(field) => field.read(prefix),
        };
        if module >= u64::from(layout.modules) {
            return Err(Ignored::OtherStream);
        }
        let number = layout.packet.map_or(0, |field| field.read(prefix));
        if number >= layout.packets {
            return Err(Ignored::Corrupt);
        }
        let counted = layout.frame.read(prefix);
        let subframe = module * self.subframes() + counted % self.subframes();
        let part = (subframe * layout.packets + number) as usize;
        if self.geometry.sent(part) != packet.body.len() {
            return Err(Ignored::Corrupt);
        }
        Ok(Part { frame: counted / self.subframes(), part })
    }

    fn port_name(&self) -> Option<&str> {
        (self.layout.module == Module::Port && self.layout.modules > 1).then_some(self.name.as_str())
    }

    fn fill(&self, _: Option<Near<'_>>, _: usize, into: &mut [u8]) {
        into.fill(self.layout.fill);
    }

    fn make(&self, number: u64, part: usize, prefix: &mut [u8], body: &mut [u8]) {
        let layout = &self.layout;
        let subframe = part as u64 / layout.packets;
        let packet = part as u64 % layout.packets;
        let module = subframe / self.subframes();
        let subframe = subframe % self.subframes();
        prefix.fill(0);
        layout.frame.write(number.wrapping_mul(self.subframes()).wrapping_add(subframe), prefix);
        if let Some(field) = layout.packet {
            field.write(self.marked(packet), prefix);
        }
        if let Module::At(field) = layout.module {
            field.write(module, prefix);
        }
        for constant in &layout.constants {
            constant.field().write(constant.value, prefix);
        }
        if let Some(trailer) = body.get_mut(self.geometry.parts[part]..).filter(|trailer| !trailer.is_empty())
        {
            trailer.copy_from_slice(&number.wrapping_add(1).to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
