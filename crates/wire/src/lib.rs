//! What stands in packets: an instrument's wire format, both ways.
//!
//! ```text
//! transport -> wire format (where does this packet belong?) -> assembly -> ring
//! ```
//!
//! A frame of a stream comes in one or more packets, its parts. Of a packet the prefix (a serial number, or a header that
//! nobody wants later) is dropped and the body is kept; the bodies of a frame, in order and without gaps, are the frame.
//!
//! Detectors that send over TCP have messages instead, one an image: [`zmtp`] frames them, [`stream2`] and [`stream1`] say what
//! stands in them, and [`series`] is what both have in common.

#![forbid(unsafe_code)]

pub mod cbor;
pub mod detector;
mod filler;
mod learned;
pub mod mark5b;
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

/// How packets make up frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a packet in front of what is kept.
    pub prefix: usize,
    /// Bytes that are kept of each packet of a frame, in the order in which they stand in the frame.
    pub parts: Vec<usize>,
    /// Bits of the frame's number as it is sent: after 2^bits it begins again at 0.
    pub number_bits: u32,
    /// Bytes behind what is kept of each packet of a frame; empty if there are none behind any.
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

    /// Bytes of a part behind the prefix: what is kept, and what is behind that.
    pub fn sent(&self, part: usize) -> usize {
        self.parts[part] + self.behind.get(part).copied().unwrap_or(0)
    }
}

/// A packet in memory, in two pieces that need not touch.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// What is not kept.
    pub prefix: &'a [u8],
    /// What is kept, and what is behind that.
    pub body: &'a [u8],
}

/// Which part of which frame a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The frame's number as it was sent, below 2^[`Geometry::number_bits`].
    pub frame: u64,
    /// Index into [`Geometry::parts`].
    pub part: usize,
}

/// Why a packet is none of the stream. It is counted and dropped, and never ends a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ignored {
    /// It has another size than any part.
    Size,
    /// It is of another format, or of a station, thread or constant that the instrument leaves out.
    Foreign,
    /// It is of the same format and of another stream: another station or version than most packets, or a module that the
    /// instrument does not have.
    OtherStream,
    /// What it says of itself can't be.
    Corrupt,
}

impl Ignored {
    /// All of them.
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

/// A frame of the stream that is there, and how far it is from one that is not.
#[derive(Debug, Clone, Copy)]
pub struct Near<'a> {
    /// The bytes of the frame's first part.
    pub bytes: &'a [u8],
    /// How many frames later the missing one is; negative if it is earlier.
    pub ahead: i64,
}

/// A thread of a stream whose frames come interleaved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamThread {
    /// The station; 0 if the stream has one alone, or does not name it.
    pub station: u16,
    /// The thread.
    pub thread: u16,
    /// Frames of it that came, recorded or not.
    pub came: u64,
}

/// A wire format, both ways. What it learns of a stream (its station, its rate) it keeps.
pub trait WireFormat: fmt::Debug + Send {
    /// How packets make up frames.
    fn geometry(&self) -> &Geometry;
    /// Where a packet belongs. Its sizes are those of a part: others are dropped before.
    fn place(&mut self, packet: Packet<'_>) -> Result<Part, Ignored>;
    /// Makes the part that did not come: readers find it valid in form, with the time and the name it would have had, and
    /// marked as invalid. Without a frame that came, nothing but the marking is known.
    fn fill(&self, near: Option<Near<'_>>, part: usize, into: &mut [u8]);
    /// The inverse of `place`: what stands around the samples in a part of frame `number`, counted from the beginning of a
    /// stream. Samples are in `body` already, where the format has them. What is behind them is made only where there is room
    /// for it.
    fn make(&self, number: u64, part: usize, prefix: &mut [u8], body: &mut [u8]);
    /// The same format for a sender that numbers its packets by itself: it has learned nothing, and knows only threads that
    /// come. `None` if all senders' packets are numbered together.
    fn of_another_sender(&self) -> Option<Box<dyn WireFormat>> {
        None
    }
    /// Another sender numbers its packets by itself. From now on the stream has only those threads that came.
    fn share(&mut self) {}
    /// The threads that were named, and those that came. Empty if the format has none.
    fn threads(&self) -> Vec<StreamThread> {
        Vec::new()
    }
    /// Station and thread of a frame, by its first bytes. `None` if the format has no threads.
    fn thread_of(&self, _frame: &[u8]) -> Option<(u16, u16)> {
        None
    }
}

/// What is known of a stream beside what its packets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    /// A frame of the instrument.
    pub frame: Bytes,
    /// VDIF or Mark5B frames in a second, of each thread.
    pub frames_per_second: Option<u64>,
    /// The port at which packets come, counted from that of the stream's first.
    pub port: u16,
    /// When the stream begins, in seconds since 2000-01-01 00:00 UTC: exact where it is simulated; where it is received it says
    /// only which thousand days Mark5B means.
    pub begins: u64,
    /// The serial number of the first packet that is simulated.
    pub serial: u64,
}

impl Known {
    /// Of a stream of this instrument, which was checked. It begins at the beginning of 2000 until that is changed.
    pub fn of(instrument: &Instrument) -> Self {
        let rate = |packets: &Packets| packets.frames_per_second(instrument.stream_rate()).ok().flatten();
        let frames_per_second = instrument.packets.as_ref().and_then(rate);
        Known { frame: instrument.frame_size(), frames_per_second, ..Known::default() }
    }
}

/// The format of packets that were checked as their instrument was. What is not known and can't be done without is said.
pub fn of(packets: &Packets, known: &Known) -> Result<Box<dyn WireFormat>, String> {
    Ok(match &packets.format {
        PacketFormat::Vdif(vdif) => Box::new(vdif::VdifFormat::new(packets, vdif, known)?),
        PacketFormat::Mark5b(mark5b) => Box::new(mark5b::Mark5bFormat::new(packets, mark5b, known)?),
        PacketFormat::Raw(raw) => Box::new(raw::RawFormat::new(packets, raw, known)),
        PacketFormat::Excalibur(_)
        | PacketFormat::Jungfrau(_)
        | PacketFormat::DummyUdp(_)
        | PacketFormat::Described(_) => {
            let layout = packets.detector(known.frame).expect("these are detectors");
            Box::new(detector::DetectorFormat::new(layout, known)?)
        }
    })
}

#[cfg(test)]
pub(crate) mod tests;
