//! What is sent on a connection, beside the bytes of messages.

use super::ZmtpSocket;

/// Bytes of a greeting.
pub const GREETING_BYTES: usize = 64;

/// The greeting of ZMTP 3.1 with the mechanism NULL.
pub fn greeting() -> [u8; GREETING_BYTES] {
    let mut bytes = [0; GREETING_BYTES];
    bytes[0] = 0xff;
    // Older ends take the padding for the length of an identity.
    bytes[8] = 1;
    bytes[9] = 0x7f;
    bytes[10] = 3;
    bytes[11] = 1;
    bytes[12..16].copy_from_slice(b"NULL");
    bytes
}

/// The command that says what this end is.
pub fn ready(socket: ZmtpSocket) -> Vec<u8> {
    let mut body = b"\x05READY\x0bSocket-Type".to_vec();
    let name = socket.name();
    body.extend_from_slice(&(name.len() as u32).to_be_bytes());
    body.extend_from_slice(name.as_bytes());
    command(&body)
}

/// The message by which a subscriber asks for all that a publisher says, as ZMTP 3.0 has it: later versions take it too.
pub fn subscription() -> Vec<u8> {
    [part_header(1, false), vec![1]].concat()
}

/// Asks whether the other end is there: ZMTP 3.1. It may take the connection for dead after so many tenths of a second without
/// another ping.
pub fn ping(tenths: u16) -> Vec<u8> {
    let mut body = b"\x04PING".to_vec();
    body.extend_from_slice(&tenths.to_be_bytes());
    command(&body)
}

/// Answers a ping with what it carries.
pub fn pong(context: &[u8]) -> Vec<u8> {
    let mut body = b"\x04PONG".to_vec();
    body.extend_from_slice(&context[..context.len().min(16)]);
    command(&body)
}

/// What stands in front of a part of a message, of so many bytes.
pub fn part_header(length: u64, more: bool) -> Vec<u8> {
    let more = u8::from(more);
    match u8::try_from(length) {
        Ok(length) => vec![more, length],
        Err(_) => [&[more | 2][..], &length.to_be_bytes()].concat(),
    }
}

fn command(body: &[u8]) -> Vec<u8> {
    // All of them are short.
    [&[4, body.len() as u8], body].concat()
}
