//! The place of frames in the payload of packets, found by looking at some of them.

use std::{collections::BTreeMap, fmt};

use nilometer_model::{
    Format,
    packets::{Mark5b, VlbiMode},
};
use nilometer_wire::{
    Stamps,
    mark5b::{Fault, Mark5bHeader},
};

use super::{container::CapturedPacket, link::UdpPayload, payload_runs::PayloadRuns};
use crate::{
    foreign::{
        shape::{StreamShape, read_up_to},
        wish::ForeignWish,
    },
    recording_storage::StoredFile,
};

/// Bytes in front of a frame that senders use, in steps of a word.
const PREFIX_MAX: usize = 64;
const WORD: usize = 4;
/// A half of a Mark5B frame, as FILA10G sends it.
const HALF: usize = (Mark5b::FRAME.0 / 2) as usize;

/// The packets of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PayloadLayout {
    /// A frame behind a prefix.
    Frame { prefix: usize, shape: StreamShape },
    /// A half of a Mark5B frame behind a prefix.
    Half { prefix: usize },
    /// All bytes behind a prefix in packets that have this number of them, to this port.
    Raw { port: u16, prefix: usize, length: usize },
}

impl PayloadLayout {
    /// The frames of the stream.
    pub(super) fn shape(self) -> StreamShape {
        match self {
            PayloadLayout::Frame { shape, .. } => shape,
            PayloadLayout::Half { .. } => {
                StreamShape { format: Format::Mark5b, frame_size: Mark5b::FRAME.0, header: None }
            }
            PayloadLayout::Raw { length, .. } => StreamShape::raw(length as u64),
        }
    }

    /// Starts to take packets of the stream that the user wants from a capture.
    pub(super) fn taker(self, wish: ForeignWish, file: &dyn StoredFile) -> PayloadTaker<'_> {
        PayloadTaker { layout: self, wish, file, runs: PayloadRuns::default(), first_half: None }
    }

    /// Finds frames in a payload: one, or several that the kernel merged with their prefixes.
    fn of(payload: &[u8], length: usize) -> Option<Self> {
        Self::of_one(payload, length).or_else(|| Self::of_merged(payload, length))
    }

    fn of_merged(payload: &[u8], length: usize) -> Option<Self> {
        (0..=PREFIX_MAX).step_by(WORD).find_map(|prefix| {
            let shape = StreamShape::of(payload.get(prefix..)?)?;
            let each = prefix as u64 + shape.frame_size;
            (length as u64 / each > 1 && (length as u64).is_multiple_of(each))
                .then_some(PayloadLayout::Frame { prefix, shape })
        })
    }

    fn of_one(payload: &[u8], length: usize) -> Option<Self> {
        (0..=PREFIX_MAX).step_by(WORD).find_map(|prefix| {
            let behind = payload.get(prefix..)?;
            let kept = length.checked_sub(prefix)?;
            if kept == HALF && has_sync(behind) {
                return Some(PayloadLayout::Half { prefix });
            }
            let shape = StreamShape::of(behind).filter(|shape| shape.frame_size == kept as u64)?;
            Some(PayloadLayout::Frame { prefix, shape })
        })
    }
}

impl fmt::Display for PayloadLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PayloadLayout::Frame { prefix, .. } => write!(f, "with a frame behind {prefix} B"),
            PayloadLayout::Half { prefix } => write!(f, "with half a frame behind {prefix} B"),
            PayloadLayout::Raw { port, prefix: 0, length } => write!(f, "of {length} B to port {port}"),
            PayloadLayout::Raw { port, prefix, length } => {
                write!(f, "with {length} B behind {prefix} B to port {port}")
            }
        }
    }
}

/// Returns the bytes that senders put in front of a frame of this mode in a payload of `length` bytes. `None` if they
/// put no such number there.
fn prefix_of(mode: &VlbiMode, length: usize) -> Option<usize> {
    let prefix = length.checked_sub(mode.frame_size().0 as usize)?;
    (prefix <= PREFIX_MAX && prefix.is_multiple_of(WORD)).then_some(prefix)
}

/// Returns true if frames of both shapes can be of one stream.
fn is_alike(one: &StreamShape, other: &StreamShape) -> bool {
    one.frame_size == other.frame_size && one.format == other.format
}

fn has_sync(bytes: &[u8]) -> bool {
    bytes.len() >= Mark5bHeader::SIZE && !matches!(Mark5bHeader::parse(bytes), Err(Fault::NoSync))
}

/// The bytes of a payload that the head of a packet has.
fn payload_of<'a>(packet: &CapturedPacket<'a>, udp: &UdpPayload) -> &'a [u8] {
    let head = packet.head;
    let end = (udp.offset + udp.length).min(head.len());
    head.get(udp.offset..end).unwrap_or_default()
}

/// Counts the packets with frames of a layout.
#[derive(Debug, Clone, Default)]
struct FrameVotes {
    /// The first such layout.
    first: Option<PayloadLayout>,
    /// The packets, by port and length.
    packets: BTreeMap<(u16, usize), u64>,
}

impl FrameVotes {
    fn count(&self) -> u64 {
        self.packets.values().sum()
    }

    /// The number of packets, except those that are few among all of their port and length: any bytes may look like a
    /// header. Only one of two halves has a header.
    fn count_among(&self, all: &BTreeMap<(u16, usize), u64>) -> u64 {
        let share = if matches!(self.first, Some(PayloadLayout::Half { .. })) { 4 } else { 2 };
        let is_usual = |key: &(u16, usize), count: u64| count * share >= all.get(key).copied().unwrap_or(0);
        self.packets.iter().filter(|(key, count)| is_usual(key, **count)).map(|(_, count)| count).sum()
    }
}

/// Counts the layouts of packets.
#[derive(Debug, Clone, Default)]
pub(super) struct LayoutVotes {
    /// By prefix, bytes of a frame, and true for a half: the packets with such a layout.
    frames: BTreeMap<(usize, u64, bool), FrameVotes>,
    /// Packets without a frame, by port and length.
    raw: BTreeMap<(u16, usize), u64>,
    /// All packets to ports that the user wants, by port and length.
    all: BTreeMap<(u16, usize), u64>,
    /// All packets, by port.
    ports: BTreeMap<u16, u64>,
}

impl LayoutVotes {
    /// Counts a packet. Returns true if the user wants packets to its port.
    pub(super) fn add(&mut self, packet: &CapturedPacket<'_>, udp: &UdpPayload, wish: &ForeignWish) -> bool {
        *self.ports.entry(udp.port).or_default() += 1;
        let is_wanted = wish.takes_port(udp.port);
        if is_wanted {
            self.add_wanted(packet, udp);
        }
        is_wanted
    }

    fn add_wanted(&mut self, packet: &CapturedPacket<'_>, udp: &UdpPayload) {
        let found = PayloadLayout::of(payload_of(packet, udp), udp.length);
        *self.all.entry((udp.port, udp.length)).or_default() += u64::from(udp.length > 0);
        let key = match found {
            Some(PayloadLayout::Frame { prefix, shape }) => (prefix, shape.frame_size, false),
            Some(PayloadLayout::Half { prefix }) => (prefix, Mark5b::FRAME.0, true),
            Some(PayloadLayout::Raw { .. }) | None => {
                *self.raw.entry((udp.port, udp.length)).or_default() += u64::from(udp.length > 0);
                return;
            }
        };
        let votes = self.frames.entry(key).or_default();
        votes.first = votes.first.or(found);
        *votes.packets.entry((udp.port, udp.length)).or_default() += 1;
    }

    /// The layout of most packets with frames, or else of most packets.
    pub(super) fn winner(self) -> Option<PayloadLayout> {
        let frames =
            self.frames.values().filter_map(|votes| Some((votes.first?, votes.count_among(&self.all))));
        let frames = frames.filter(|(_, count)| *count > 0).max_by_key(|(_, count)| *count);
        let raw = self.raw.into_iter().filter(|(_, count)| *count > 0).max_by_key(|(_, count)| *count);
        let raw = raw.map(|((port, length), _)| PayloadLayout::Raw { port, prefix: 0, length });
        frames.map(|(layout, _)| layout).or(raw)
    }

    /// The layout of most packets with frames of this mode, behind a prefix. `None` if no packet has one.
    pub(super) fn winner_of(self, mode: &VlbiMode) -> Option<PayloadLayout> {
        if mode.stored() != Format::Raw {
            let frames = self.frames.values().filter_map(|votes| Some((votes.first?, votes.count())));
            let frames = frames.filter(|(layout, _)| layout.shape().is_of(mode));
            return frames.max_by_key(|(_, count)| *count).map(|(layout, _)| layout);
        }
        let length_of_frame = mode.frame_size().0 as usize;
        // A header of CODIF may look like one of VDIF, with any size.
        let raw = self.all.into_iter().filter_map(|((port, length), count)| {
            let prefix = prefix_of(mode, length)?;
            Some((PayloadLayout::Raw { port, prefix, length: length_of_frame }, count))
        });
        raw.max_by_key(|(_, count)| *count).map(|(layout, _)| layout)
    }

    /// The ports to which packets with frames of this mode came, each with their number, if no header tells whether
    /// they are of one stream.
    pub(super) fn ports_of(&self, mode: &VlbiMode) -> BTreeMap<u16, u64> {
        let mut ports = BTreeMap::new();
        let is_unknown = mode.stored() == Format::Raw;
        let alike =
            self.all.iter().filter(|((_, length), _)| is_unknown && prefix_of(mode, *length).is_some());
        for ((port, _), count) in alike {
            *ports.entry(*port).or_default() += count;
        }
        ports
    }

    /// The ports to which any packets came, each with their number.
    pub(super) fn ports(&self) -> &BTreeMap<u16, u64> {
        &self.ports
    }
}

/// The fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketFate {
    /// It is of the stream.
    Whole,
    /// It is of the stream, and this number of halves before it or itself lack the other half.
    Lone(u64),
    /// Not all of it was captured.
    Cut,
    /// It is left out, but the user may want it: its frames are of the named mode, or nobody named any.
    Alike,
    /// It is not of the stream.
    Other,
}

/// Collects the payloads of a stream.
#[derive(Debug)]
pub(super) struct PayloadTaker<'a> {
    layout: PayloadLayout,
    wish: ForeignWish,
    /// The capture, for headers inside of a merged packet.
    file: &'a dyn StoredFile,
    runs: PayloadRuns,
    /// Offset in the file, and serial number, of a first half that waits for the second.
    first_half: Option<(u64, u32)>,
}

impl PayloadTaker<'_> {
    pub(super) fn take(&mut self, packet: &CapturedPacket<'_>, udp: &UdpPayload) -> PacketFate {
        if !self.wish.takes_port(udp.port) {
            return PacketFate::Other;
        }
        if udp.end() > u64::from(packet.captured) {
            return PacketFate::Cut;
        }
        let payload = payload_of(packet, udp);
        let at = packet.at + udp.offset as u64;
        match self.layout {
            PayloadLayout::Frame { prefix, shape } => {
                let found = payload.get(prefix..).and_then(StreamShape::of);
                let each = prefix as u64 + shape.frame_size;
                let count = udp.length as u64 / each;
                let is_whole = count > 0 && (udp.length as u64).is_multiple_of(each);
                if !is_whole || !found.is_some_and(|found| is_alike(&found, &shape)) {
                    return self.left_out(payload, udp);
                }
                let frames = (0..count).map(|frame| at + frame * each + prefix as u64);
                if !frames.clone().skip(1).all(|begin| self.has_frame(begin, &shape)) {
                    return self.left_out(payload, udp);
                }
                frames.for_each(|begin| self.runs.add(begin, shape.frame_size));
                PacketFate::Whole
            }
            PayloadLayout::Half { prefix } if udp.length == prefix + HALF => self.half(payload, prefix, at),
            PayloadLayout::Raw { port, prefix, length }
                if (port, prefix + length) == (udp.port, udp.length) =>
            {
                self.runs.add(at + prefix as u64, length as u64);
                PacketFate::Whole
            }
            PayloadLayout::Half { .. } | PayloadLayout::Raw { .. } => self.left_out(payload, udp),
        }
    }

    /// Returns true if a frame of this shape begins at this offset in the file.
    fn has_frame(&self, at: u64, shape: &StreamShape) -> bool {
        let mut head = [0; Stamps::BYTES];
        let read = read_up_to(self.file, &mut head, at).unwrap_or(0);
        StreamShape::of(&head[..read]).is_some_and(|found| is_alike(&found, shape))
    }

    /// The fate of a packet that is not of the stream.
    fn left_out(&self, payload: &[u8], udp: &UdpPayload) -> PacketFate {
        let frames = PayloadLayout::of(payload, udp.length);
        let is_alike = match (self.layout, self.wish.mode) {
            (PayloadLayout::Raw { .. }, None) => udp.length > 0,
            (PayloadLayout::Raw { .. }, Some(mode)) => prefix_of(&mode, udp.length).is_some(),
            (_, None) => frames.is_some(),
            (_, Some(mode)) => frames.is_some_and(|frames| frames.shape().is_of(&mode)),
        };
        if is_alike { PacketFate::Alike } else { PacketFate::Other }
    }

    /// Takes a half of a frame. The second half has no header, so it must follow the first.
    fn half(&mut self, payload: &[u8], prefix: usize, at: u64) -> PacketFate {
        let serial = prefix.checked_sub(WORD).and_then(|at| payload.get(at..)?.first_chunk());
        let serial = serial.map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let waiting = self.first_half.take();
        if payload.get(prefix..).is_some_and(has_sync) {
            self.first_half = Some((at + prefix as u64, serial));
            return waiting.map_or(PacketFate::Whole, |_| PacketFate::Lone(1));
        }
        match waiting {
            Some((first, number)) if prefix < WORD || number.wrapping_add(1) == serial => {
                self.runs.add(first, HALF as u64);
                self.runs.add(at + prefix as u64, HALF as u64);
                PacketFate::Whole
            }
            waiting => PacketFate::Lone(1 + u64::from(waiting.is_some())),
        }
    }

    /// Returns the stream, and the number of halves that still wait for the other.
    pub(super) fn end(self) -> (PayloadRuns, u64) {
        (self.runs, self.first_half.is_some().into())
    }
}
