//! Several addresses of one recording: ports, groups, and a group of one source.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    ops::Range,
    thread,
    time::Duration,
};

use nilometer_intake::transport::StreamCourse;
use nilometer_tests::{free_port, run};
use rustix::net::sockopt::set_ip_multicast_if;

use crate::record::{Lab, assert_frames, count, ended_after};

const PACKETS: u64 = 3000;

/// A sender at an address of this machine. Its packets to groups leave by loopback.
fn sender(from: [u8; 4]) -> UdpSocket {
    let socket = UdpSocket::bind(SocketAddr::from((from, 0))).expect("all of 127.0.0.0/8 is this machine");
    set_ip_multicast_if(&socket, &Ipv4Addr::LOCALHOST).expect("loopback takes part");
    socket
}

/// Sends packets of the stream, each to the next of these addresses.
fn send(lab: &Lab, socket: &UdpSocket, numbers: Range<u64>, to: &[SocketAddr]) {
    let mut flow = lab.flow(StreamCourse::default(), 1);
    for number in numbers {
        let made = flow.make(number);
        let packet = flow.packet(made);
        let address = to[number as usize % to.len()];
        socket.send_to(&[packet.prefix, packet.body].concat(), address).expect("loopback takes it");
        thread::sleep(Duration::from_micros(20));
    }
}

fn groups(lab: &Lab) -> Vec<SocketAddr> {
    (1..4).map(|last| SocketAddr::from(([239, 255, 78, last], lab.port))).collect()
}

fn ports(lab: &Lab) -> Vec<SocketAddr> {
    [lab.port, free_port()].map(|port| SocketAddr::from(([127, 0, 0, 1], port))).to_vec()
}

/// Records a stream that its sender spreads over these addresses.
fn assert_recorded_whole(lab: &Lab, to: &[SocketAddr], more: &[&str]) {
    let listen: Vec<String> = to.iter().map(|address| format!("udp://{address}")).collect();
    let arguments = listen.iter().flat_map(|listen| ["--listen", listen]).chain(more.iter().copied());
    let running = lab.record(&arguments.collect::<Vec<_>>());
    assert!(listen.iter().all(|address| running.stderr().contains(address)), "{}", running.stderr());
    send(lab, &sender([127, 0, 0, 1]), 0..PACKETS, to);
    let ended = ended_after(running, PACKETS);
    assert_eq!((ended.code, count(&ended, "recorded", "packets")), (Some(0), PACKETS), "{ended:?}");
    assert!(ended.stdout.contains("missing     none"), "{ended:?}");
    assert_frames(lab, &lab.file(), PACKETS, &BTreeSet::new());
}

#[test]
fn a_stream_spread_over_groups_is_recorded_whole() {
    let lab = Lab::new();
    assert_recorded_whole(&lab, &groups(&lab), &["--interface", "127.0.0.1"]);
}

#[test]
fn a_stream_spread_over_ports_is_recorded_whole() {
    let lab = Lab::new();
    assert_recorded_whole(&lab, &ports(&lab), &[]);
}

#[test]
fn of_a_group_with_a_source_others_are_not_recorded() {
    let lab = Lab::new();
    let listen = format!("udp://127.0.0.2@232.1.78.1:{}", lab.port);
    let running = lab.record(&["--listen", &listen, "--interface", "127.0.0.1"]);
    let to = [SocketAddr::from(([232, 1, 78, 1], lab.port))];
    send(&lab, &sender([127, 0, 0, 3]), 0..PACKETS, &to);
    send(&lab, &sender([127, 0, 0, 2]), 0..PACKETS, &to);
    let ended = ended_after(running, PACKETS);
    assert_eq!((ended.code, count(&ended, "recorded", "packets")), (Some(0), PACKETS), "{ended:?}");
    assert!(ended.stdout.contains("discarded   none"), "the kernel keeps the other sender away: {ended:?}");
    assert_frames(&lab, &lab.file(), PACKETS, &BTreeSet::new());
}

#[test]
fn addresses_that_do_not_fit_the_instrument_are_refused() {
    let lab = Lab::new();
    let (one, other) = (format!("udp://127.0.0.1:{}", lab.port), "udp://127.0.0.1:5");
    for (instrument, listen, words) in [
        ("fila10g-1g", &[one.as_str(), &one][..], "the same address stands there twice"),
        (
            "jungfrau-4m",
            &[&one, other, "udp://127.0.0.1:7"],
            "name one address, or 8 in the order of its ports",
        ),
        ("fila10g-1g", &["udp://10.0.0.7@127.0.0.1:5"], "write --allow 10.0.0.7"),
    ] {
        let to = lab.to.to_str().expect("plain names");
        let mut arguments = vec!["record", instrument, "--to", to];
        arguments.extend(listen.iter().flat_map(|listen| ["--listen", listen]));
        let ended = run(&arguments);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
        assert_eq!(std::fs::read_dir(to).expect("it is there").count(), 1, "only the instrument's file");
    }
}
