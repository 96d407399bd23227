//! A connection to a peer that takes messages: handshake, heartbeats, and at most one message under way.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
};

use nilometer_model::Nanos;
use nilometer_wire::zmtp::{ZmtpDecoder, ZmtpNext, ZmtpSocket, greeting, pong, ready};

use super::{outgoing::OutgoingMessage, pull::keep_alive, topics::TopicList};

/// Time limit for the handshake: a peer that does not complete it frees its place for another.
pub(super) const HANDSHAKE: Nanos = Nanos::from_millis(30_000);
/// Maximum number of reads from a peer in one turn, so that an endless sender does not keep others waiting.
const HEARD_IN_A_TURN: usize = 16;
/// Maximum bytes of answers that wait to be sent. A peer that asks without reading the answers gets none.
const ANSWERS_MAX: usize = 8 << 10;

/// A connection to a peer that takes messages.
#[derive(Debug)]
pub(super) struct SendingPeer {
    pub(super) stream: TcpStream,
    decoder: ZmtpDecoder,
    /// The type of this end: it pushes or publishes.
    socket: ZmtpSocket,
    /// The subscriptions of a peer of a publisher.
    pub(super) topics: TopicList,
    pub(super) ready: bool,
    /// Time limit for the handshake.
    ready_by: Nanos,
    /// The connection ended.
    pub(super) gone: bool,
    /// The handshake and answers to heartbeats. They go before the next message.
    out: Vec<u8>,
    pub(super) message: Option<OutgoingMessage>,
    /// Bytes of the message that the kernel has taken.
    pub(super) written: usize,
}

impl SendingPeer {
    /// A connection that another end made.
    pub(super) fn accepted(stream: TcpStream, socket: ZmtpSocket, ready_by: Nanos) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        keep_alive(&stream)?;
        Ok(SendingPeer::new(stream, socket, ready_by))
    }

    pub(super) fn new(stream: TcpStream, socket: ZmtpSocket, ready_by: Nanos) -> Self {
        SendingPeer {
            stream,
            decoder: ZmtpDecoder::new(socket),
            socket,
            topics: TopicList::default(),
            ready: false,
            ready_by,
            gone: false,
            out: greeting().to_vec(),
            message: None,
            written: 0,
        }
    }

    /// Returns true if it takes a message now.
    pub(super) fn is_free(&self) -> bool {
        self.ready && self.message.is_none() && self.out.is_empty()
    }

    /// Returns true if bytes wait for the kernel.
    pub(super) fn wants_to_send(&self) -> bool {
        self.message.is_some() || !self.out.is_empty()
    }

    /// Reads and sends without waiting. An error ends the connection.
    pub(super) fn advance(&mut self, now: Nanos) -> io::Result<()> {
        self.hear()?;
        self.check_handshake(now)?;
        self.write()
    }

    /// Takes the message if the kernel has taken all of it.
    pub(super) fn take_sent(&mut self) -> Option<OutgoingMessage> {
        let is_sent = self.message.as_ref().is_some_and(|message| message.length() == self.written);
        if !is_sent {
            return None;
        }
        self.written = 0;
        self.message.take()
    }

    /// Reads from the other end, without waiting for it.
    fn hear(&mut self) -> io::Result<()> {
        let mut buffer = [0; 512];
        for _ in 0..HEARD_IN_A_TURN {
            let came = match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(came) => came,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let mut rest = &buffer[..came];
            while !rest.is_empty() {
                rest = self.topics.take(rest)?;
                let (used, next) = self.decoder.feed(rest).map_err(io::Error::other)?;
                rest = &rest[used..];
                self.obey(next)?;
            }
        }
        Ok(())
    }

    fn check_handshake(&self, now: Nanos) -> io::Result<()> {
        if self.ready || now < self.ready_by { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
    }

    fn obey(&mut self, next: ZmtpNext) -> io::Result<()> {
        match next {
            ZmtpNext::Greeted => self.out.extend(ready(self.socket)),
            ZmtpNext::Ready => self.ready = true,
            ZmtpNext::Ping { context } if self.out.len() < ANSWERS_MAX => self.out.extend(pong(&context)),
            ZmtpNext::More | ZmtpNext::Command | ZmtpNext::Ping { .. } => {}
            ZmtpNext::Subscribe { topic } => self.topics.subscribe(topic)?,
            ZmtpNext::Cancel { topic } => self.topics.cancel(&topic),
            ZmtpNext::Part { length, more: false } if self.socket == ZmtpSocket::Publish => {
                self.topics.expect(length)?;
            }
            ZmtpNext::Part { .. } => return Err(io::Error::other("one that takes messages sends one")),
        }
        Ok(())
    }

    /// Sends as much as the network takes. Answers go between messages.
    fn write(&mut self) -> io::Result<()> {
        while self.written == 0 && !self.out.is_empty() {
            match taken(self.stream.write(&self.out))? {
                Some(taken) => drop(self.out.drain(..taken)),
                None => return Ok(()),
            }
        }
        let Some(message) = &self.message else { return Ok(()) };
        while self.written < message.length() {
            let rest = message.behind(self.written);
            match taken(self.stream.write_vectored(&rest))? {
                Some(taken) => self.written += taken,
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

/// Number of bytes that the kernel took; `None` if it takes none now.
fn taken(written: io::Result<usize>) -> io::Result<Option<usize>> {
    match written {
        Ok(0) => Err(ErrorKind::WriteZero.into()),
        Ok(taken) => Ok(Some(taken)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Some(0)),
        Err(error) => Err(error),
    }
}

impl Drop for SendingPeer {
    /// Reads the rest, so that bytes on their way arrive: the kernel resets a connection that is closed with
    /// unread bytes.
    fn drop(&mut self) {
        drop(self.hear());
    }
}
