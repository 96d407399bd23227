//! Packets over loopback, received by a plain socket.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn receiver() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.set_read_timeout(Some(Duration::from_mins(1))).expect("above zero");
    socket
}

fn outlet(to: &UdpSocket, segments: bool) -> UdpOutlet {
    let to = to.local_addr().expect("it is bound");
    UdpOutlet::connect(to, &Sending { segments, ..Sending::default() }).expect("loopback is there")
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut bytes = vec![0; 70_000];
    let length = socket.recv(&mut bytes).expect("it was sent");
    bytes.truncate(length);
    bytes
}

/// Packets of these sizes, each with bytes of its own, in two pieces.
fn packets(memory: &[u8], sizes: &[(usize, usize)]) -> Vec<Vec<u8>> {
    let cut = |index: usize, (prefix, body): (usize, usize)| memory[index..index + prefix + body].to_vec();
    sizes.iter().enumerate().map(|(index, &sizes)| cut(index, sizes)).collect()
}

fn pieces<'a>(bytes: &'a [Vec<u8>], sizes: &[(usize, usize)]) -> Vec<Packet<'a>> {
    let piece = |(bytes, &(prefix, _)): (&'a Vec<u8>, _)| {
        let (prefix, body) = bytes.split_at(prefix);
        Packet { prefix, body }
    };
    bytes.iter().zip(sizes).map(piece).collect()
}

fn memory() -> Vec<u8> {
    let mut memory = vec![0; 70_000];
    nilometer_model::Seed(3).stream().fill(&mut memory);
    memory
}

#[test]
fn every_packet_arrives_as_it_is_whatever_its_neighbours_are() {
    let memory = memory();
    let sizes = [
        (8, 800),
        (8, 800),
        (8, 800),
        (8, 10),
        (8, 800),
        (8, 801),
        (0, 0),
        (8, 0),
        (0, 800),
        (2, 6),
        (8, 800),
    ];
    let expected = packets(&memory, &sizes);
    for segments in [true, false] {
        let receiver = receiver();
        let mut outlet = outlet(&receiver, segments);
        outlet.send(&pieces(&expected, &sizes)).expect("loopback takes it");
        for (index, packet) in expected.iter().enumerate() {
            assert_eq!(&receive(&receiver), packet, "packet {index}, segments: {segments}");
        }
        let bytes = expected.iter().map(|packet| packet.len() as u64).sum();
        let Sent { packets, bytes: counted, refused, unsent, answers, .. } = outlet.totals();
        assert_eq!((packets, counted, refused, unsent, answers), (11, bytes, 0, 0, 0));
        assert_eq!(outlet.cuts(), segments);
    }
}

#[test]
fn equal_packets_go_with_one_call_and_pieces_that_touch_are_one() {
    let memory = memory();
    let packet = |at: usize| Packet { prefix: &memory[at..at + 8], body: &memory[at + 8..at + 800] };
    let touching: Vec<_> = (0..8).map(|index| packet(index * 800)).collect();
    let apart: Vec<_> = (0..8).map(|index| packet(index * 801)).collect();
    let receiver = receiver();
    let mut outlet = outlet(&receiver, true);
    for (packets, pieces) in [(&touching, 1), (&apart, 8)] {
        let calls = outlet.totals().calls;
        outlet.send(packets).expect("loopback takes it");
        assert_eq!((outlet.totals().calls - calls, outlet.list.pieces.len()), (1, pieces));
        for sent in packets {
            assert_eq!(receive(&receiver), [sent.prefix, sent.body].concat());
        }
    }
}

#[test]
fn some_messages_go_with_one_call_as_long_as_they_are_cut_alike() {
    let memory = memory();
    let packet =
        |at: usize, size: usize| Packet { prefix: &memory[at..at + 8], body: &memory[at + 8..at + size] };
    let alike: Vec<_> = (0..28).map(|index| packet(index, 8040)).collect();
    let (mut shorter, mut longer) = (alike.clone(), alike.clone());
    (shorter[3], longer[10]) = (packet(5, 80), packet(5, 9000));
    for (packets, calls) in [(&alike, 1), (&shorter, 1), (&longer, 3)] {
        let receiver = receiver();
        let mut outlet = outlet(&receiver, true);
        outlet.send(packets).expect("loopback takes it");
        assert_eq!((outlet.totals().calls, outlet.totals().packets), (calls, 28));
        for sent in packets.iter().take(20) {
            assert_eq!(receive(&receiver), [sent.prefix, sent.body].concat());
        }
    }
}

#[test]
fn a_port_where_nobody_listens_is_counted_and_borne() {
    for segments in [true, false] {
        let gone = receiver();
        let mut outlet = outlet(&gone, segments);
        drop(gone);
        let bytes = [7; 100];
        for _ in 0..10 {
            outlet.send(&[Packet { prefix: &[], body: &bytes }; 3]).expect("it is borne");
        }
        let Sent { packets, refused, unsent, .. } = outlet.totals();
        assert_eq!((packets, unsent), (30, 0));
        assert!(refused > 0, "nobody listened");
    }
}

#[test]
fn answers_are_dropped_and_counted() {
    let receiver = receiver();
    let mut outlet = outlet(&receiver, true);
    let from = outlet.socket.local_addr().expect("it is bound");
    for size in [1, 0, 64] {
        receiver.send_to(&vec![9; size], from).expect("loopback takes it");
    }
    let bytes = [7; 100];
    for _ in 0..CALLS_PER_LOOK {
        outlet.send(&[Packet { prefix: &[], body: &bytes }]).expect("loopback takes it");
    }
    assert_eq!(outlet.totals().answers, 3);
}

#[test]
fn a_way_that_cuts_nothing_gets_packet_by_packet() {
    // Without checksums the kernel refuses to cut.
    let receiver = receiver();
    let mut outlet = outlet(&receiver, true);
    let on: libc::c_int = 1;
    // SAFETY: the kernel reads one number.
    let returned = unsafe {
        let socket = outlet.socket.as_raw_fd();
        libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, (&raw const on).cast(), 4)
    };
    assert_eq!(returned, 0);
    let bytes = [7; 100];
    outlet.send(&[Packet { prefix: &[], body: &bytes }; 5]).expect("it is sent the other way");
    for _ in 0..5 {
        assert_eq!(receive(&receiver), bytes);
    }
    assert_eq!((outlet.totals().packets, outlet.cuts(), outlet.totals().unsent), (5, false, 0));
}

#[test]
fn what_can_never_be_sent_is_an_error() {
    let receiver = receiver();
    for segments in [true, false] {
        let bytes = vec![7; MESSAGE_MAX + 1];
        let error =
            outlet(&receiver, segments).send(&[Packet { prefix: &[], body: &bytes }]).expect_err("too long");
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
    }
}

#[test]
fn a_group_is_reached_by_the_named_interface() {
    let receiver = receiver();
    let (group, home) = (Ipv4Addr::new(239, 255, 77, 1), Ipv4Addr::LOCALHOST);
    receiver.join_multicast_v4(&group, &home).expect("loopback takes part");
    // A socket that is bound to an address receives no packets to a group.
    let group_port = UdpSocket::bind((group, 0)).expect("a free port");
    group_port.set_read_timeout(Some(Duration::from_mins(1))).expect("above zero");
    let to = (group, group_port.local_addr().expect("it is bound").port()).into();
    let sending = Sending { hops: Some(3), interface: Some("lo".into()), ..Sending::default() };
    let mut outlet = UdpOutlet::connect(to, &sending).expect("loopback is there");
    assert_eq!(outlet.socket.multicast_ttl_v4().expect("it is set"), 3);
    outlet.send(&[Packet { prefix: b"to all", body: b" of you" }]).expect("loopback takes it");
    assert_eq!(receive(&group_port), b"to all of you");
    let sending = Sending { interface: Some("no-such".into()), ..Sending::default() };
    assert!(UdpOutlet::connect(to, &sending).is_err());
}

#[test]
fn the_room_that_was_given_is_told() {
    let outlet = outlet(&receiver(), true);
    assert!(outlet.room() > 100_000, "{}", outlet.room());
}

proptest! {
    #[test]
    fn a_run_is_what_the_kernel_cuts_back_into_the_same_packets(
        sizes in prop::collection::vec((0..3_usize, 0..4_usize), 1..200), large: bool,
    ) {
        let memory = memory();
        let scale = if large { 5000 } else { 1 };
        let sizes: Vec<_> = sizes.into_iter().map(|(prefix, body)| (prefix, body * scale)).collect();
        let bytes = packets(&memory, &sizes);
        let packets = pieces(&bytes, &sizes);
        let run = run(&packets);
        prop_assert!((1..=SEGMENTS_MAX.min(packets.len())).contains(&run));
        let whole: Vec<u8> = bytes[..run].concat();
        prop_assert!(run == 1 || whole.len() <= MESSAGE_MAX);
        let cut: Vec<&[u8]> = whole.chunks(bytes[0].len().max(1)).collect();
        if run > 1 {
            prop_assert_eq!(cut, bytes[..run].iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
    }
}
