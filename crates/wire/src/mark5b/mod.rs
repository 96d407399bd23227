//! Mark5B frames of 10016 bytes, whole or in two halves. Only the first half begins with a header.
//!
//! If packets have serial numbers, these number the frames. A header with a wrong time or checksum then only
//! counts: jive5ab records such frames too. Without serial numbers, the times in headers number the frames.

mod header;

pub use header::{Fault, Mark5bHeader};

use nilometer_model::packets::{self, Cut, Field, Packets};

use super::{
    Geometry, Ignored, Known, Near, Packet, Part, WireFormat, filler,
    learned::Rate,
    serial::Serial,
    time::{DAY, day_near},
};

/// After this number of consecutive first halves at the other parity, the format takes over that parity.
const TURNED: u8 = 8;

/// Mark5B over UDP.
#[derive(Debug)]
pub struct Mark5bFormat {
    geometry: Geometry,
    serial: Serial,
    parity: Parity,
    rate: Rate,
    /// Second and number of the last frame received, and the serial number of its packet.
    last: (u64, u64, u64),
    /// Start of the stream in seconds since 2000, accurate enough to select the thousands of days.
    begins: u64,
    /// Number of frames whose header has no right checksum, and the serial number of the last.
    unchecked: (u64, Option<u64>),
}

impl Mark5bFormat {
    /// Creates the format as the instrument sends it.
    pub fn new(packets: &Packets, mark5b: &packets::Mark5b, known: &Known) -> Result<Self, String> {
        let size = mark5b.packet_size().0 as usize;
        let (parts, halving) = match mark5b.frame {
            Cut::Halves => (vec![size; 2], 1),
            Cut::Whole => (vec![size], 0),
        };
        if packets.serial().is_none() && (known.frames_per_second.is_none() || halving == 1) {
            return Err(
                "without serial numbers, Mark5B frames must be whole and their number in a second known"
                    .into(),
            );
        }
        let bits = packets.serial().map_or(64, |field: Field| field.width() - halving);
        Ok(Mark5bFormat {
            geometry: Geometry {
                prefix: packets.prefix().0 as usize,
                parts,
                number_bits: bits,
                behind: Vec::new(),
            },
            serial: Serial::new(packets, known),
            parity: Parity::default(),
            rate: known.frames_per_second.map_or(Rate::Unknown, Rate::Said),
            last: (0, 0, 0),
            begins: known.begins,
            unchecked: (0, None),
        })
    }

    /// Returns the seconds since 2000 of a header. Takes the day nearest to the stream's start that has these
    /// three digits.
    fn second(&self, header: &Mark5bHeader) -> Option<u64> {
        Some(day_near(self.begins, header.day)? * DAY + u64::from(header.second))
    }

    /// Checks the header of a frame from a packet with this serial number. Returns the header and its second
    /// since 2000, or `None` if the header is wrong and the frame has a serial number.
    fn check(
        &mut self,
        header: Result<Mark5bHeader, Fault>,
        serial: Option<u64>,
    ) -> Result<Option<(Mark5bHeader, u64)>, Ignored> {
        if !header.is_ok_and(|header| header.checked) && header != Err(Fault::NoSync) {
            self.count_unchecked(serial);
        }
        match (header, serial) {
            (Err(Fault::NoSync), _) => Err(Ignored::Foreign),
            (Err(Fault::Corrupt), Some(_)) => Ok(None),
            (Err(Fault::Corrupt), None) => Err(Ignored::Corrupt),
            (Ok(header), _) => self.time(header, serial.unwrap_or_default()).map(Some),
        }
    }

    /// Counts a frame without a right checksum. The receiver looks twice at a packet in an unexpected position.
    fn count_unchecked(&mut self, serial: Option<u64>) {
        let (count, last) = &mut self.unchecked;
        *count += u64::from(serial.is_none() || *last != serial);
        *last = serial;
    }

    /// Returns the header with its second since 2000, and learns the rate from it.
    fn time(&mut self, header: Mark5bHeader, serial: u64) -> Result<(Mark5bHeader, u64), Ignored> {
        let frame = u64::from(header.frame);
        let second = self.second(&header).filter(|_| self.rate.has(frame)).ok_or(Ignored::Corrupt)?;
        let (second_before, before, serial_before) =
            std::mem::replace(&mut self.last, (second, frame, serial));
        if second == second_before + 1 {
            let packets = self.serial.distance(serial_before, serial);
            self.rate.turned(before, packets / self.geometry.parts.len().cast_signed() as i64, frame);
        }
        Ok((header, second))
    }

    /// Returns the header of a missing frame.
    fn missing(&self, near: Near<'_>) -> Option<Mark5bHeader> {
        let header = Mark5bHeader::parse(near.bytes).ok()?;
        let second = self.second(&header)?;
        let frame = u64::from(header.frame);
        let Some(rate) = self.rate.known() else {
            return Some(Mark5bHeader {
                frame: frame.saturating_add_signed(near.ahead) as u32 & 0x7fff,
                ..header
            });
        };
        let time = (second * rate + frame).saturating_add_signed(near.ahead);
        let missing = Mark5bHeader::at(header.user, time / rate, time % rate, rate);
        Some(Mark5bHeader { checked: header.checked, ..missing })
    }
}

impl WireFormat for Mark5bFormat {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn place(&mut self, packet: Packet<'_>) -> Result<Part, Ignored> {
        let header = Mark5bHeader::parse(packet.body);
        let serial = self.serial.read(packet.prefix);
        if self.geometry.parts.len() == 1 {
            let time = self.check(header, serial)?;
            let rate = self.rate.known().unwrap_or(1);
            let by_time = time.map(|(header, second)| second * rate + u64::from(header.frame));
            let frame = serial.or(by_time).ok_or(Ignored::Corrupt)?;
            return Ok(Part { frame, part: 0 });
        }
        let serial = serial.expect("halves have serial numbers: it was checked");
        let has_header = header != Err(Fault::NoSync);
        if has_header {
            self.parity.first_half(serial & 1);
        }
        let parity = self.parity.value.ok_or(Ignored::Foreign)?;
        let half = self.serial.back(serial, parity);
        match half & 1 {
            0 => drop(self.check(header, Some(half))?),
            _ if has_header => return Err(Ignored::Corrupt),
            _ => {}
        }
        Ok(Part { frame: half >> 1, part: (half & 1) as usize })
    }

    fn fill(&self, near: Option<Near<'_>>, part: usize, into: &mut [u8]) {
        filler::fill(into);
        if let Some(header) = near.filter(|_| part == 0).and_then(|near| self.missing(near)) {
            header.write(into);
        }
    }

    fn make(&self, number: u64, part: usize, prefix: &mut [u8], body: &mut [u8]) {
        let parts = self.geometry.parts.len() as u64;
        self.serial.write(number * parts + part as u64, prefix);
        if part == 0 {
            let rate = self.rate.known().expect("who sends a stream knows its rate");
            Mark5bHeader::at(0, self.begins + number / rate, number % rate, rate).write(body);
        }
    }

    fn unchecked(&self) -> u64 {
        self.unchecked.0
    }

    fn of_another_sender(&self) -> Option<Box<dyn WireFormat>> {
        let rate = if let Rate::Said(_) = self.rate { self.rate } else { Rate::Unknown };
        let another = Mark5bFormat {
            geometry: self.geometry.clone(),
            serial: self.serial,
            parity: Parity::default(),
            rate,
            last: (0, 0, 0),
            begins: self.begins,
            unchecked: (0, None),
        };
        self.serial.is_there().then(|| Box::new(another) as Box<dyn WireFormat>)
    }
}

/// Parity of the serial numbers of first halves.
#[derive(Debug, Default)]
struct Parity {
    value: Option<u64>,
    against: u8,
}

impl Parity {
    /// Takes the lowest bit of the serial number of a first half.
    fn first_half(&mut self, bit: u64) {
        self.against = if self.value == Some(bit) { 0 } else { self.against + 1 };
        if self.value.is_none() || self.against == TURNED {
            self.value = Some(bit);
            self.against = 0;
        }
    }
}

#[cfg(test)]
mod tests;
