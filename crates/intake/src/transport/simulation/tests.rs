//! Instruments over loopback: a plain socket receives the packets that follow from the format and the seed.

use std::{net::UdpSocket, sync::atomic::AtomicBool, time::Duration};

use nilometer_storage::Clock;

use super::*;
use crate::transport::Left;
use nilometer_wire::{Packet, vdif::VdifHeader};

const SEED: Seed = Seed(7);
const BEGINS: u64 = 838_252_799;
/// 25 frames a second of each of eight lanes.
const VDIF: &str = r#"
shape = [4000]
pixel = "uint2"
frame_rate = "200 Hz"
data = "vlbi"
[packets.format.vdif]
payload = "1000 B"
stations = ["Mc", "Ef"]
threads = [0, 3, 1, 2]
"#;
/// Two modules of two packets and a shorter one.
const DETECTOR: &str = r#"
shape = [2, 5, 50]
pixel = "uint16"
frame_rate = "1 kHz"
streams = 2
burst = { frames = 10, pause = "5 ms" }
[packets.format.described]
header = "16 B"
frame = { offset = 0, bytes = 8 }
packet = { offset = 8, bytes = 4 }
modules = 2
packets = 3
payload = "200 B"
last = "100 B"
"#;

fn instrument(text: &str) -> Instrument {
    let head = "name = \"test\"\ntitle = \"t\"\nsource = \"s\"\n";
    Instrument::parse(&format!("{head}{text}"), "test.toml").expect("it can be")
}

/// Finds free neighbouring ports and returns the first one.
fn receivers(count: u16) -> (SocketAddr, Vec<UdpSocket>) {
    let at = |port: u16| UdpSocket::bind(("127.0.0.1", port));
    for _ in 0..100 {
        let first = at(0).expect("a free port");
        let address = first.local_addr().expect("it is bound");
        let Some(last) = address.port().checked_add(count - 1) else { continue };
        let rest: Result<Vec<_>, _> = (address.port() + 1..=last).map(at).collect();
        let Ok(rest) = rest else { continue };
        let all: Vec<_> = std::iter::once(first).chain(rest).collect();
        let wait = Some(Duration::from_millis(200));
        for socket in &all {
            socket.set_read_timeout(wait).expect("above zero");
        }
        return (address, all);
    }
    panic!("no {count} neighbouring ports are free");
}

fn simulation(text: &str, to: SocketAddr, packets: u64) -> Simulation {
    Simulation {
        instrument: instrument(text),
        to,
        sending: Sending::default(),
        duration: Nanos::from_millis(60_000),
        packets,
        faults: Faults::default(),
        restart_after: None,
        jump: None,
        begins: BEGINS,
        seed: SEED,
    }
}

fn send(simulation: &Simulation) -> Left {
    let sender = simulation.sender().expect("it can be sent");
    sender.run(Clock::start(), &AtomicBool::new(false)).expect("loopback takes it")
}

fn receive(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let mut bytes = vec![0; 10_000];
    std::iter::from_fn(|| socket.recv(&mut bytes).ok().map(|length| bytes[..length].to_vec())).collect()
}

#[test]
fn telescopes_send_their_noise_behind_true_headers() {
    let (to, sockets) = receivers(1);
    let simulation = simulation(VDIF, to, 64);
    let shape = simulation.shape().expect("it is known");
    assert_eq!((shape.rate, shape.clock, shape.geometry.packet_size()), (Frequency(200.0), Some(200), 1040));
    let left = send(&simulation);
    let packets = receive(&sockets[0]);
    assert_eq!((packets.len(), left.counts[0].left, left.wall >= Nanos::from_millis(320)), (64, 64, true));
    let row = Content::prepare(
        &simulation.instrument.data,
        &[1032 * 4],
        simulation.instrument.pixel,
        SEED.named("content").part(0),
    );
    let noise = row.expect("it can be made");
    let lanes = ["Mc", "Ef"].iter().flat_map(|station| [0, 3, 1, 2].map(|thread| (*station, thread))).cycle();
    for (number, (packet, (station, thread))) in packets.iter().zip(lanes).enumerate() {
        assert_eq!(packet[..8], (number as u64).to_le_bytes());
        let header = VdifHeader::parse(&packet[8..]).expect("a header");
        assert_eq!((header.thread, header.station.to_be_bytes().as_slice()), (thread, station.as_bytes()));
        assert_eq!((header.since_2000(), header.frame), (BEGINS, number as u32 / 8));
        let mut frame = vec![0; 1032];
        noise.fill(number as u64, &mut frame);
        assert_eq!(packet[40..], frame[32..], "samples of packet {number}");
    }
}

#[test]
fn serial_numbers_fall_back_and_clocks_jump_while_the_other_goes_on() {
    let (to, sockets) = receivers(1);
    let simulation =
        Simulation { restart_after: Some(24), jump: Some((16, 2.0)), ..simulation(VDIF, to, 32) };
    send(&simulation);
    let packets = receive(&sockets[0]);
    let of = |packet: &Vec<u8>| {
        let header = VdifHeader::parse(&packet[8..]).expect("a header");
        (u64::from(packet[0]), header.since_2000() - BEGINS, header.frame)
    };
    let found: Vec<_> = packets.iter().step_by(8).map(of).collect();
    assert_eq!(found, [(0, 0, 0), (8, 0, 1), (16, 2, 2), (0, 2, 3)]);
}

#[test]
fn modules_and_streams_send_to_ports_of_their_own() {
    let (to, sockets) = receivers(4);
    let simulation = simulation(DETECTOR, to, 60);
    let left = send(&simulation);
    assert_eq!(left.counts.iter().map(|counts| counts.left).collect::<Vec<_>>(), [60, 60]);
    for (port, socket) in sockets.iter().enumerate() {
        let packets = receive(socket);
        assert_eq!(packets.len(), 30, "port {port}");
        let (stream, module) = (port as u64 / 2, port % 2);
        let known = Known { port: module as u16, ..Known::of(&simulation.instrument) };
        let mut format = nilometer_wire::of(simulation.instrument.packets.as_ref().expect("it has"), &known)
            .expect("it can be");
        let content = simulation
            .content(format.geometry(), SEED.named("content").part(stream))
            .expect("it can be made");
        for (number, packet) in packets.iter().enumerate() {
            let (prefix, body) = packet.split_at(16);
            let part = format.place(Packet { prefix, body }).expect("it is of this module");
            assert_eq!((part.frame, part.part), (number as u64 / 3, module * 3 + number % 3));
            let mut frame = vec![0; 1000];
            content.prepare_slot(&mut frame);
            content.fill(part.frame, &mut frame);
            assert_eq!(body, &frame[module * 500 + number % 3 * 200..][..body.len()]);
        }
    }
    // Ten frames of six packets, and no pause behind the last of them.
    let pace = simulation.pace(&simulation.shape().expect("it is known"));
    assert_eq!([59, 60].map(|number| pace.due(number).0 / 1000), [10_000, 15_166]);
}

#[test]
fn what_can_t_be_sent_is_told() {
    let (to, _sockets) = receivers(1);
    let why = |simulation: &Simulation| simulation.sender().expect_err("it can't be").to_string();
    let plain = VDIF.split("[packets").next().expect("what is before");
    assert!(why(&simulation(plain, to, 1)).contains("test does not say how its frames come over a network"));
    let restart = Simulation { restart_after: Some(7), ..simulation(DETECTOR, to, 1) };
    assert!(why(&restart).contains("after 7 packets: write a multiple of 6"));
    let jump = Simulation { jump: Some((1, 1.0)), ..simulation(DETECTOR, to, 1) };
    assert!(why(&jump).contains("only VDIF and Mark5B"));
    let last = simulation(DETECTOR, (to.ip(), 65_533).into(), 1);
    assert!(why(&last).contains("port 65533: test sends to ports up to 65536"), "{}", why(&last));
    let nowhere = Simulation {
        sending: Sending { interface: Some("no-such".into()), ..Sending::default() },
        ..simulation(VDIF, to, 1)
    };
    assert!(why(&nowhere).starts_with(&format!("{to}: ")), "{}", why(&nowhere));
}
