//! Encodes everything sent on a connection except the bytes of messages.

use super::ZmtpSocket;

/// Bytes of a greeting.
pub const GREETING_BYTES: usize = 64;

/// The longest topic, so that the command has a short header.
const TOPIC_MAX: usize = 200;

/// The greeting of ZMTP 3.1 with the mechanism NULL.
pub fn greeting() -> [u8; GREETING_BYTES] {
    let mut bytes = [0; GREETING_BYTES];
    bytes[0] = 0xff;
    // Older ends read the padding as the length of an identity.
    bytes[8] = 1;
    bytes[9] = 0x7f;
    bytes[10] = 3;
    bytes[11] = 1;
    bytes[12..16].copy_from_slice(b"NULL");
    bytes
}

/// Returns the command that states this end's type.
pub fn ready(socket: ZmtpSocket) -> Vec<u8> {
    let mut body = b"\x05READY\x0bSocket-Type".to_vec();
    let name = socket.name();
    body.extend_from_slice(&(name.len() as u32).to_be_bytes());
    body.extend_from_slice(name.as_bytes());
    command(&body)
}

/// Returns the message with which a subscriber subscribes to all messages of a publisher. It has the form of
/// ZMTP 3.0, which later versions also accept.
pub fn subscription() -> Vec<u8> {
    [part_header(1, false), vec![1]].concat()
}

/// Returns the command of ZMTP 3.1 with which a subscriber subscribes to messages that begin with `topic`. It cuts
/// the topic after 200 bytes.
pub fn subscribe(topic: &[u8]) -> Vec<u8> {
    named(b"\x09SUBSCRIBE", topic)
}

/// Returns the command of ZMTP 3.1 that takes a subscription back.
pub fn cancel(topic: &[u8]) -> Vec<u8> {
    named(b"\x06CANCEL", topic)
}

fn named(name: &[u8], topic: &[u8]) -> Vec<u8> {
    command(&[name, &topic[..topic.len().min(TOPIC_MAX)]].concat())
}

/// Returns a ping of ZMTP 3.1. The other end may drop the connection if it receives no other ping within this
/// time, in tenths of a second.
pub fn ping(tenths: u16) -> Vec<u8> {
    let mut body = b"\x04PING".to_vec();
    body.extend_from_slice(&tenths.to_be_bytes());
    command(&body)
}

/// Returns the pong for a ping with these bytes.
pub fn pong(context: &[u8]) -> Vec<u8> {
    let mut body = b"\x04PONG".to_vec();
    body.extend_from_slice(&context[..context.len().min(16)]);
    command(&body)
}

/// Returns the header of a part of a message with this length.
pub fn part_header(length: u64, more: bool) -> Vec<u8> {
    let more = u8::from(more);
    match u8::try_from(length) {
        Ok(length) => vec![more, length],
        Err(_) => [&[more | 2][..], &length.to_be_bytes()].concat(),
    }
}

fn command(body: &[u8]) -> Vec<u8> {
    // All commands are short.
    [&[4, body.len() as u8], body].concat()
}
