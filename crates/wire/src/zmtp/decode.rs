//! Decodes the bytes of a connection.

use super::{GREETING_BYTES, ZmtpError, ZmtpSocket};

/// Limit on the bytes of a command. Commands of NULL have a few hundred.
const COMMAND_MAX: usize = 4096;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// The next event on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ZmtpNext {
    /// The decoder needs more bytes.
    More,
    /// The other end sent its greeting. Reply with this end's type ([`super::ready`]).
    Greeted,
    /// The other end has the right type: both ends may now send messages.
    Ready,
    /// A part of a message follows. Do not feed its bytes to the decoder; continue with those after it.
    Part {
        /// Bytes of the part as stated. They may never arrive.
        length: u64,
        /// True if another part of the same message follows.
        more: bool,
    },
    /// A ping. Reply with a pong ([`super::pong`]) that carries these bytes, at most 16.
    Ping {
        /// The bytes for the pong.
        context: Vec<u8>,
    },
    /// A command that needs no reply.
    Command,
    /// A subscriber wants messages that begin with these bytes, in the form of ZMTP 3.1.
    Subscribe {
        /// The first bytes of the wanted messages.
        topic: Vec<u8>,
    },
    /// A subscriber takes a subscription back, in the form of ZMTP 3.1.
    Cancel {
        /// The bytes of the subscription.
        topic: Vec<u8>,
    },
}

/// Stage of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Greeting,
    Handshake,
    Traffic,
}

/// The incoming half of a connection.
#[derive(Debug)]
pub struct ZmtpDecoder {
    socket: ZmtpSocket,
    /// The type of this end if the other end is its peer rather than that of `socket`.
    or: Option<ZmtpSocket>,
    stage: Stage,
    /// An incomplete greeting or frame, never more than a command.
    held: Vec<u8>,
    /// True within a message: only its own parts may follow.
    within: bool,
}

impl ZmtpDecoder {
    /// Decodes a connection whose own end has this type.
    pub fn new(socket: ZmtpSocket) -> Self {
        ZmtpDecoder { socket, or: None, stage: Stage::Greeting, held: Vec::new(), within: false }
    }

    /// Decodes a connection whose own end has one of these two types, depending on the other end. The other end
    /// learns this end's type after it has sent its own.
    pub fn either(socket: ZmtpSocket, or: ZmtpSocket) -> Self {
        ZmtpDecoder { or: Some(or), ..Self::new(socket) }
    }

    /// Returns the type of this end.
    pub fn socket(&self) -> ZmtpSocket {
        self.socket
    }

    /// Returns true if the other end must send its type first.
    pub fn is_undecided(&self) -> bool {
        self.or.is_some()
    }

    /// Decodes the next event from received bytes. Returns the number of bytes used, and the event.
    pub fn feed(&mut self, came: &[u8]) -> Result<(usize, ZmtpNext), ZmtpError> {
        let mut used = 0;
        loop {
            let wanted = match self.stage {
                Stage::Greeting => GREETING_BYTES,
                Stage::Handshake | Stage::Traffic => self.frame_bytes()?,
            };
            let missing = wanted - self.held.len();
            let there = &came[used..];
            let taken = missing.min(there.len());
            self.held.extend_from_slice(&there[..taken]);
            used += taken;
            if self.stage == Stage::Greeting {
                greeted(&self.held)?;
            }
            if taken < missing {
                return Ok((used, ZmtpNext::More));
            }
            // A frame's header may be complete now, and state that more bytes belong to it.
            if self.stage == Stage::Greeting || self.frame_bytes()? == self.held.len() {
                let next = self.whole();
                self.held.clear();
                return Ok((used, next?));
            }
        }
    }

    /// Returns the bytes of the frame in `held`, as far as its header states them. For a part of a message,
    /// counts only the header.
    fn frame_bytes(&self) -> Result<usize, ZmtpError> {
        let Some(flags) = self.held.first() else { return Ok(1) };
        let fault = |fault| Err(ZmtpError::Frame { fault });
        if flags & !(MORE | LONG | COMMAND) != 0 || flags & (MORE | COMMAND) == MORE | COMMAND {
            return fault("a frame with flags that ZMTP does not know");
        }
        let is_command = flags & COMMAND != 0;
        if self.stage == Stage::Handshake && !is_command {
            return fault("a message before the handshake is over");
        }
        let header = if flags & LONG == 0 { 2 } else { 9 };
        if self.held.len() < header {
            return Ok(header);
        }
        let size = self.size(header);
        if !is_command {
            return Ok(header);
        }
        match usize::try_from(size) {
            Ok(size) if size <= COMMAND_MAX => Ok(header + size),
            _ => fault("a command of more than 4096 B"),
        }
    }

    fn size(&self, header: usize) -> u64 {
        self.held[1..header].iter().fold(0, |size, byte| size << 8 | u64::from(*byte))
    }

    /// Decodes the complete greeting or frame in `held`.
    fn whole(&mut self) -> Result<ZmtpNext, ZmtpError> {
        if self.stage == Stage::Greeting {
            self.stage = Stage::Handshake;
            return Ok(ZmtpNext::Greeted);
        }
        let flags = self.held[0];
        let header = if flags & LONG == 0 { 2 } else { 9 };
        if flags & COMMAND == 0 {
            self.within = flags & MORE != 0;
            return Ok(ZmtpNext::Part { length: self.size(header), more: self.within });
        }
        let held = std::mem::take(&mut self.held);
        self.command(&held[header..])
    }

    fn command(&mut self, command: &[u8]) -> Result<ZmtpNext, ZmtpError> {
        let cut = ZmtpError::Frame { fault: "a command that ends early" };
        let (name, body) = sized(command).ok_or(cut.clone())?;
        match (self.stage, name) {
            (Stage::Handshake, b"READY") => {
                self.ready(body)?;
                self.stage = Stage::Traffic;
                Ok(ZmtpNext::Ready)
            }
            (_, b"ERROR") => {
                let (reason, _) = sized(body).ok_or(cut)?;
                Err(ZmtpError::Refused { reason: String::from_utf8_lossy(reason).into_owned() })
            }
            (Stage::Handshake, _) => {
                Err(ZmtpError::Frame { fault: "another command than READY in the handshake" })
            }
            // A time to live of 2 bytes precedes the bytes for the pong.
            (_, b"PING") => match body.get(2..) {
                Some(context) if context.len() <= 16 => Ok(ZmtpNext::Ping { context: context.to_vec() }),
                _ => {
                    Err(ZmtpError::Frame { fault: "a ping that carries more than 16 B, or no time to live" })
                }
            },
            // RFC 37, "Commands": the subscription is the rest of the command.
            (_, b"SUBSCRIBE") => Ok(ZmtpNext::Subscribe { topic: body.to_vec() }),
            (_, b"CANCEL") => Ok(ZmtpNext::Cancel { topic: body.to_vec() }),
            _ => Ok(ZmtpNext::Command),
        }
    }

    /// Checks the type of the other end.
    fn ready(&mut self, mut properties: &[u8]) -> Result<(), ZmtpError> {
        let cut = || ZmtpError::Frame { fault: "a READY command that ends early" };
        let wanted = self.socket.peer().name();
        while !properties.is_empty() {
            let (name, rest) = sized(properties).ok_or_else(cut)?;
            let (size, rest) = rest.split_first_chunk().ok_or_else(cut)?;
            let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*size) as usize).ok_or_else(cut)?;
            properties = rest;
            if name.eq_ignore_ascii_case(b"Socket-Type") {
                let is = String::from_utf8_lossy(value).into_owned();
                if let Some(or) = self.or.take().filter(|or| is == or.peer().name()) {
                    self.socket = or;
                    return Ok(());
                }
                return if is == wanted { Ok(()) } else { Err(ZmtpError::Socket { is, wanted }) };
            }
        }
        Err(ZmtpError::Frame { fault: "a READY command without a Socket-Type" })
    }
}

/// Splits off the bytes that follow a byte with their length.
fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// Checks the received part of a greeting.
fn greeted(came: &[u8]) -> Result<(), ZmtpError> {
    for (at, wanted) in [(0, 0xff), (9, 0x7f)] {
        if came.get(at).is_some_and(|byte| *byte != wanted) {
            return Err(ZmtpError::NotZmtp { at });
        }
    }
    // Ends of older versions wait for a reply after this byte, so do not wait for more of their bytes.
    if let Some(major) = came.get(10)
        && *major < 3
    {
        return Err(ZmtpError::Old { major: *major });
    }
    if let Some(mechanism) = came.get(12..32) {
        let name: Vec<u8> = mechanism.iter().copied().take_while(|byte| *byte != 0).collect();
        if name != b"NULL" {
            return Err(ZmtpError::Mechanism { mechanism: String::from_utf8_lossy(&name).into_owned() });
        }
    }
    Ok(())
}
