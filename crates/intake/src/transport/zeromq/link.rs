//! One incoming connection for messages.
//!
//! Bytes are read into a small buffer. There it decodes the headers of frames and finds long byte strings. It
//! copies the part of a string that is in the buffer to the string's place, and reads the rest there
//! directly:
//!
//! ```text
//! kernel -> buffer, 8 KiB -> frame header, CBOR | beginning of a string -> copied
//!        -> memory of the receiver, for all of the string that is not in the buffer
//! ```

use std::io::{ErrorKind, Read, Write};

use nilometer_model::Nanos;
use nilometer_wire::{
    cbor::{Scanned, StringScanner},
    zmtp::{ZmtpDecoder, ZmtpNext, ZmtpSocket, greeting, pong, ready, subscription},
};

use super::{
    LONG_BYTES, MessageLimits, MessageRoom, RoomAnswer, RoomRequest, ZmqMessage,
    looked::{BeyondLimits, LinkAllowance, LinkError, Looked},
};

/// Size of the buffer for bytes that are not decoded yet.
const BUFFER: usize = 8 << 10;
/// Maximum bytes read and dropped of a message beyond its limits. After that the connection is given up.
const DROPPED_MAX: u64 = 16 << 30;
/// Bytes read at a look. Then it is another connection's turn, however fast this one sends.
const LOOK_BYTES: u64 = 4 << 20;

/// A part of which bytes are still to arrive.
#[derive(Debug)]
struct ComingPart {
    /// Bytes still to be taken.
    left: u64,
    more: bool,
    number: usize,
    /// Looks for strings in the part. `None`: the part is not searched.
    scanner: Option<StringScanner>,
    /// A string that has no place yet: its offset in the part, and its length.
    found: Option<FoundString>,
}

/// State of the memory for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageMemory {
    /// There is enough for the bytes received.
    Enough,
    /// Other connections hold it.
    Awaited,
    /// The message needs more than there can be. It is refused, and the socket reports that before the rest
    /// arrives.
    Refused,
}

#[derive(Debug, Clone, Copy)]
struct FoundString {
    at: usize,
    length: usize,
}

/// A string that is being read to its place: the last one of those that lie apart.
#[derive(Debug)]
struct ComingString {
    filled: usize,
    length: usize,
}

/// An incoming connection over a non-blocking stream.
#[derive(Debug)]
pub(super) struct PullLink<S> {
    pub(super) stream: S,
    /// When it began.
    pub(super) since: Nanos,
    decoder: ZmtpDecoder,
    limits: MessageLimits,
    buffer: Box<[u8]>,
    /// The unread bytes of the buffer: from `begin` to `end`.
    begin: usize,
    end: usize,
    message: ZmqMessage,
    /// Length of the message according to its parts' headers.
    announced: u64,
    /// Why the message is dropped, if it is.
    refused: Option<BeyondLimits>,
    /// How much it may keep.
    pub(super) allowance: LinkAllowance,
    memory: MessageMemory,
    part: Option<ComingPart>,
    string: Option<ComingString>,
    /// Bytes to be sent.
    out: Vec<u8>,
    ready: bool,
    /// True if it announces its socket type only after the other end did.
    waits_for_ready: bool,
    /// Bytes received.
    pub(super) bytes: u64,
}

impl<S: Read + Write> PullLink<S> {
    /// Makes the link of a new connection.
    pub(super) fn new(stream: S, limits: MessageLimits, since: Nanos) -> Self {
        PullLink {
            stream,
            since,
            decoder: ZmtpDecoder::new(ZmtpSocket::Pull),
            limits,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            begin: 0,
            end: 0,
            message: ZmqMessage::default(),
            announced: 0,
            refused: None,
            allowance: LinkAllowance::FULL,
            memory: MessageMemory::Enough,
            part: None,
            string: None,
            out: greeting().to_vec(),
            ready: false,
            waits_for_ready: false,
            bytes: 0,
        }
    }

    /// The same, but the other end may also be a publisher, which sends to all that are subscribed.
    #[must_use]
    pub(super) fn of_publishers_too(mut self) -> Self {
        self.decoder = ZmtpDecoder::either(ZmtpSocket::Pull, ZmtpSocket::Subscribe);
        self
    }

    /// Returns true if the handshake is complete.
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Returns true if it has bytes to send.
    pub(super) fn wants_to_send(&self) -> bool {
        !self.out.is_empty()
    }

    /// Returns true if received bytes wait for room or for memory.
    pub(super) fn wants_room(&self) -> bool {
        self.wants_memory() || self.part.as_ref().is_some_and(|part| part.found.is_some())
    }

    /// Returns true if received bytes wait for memory.
    pub(super) fn wants_memory(&self) -> bool {
        self.memory == MessageMemory::Awaited
    }

    /// Returns true in the middle of a message.
    pub(super) fn is_in_message(&self) -> bool {
        self.part.is_some() || self.announced > 0
    }

    /// Returns true if the incoming message holds memory of the receiver.
    pub(super) fn holds_room(&self) -> bool {
        self.message.apart.iter().any(Option::is_some)
    }

    /// Bytes of a message that it keeps in addition to that.
    pub(super) fn kept(&self) -> usize {
        self.message.own().len()
    }

    /// Refuses the incoming message: the rest of it is read and dropped.
    pub(super) fn refuse_message(&mut self, why: BeyondLimits, room: &mut dyn MessageRoom) {
        self.give_up(room);
        self.refused = Some(why);
        let is_lacking = why == BeyondLimits::Memory;
        self.memory = if is_lacking { MessageMemory::Refused } else { MessageMemory::Enough };
        if let Some(part) = &mut self.part {
            part.scanner = None;
            part.found = None;
        }
    }

    /// Gives up the incoming message and returns its memory to the receiver. Returns true if there was one.
    pub(super) fn give_up(&mut self, room: &mut dyn MessageRoom) -> bool {
        let began = self.is_in_message();
        let message = std::mem::take(&mut self.message);
        message.apart.into_iter().flatten().for_each(|buffer| room.give_back(buffer));
        began
    }

    /// Takes the bytes received, up to the end of a message.
    pub(super) fn look(&mut self, room: &mut dyn MessageRoom) -> Result<Looked, LinkError> {
        let before = self.bytes;
        loop {
            self.send()?;
            if let Some(looked) = self.advance(room)? {
                return Ok(looked);
            }
            // The buffer is empty: more is still in the kernel.
            if self.bytes - before >= LOOK_BYTES {
                return Ok(Looked::More);
            }
            if !self.read()? {
                return Ok(Looked::Nothing);
            }
        }
    }

    /// Sends pending bytes, as far as the network takes them.
    fn send(&mut self) -> Result<(), LinkError> {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(taken) => drop(self.out.drain(..taken)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads once: into the current string, or into the buffer, which is empty. Returns false if nothing was
    /// available.
    fn read(&mut self) -> Result<bool, LinkError> {
        let into = match &self.string {
            Some(string) => {
                self.message.apart.last_mut().and_then(Option::as_mut).map(|apart| (string, apart))
            }
            None => None,
        };
        let direct = into.is_some();
        let space = match into {
            Some((string, apart)) => &mut apart[string.filled..string.length],
            None => &mut self.buffer[..],
        };
        let came = loop {
            match self.stream.read(space) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(came) => break came,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        };
        self.bytes += came as u64;
        if direct {
            self.string_came(came);
        } else {
            self.begin = 0;
            self.end = came;
        }
        Ok(true)
    }

    /// Processes the bytes in the buffer. `None`: more must be read.
    fn advance(&mut self, room: &mut dyn MessageRoom) -> Result<Option<Looked>, LinkError> {
        loop {
            if self.memory == MessageMemory::Refused {
                self.memory = MessageMemory::Enough;
                return Ok(Some(Looked::Refused(BeyondLimits::Memory)));
            }
            if self.string.is_some() {
                if !self.string_from_buffer() {
                    return Ok(None);
                }
            } else if self.part.is_some() {
                match self.part_from_buffer(room) {
                    PartStep::Done => {
                        if let Some(looked) = self.end_part(room) {
                            return Ok(Some(looked));
                        }
                    }
                    PartStep::On => {}
                    PartStep::Empty => return Ok(None),
                    PartStep::Full => return Ok(Some(Looked::Full)),
                }
            } else if self.begin == self.end {
                return Ok(None);
            } else {
                let (used, next) = self.decoder.feed(&self.buffer[self.begin..self.end])?;
                self.begin += used;
                self.obey(next)?;
            }
        }
    }

    fn obey(&mut self, next: ZmtpNext) -> Result<(), LinkError> {
        match next {
            ZmtpNext::Greeted => {
                self.waits_for_ready = self.decoder.is_undecided();
                if !self.waits_for_ready {
                    self.out.extend(ready(self.decoder.socket()));
                }
            }
            ZmtpNext::Ready => self.is_known(),
            // A peer that asks without reading the answers gets none.
            ZmtpNext::Ping { context } if self.out.len() < BUFFER => self.out.extend(pong(&context)),
            ZmtpNext::Ping { .. }
            | ZmtpNext::More
            | ZmtpNext::Command
            | ZmtpNext::Subscribe { .. }
            | ZmtpNext::Cancel { .. } => {}
            ZmtpNext::Part { length, more } => self.begin_part(length, more)?,
        }
        Ok(())
    }

    /// The other end announced its socket type.
    fn is_known(&mut self) {
        self.ready = true;
        let socket = self.decoder.socket();
        if self.waits_for_ready {
            self.out.extend(ready(socket));
        }
        if socket == ZmtpSocket::Subscribe {
            self.out.extend(subscription());
        }
    }

    fn begin_part(&mut self, length: u64, more: bool) -> Result<(), LinkError> {
        self.announced = self.announced.saturating_add(length);
        if self.announced > DROPPED_MAX {
            return Err(LinkError::Endless(self.announced));
        }
        let number = if self.refused.is_some() { 0 } else { self.message.begin_part() };
        if self.announced > self.limits.bytes || number >= self.limits.parts {
            self.refused.get_or_insert(BeyondLimits::Message);
        }
        let is_kept = self.refused.is_none();
        let whole = number > 0 && length >= LONG_BYTES && is_kept;
        let found = whole.then_some(FoundString { at: 0, length: length as usize });
        let scanner = (number == 0 && is_kept).then(StringScanner::default);
        self.part = Some(ComingPart { left: length, more, number, scanner, found });
        Ok(())
    }

    /// Ends a part. Returns the message, if the part was the last.
    fn end_part(&mut self, room: &mut dyn MessageRoom) -> Option<Looked> {
        let part = self.part.take()?;
        if part.more {
            return None;
        }
        if let Some(why) = self.refused.take() {
            self.give_up(room);
            self.announced = 0;
            return (why == BeyondLimits::Message).then_some(Looked::Refused(why));
        }
        self.announced = 0;
        Some(Looked::Came(std::mem::take(&mut self.message)))
    }

    /// Takes more of a part from the buffer.
    fn part_from_buffer(&mut self, room: &mut dyn MessageRoom) -> PartStep {
        let Some(part) = &mut self.part else { return PartStep::Done };
        if let Some(found) = part.found {
            return self.place(found, room);
        }
        if let Some(scanner) = &mut part.scanner
            && let Scanned::String { at, length } = scanner.next(self.message.own(), LONG_BYTES)
        {
            let there = self.message.own().len().saturating_sub(at) as u64 + part.left;
            if length <= there {
                part.found = Some(FoundString { at, length: length as usize });
            } else {
                // It can't fit into this message. The decoder reports that.
                scanner.along(length);
            }
            return PartStep::On;
        }
        if part.left == 0 {
            return PartStep::Done;
        }
        let came = ((self.end - self.begin) as u64).min(part.left) as usize;
        if came == 0 {
            return PartStep::Empty;
        }
        if self.refused.is_none() && !self.has_memory(came, room) {
            return PartStep::Full;
        }
        let Some(part) = &mut self.part else { return PartStep::Done };
        if self.refused.is_none() {
            let piece = &self.buffer[self.begin..self.begin + came];
            // Version 1 begins with JSON, which is not searched for strings.
            let is_cbor =
                self.message.own().first().or(piece.first()).is_some_and(|first| matches!(first >> 5, 5 | 6));
            part.scanner = part.scanner.take().filter(|_| is_cbor);
            self.message.extend(piece);
        }
        part.left -= came as u64;
        self.begin += came;
        PartStep::On
    }

    /// Returns true if `bytes` more bytes of the message can be kept now, or if it was refused because they
    /// never can.
    fn has_memory(&mut self, bytes: usize, room: &mut dyn MessageRoom) -> bool {
        let kept = self.kept() + bytes;
        if kept > self.allowance.kept_most {
            self.refuse_message(BeyondLimits::Memory, room);
            return true;
        }
        let has_memory = kept <= self.allowance.kept_now;
        self.memory = if has_memory { MessageMemory::Enough } else { MessageMemory::Awaited };
        has_memory
    }

    /// Finds a place for a string.
    fn place(&mut self, found: FoundString, room: &mut dyn MessageRoom) -> PartStep {
        let Some(part) = &mut self.part else { return PartStep::Done };
        let FoundString { at, length } = found;
        let before = self.message.own();
        let before = if part.number == 0 { &before[..at] } else { before };
        let LinkAllowance { is_trusted, may_take_room, strings, kept_most, .. } = self.allowance;
        let kept = self.message.own().len();
        let asked = RoomRequest { before, part: part.number, length, is_trusted };
        let buffer = match room.room(asked) {
            RoomAnswer::Later => return PartStep::Full,
            RoomAnswer::Apart(buffer) if !may_take_room => {
                room.give_back(buffer);
                return PartStep::Full;
            }
            RoomAnswer::Apart(buffer) if self.message.apart.len() >= strings => {
                room.give_back(buffer);
                None
            }
            RoomAnswer::Along if kept.saturating_add(length) > kept_most => {
                self.refuse_message(BeyondLimits::Memory, room);
                return PartStep::On;
            }
            RoomAnswer::Along => {
                if let Some(scanner) = &mut part.scanner {
                    scanner.along(length as u64);
                }
                part.found = None;
                return PartStep::On;
            }
            RoomAnswer::Apart(buffer) if buffer.len() >= length => Some(buffer),
            RoomAnswer::Apart(buffer) => {
                room.give_back(buffer);
                None
            }
            RoomAnswer::Dropped => None,
        };
        part.found = None;
        let filled = self.message.take_out(at, length, buffer);
        part.left -= (length - filled) as u64;
        if filled < length {
            self.string = Some(ComingString { filled, length });
        }
        PartStep::On
    }

    /// Takes more of a string from the buffer. Returns true if it is complete.
    fn string_from_buffer(&mut self) -> bool {
        let Some(string) = &self.string else { return true };
        let came = (self.end - self.begin).min(string.length - string.filled);
        if let Some(Some(apart)) = self.message.apart.last_mut() {
            let piece = &self.buffer[self.begin..self.begin + came];
            apart[string.filled..string.filled + came].copy_from_slice(piece);
        }
        self.begin += came;
        self.string_came(came);
        self.string.is_none()
    }

    fn string_came(&mut self, came: usize) {
        if let Some(string) = &mut self.string {
            string.filled += came;
            if string.filled == string.length {
                self.string = None;
            }
        }
    }
}

/// The result of taking more of a part.
enum PartStep {
    /// The part is complete.
    Done,
    /// There may be more of it.
    On,
    /// The buffer is empty.
    Empty,
    /// There is no room for a string.
    Full,
}
