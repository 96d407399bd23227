//! A recording begins with packets of its stream, ends by itself, and counts each lost packet once.

use super::*;
use crate::{
    assembly::ReorderWindow,
    transport::{
        MemoryTransport,
        udp::{Listening, Sending, UdpInlet, UdpOutlet},
    },
};
use nilometer_recording::Missing;
use nilometer_ring::{Chronicle, Ring};
use nilometer_wire::{Known, Packet};
use std::net::UdpSocket;

use nilometer_model::{Bytes, Instrument};
use nilometer_storage::Arena;

const BODY: usize = 64;

/// A receiver for packets of 64 bytes behind a serial number, the sending end, and the ring with one
/// writer.
pub(super) fn receiver(until: Until) -> (std::sync::mpsc::SyncSender<Vec<u8>>, Receiver, Arc<Ring>) {
    let (memory, transport) = MemoryTransport::channel();
    let (receiver, ring) = receiver_from(Box::new(transport), until);
    (memory, receiver, ring)
}

fn receiver_from(transport: Box<dyn Transport>, until: Until) -> (Receiver, Arc<Ring>) {
    let text = format!(
        "name = \"raw\"\ntitle = \"t\"\nsource = \"t\"\nshape = [{BODY}]\npixel = \"uint8\"\nframe_rate = \"1 kHz\"\n\
         [packets.format.raw]\npayload = \"{BODY} B\"\n"
    );
    let instrument = Instrument::parse(&text, "raw.toml").expect("valid");
    let packets = instrument.packets.as_ref().expect("it has");
    let format = nilometer_wire::of(packets, &Known::of(&instrument)).expect("it is a format");
    let chronicle = Chronicle::new(4096, Nanos(1));
    let ring = Ring::new(Arena::shared_out(64, 64 * BODY).1, 1, chronicle);
    let assembly = Assembly::new(vec![format], ring.clone(), 64, ReorderWindow::default(), Missing::Filled);
    (Receiver::new(vec![transport], assembly, until), ring)
}

pub(super) fn packet(serial: u64) -> Vec<u8> {
    [&serial.to_le_bytes()[..], &[1; BODY]].concat()
}

#[test]
fn foreign_packets_neither_begin_a_recording_nor_keep_it_from_ending() {
    let until = Until { duration: Nanos(1000), silence: Nanos(100), ..Until::default() };
    let (memory, mut receiver, _ring) = receiver(until);
    let mut turn = |now, packet: Vec<u8>| {
        memory.send(packet).expect("it takes them");
        receiver.turn(Nanos(now)).expect("memory does not fail");
        (receiver.first(), receiver.is_over(Nanos(now)))
    };
    assert_eq!(turn(500, vec![0; 5]), (None, false), "too short");
    assert_eq!(turn(600, packet(7)), (Some(Nanos(600)), false));
    assert_eq!(turn(690, packet(8)), (Some(Nanos(600)), false));
    assert_eq!(turn(789, vec![0; 5]), (Some(Nanos(600)), false));
    assert_eq!(turn(790, vec![0; 5]), (Some(Nanos(600)), true), "100 after the last of the stream");
    assert_eq!(turn(795, packet(9)), (Some(Nanos(600)), false));
    assert_eq!(turn(1590, packet(10)), (Some(Nanos(600)), false));
    assert_eq!(turn(1600, packet(11)), (Some(Nanos(600)), true), "1000 after the first of the stream");
}

#[test]
fn a_recording_to_which_nothing_comes_ends() {
    let ms = Nanos::from_millis;
    let until = Until { silence: ms(100), silence_at_start: ms(500), ..Until::default() };
    let (memory, mut receiver, _ring) = receiver(until);
    let mut turn = |at, packet: Option<Vec<u8>>| {
        if let Some(packet) = packet {
            memory.send(packet).expect("it takes them");
        }
        receiver.turn(ms(at)).expect("memory does not fail");
        receiver.is_over(ms(at))
    };
    assert!((1000..1500).step_by(20).all(|at| !turn(at, Some(vec![0; 5]))), "foreign packets");
    assert!(turn(1500, Some(vec![0; 5])), "500 ms after its start");
    assert!(!turn(1510, Some(packet(7))));
    assert_eq!((1520..).step_by(10).find(|at| turn(*at, None)), Some(1610), "100 ms after a packet");
}

#[test]
fn silence_is_time_in_which_it_looked_and_found_nothing() {
    let ms = Nanos::from_millis;
    let (memory, mut receiver, _ring) = receiver(Until { silence: ms(1000), ..Until::default() });
    let mut turn = |at| {
        receiver.turn(ms(at)).expect("memory does not fail");
        (receiver.first().is_some(), receiver.is_over(ms(at)), receiver.is_over(ms(at + 5000)))
    };
    memory.send(packet(7)).expect("it takes them");
    assert_eq!(turn(0), (true, false, false), "it did not look for 5 s, and something may wait");
    memory.send(packet(8)).expect("it takes them");
    assert_eq!(turn(5000), (true, false, false), "the second one waited");
    assert_eq!(turn(65_000), (true, false, false), "a minute without a look is no silence");
    let ended = (65_020..).step_by(20).find(|at| turn(*at).1);
    assert_eq!(ended, Some(65_940), "looks that found nothing are, and 60 ms of the minute");
}

#[test]
fn a_recording_that_nobody_is_left_to_store_ends() {
    let (memory, mut receiver, ring) = receiver(Until::default());
    memory.send(packet(7)).expect("it takes them");
    receiver.turn(Nanos(5)).expect("memory does not fail");
    assert!(!receiver.is_over(Nanos(6)));
    ring.leave(Nanos(7), 0);
    assert!(receiver.is_over(Nanos(8)));
}

#[test]
fn the_rate_is_from_the_first_packet_to_the_last() {
    let until = Until { silence: Nanos::from_millis(10_000), ..Until::default() };
    let (memory, mut receiver, _ring) = receiver(until);
    let mut serial = 0..;
    for at in [500, 600, 700, 800, 10_800] {
        if at <= 800 {
            memory.send(packet(serial.next().expect("no end"))).expect("it takes them");
        }
        receiver.turn(Nanos::from_millis(at)).expect("memory does not fail");
    }
    receiver.end(Nanos::from_millis(10_800), None);
    let traffic = receiver.live().lock().expect("one thread").clone();
    // Four packets of 72 bytes with 100 ms between them, and 10 s of silence.
    let rate = traffic.mean_rate().expect("it lasted").0;
    assert!((rate - 720.0).abs() < 1e-6, "{rate} B/s");
    assert_eq!(Traffic::default().mean_rate(), None);
}

#[test]
fn those_that_sent_first_are_the_senders_and_others_are_counted() {
    let inlet = UdpInlet::open(&Listening::at(([127, 0, 0, 1], 0).into())).expect("a port is free");
    let to = inlet.address().expect("it is bound");
    let (mut receiver, _ring) = receiver_from(Box::new(inlet), Until::default());
    let socket = |last| {
        let at = std::net::SocketAddr::from(([127, 0, 0, last], 0));
        UdpSocket::bind(at).expect("all of 127.0.0.0/8 is this machine")
    };
    let (own, other) = (socket(1), socket(2));
    let mut take = |at| {
        // Strangers' packets do not count as received.
        while receiver.turn(Nanos::from_millis(at)).expect("loopback is there").more {}
        receiver.streams.placed()
    };
    let send = |from: &UdpSocket, serials: std::ops::Range<u64>| {
        for serial in serials {
            from.send_to(&packet(serial), to).expect("sent");
        }
    };
    send(&own, 0..100);
    assert_eq!(take(1), 100);
    send(&own, 100..110);
    assert_eq!(take(1500), 110);
    send(&other, 110..300);
    send(&own, 110..120);
    assert_eq!(take(1600), 120);
    receiver.end(Nanos::from_millis(1700), None);
    let Traffic { tally, counted, .. } = receiver.live().lock().expect("one thread").clone();
    assert_eq!((counted.strangers, counted.stranger), (190, Some([127, 0, 0, 2].into())));
    assert_eq!((tally.lost(), tally.stray, tally.duplicates), (0, 0, 0), "{tally:?}");
}

/// Sends packets as messages of eight, which the kernel cuts or keeps joined.
fn send_joined(outlet: &mut UdpOutlet, serials: std::ops::Range<u64>) {
    let packets: Vec<Vec<u8>> = serials.map(packet).collect();
    for message in packets.chunks(8) {
        let parts: Vec<Packet<'_>> =
            message.iter().map(|bytes| Packet { prefix: &[], body: bytes }).collect();
        outlet.send(&parts).expect("loopback is there");
    }
}

#[test]
fn what_the_kernel_drops_of_joined_packets_is_counted_one_by_one() {
    let little = Listening { room: Bytes(16 << 10), ..Listening::at(([127, 0, 0, 1], 0).into()) };
    let inlet = UdpInlet::open(&little).expect("a port is free");
    let to = inlet.address().expect("it is bound");
    let mut outlet = UdpOutlet::connect(to, &Sending::default()).expect("it listens");
    let (mut receiver, _ring) = receiver_from(Box::new(inlet), Until::default());
    // More than the buffer holds, and then some packets whose numbers show the loss.
    send_joined(&mut outlet, 0..2000);
    while receiver.turn(Nanos(1)).expect("loopback is there").packets() > 0 {}
    send_joined(&mut outlet, 2000..2008);
    while receiver.turn(Nanos(2)).expect("loopback is there").packets() > 0 {}
    receiver.end(Nanos(3), None);
    let traffic = receiver.live().lock().expect("one thread").clone();
    let missing = 2008 - traffic.counted.packets;
    assert!(missing > 100 && traffic.tally.missing == missing, "{traffic:?}");
    assert_eq!(traffic.kernel_dropped(), missing, "{traffic:?}");
    assert_eq!(
        traffic.counted.dropped * traffic.counted.joined,
        missing,
        "messages that are alike: {traffic:?}"
    );
}
