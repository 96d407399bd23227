//! Wire formats of instruments: decodes the content of packets, and encodes it.
//!
//! ```text
//! transport -> wire format (where does this packet belong?) -> assembly -> ring
//! ```
//!
//! A frame of a stream arrives in one or more packets, its parts. The receiver drops the prefix of a packet (a
//! serial number, or a header of no later use) and keeps the body. A frame is its bodies in order, without
//! gaps.
//!
//! Detectors that send over TCP use messages instead, one per image. [`zmtp`] frames them, and [`stream2`] and
//! [`stream1`] decode them. [`series`] holds the types that both versions share.

#![forbid(unsafe_code)]

pub mod cbor;
pub mod detector;
mod filler;
mod learned;
pub mod mark5b;
pub mod numbered;
pub mod raw;
mod serial;
pub mod series;
mod stamp;
pub mod stream1;
pub mod stream2;
mod time;
pub mod vdif;
pub mod zmtp;

pub use stamp::{Stamp, Stamps};
pub use time::EPOCH;

use std::fmt;

use nilometer_model::{
    Bytes, Instrument,
    packets::{PacketFormat, Packets},
};

/// Division of frames into packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a packet in front of the kept ones.
    pub prefix: usize,
    /// Kept bytes of each packet of a frame, in the order of the frame.
    pub parts: Vec<usize>,
    /// Bits of the frame's number in packets. After 2^bits it restarts at 0.
    pub number_bits: u32,
    /// Bytes after the kept ones in each packet of a frame. Empty if no packet has any.
    pub behind: Vec<usize>,
}

impl Geometry {
    /// Bytes of a frame.
    pub fn frame_size(&self) -> usize {
        self.parts.iter().sum()
    }

    /// Bytes of the longest packet.
    pub fn packet_size(&self) -> usize {
        self.prefix + (0..self.parts.len()).map(|part| self.sent(part)).max().unwrap_or(0)
    }

    /// Bytes of a part after the prefix: the kept ones, and those after them.
    pub fn sent(&self, part: usize) -> usize {
        self.parts[part] + self.behind.get(part).copied().unwrap_or(0)
    }
}

/// A packet in memory, in two pieces that need not touch.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// The prefix, which the receiver drops.
    pub prefix: &'a [u8],
    /// The kept bytes, and those after them.
    pub body: &'a [u8],
}

/// The position of a packet in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The frame's number in the packet, below 2^[`Geometry::number_bits`].
    pub frame: u64,
    /// Index into [`Geometry::parts`].
    pub part: usize,
}

/// The reason why a packet does not belong to the stream. The recorder counts and drops such packets, and never
/// stops because of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ignored {
    /// Its size differs from that of every part.
    Size,
    /// It has another format, or a station, thread or constant that the instrument leaves out.
    Foreign,
    /// It has the same format but belongs to another stream. Its station or version differs from that of most
    /// packets, or the instrument has no such module.
    OtherStream,
    /// Its content is invalid.
    Corrupt,
}

impl Ignored {
    /// All reasons.
    pub const ALL: [Ignored; 4] = [Ignored::Size, Ignored::Foreign, Ignored::OtherStream, Ignored::Corrupt];

    /// The word in reports and records.
    pub const fn name(self) -> &'static str {
        match self {
            Ignored::Size => "odd-sized",
            Ignored::Foreign => "foreign",
            Ignored::OtherStream => "of another stream",
            Ignored::Corrupt => "corrupt",
        }
    }
}

/// An existing frame of the stream, with its distance from a missing one.
#[derive(Debug, Clone, Copy)]
pub struct Near<'a> {
    /// The bytes of the frame's first part.
    pub bytes: &'a [u8],
    /// Distance of the missing frame in frames, negative if it is earlier.
    pub ahead: i64,
}

/// A thread of a stream whose frames come interleaved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamThread {
    /// The station, or 0 if the stream has only one or does not name it. `None` if the format has no stations.
    pub station: Option<u16>,
    /// The thread in the station.
    pub thread: u16,
    /// Number of its frames received, recorded or not.
    pub came: u64,
}

/// A wire format, for decoding and encoding. It keeps properties that it learns from the stream, such as
/// station and rate.
pub trait WireFormat: fmt::Debug + Send {
    /// Returns the division of frames into packets.
    fn geometry(&self) -> &Geometry;
    /// Returns the frame and part of a packet. The caller drops packets whose size differs from every part's.
    fn place(&mut self, packet: Packet<'_>) -> Result<Part, Ignored>;
    /// Makes a missing part. It has a valid form, the time and name of the missing frame, and a mark as
    /// invalid. If no frame was received, it has only the mark.
    fn fill(&self, near: Option<Near<'_>>, part: usize, into: &mut [u8]);
    /// Makes the bytes around the samples in a part of frame `number`, counted from the beginning of a stream.
    /// It is the inverse of `place`.
    ///
    /// If the format has samples, `body` already holds them. Makes the bytes after them only if `body` has
    /// room.
    fn make(&self, number: u64, part: usize, prefix: &mut [u8], body: &mut [u8]);
    /// Returns the same format for a sender that numbers its packets by itself. It has learned nothing, and
    /// knows only threads received. `None` if one numbering covers all senders.
    fn of_another_sender(&self) -> Option<Box<dyn WireFormat>> {
        None
    }
    /// Handles another sender that numbers its packets by itself. From now on the stream has only the threads
    /// received.
    fn share(&mut self) {}
    /// Returns the threads that the user named and those received. Empty if the format has none.
    fn threads(&self) -> Vec<StreamThread> {
        Vec::new()
    }
    /// Returns the number of frames received whose header has a checksum in this format, but no right one.
    fn unchecked(&self) -> u64 {
        0
    }
    /// Returns the part of the instrument that sends to this port. `None` if ports distinguish no parts.
    fn port_name(&self) -> Option<&str> {
        None
    }
    /// Returns station and thread of a frame from its first bytes. `None` if the format has no threads.
    fn thread_of(&self, _frame: &[u8]) -> Option<(u16, u16)> {
        None
    }
}

/// Facts known about a stream besides the description of its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    /// Bytes of a frame of the instrument.
    pub frame: Bytes,
    /// VDIF or Mark5B frames per second of each thread.
    pub frames_per_second: Option<u64>,
    /// The port that receives the packets, as an offset from the stream's first port.
    pub port: u16,
    /// The parts of the instrument that other recorders take, before those of this stream. They count in names only.
    pub parts_before: u16,
    /// Start of the stream, in seconds since 2000-01-01 00:00 UTC without leap seconds. It is exact for simulated
    /// streams. For received ones it only selects the thousand days of Mark5B dates.
    pub begins: u64,
    /// Serial number of the first simulated packet.
    pub serial: u64,
}

impl Known {
    /// Returns the facts about a stream of this instrument, which must have been checked. The stream starts at
    /// the beginning of 2000 unless the caller changes that.
    pub fn of(instrument: &Instrument) -> Self {
        let rate = |packets: &Packets| packets.frames_per_second(instrument.stream_rate()).ok().flatten();
        let frames_per_second = instrument.packets.as_ref().and_then(rate);
        Known { frame: instrument.frame_size(), frames_per_second, ..Known::default() }
    }
}

/// Creates the format for packets of a checked instrument. The error names a fact that the format needs but
/// does not know.
pub fn of(packets: &Packets, known: &Known) -> Result<Box<dyn WireFormat>, String> {
    Ok(match &packets.format {
        PacketFormat::Vdif(vdif) => Box::new(vdif::VdifFormat::new(packets, vdif, known)?),
        PacketFormat::Mark5b(mark5b) => Box::new(mark5b::Mark5bFormat::new(packets, mark5b, known)?),
        PacketFormat::Raw(raw) => Box::new(raw::RawFormat::new(packets, raw, known)),
        PacketFormat::Numbered(numbered) => Box::new(numbered::NumberedFormat::new(numbered, known)),
        PacketFormat::Excalibur(_)
        | PacketFormat::Jungfrau(_)
        | PacketFormat::Eiger(_)
        | PacketFormat::DummyUdp(_)
        | PacketFormat::Described(_) => {
            let layout = packets.detector(known.frame).expect("these are detectors");
            Box::new(detector::DetectorFormat::new(
                layout,
                packets.port_name(known.parts_before + known.port),
                known,
            )?)
        }
    })
}

#[cfg(test)]
pub(crate) mod tests;
