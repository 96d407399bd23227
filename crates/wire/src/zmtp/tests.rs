//! Tests that each end understands the other in any pieces, and that no bytes cause a panic.

use nilometer_fuzz::fuzz;
use proptest::prelude::*;

use super::*;

/// Decodes all events, without the bytes of messages.
fn read(socket: ZmtpSocket, bytes: &[u8], pieces: &[usize]) -> Result<Vec<ZmtpNext>, ZmtpError> {
    let mut decoder = ZmtpDecoder::new(socket);
    let mut all = Vec::new();
    let mut pieces = pieces.iter().copied().chain(std::iter::repeat(usize::MAX));
    let (mut rest, mut skipped) = (bytes, 0_u64);
    while !rest.is_empty() {
        let (mut piece, behind) = rest.split_at(pieces.next().expect("no end").min(rest.len()));
        rest = behind;
        while !piece.is_empty() {
            let body = skipped.min(piece.len() as u64);
            skipped -= body;
            piece = &piece[body as usize..];
            if piece.is_empty() {
                break;
            }
            let (used, next) = decoder.feed(piece)?;
            piece = &piece[used..];
            if let ZmtpNext::Part { length, .. } = next {
                skipped = length;
            }
            if next != ZmtpNext::More {
                all.push(next);
            }
        }
    }
    Ok(all)
}

fn sent(socket: ZmtpSocket) -> Vec<u8> {
    let mut bytes = greeting().to_vec();
    bytes.extend(ready(socket));
    for (length, more) in [(3, true), (0, false), (300, false)] {
        bytes.extend(part_header(length, more));
        bytes.extend(vec![0xee; length as usize]);
    }
    bytes.extend(ping(0));
    bytes.extend(pong(b"what it carries"));
    bytes
}

fn understood() -> Vec<ZmtpNext> {
    vec![
        ZmtpNext::Greeted,
        ZmtpNext::Ready,
        ZmtpNext::Part { length: 3, more: true },
        ZmtpNext::Part { length: 0, more: false },
        ZmtpNext::Part { length: 300, more: false },
        ZmtpNext::Ping { context: Vec::new() },
        ZmtpNext::Command,
    ]
}

proptest! {
    #[test]
    fn one_end_understands_the_other(pieces in prop::collection::vec(1..50_usize, 0..80)) {
        for socket in [ZmtpSocket::Push, ZmtpSocket::Pull] {
            prop_assert_eq!(read(socket.peer(), &sent(socket), &pieces), Ok(understood()));
        }
    }
}

#[test]
fn a_publisher_understands_subscriptions_of_both_versions() {
    let hello = [&greeting()[..], &ready(ZmtpSocket::Subscribe)].concat();
    let newer = [&hello[..], &subscribe(b"ab"), &cancel(b"ab")].concat();
    let understood = read(ZmtpSocket::Publish, &newer, &[3, 70, 9]).expect("it is ZMTP");
    let topic = b"ab".to_vec();
    assert_eq!(understood[2..], [ZmtpNext::Subscribe { topic: topic.clone() }, ZmtpNext::Cancel { topic }]);
    let older = [hello, subscription()].concat();
    let understood = read(ZmtpSocket::Publish, &older, &[]).expect("it is ZMTP");
    assert_eq!(understood[2..], [ZmtpNext::Part { length: 1, more: false }]);
}

#[test]
fn what_makes_a_connection_useless_is_said() {
    let said = |bytes: &[u8]| read(ZmtpSocket::Pull, bytes, &[]).expect_err("it is refused").to_string();
    assert_eq!(said(b"GET / HTTP/1.1"), "the other end does not speak ZMTP (byte 0 of its greeting)");
    let mut old = greeting();
    old[10] = 1;
    assert_eq!(said(&old[..11]), "the other end speaks ZMTP 1; it must speak 3.0 or later");
    let mut curve = greeting();
    curve[12..17].copy_from_slice(b"CURVE");
    assert_eq!(said(&curve), "the other end wants the mechanism \"CURVE\"; NULL is spoken here");
    let with = |frame: &[u8]| [&greeting()[..], frame].concat();
    assert_eq!(
        said(&with(&ready(ZmtpSocket::Pull))),
        "the other end is a socket of type \"PULL\"; it must be PUSH"
    );
    assert_eq!(said(&with(b"\x04\x0c\x05ERROR\x05sorry")), "the other end refuses: \"sorry\"");
    assert_eq!(said(&with(b"\x04\x06\x05READY")), "a READY command without a Socket-Type");
    assert_eq!(said(&with(&part_header(9, false))), "a message before the handshake is over");
    assert_eq!(said(&with(b"\x06\x00\x00\x00\x00\xff\x00\x00\x00\x00")), "a command of more than 4096 B");
    assert_eq!(said(&with(b"\x80")), "a frame with flags that ZMTP does not know");
    let mut late = sent(ZmtpSocket::Push);
    late.extend(b"\x04\x05\x04PING");
    assert_eq!(said(&late), "a ping that carries more than 16 B, or no time to live");
}

#[test]
fn an_end_that_may_be_either_is_what_the_other_end_needs() {
    let met = |peer: ZmtpSocket| {
        let mut decoder = ZmtpDecoder::either(ZmtpSocket::Pull, ZmtpSocket::Subscribe);
        assert!(decoder.is_undecided());
        let greeting = greeting();
        let greeted = decoder.feed(&greeting)?;
        assert_eq!(greeted, (GREETING_BYTES, ZmtpNext::Greeted));
        decoder.feed(&ready(peer))?;
        Ok::<_, ZmtpError>(decoder.socket())
    };
    assert_eq!(met(ZmtpSocket::Push), Ok(ZmtpSocket::Pull));
    assert_eq!(met(ZmtpSocket::Publish), Ok(ZmtpSocket::Subscribe));
    assert!(met(ZmtpSocket::Pull).is_err());
}

#[test]
fn any_bytes_are_understood_or_refused() {
    let corpus = vec![sent(ZmtpSocket::Push), [&greeting()[..], &ready(ZmtpSocket::Push)].concat()];
    fuzz("zmtp", corpus, |input| {
        let whole = read(ZmtpSocket::Pull, input, &[]);
        assert_eq!(read(ZmtpSocket::Pull, input, &[1; 500]), whole, "it depends on the pieces");
    });
}
