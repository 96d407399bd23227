//! A port brings all packets, or those of one module. The packets of each port have their own order.

use std::ops::Range;

use super::{Assembly, port_lead::PortCourse, tally::Arrivals};
use nilometer_wire::{Part, WireFormat};

/// The packets of one of several ports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortTally {
    /// The part of the instrument that sends to it.
    pub name: String,
    /// Packets of the stream that arrived.
    pub came: u64,
    /// Missing packets, in closed blocks.
    pub missing: u64,
}

/// A port of a stream, and the state of its packets.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) format: Box<dyn WireFormat>,
    /// The parts of each frame that arrive at it.
    pub(super) parts: Range<u64>,
    per_frame: u64,
    /// The place after the highest packet that arrived.
    pub(super) next: u64,
    pub(super) arrivals: Arrivals,
    pub(super) course: PortCourse,
    /// Missing packets in closed blocks.
    missing: u64,
    /// The places of the spots given out last, and their prefixes.
    pub(super) expected: Vec<u64>,
    pub(super) prefixes: Vec<u8>,
}

impl Port {
    /// Makes one port for each format. They share the parts of a frame evenly, in order.
    pub(super) fn all(formats: Vec<Box<dyn WireFormat>>) -> Vec<Port> {
        let count = formats.len() as u64;
        let per_frame = formats.first().map_or(0, |format| format.geometry().parts.len() as u64);
        assert!(count > 0 && per_frame.is_multiple_of(count), "each port brings as many packets of a frame");
        let each = per_frame / count;
        let parts = |number: u64| number * each..(number + 1) * each;
        (0..).zip(formats).map(|(number, format)| Port::new(format, parts(number), per_frame)).collect()
    }

    fn new(format: Box<dyn WireFormat>, parts: Range<u64>, per_frame: u64) -> Port {
        Port {
            format,
            parts,
            per_frame,
            next: 0,
            arrivals: Arrivals::default(),
            course: PortCourse::default(),
            missing: 0,
            expected: Vec::new(),
            prefixes: Vec::new(),
        }
    }

    /// Counts those of `count` missing packets of a block, from this place on, that belong to this port.
    pub(super) fn lose(&mut self, at: u64, count: u64) {
        let Range { start, end } = self.parts;
        let own = |places: u64| {
            let rest = places % self.per_frame;
            places / self.per_frame * (end - start) + rest.clamp(start, end) - start
        };
        self.missing += own(at + count) - own(at);
    }

    /// The counters of this port. `None` if the format does not name its ports.
    fn tally(&self) -> Option<PortTally> {
        let name = self.format.port_name()?.to_owned();
        Some(PortTally { name, came: self.course.packets(), missing: self.missing })
    }

    /// The frame of its next packet, if they arrive in order.
    pub(super) fn next_frame(&self) -> Option<u64> {
        let Part { frame, part } = self.course.rear()?;
        Some(frame.wrapping_add(u64::from(part as u64 + 1 == self.parts.end)))
    }

    /// Number of ports.
    pub(super) fn count(&self) -> u64 {
        self.per_frame / (self.parts.end - self.parts.start)
    }

    /// The places from `begin` up to `end` whose packets arrive at it.
    pub(super) fn places(&self, begin: u64, end: u64) -> impl Iterator<Item = u64> + '_ {
        let frames = begin / self.per_frame..end.div_ceil(self.per_frame);
        let places =
            frames.flat_map(move |frame| self.parts.clone().map(move |part| frame * self.per_frame + part));
        places.skip_while(move |place| *place < begin).take_while(move |place| *place < end)
    }
}

impl Assembly {
    /// The packets of each port, in the order of ports. Empty if the format does not name them.
    pub fn port_tallies(&self) -> Vec<PortTally> {
        self.ports.iter().filter_map(Port::tally).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::trial::Numbered;

    #[test]
    fn ports_share_the_parts_of_a_frame() {
        let formats = (0..2).map(|_| Box::new(Numbered::new(&[8; 6])) as Box<dyn WireFormat>).collect();
        let ports = Port::all(formats);
        let places = |port: usize, begin, end| ports[port].places(begin, end).collect::<Vec<_>>();
        assert_eq!((places(0, 1, 9), places(1, 1, 9)), (vec![1, 2, 6, 7, 8], vec![3, 4, 5]));
        assert_eq!((places(0, 3, 6), places(1, 0, 0)), (Vec::new(), Vec::new()));
        assert_eq!(ports[0].count(), 2);
    }
    #[test]
    fn a_missing_packet_belongs_to_the_port_of_its_part() {
        let formats = (0..2).map(|_| Box::new(Numbered::new(&[8; 6])) as Box<dyn WireFormat>).collect();
        let mut ports = Port::all(formats);
        // Places 4 to 13 are two parts of port 1, a whole frame, and two parts of port 0.
        for port in &mut ports {
            port.lose(4, 10);
        }
        assert_eq!(ports.iter().map(|port| port.missing).collect::<Vec<_>>(), [5, 5]);
        for port in &mut ports {
            port.lose(3, 3);
        }
        assert_eq!(ports.iter().map(|port| port.missing).collect::<Vec<_>>(), [5, 8]);
    }
}
