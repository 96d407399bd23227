//! What stands in packets: an instrument's wire format, both ways.
//!
//! ```text
//! transport -> format (where does this packet belong?) -> assembly -> ring
//! ```
//!
//! A frame of a stream comes in one or more packets, its parts. Of a packet the prefix (a serial number, or a header that
//! nobody wants later) is dropped and the body is kept; the bodies of a frame, in order and without gaps, are the frame.

use std::fmt;

/// How packets make up frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a packet in front of what is kept.
    pub prefix: usize,
    /// Bytes that are kept of each packet of a frame, in the order in which they stand in the frame.
    pub parts: Vec<usize>,
    /// Bits of the frame's number as it is sent: after 2^bits it begins again at 0.
    pub number_bits: u32,
}

impl Geometry {
    /// Bytes of a frame.
    pub fn frame_size(&self) -> usize {
        self.parts.iter().sum()
    }

    /// Bytes of the longest packet.
    pub fn packet_size(&self) -> usize {
        self.prefix + self.parts.iter().max().copied().unwrap_or(0)
    }
}

/// A packet in memory, in two pieces that need not touch.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// What is not kept.
    pub prefix: &'a [u8],
    /// What is kept.
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
    /// It is of another format, station or thread, or from a sender that is not allowed.
    Foreign,
    /// What it says of itself can't be.
    Corrupt,
}

impl Ignored {
    /// All of them.
    pub const ALL: [Ignored; 3] = [Ignored::Size, Ignored::Foreign, Ignored::Corrupt];

    /// The word in reports and records.
    pub const fn name(self) -> &'static str {
        match self {
            Ignored::Size => "odd-sized",
            Ignored::Foreign => "foreign",
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
    /// stream. Samples are in `body` already, where the format has them.
    fn make(&self, number: u64, part: usize, prefix: &mut [u8], body: &mut [u8]);
}
