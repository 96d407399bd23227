//! A received message, and the memory for its long byte strings.

use std::{net::IpAddr, ops::Range};

use nilometer_storage::Buffer;
use nilometer_wire::cbor::{ByteCut, DataPlace, MessageBytes};
#[cfg(test)]
use nilometer_wire::cbor::{Scanned, StringScanner};

#[cfg(test)]
use super::LONG_BYTES;

/// The receiver's decision about a long byte string.
#[derive(Debug)]
pub enum RoomAnswer {
    /// Read it into this buffer, which is at least as long.
    Apart(Buffer),
    /// Keep it with the rest of the message.
    Along,
    /// There is no room now: leave it in the kernel and ask again.
    Later,
    /// Read and discard it. The message is delivered without it.
    Dropped,
}

/// A long byte string whose beginning has arrived.
#[derive(Debug, Clone, Copy)]
pub struct RoomRequest<'a> {
    /// The bytes of its message before it.
    pub before: &'a [u8],
    /// Index of the message part that contains it. After part 0, it is the whole part.
    pub part: usize,
    /// Its length in bytes.
    pub length: usize,
    /// True if the user named the other end, or if that sent a message of the series before.
    pub is_trusted: bool,
}

/// A source of memory for long byte strings.
pub trait MessageRoom {
    /// Decides about a byte string and gives memory for it.
    fn room(&mut self, asked: RoomRequest<'_>) -> RoomAnswer;
    /// Takes memory back. The connection ended within the message for which it was given.
    fn give_back(&mut self, buffer: Buffer);
    /// Returns true if received messages wait for room. Messages that hold some and stand still are then
    /// given up.
    fn is_awaited(&self) -> bool {
        false
    }
}

/// The connection on which a message arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessagePeer {
    /// Its number, which no later connection gets.
    pub(super) connection: u64,
    /// The address of the other end.
    pub address: IpAddr,
}

/// The number of no connection of this socket.
const ELSEWHERE: u64 = u64::MAX;

impl MessagePeer {
    /// A connection of another process, from this address.
    pub(crate) fn elsewhere(address: IpAddr) -> Self {
        MessagePeer { connection: ELSEWHERE, address }
    }
}

/// A part of a message.
#[derive(Debug, Clone, Default)]
struct MessagePart {
    bytes: Range<usize>,
    cuts: Vec<ByteCut>,
}

/// A received message.
#[derive(Debug, Default)]
pub struct ZmqMessage {
    /// The bytes of all parts, without those that lie apart.
    own: Vec<u8>,
    parts: Vec<MessagePart>,
    /// The buffer of each cut in its parts. `None`: the bytes were dropped.
    pub apart: Vec<Option<Buffer>>,
    /// The sender. `None`: no socket delivered the message.
    pub peer: Option<MessagePeer>,
}

/// A copy of a part, with its strings from `apart` in their places.
fn whole_part<'a>(part: MessageBytes<'_>, apart: &mut impl Iterator<Item = Option<&'a Buffer>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut copied = 0;
    for (cut, string) in part.cuts.iter().zip(apart) {
        bytes.extend_from_slice(&part.bytes[copied..cut.at]);
        copied = cut.at;
        bytes.extend_from_slice(string.map_or(&[], |string| &string[..cut.length]));
    }
    bytes.extend_from_slice(&part.bytes[copied..]);
    bytes
}

impl ZmqMessage {
    /// Its parts, as decoders take them.
    pub fn parts(&self) -> Vec<MessageBytes<'_>> {
        let part = |part: &MessagePart| self.own.get(part.bytes.clone()).unwrap_or_default();
        self.parts.iter().map(|own| MessageBytes { bytes: part(own), cuts: &own.cuts }).collect()
    }

    /// Length of the message in bytes, with those that lie apart or were dropped.
    pub fn length(&self) -> u64 {
        let apart = self.parts.iter().flat_map(|part| &part.cuts).map(|cut| cut.length as u64);
        self.own.len() as u64 + apart.sum::<u64>()
    }

    /// The bytes of one of its strings. `None`: they were dropped or taken away.
    pub fn bytes(&self, place: &DataPlace) -> Option<&[u8]> {
        match place {
            DataPlace::Within(range) => self.own.get(range.clone()),
            DataPlace::Apart { cut, length } => self.apart.get(*cut)?.as_ref()?.get(..*length),
        }
    }

    /// A copy of its parts, with the strings that lie apart in their places. Dropped strings are left out.
    pub(crate) fn whole_parts(&self) -> Vec<Vec<u8>> {
        let mut apart = self.apart.iter().map(Option::as_ref);
        self.parts().into_iter().map(|part| whole_part(part, &mut apart)).collect()
    }

    /// Takes its last part away, if that is not its only one and no string of it lies apart.
    pub(crate) fn take_last_part(&mut self) -> Option<Vec<u8>> {
        let part = self.parts.pop_if(|part| part.cuts.is_empty() && part.bytes.start > 0)?;
        let bytes = self.own.get(part.bytes.clone()).unwrap_or_default().to_vec();
        self.own.truncate(part.bytes.start);
        Some(bytes)
    }

    /// The bytes so far, of all parts, without those that lie apart.
    pub(super) fn own(&self) -> &[u8] {
        &self.own
    }

    /// Begins a part and returns its index.
    pub(super) fn begin_part(&mut self) -> usize {
        let end = self.own.len();
        self.parts.push(MessagePart { bytes: end..end, cuts: Vec::new() });
        self.parts.len() - 1
    }

    /// Adds bytes to the last part.
    pub(super) fn extend(&mut self, came: &[u8]) {
        self.own.extend_from_slice(came);
        self.mark_end();
    }

    /// Moves a string out of the last part. It begins at offset `at` of that part. Its bytes so far go to
    /// `buffer`, or are dropped if there is none. Returns how many bytes these were.
    pub(super) fn take_out(&mut self, at: usize, length: usize, mut buffer: Option<Buffer>) -> usize {
        let part = self.parts.last_mut().expect("a part has begun");
        let begin = part.bytes.start + at;
        let came = (self.own.len() - begin).min(length);
        if let Some(buffer) = &mut buffer {
            buffer[..came].copy_from_slice(&self.own[begin..begin + came]);
        }
        self.own.drain(begin..begin + came);
        part.cuts.push(ByteCut { at, length });
        self.apart.push(buffer);
        self.mark_end();
        came
    }

    fn mark_end(&mut self) {
        let end = self.own.len();
        if let Some(part) = self.parts.last_mut() {
            part.bytes.end = end;
        }
    }
}

#[cfg(test)]
impl ZmqMessage {
    /// A message of these parts as a connection delivers it. `room` gets its long strings. `None`: there is
    /// no room now.
    pub(crate) fn delivered(parts: &[Vec<u8>], room: &mut dyn MessageRoom) -> Option<Self> {
        let mut message = ZmqMessage::default();
        for bytes in parts {
            let part = message.begin_part();
            let begin = message.own.len();
            message.extend(bytes);
            let mut scanner = StringScanner::default();
            let is_json = bytes.first() == Some(&b'{');
            let found = |scanner: &mut StringScanner, own: &[u8]| match part {
                0 if is_json => Scanned::More,
                0 => scanner.next(own, LONG_BYTES),
                _ if own.len() as u64 >= LONG_BYTES => Scanned::String { at: 0, length: own.len() as u64 },
                _ => Scanned::More,
            };
            while let Scanned::String { at, length } = found(&mut scanner, &message.own[begin..]) {
                let before = if part == 0 { &message.own[..at] } else { &message.own[..begin] };
                let asked = RoomRequest { before, part, length: length as usize, is_trusted: true };
                match room.room(asked) {
                    RoomAnswer::Apart(buffer) => drop(message.take_out(at, length as usize, Some(buffer))),
                    RoomAnswer::Dropped => drop(message.take_out(at, length as usize, None)),
                    RoomAnswer::Along if part == 0 => scanner.along(length),
                    RoomAnswer::Along => break,
                    RoomAnswer::Later => {
                        message.apart.into_iter().flatten().for_each(|buffer| room.give_back(buffer));
                        return None;
                    }
                }
            }
        }
        Some(message)
    }
}
