//! A message that came, and the memory that what is long in it is read into.

use std::{net::IpAddr, ops::Range};

use nilometer_storage::Buffer;
use nilometer_wire::cbor::{ByteCut, DataPlace, MessageBytes};
#[cfg(test)]
use nilometer_wire::cbor::{Scanned, StringScanner};

#[cfg(test)]
use super::LONG_BYTES;

/// What becomes of a long byte string.
#[derive(Debug)]
pub enum RoomAnswer {
    /// It is read into this, which is as long at least.
    Apart(Buffer),
    /// It stays with the rest of the message.
    Along,
    /// There is no room now: it is left where it is, and asked again.
    Later,
    /// It is read, and nothing is kept of it. The message is delivered without.
    Dropped,
}

/// A long byte string that came to its beginning.
#[derive(Debug, Clone, Copy)]
pub struct RoomRequest<'a> {
    /// What came of its message before it.
    pub before: &'a [u8],
    /// The part of the message that it stands in, from 0. Behind the first, it is all of its part.
    pub part: usize,
    /// Its bytes.
    pub length: usize,
    /// The user named the other end, or it brought something of the series before.
    pub is_trusted: bool,
}

/// Who has memory for what is long in messages.
pub trait MessageRoom {
    /// Room for a byte string.
    fn room(&mut self, asked: RoomRequest<'_>) -> RoomAnswer;
    /// The connection ended within a message that this was given for.
    fn give_back(&mut self, buffer: Buffer);
    /// Whether messages that came wait for room: then those that hold some and stand still are given up.
    fn is_awaited(&self) -> bool {
        false
    }
}

/// The connection that a message came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessagePeer {
    /// Its number: no later connection has the same.
    pub(super) connection: u64,
    /// The address of the other end.
    pub address: IpAddr,
}

/// A part of a message.
#[derive(Debug, Clone, Default)]
struct MessagePart {
    bytes: Range<usize>,
    cuts: Vec<ByteCut>,
}

/// A message that came.
#[derive(Debug, Default)]
pub struct ZmqMessage {
    /// What lies together, of all parts.
    own: Vec<u8>,
    parts: Vec<MessagePart>,
    /// What was given for each cut of its parts; None if it was dropped.
    pub apart: Vec<Option<Buffer>>,
    /// Who sent it. None of one that no socket delivered.
    pub peer: Option<MessagePeer>,
}

impl ZmqMessage {
    /// Its parts, as decoders take them.
    pub fn parts(&self) -> Vec<MessageBytes<'_>> {
        let part = |part: &MessagePart| self.own.get(part.bytes.clone()).unwrap_or_default();
        self.parts.iter().map(|own| MessageBytes { bytes: part(own), cuts: &own.cuts }).collect()
    }

    /// Bytes of it, with those that lie apart or were dropped.
    pub fn length(&self) -> u64 {
        let apart = self.parts.iter().flat_map(|part| &part.cuts).map(|cut| cut.length as u64);
        self.own.len() as u64 + apart.sum::<u64>()
    }

    /// The bytes of a string of it. None if they were dropped, or taken away.
    pub fn bytes(&self, place: &DataPlace) -> Option<&[u8]> {
        match place {
            DataPlace::Within(range) => self.own.get(range.clone()),
            DataPlace::Apart { cut, length } => self.apart.get(*cut)?.as_ref()?.get(..*length),
        }
    }

    /// All that lies together so far.
    pub(super) fn own(&self) -> &[u8] {
        &self.own
    }

    /// Of a part that came: how many there were before.
    pub(super) fn begin_part(&mut self) -> usize {
        let end = self.own.len();
        self.parts.push(MessagePart { bytes: end..end, cuts: Vec::new() });
        self.parts.len() - 1
    }

    /// More of the last part came.
    pub(super) fn extend(&mut self, came: &[u8]) {
        self.own.extend_from_slice(came);
        self.mark_end();
    }

    /// A string begins in the last part, behind so many bytes of it: it is to lie elsewhere. What came of it already is copied
    /// there, and taken out here; how much that was.
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
    /// A message of these parts as a connection delivers it, its long strings where `room` has them. None if there is no room now.
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
