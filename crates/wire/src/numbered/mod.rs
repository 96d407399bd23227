//! Packets with a number in a header, from a description: DUNE, CHIME, LOFAR, HERA, SPEAD with fixed items, and the user's
//! own.
//!
//! ```text
//! packet      | header                                         | payload |
//!             | magic   stream   upper part   number   fields  |         |
//! recorded    | nothing, all of it, or its end                 | payload |
//! frame       = count of the number x streams + index of the stream
//! ```
//!
//! The description becomes loads, shifts and masks once. A packet then costs a few of them, and no memory.

mod counting;
mod header;
mod table;

use nilometer_model::packets::{NamedBits, NumberedPackets, PacketInFrame, UpperClock};

use super::{EPOCH, Geometry, Ignored, Known, Near, Packet, Part, StreamThread, WireFormat, filler};
use counting::Counting;
use header::HeaderBits;
pub use table::HeaderTable;

/// The number of a packet in its frame.
#[derive(Debug, Clone, Copy)]
struct PartNumber {
    bits: HeaderBits,
    numbers: PacketInFrame,
}

/// A field that a simulator writes: its value in the first frame, and the difference from frame to frame.
#[derive(Debug, Clone, Copy)]
struct SimulatedField {
    bits: HeaderBits,
    value: u64,
    step: u64,
}

/// A stream of a port.
#[derive(Debug, Clone)]
struct NumberedStream {
    id: u16,
    /// Number of its frames received.
    came: u64,
    /// The frame received last.
    last: Option<u64>,
}

/// Packets with a description of their header.
#[derive(Debug, Clone)]
pub struct NumberedFormat {
    geometry: Geometry,
    /// Bytes of the header that are kept.
    kept: usize,
    magic: Vec<(HeaderBits, u64)>,
    number: HeaderBits,
    upper: Option<HeaderBits>,
    counting: Counting,
    packet: Option<PartNumber>,
    stream: Option<HeaderBits>,
    /// In the order of their packets; one if packets have no number of a stream.
    streams: Vec<NumberedStream>,
    /// The index of the stream of the next packet, if streams take turns.
    turn: usize,
    /// The fields that a simulator writes.
    fields: Vec<SimulatedField>,
    /// The first number of a simulated stream.
    first: u64,
}

impl NumberedFormat {
    /// Creates the format from a checked description.
    pub fn new(packets: &NumberedPackets, known: &Known) -> Self {
        let dropped = packets.dropped().0;
        let bits = |field| HeaderBits::new(field, dropped);
        let counting = Counting::new(packets);
        let stream = |id| NumberedStream { id, came: 0, last: None };
        let ids = packets.stream.as_ref().map_or(&[0][..], |stream| &stream.ids);
        NumberedFormat {
            geometry: geometry(packets, counting.bits()),
            kept: packets.kept_header().0 as usize,
            magic: packets.magic.iter().map(|magic| (bits(magic.at), magic.value)).collect(),
            number: bits(packets.number.at),
            upper: packets.upper.map(|upper| bits(upper.at)),
            first: first(packets, known, &counting),
            counting,
            packet: packets.packet.map(|numbers| PartNumber { bits: bits(numbers.at), numbers }),
            stream: packets.stream.as_ref().map(|stream| bits(stream.at)),
            streams: ids.iter().copied().map(stream).collect(),
            turn: 0,
            fields: packets.fields.iter().map(|field| SimulatedField::new(bits(field.at), field)).collect(),
        }
    }

    /// The index of a stream. It looks first at the stream whose turn it is.
    #[inline]
    fn find(&mut self, id: u64) -> Option<usize> {
        let count = self.streams.len();
        let turns = [self.turn, (self.turn + count - 1) % count];
        let is = |stream: &NumberedStream| u64::from(stream.id) == id;
        let found = turns.into_iter().find(|at| is(&self.streams[*at]));
        let found = found.or_else(|| self.streams.iter().position(is))?;
        self.turn = (found + 1) % count;
        Some(found)
    }

    /// The part of its frame that a packet is, if that is possible.
    #[inline]
    fn part(&self, packet: Packet<'_>) -> Option<usize> {
        let Some(PartNumber { bits, numbers }) = self.packet else { return Some(0) };
        let part = numbers.part(bits.read(packet))? as usize;
        (part < self.geometry.parts.len()).then_some(part)
    }

    /// Makes the header of a packet with this number.
    fn write(&self, number: u64, stream: usize, part: usize, prefix: &mut [u8], body: &mut [u8]) {
        prefix.fill(0);
        let kept = self.kept.min(body.len());
        body[..kept].fill(0);
        self.magic.iter().for_each(|(bits, value)| bits.write(*value, prefix, body));
        let (upper, number) = self.counting.parted(number);
        self.number.write(number, prefix, body);
        if let Some(bits) = self.upper {
            bits.write(upper, prefix, body);
        }
        if let Some(PartNumber { bits, numbers }) = self.packet {
            bits.write(numbers.number(part as u64), prefix, body);
        }
        if let Some(bits) = self.stream {
            bits.write(self.streams[stream].id.into(), prefix, body);
        }
    }

    /// The number and the stream of a missing frame, from a near one. `None` if the kept header does not tell.
    fn missing(&self, near: Near<'_>) -> Option<(u64, usize)> {
        let number = self.number.read_kept(near.bytes)?;
        let upper = self.upper.map_or(Some(0), |bits| bits.read_kept(near.bytes))?;
        let at = match self.stream {
            Some(bits) => {
                let id = bits.read_kept(near.bytes)?;
                self.streams.iter().position(|stream| u64::from(stream.id) == id)?
            }
            None => 0,
        };
        let count = self.streams.len().cast_signed() as i64;
        let turn = (at.cast_signed() as i64).saturating_add(near.ahead);
        let number = self.counting.later(self.counting.joined(upper, number), turn.div_euclid(count));
        Some((number, turn.rem_euclid(count) as usize))
    }
}

impl SimulatedField {
    fn new(bits: HeaderBits, field: &NamedBits) -> Self {
        SimulatedField { bits, value: field.value, step: field.step }
    }

    fn write(&self, frame: u64, prefix: &mut [u8], body: &mut [u8]) {
        self.bits.write(self.value.wrapping_add(frame.wrapping_mul(self.step)), prefix, body);
    }
}

/// The division of a frame into packets.
fn geometry(packets: &NumberedPackets, number_bits: u32) -> Geometry {
    let kept = packets.kept_header().0 as usize;
    let mut parts = vec![kept + packets.payload.0 as usize; packets.packets as usize];
    if let Some(last) = parts.last_mut() {
        *last = kept + packets.last_payload().0 as usize;
    }
    Geometry { prefix: packets.dropped().0 as usize, parts, number_bits, behind: Vec::new() }
}

/// The number of the first simulated packet.
fn first(packets: &NumberedPackets, known: &Known, counting: &Counting) -> u64 {
    match packets.upper {
        Some(upper) if upper.clock == UpperClock::Unix => {
            counting.at_upper((known.begins + EPOCH) & upper.at.greatest())
        }
        _ => counting.number(0, known.serial),
    }
}

impl WireFormat for NumberedFormat {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    fn place(&mut self, packet: Packet<'_>) -> Result<Part, Ignored> {
        if self.magic.iter().any(|(bits, value)| bits.read(packet) != *value) {
            return Err(Ignored::Foreign);
        }
        let part = self.part(packet).ok_or(Ignored::Corrupt)?;
        if self.geometry.sent(part) != packet.body.len() {
            return Err(Ignored::Corrupt);
        }
        let at = match self.stream {
            Some(bits) => self.find(bits.read(packet)).ok_or(Ignored::Foreign)?,
            None => 0,
        };
        let upper = self.upper.map_or(0, |bits| bits.read(packet));
        let number = self.counting.joined(upper, self.number.read(packet));
        let counted = self.counting.frame(at, number);
        let stream = &mut self.streams[at];
        // The receiver looks twice at a packet in an unexpected position.
        if part == 0 && stream.last.replace(counted) != Some(counted) {
            stream.came += 1;
        }
        let streams = self.streams.len() as u64;
        Ok(Part { frame: counted.wrapping_mul(streams).wrapping_add(at as u64), part })
    }

    fn fill(&self, near: Option<Near<'_>>, part: usize, into: &mut [u8]) {
        let (header, payload) = into.split_at_mut(self.kept.min(into.len()));
        filler::fill(payload);
        let mut dropped = vec![0; self.geometry.prefix];
        if let Some((number, stream)) = near.and_then(|near| self.missing(near)) {
            return self.write(number, stream, part, &mut dropped, header);
        }
        header.fill(0);
        self.magic.iter().for_each(|(bits, value)| bits.write(*value, &mut dropped, header));
    }

    fn make(&self, number: u64, part: usize, prefix: &mut [u8], body: &mut [u8]) {
        let streams = self.streams.len() as u64;
        let frame = number / streams;
        let counted = self.counting.number(self.first, frame);
        self.write(counted, (number % streams) as usize, part, prefix, body);
        self.fields.iter().for_each(|field| field.write(frame, prefix, body));
    }

    fn of_another_sender(&self) -> Option<Box<dyn WireFormat>> {
        // Streams have numbers in common, and so have their senders.
        if self.stream.is_some() {
            return None;
        }
        let streams =
            self.streams.iter().map(|stream| NumberedStream { came: 0, last: None, ..stream.clone() });
        Some(Box::new(NumberedFormat {
            counting: self.counting.anew(),
            streams: streams.collect(),
            ..self.clone()
        }))
    }

    fn threads(&self) -> Vec<StreamThread> {
        if self.stream.is_none() {
            return Vec::new();
        }
        let of =
            |stream: &NumberedStream| StreamThread { station: None, thread: stream.id, came: stream.came };
        self.streams.iter().map(of).collect()
    }

    fn thread_of(&self, frame: &[u8]) -> Option<(u16, u16)> {
        let id = self.stream?.read_kept(frame)?;
        Some((0, u16::try_from(id).ok()?))
    }
}

#[cfg(test)]
mod tests;
