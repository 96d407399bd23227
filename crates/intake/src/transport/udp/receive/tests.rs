//! Real packets over loopback.

use std::net::Ipv4Addr;

use nilometer_model::{RandomStream, Seed};

use super::*;

const PREFIX: usize = 8;
const BODY: usize = 1000;

fn inlet(allowed: &[IpAddr]) -> (UdpInlet, UdpSocket) {
    let allowed = if allowed.is_empty() {
        Allowed::Any
    } else {
        Allowed::Named(allowed.iter().copied().map(Into::into).collect())
    };
    let listening = Listening { allowed, ..Listening::at((Ipv4Addr::LOCALHOST, 0).into()) };
    let inlet = UdpInlet::open(&listening).expect("a port is free");
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    sender.connect(inlet.address().expect("it is bound")).expect("it listens");
    (inlet, sender)
}

/// Sends packets of one size, the last one shorter if it has to be, as one message that the kernel cuts.
fn send_joined(sender: &UdpSocket, bytes: &[u8], segment: usize) {
    nilometer_datagram::set_segment(sender, segment).expect("the kernel cuts messages");
    sender.send(bytes).expect("sent");
}

/// Everything that has come, packet by packet, with how many lay in spots.
fn all(inlet: &mut UdpInlet, spots: usize) -> (Vec<Vec<u8>>, usize) {
    let (mut packets, mut in_spots) = (Vec::new(), 0);
    let mut memory = vec![0; spots * (PREFIX + BODY)];
    loop {
        let mut spots: Vec<Spot<'_>> = memory
            .chunks_exact_mut(PREFIX + BODY)
            .map(|chunk| chunk.split_at_mut(PREFIX))
            .map(|(prefix, body)| Spot { prefix, body })
            .collect();
        let received = inlet.receive(&mut spots).expect("nothing is wrong with the loopback");
        packets.extend(spots[..received.spots].iter().map(|spot| [&*spot.prefix, &*spot.body].concat()));
        packets.extend((0..received.aside).map(|number| inlet.aside(number).to_vec()));
        in_spots += received.spots;
        if received.packets() == 0 && !received.more {
            return (packets, in_spots);
        }
    }
}

/// A burst of packets that the kernel joins: all of one size, except the last.
fn burst(stream: &mut RandomStream) -> (Vec<u8>, usize) {
    let segment = if stream.below(4) == 0 { 1 + stream.below(2000) as usize } else { PREFIX + BODY };
    let count = 1 + stream.below(20) as usize;
    let short = if stream.below(3) == 0 { stream.below(segment as u64) as usize } else { 0 };
    let mut bytes = vec![0; count * segment - short];
    stream.fill(&mut bytes);
    (bytes, segment)
}

#[test]
fn it_is_a_proper_transport() {
    crate::conformance::transport_suite(&mut || {
        let (inlet, sender) = inlet(&[]);
        (
            Box::new(inlet),
            Box::new(move |packet| assert_eq!(sender.send(packet).expect("sent"), packet.len())),
        )
    });
}

#[test]
fn packets_come_whole_and_in_order_however_they_were_joined() {
    for seed in 0..40 {
        let (mut inlet, sender) = inlet(&[]);
        let mut stream = Seed(seed).stream();
        for round in 0..10 {
            let mut sent = Vec::new();
            for _ in 0..=stream.below(8) {
                let (bytes, segment) = burst(&mut stream);
                send_joined(&sender, &bytes, segment);
                sent.extend(bytes.chunks(segment).map(<[u8]>::to_vec));
            }
            let (came, _) = all(&mut inlet, stream.below(65) as usize);
            assert_eq!(came.len(), sent.len(), "seed {seed}, round {round}");
            assert!(came == sent, "seed {seed}, round {round}");
        }
        assert_eq!(inlet.counted().dropped, 0);
    }
}

#[test]
fn packets_that_are_as_expected_lie_where_they_should() {
    for each in [1, 8, 50] {
        let (mut inlet, sender) = inlet(&[]);
        let mut stream = Seed(each).stream();
        let (mut sent, mut in_spots) = (0, 0);
        for _ in 0..40 {
            for _ in 0..4 {
                let mut bytes = vec![0; each as usize * (PREFIX + BODY)];
                stream.fill(&mut bytes);
                send_joined(&sender, &bytes, PREFIX + BODY);
                sent += each;
            }
            in_spots += all(&mut inlet, 64).1 as u64;
        }
        assert!(in_spots * 10 > sent * 8, "{in_spots} of {sent} packets, {each} in a message");
        assert!(inlet.counted().calls < sent.max(200), "{} calls for {sent} packets", inlet.counted().calls);
    }
}

#[test]
fn only_who_is_allowed_is_heard() {
    let stranger: IpAddr = [192, 0, 2, 1].into();
    for (allowed, heard) in [(vec![Ipv4Addr::LOCALHOST.into(), stranger], 1), (vec![stranger], 0)] {
        let (mut inlet, sender) = inlet(&allowed);
        sender.send(&[1; PREFIX + BODY]).expect("sent");
        assert_eq!(all(&mut inlet, 4).0.len(), heard);
        assert_eq!(inlet.counted().strangers, 1 - heard as u64);
    }
}

#[test]
fn what_came_before_a_recording_is_dropped_with_what_strangers_sent() {
    let (mut inlet, sender) = inlet(&[Ipv4Addr::LOCALHOST.into()]);
    let stranger = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).expect("a port is free");
    let at = inlet.address().expect("it is bound");
    for _ in 0..10 {
        stranger.send_to(&[1; PREFIX + BODY], at).expect("sent");
        sender.send(&[2; PREFIX + BODY]).expect("sent");
    }
    inlet.discard().expect("nothing is wrong with the loopback");
    sender.send(&[3; PREFIX + BODY]).expect("sent");
    assert_eq!(all(&mut inlet, 4).0, [[3; PREFIX + BODY]]);
    assert_eq!((inlet.counted().strangers, inlet.counted().early), (0, 20));
}

/// An inlet with a small buffer after a number of packets were sent to it, and its sender.
fn flooded(packets: usize) -> (UdpInlet, UdpSocket) {
    let listening = Listening { room: Bytes(64 << 10), ..Listening::at((Ipv4Addr::LOCALHOST, 0).into()) };
    let inlet = UdpInlet::open(&listening).expect("a port is free");
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    sender.connect(inlet.address().expect("it is bound")).expect("it listens");
    for _ in 0..packets {
        sender.send(&[1; PREFIX + BODY]).expect("sent");
    }
    (inlet, sender)
}

#[test]
fn what_the_kernel_drops_is_counted_once_also_behind_the_last_packet() {
    let (mut inlet, sender) = flooded(500);
    let before = all(&mut inlet, 8).0.len();
    assert!(before < 500 && inlet.room() <= 128 << 10, "{before}, {}", inlet.room());
    assert_eq!(before + inlet.counted().dropped as usize, 500, "no packet came that could tell");
    sender.send(&[1; PREFIX + BODY]).expect("sent");
    let after = all(&mut inlet, 8).0.len();
    assert_eq!(before + after + inlet.counted().dropped as usize, 501);
}

#[test]
fn what_the_kernel_dropped_before_a_recording_is_none_of_it() {
    let (mut inlet, sender) = flooded(500);
    inlet.discard().expect("nothing is wrong with the loopback");
    sender.send(&[1; PREFIX + BODY]).expect("sent");
    assert_eq!(all(&mut inlet, 8).0.len(), 1);
    assert_eq!((inlet.counted().dropped, inlet.counted().early), (0, 500), "it is counted apart");
}

/// Returns true if the loopback interface has joined a group, according to the kernel's list.
fn loopback_joined(list: &str, group: &str) -> bool {
    let list = std::fs::read_to_string(list).expect("the kernel lists groups");
    let mut interface = "";
    list.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // For version 4 the kernel prints one line per interface and indents its groups.
        if !line.starts_with('\t') {
            interface = words.get(1).copied().unwrap_or_default();
        }
        interface == "lo" && words.contains(&group)
    })
}

#[test]
fn a_group_is_joined_by_the_interface_that_has_the_named_address() {
    let joined = |group: &str, interface: &str| {
        let at = Listening::at(format!("{group}:0").parse().expect("an address"));
        let interface = Some(interface.parse().expect("an address"));
        UdpInlet::open(&Listening { interface, ..at })
    };
    // Version 4 as a number, lowest byte first.
    let _four = joined("239.7.6.5", "127.0.0.1").expect("the loopback takes groups");
    assert!(loopback_joined("/proc/net/igmp", "050607EF"));
    if UdpSocket::bind("[::1]:0").is_err() {
        return eprintln!("skipped in part: this machine has no IPv6");
    }
    let _six = joined("[ff15::7:6:5]", "127.0.0.1").expect("an address of the other family names it too");
    assert!(loopback_joined("/proc/net/igmp6", "ff150000000000000000000700060005"));
    let _other = joined("239.7.6.4", "::1").expect("an address of the other family names it too");
    assert!(loopback_joined("/proc/net/igmp", "040607EF"));
    let error = joined("[ff15::7:6:5]", "192.0.2.1").expect_err("none has it").to_string();
    assert_eq!(error, "no interface of this machine has the address 192.0.2.1");
}
