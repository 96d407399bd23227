//! A transport delivers packets as they were sent: complete, each once, in order, in their spots.

use nilometer_model::Nanos;

use crate::{
    assembly::Spot,
    transport::{Received, Transport},
};

/// Sizes of a packet that fits into a spot.
const PREFIX: usize = 8;
const BODY: usize = 92;
/// Looks before sent packets count as lost, each of at most a tenth of a second: half a minute.
const LOOKS: usize = 300;

/// Makes a transport that has received nothing, and a function that sends a packet to it.
pub type MakeTransport<'a> = dyn FnMut() -> (Box<dyn Transport>, Box<dyn FnMut(&[u8])>) + 'a;

/// Checks a transport that takes packets of at least 100 bytes, and of others.
pub fn transport_suite(make: &mut MakeTransport<'_>) {
    for spots in [1, 3, 64] {
        let (mut transport, mut send) = make();
        brings_packets(transport.as_mut(), &mut send, spots);
        let (mut transport, mut send) = make();
        discards_packets(transport.as_mut(), &mut send, spots);
    }
}

/// A packet with this number and length. All differ.
fn packet(number: u8, length: usize) -> Vec<u8> {
    (0..length).map(|at| number.wrapping_mul(31).wrapping_add(at as u8)).collect()
}

/// Packets that fit, and some among them that don't.
fn packets() -> Vec<Vec<u8>> {
    let odd = |number: u8| matches!(number, 3 | 9 | 10);
    (0..20).map(|number| packet(number, if odd(number) { 60 } else { PREFIX + BODY })).collect()
}

/// The packets from looks with this many spots, until there are `count` packets.
fn came(transport: &mut dyn Transport, spots: usize, count: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for _ in 0..LOOKS {
        while look(transport, spots, &mut all).more {}
        if all.len() >= count {
            break;
        }
        transport.wait(Nanos::from_millis(100)).expect("it can be waited for");
    }
    all
}

fn look(transport: &mut dyn Transport, spots: usize, all: &mut Vec<Vec<u8>>) -> Received {
    let mut memory = vec![0; spots * (PREFIX + BODY)];
    let chunks = memory.chunks_exact_mut(PREFIX + BODY).map(|chunk| chunk.split_at_mut(PREFIX));
    let mut spots: Vec<Spot<'_>> = chunks.map(|(prefix, body)| Spot { prefix, body }).collect();
    let received = transport.receive(&mut spots).expect("nothing is wrong with it");
    all.extend(spots[..received.spots].iter().map(|spot| [&*spot.prefix, &*spot.body].concat()));
    if received.spots > 0 && received.spots < spots.len() && received.aside > 0 {
        let first = transport.aside(0).len();
        assert_ne!(first, PREFIX + BODY, "a packet that fits lies aside, and a spot is free");
    }
    all.extend((0..received.aside).map(|number| transport.aside(number).to_vec()));
    received
}

fn brings_packets(transport: &mut dyn Transport, send: &mut dyn FnMut(&[u8]), spots: usize) {
    assert_eq!(transport.receive(&mut []).expect("it answers").packets(), 0, "nothing was sent");
    assert!(transport.room() > 0, "some packets may wait");
    let expected = packets();
    for packet in &expected {
        send(packet);
    }
    assert_eq!(came(transport, spots, expected.len()), expected, "with {spots} spots");
    let counted = transport.counted();
    let bytes: usize = expected.iter().map(Vec::len).sum();
    assert_eq!((counted.packets, counted.bytes), (expected.len() as u64, bytes as u64));
    assert_eq!((counted.early, counted.dropped, counted.strangers), (0, 0, 0));
}

/// Packets before the beginning of a recording are not part of it, and are counted.
fn discards_packets(transport: &mut dyn Transport, send: &mut dyn FnMut(&[u8]), spots: usize) {
    let expected = packets();
    for packet in &expected {
        send(packet);
    }
    transport.discard().expect("they can be dropped");
    assert_eq!(transport.counted().early, expected.len() as u64);
    for packet in &expected {
        send(packet);
    }
    assert_eq!(came(transport, spots, expected.len()), expected, "behind those that were dropped");
    let counted = transport.counted();
    assert_eq!((counted.packets, counted.early), (expected.len() as u64, expected.len() as u64));
}
