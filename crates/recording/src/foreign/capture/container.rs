//! The packets in a file of pcap or pcapng, one after the other.
//!
//! pcap: a file header of 24 bytes, then for each packet 16 bytes (time, captured and original length) and its
//! bytes (draft-ietf-opsawg-pcap). pcapng: blocks of a type and a length, which ends them too; an interface
//! block states the link type of the packets that refer to it (draft-ietf-opsawg-pcapng).

use std::{io, ops::ControlFlow};

use nilometer_model::Bytes;

use crate::{foreign::shape::read_up_to, recording_storage::StoredFile};

/// A packet in a capture.
#[derive(Debug, Clone, Copy)]
pub(super) struct CapturedPacket<'a> {
    /// The link type.
    pub(super) link: u32,
    /// Offset of its bytes in the file.
    pub(super) at: u64,
    /// Number of its bytes in the file.
    pub(super) captured: u32,
    /// Its first bytes.
    pub(super) head: &'a [u8],
}

/// The most bytes of a packet that its headers, and those of its payload, take.
const HEAD: usize = 320;
/// Bytes per read: many small packets, or the headers of a large one.
const AT_ONCE: usize = 2048;
/// Largest packet, and largest block of pcapng. Both have room to spare.
const PACKET_MAX: u32 = 1 << 24;
const BLOCK_MAX: u32 = 1 << 28;
/// The most interfaces of a section.
const INTERFACES_MAX: usize = 1 << 16;

const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// Returns true if a file with these first bytes is a capture.
pub(crate) fn is_magic(magic: [u8; 4]) -> bool {
    u32::from_le_bytes(magic) == SECTION || ByteOrder::of_pcap(magic).is_some()
}

/// The order of the bytes in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn of_pcap(magic: [u8; 4]) -> Option<Self> {
        let is_one = |magic: u32| [MICROSECONDS, NANOSECONDS].contains(&magic);
        Self::of(magic, is_one)
    }

    fn of(bytes: [u8; 4], is_one: impl Fn(u32) -> bool) -> Option<Self> {
        if is_one(u32::from_le_bytes(bytes)) {
            return Some(ByteOrder::Little);
        }
        is_one(u32::from_be_bytes(bytes)).then_some(ByteOrder::Big)
    }

    /// Reads the number of four bytes at an offset. 0 if they are not there.
    fn word(self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or_default();
        match self {
            ByteOrder::Little => u32::from_le_bytes(word),
            ByteOrder::Big => u32::from_be_bytes(word),
        }
    }

    fn half(self, bytes: &[u8], at: usize) -> u16 {
        let half = bytes.get(at..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or_default();
        match self {
            ByteOrder::Little => u16::from_le_bytes(half),
            ByteOrder::Big => u16::from_be_bytes(half),
        }
    }
}

/// A part of a file in memory, that moves forward.
#[derive(Debug)]
struct FileWindow<'a> {
    file: &'a dyn StoredFile,
    begin: u64,
    bytes: Vec<u8>,
}

impl FileWindow<'_> {
    /// Returns `length` bytes from an offset on, fewer at the end of the file.
    fn bytes(&mut self, at: u64, length: usize) -> io::Result<&[u8]> {
        let end = self.begin + self.bytes.len() as u64;
        if at < self.begin || at + length as u64 > end {
            self.bytes.resize(AT_ONCE.max(length), 0);
            let read = read_up_to(self.file, &mut self.bytes, at)?;
            self.bytes.truncate(read);
            self.begin = at;
        }
        let from = (at - self.begin) as usize;
        let to = (from + length).min(self.bytes.len());
        Ok(&self.bytes[from..to])
    }
}

/// Passes each packet to `take`, until that ends it. Returns why the packets do not go on to the end of the
/// file, if they don't.
pub(super) fn each_packet(
    file: &dyn StoredFile,
    length: u64,
    take: &mut dyn FnMut(CapturedPacket<'_>) -> ControlFlow<()>,
) -> io::Result<Option<String>> {
    let mut window = FileWindow { file, begin: 0, bytes: Vec::new() };
    let magic = window.bytes(0, 4)?.first_chunk().copied().unwrap_or_default();
    match ByteOrder::of_pcap(magic) {
        Some(order) => packets_of_pcap(&mut window, length, order, take),
        None => packets_of_pcapng(&mut window, length, take),
    }
}

const PCAP_HEADER: u64 = 24;
const PCAP_PACKET: u64 = 16;

fn packets_of_pcap(
    window: &mut FileWindow<'_>,
    length: u64,
    order: ByteOrder,
    take: &mut dyn FnMut(CapturedPacket<'_>) -> ControlFlow<()>,
) -> io::Result<Option<String>> {
    // The upper bits say how packets end, and some are reserved.
    let link = order.word(window.bytes(0, PCAP_HEADER as usize)?, 20) & 0xffff;
    let mut next = PCAP_HEADER;
    while next < length {
        let header = window.bytes(next, PCAP_PACKET as usize)?;
        if header.len() < PCAP_PACKET as usize {
            return Ok(Some(cut_at(next, length)));
        }
        let captured = order.word(header, 8);
        if captured > PACKET_MAX {
            return Ok(Some(damaged_at(next, length)));
        }
        let at = next + PCAP_PACKET;
        if at + u64::from(captured) > length {
            return Ok(Some(cut_at(next, length)));
        }
        let head = window.bytes(at, HEAD.min(captured as usize))?;
        if take(CapturedPacket { link, at, captured, head }).is_break() {
            return Ok(None);
        }
        next = at + u64::from(captured);
    }
    Ok(None)
}

/// A section of pcapng: its byte order, and link type and limit on packets of each interface.
#[derive(Debug)]
struct CaptureSection {
    order: ByteOrder,
    interfaces: Vec<(u32, u32)>,
}

/// Bytes of a block in front of its body, and with the length behind it.
const BLOCK_FRONT: u64 = 8;
const BLOCK_AROUND: u32 = 12;

fn packets_of_pcapng(
    window: &mut FileWindow<'_>,
    length: u64,
    take: &mut dyn FnMut(CapturedPacket<'_>) -> ControlFlow<()>,
) -> io::Result<Option<String>> {
    let mut section = CaptureSection { order: ByteOrder::Little, interfaces: Vec::new() };
    let mut next = 0;
    while next < length {
        let front = window.bytes(next, HEAD)?;
        if front.len() < BLOCK_AROUND as usize {
            return Ok(Some(cut_at(next, length)));
        }
        if ByteOrder::Little.word(front, 0) == SECTION {
            let marks = front.get(8..12).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or_default();
            let Some(order) = ByteOrder::of(marks, |mark| mark == BYTE_ORDER) else {
                return Ok(Some(damaged_at(next, length)));
            };
            section = CaptureSection { order, interfaces: Vec::new() };
        }
        let size = section.order.word(front, 4);
        if !(BLOCK_AROUND..=BLOCK_MAX).contains(&size) || !size.is_multiple_of(4) {
            return Ok(Some(damaged_at(next, length)));
        }
        if next + u64::from(size) > length {
            return Ok(Some(cut_at(next, length)));
        }
        let found = section.packet(front, size);
        if let Some(BlockPacket { link, behind, captured }) = found {
            let at = next + BLOCK_FRONT + behind;
            let head = window.bytes(at, HEAD.min(captured as usize))?;
            if take(CapturedPacket { link, at, captured, head }).is_break() {
                return Ok(None);
            }
        }
        next += u64::from(size);
    }
    Ok(None)
}

/// A packet in a block of pcapng.
struct BlockPacket {
    link: u32,
    /// Bytes of the block's body in front of the packet.
    behind: u64,
    captured: u32,
}

impl CaptureSection {
    /// Takes in a block of `size` bytes by its first ones. Returns the packet in it, if it has one.
    fn packet(&mut self, front: &[u8], size: u32) -> Option<BlockPacket> {
        let order = self.order;
        let body = front.get(BLOCK_FRONT as usize..)?;
        let room = size - BLOCK_AROUND;
        let (interface, behind, captured) = match order.word(front, 0) {
            // An interface: link type, and the most bytes of a packet.
            1 if self.interfaces.len() < INTERFACES_MAX => {
                self.interfaces.push((order.half(body, 0).into(), order.word(body, 4)));
                return None;
            }
            // An old kind of packet, whose interface has 16 bits.
            2 => (order.half(body, 0).into(), 20, order.word(body, 12)),
            // A simple packet, which has only its original length.
            3 => {
                let (_, most) = self.interfaces.first()?;
                let most = if *most == 0 { u32::MAX } else { *most };
                (0, 4, order.word(body, 0).min(most).min(room.saturating_sub(4)))
            }
            6 => (order.word(body, 0), 20, order.word(body, 12)),
            _ => return None,
        };
        let (link, _) = *self.interfaces.get(interface as usize)?;
        let fits = captured <= PACKET_MAX && captured.checked_add(behind as u32)? <= room;
        fits.then_some(BlockPacket { link, behind, captured })
    }
}

fn cut_at(at: u64, length: u64) -> String {
    format!("the capture ends in a packet: {} from byte {at} on are not read", Bytes(length - at))
}

fn damaged_at(at: u64, length: u64) -> String {
    format!("no packet begins at byte {at}: {} from there on are not read", Bytes(length - at))
}
