//! Captures made here, and any bytes.

use super::{container::each_packet, *};
use crate::foreign::testing::{InMemory, mark5b_frame, vdif_frame};

/// An Ethernet packet with IPv4 and UDP, to port 46227.
fn ethernet(payload: &[u8], fragment: u16) -> Vec<u8> {
    let mut packet = vec![0; 12];
    packet.extend([0x81, 0, 0, 7, 8, 0, 0x45, 0]);
    packet.extend((payload.len() as u16 + 28).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x30, 0, 0xb4, 0x93]);
    packet.extend((payload.len() as u16 + 8).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

/// A packet without a link header, with IPv6, a header in between, and UDP.
fn ipv6(payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 60, 64];
    packet.extend([0; 32]);
    packet.extend([17, 0, 0, 0, 0, 0, 0, 0, 0x30, 0, 0xb4, 0x93]);
    packet.extend((payload.len() as u16 + 8).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

/// A file of pcap, in big-endian numbers, with these packets of a link type.
fn pcap(link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let header = [NANOSECONDS, 0x0002_0004, 0, 0, 1 << 16, link];
    let mut file: Vec<u8> = header.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
    for packet in packets {
        let length = packet.len() as u32;
        file.extend([5, 6, length, length].iter().flat_map(|word: &u32| word.to_be_bytes()));
        file.extend(packet);
    }
    file
}

const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// A file of pcapng with these packets of a link type.
fn pcapng(link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let size = (body.len().next_multiple_of(4) + 12) as u32;
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        [&kind.to_le_bytes()[..], &size.to_le_bytes(), body, &padding, &size.to_le_bytes()].concat()
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    file.extend(block(1, &words(&[link, 0])));
    for packet in packets {
        let length = packet.len() as u32;
        file.extend(block(6, &[words(&[0, 1, 2, length, length]), packet.clone()].concat()));
    }
    file
}

/// The stream in a capture, and its faults.
fn stream(file: Vec<u8>) -> Option<(Vec<u8>, Vec<String>)> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("c.pcap");
    std::fs::write(&path, file).expect("room");
    let recording = opened(&path, None).ok()?;
    let faults = recording.foreign().expect("it has no journal").faults.clone();
    let view = crate::view::RecordingView::new(recording, crate::view::Extent::All);
    let mut bytes = vec![0; view.length() as usize];
    assert_eq!(view.read_at(0, &mut bytes), bytes.len());
    assert_eq!(view.faults().count, 0);
    Some((bytes, faults))
}

fn opened(path: &Path, mode: Option<&str>) -> Result<Recording, String> {
    opened_at(path, mode, None)
}

fn opened_at(path: &Path, mode: Option<&str>, port: Option<u16>) -> Result<Recording, String> {
    let mode: Option<VlbiMode> = mode.map(|mode| mode.parse().expect("a mode"));
    open(path, "c", &ForeignWish { mode, port }).expect("it can be read")
}

/// The same packet to another port.
fn to_port(mut packet: Vec<u8>, port: u16) -> Vec<u8> {
    packet[40..42].copy_from_slice(&port.to_be_bytes());
    packet
}

fn faults(recording: &Recording) -> &[String] {
    &recording.foreign().expect("it has no journal").faults
}

/// The bytes of all its frames.
fn length(recording: Recording) -> u64 {
    crate::view::RecordingView::new(recording, crate::view::Extent::All).length()
}

const CODIF: &str = "CODIF_1000-64-1-8";

#[test]
fn frames_to_several_ports_are_refused_until_the_user_chooses_one() {
    let frame = |number: u8| ethernet(&[&[0xff; 64][..], &[number; 1000]].concat(), 0);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("c.pcap");
    let first = (0..9).map(frame);
    let second = (0..7).map(|number| to_port(frame(number), 46_228));
    std::fs::write(&path, pcap(1, &first.chain(second).collect::<Vec<_>>())).expect("room");
    let refused = opened(&path, Some(CODIF)).expect_err("two ports");
    assert!(refused.contains("choose one with --port: 46227 (9 frames), 46228 (7)"), "{refused}");
    for (port, frames) in [(46_227, 9), (46_228, 7)] {
        let recording = opened_at(&path, Some(CODIF), Some(port)).expect("it has some");
        assert!(faults(&recording).is_empty(), "the user chose: {recording:?}");
        assert_eq!(length(recording), frames * 1064);
    }
    let refused = opened_at(&path, Some(CODIF), Some(7)).expect_err("no packet");
    assert!(refused.contains("but to 46227 (9 packets), 46228 (7)"), "{refused}");
    let unnamed = opened(&path, None).expect("it has packets");
    let [fault] = faults(&unnamed) else { panic!("{unnamed:?}") };
    assert!(fault.starts_with("7 packets (7 of 1064 B to port 46228) may be of another stream"), "{fault}");
}

#[test]
fn packets_that_nobody_chose_are_a_fault() {
    let small = (0..9).map(|number| ethernet(&vdif_frame(number, 3, 1032, false), 0));
    let large = (0..4).map(|number| ethernet(&vdif_frame(number, 3, 4032, false), 0));
    let name_service = (0..3).map(|_| to_port(ethernet(&[1; 40], 0), 53));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("c.pcap");
    let packets: Vec<_> = small.chain(large).chain(name_service).collect();
    std::fs::write(&path, pcap(1, &packets)).expect("room");
    let unnamed = opened(&path, None).expect("it has frames");
    let [fault] = faults(&unnamed) else { panic!("{unnamed:?}") };
    assert!(fault.starts_with("4 packets (4 of 4032 B to port 46227) may be of another stream"), "{fault}");
    let named = opened(&path, Some("VDIF_1000-64-1-8")).expect("it has frames");
    assert!(faults(&named).is_empty(), "{named:?}");
    let name_service = opened_at(&path, None, Some(53)).expect("it has packets");
    assert!(faults(&name_service).is_empty(), "{name_service:?}");
    assert_eq!(length(name_service), 3 * 40);
}

#[test]
fn the_user_names_frames_that_nobody_can_recognize() {
    let frame = |number: u8| [&[0xff; 64][..], &[number; 1000]].concat();
    let packets: Vec<_> =
        (0..9).map(|number| ethernet(&numbered(&frame(number), u32::from(number)), 0)).collect();
    let others: Vec<_> = (0..20).map(|_| ethernet(&[7; 300], 0)).collect();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("c.pcap");
    std::fs::write(&path, pcap(1, &[packets, others].concat())).expect("room");
    let recording = opened(&path, Some("CODIF_1000-64-1-8")).expect("it has nine");
    let notes = recording.foreign().expect("it has no journal").notes.join("\n");
    assert!(notes.contains("9 packets with 1064 B behind 8 B to port 46227; 20 other packets"), "{notes}");
    let view = crate::view::RecordingView::new(recording, crate::view::Extent::All);
    let mut bytes = vec![0; 9 * 1064];
    assert_eq!((view.length(), view.read_at(0, &mut bytes)), (9 * 1064, 9 * 1064));
    assert_eq!(bytes, (0..9).flat_map(frame).collect::<Vec<_>>());
    let usual = opened(&path, None).expect("it has packets");
    assert_eq!(crate::view::RecordingView::new(usual, crate::view::Extent::All).length(), 20 * 300);
    for (mode, why) in
        [("CODIF_1200-64-1-8", "frame of 1264 B"), ("VDIF_1000-64-1-8", "most are packets of 300 B to port")]
    {
        let refused = opened(&path, Some(mode)).expect_err("it has none");
        assert!(refused.starts_with(&format!("--mode {mode}")) && refused.contains(why), "{refused}");
    }
}

#[test]
fn of_two_streams_the_user_names_one() {
    let small = (0..9).map(|number| ethernet(&vdif_frame(number, 3, 1032, false), 0));
    let large = (0..4).map(|number| ethernet(&vdif_frame(number, 3, 4032, false), 0));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("c.pcap");
    std::fs::write(&path, pcap(1, &small.chain(large).collect::<Vec<_>>())).expect("room");
    assert_eq!(length(opened(&path, None).expect("it has some")), 9 * 1032);
    assert_eq!(length(opened(&path, Some("VDIF_4000-64-1-8")).expect("it has some")), 4 * 4032);
}

fn numbered(frame: &[u8], serial: u32) -> Vec<u8> {
    [&[0; 4], &serial.to_le_bytes()[..], frame].concat()
}

#[test]
fn frames_are_found_behind_every_link() {
    let frames: Vec<Vec<u8>> = (0..5).map(|number| vdif_frame(number, 3, 1032, false)).collect();
    let payloads: Vec<Vec<u8>> = (0..).zip(&frames).map(|(serial, frame)| numbered(frame, serial)).collect();
    let expected = frames.concat();
    let on_ethernet: Vec<Vec<u8>> = payloads.iter().map(|payload| ethernet(payload, 0x4000)).collect();
    let cooked: Vec<Vec<u8>> =
        payloads.iter().map(|payload| [&[0; 14], &[0x86, 0xdd][..], &ipv6(payload)].concat()).collect();
    let plain: Vec<Vec<u8>> = payloads.iter().map(|payload| ipv6(payload)).collect();
    let tagged = [&[0x81, 0][..], &[0; 18], &[0, 7, 0x86, 0xdd]].concat();
    let cooked_and_tagged: Vec<Vec<u8>> =
        payloads.iter().map(|payload| [&tagged[..], &ipv6(payload)].concat()).collect();
    for file in [
        pcap(1, &on_ethernet),
        pcapng(1, &on_ethernet),
        pcap(113, &cooked),
        pcap(276, &cooked_and_tagged),
        pcap(0x0455_0001, &on_ethernet),
        pcapng(101, &plain),
    ] {
        assert_eq!(stream(file), Some((expected.clone(), vec![])));
    }
}

#[test]
fn frames_that_the_kernel_merged_into_one_packet_are_all_taken() {
    let frames: Vec<Vec<u8>> = (0..14).map(|number| vdif_frame(number, 3, 1032, false)).collect();
    let payloads: Vec<Vec<u8>> = (0..).zip(&frames).map(|(serial, frame)| numbered(frame, serial)).collect();
    let merged = |ranges: &[std::ops::Range<usize>]| {
        let packets: Vec<_> =
            ranges.iter().map(|range| ethernet(&payloads[range.clone()].concat(), 0)).collect();
        stream(pcap(1, &packets))
    };
    assert_eq!(merged(&[0..1, 1..7, 7..8, 8..14]), Some((frames.concat(), vec![])), "by turns");
    assert_eq!(merged(&[0..7, 7..14]), Some((frames.concat(), vec![])), "nothing else");
    let mut odd = payloads[8..14].concat();
    odd[1040 + 8..][..32].fill(0);
    let packets = [ethernet(&payloads[0], 0), ethernet(&payloads[1], 0), ethernet(&odd, 0)];
    let (bytes, faults) = stream(pcap(1, &packets)).expect("two frames");
    assert_eq!(bytes, frames[..2].concat());
    assert_eq!(faults.len(), 1, "one of the merged frames has no header: {faults:?}");
}

#[test]
fn a_packet_that_looks_like_a_frame_does_not_beat_all_others_of_its_length() {
    let mut packets: Vec<Vec<u8>> = (1..20).map(|number| ethernet(&[number; 1032], 0)).collect();
    packets.insert(3, ethernet(&vdif_frame(0, 3, 1032, false), 0));
    let (bytes, _) = stream(pcap(1, &packets)).expect("it has packets");
    assert_eq!(bytes.len(), 20 * 1032);
}

#[test]
fn halves_are_joined_and_lone_ones_left_out() {
    let frames: Vec<Vec<u8>> = (0..4).map(mark5b_frame).collect();
    let halves: Vec<Vec<u8>> =
        frames.iter().flat_map(|frame| frame.chunks(5008)).map(<[u8]>::to_vec).collect();
    let packets: Vec<Vec<u8>> =
        (7..).zip(&halves).map(|(serial, half)| ethernet(&numbered(half, serial), 0)).collect();
    assert_eq!(stream(pcap(1, &packets)), Some((frames.concat(), vec![])));
    let some: Vec<Vec<u8>> = [0, 1, 2, 4, 5, 7].map(|at| packets[at].clone()).to_vec();
    let (bytes, faults) = stream(pcap(1, &some)).expect("it has frames");
    assert_eq!(bytes, [&frames[0][..], &frames[2]].concat());
    assert!(faults.len() == 1 && faults[0].starts_with("2 halves"), "{faults:?}");
}

#[test]
fn packets_that_are_not_whole_and_fragments_are_counted() {
    let frame = |number| numbered(&vdif_frame(number, 3, 1032, false), number as u32);
    let cut = ethernet(&frame(1), 0)[..900].to_vec();
    let packets =
        [ethernet(&frame(0), 0), cut, ethernet(&frame(2), 0x2000), ethernet(b"other", 0), vec![0; 60]];
    let mut file = pcap(1, &packets);
    file.extend([0; 9]);
    let (bytes, faults) = stream(file).expect("it has a frame");
    assert_eq!(bytes, vdif_frame(0, 3, 1032, false));
    let words =
        ["1 packets of the stream were captured only in part", "1 fragments", "ends in a packet: 9 B"];
    assert!(words.iter().zip(&faults).all(|(word, fault)| fault.contains(word)), "{faults:?}");
}

#[test]
fn packets_without_frames_are_a_stream_of_their_bytes() {
    let packets: Vec<Vec<u8>> = (1..6).map(|number| ethernet(&[number; 700], 0)).collect();
    let (bytes, _) = stream(pcapng(1, &packets)).expect("it has packets");
    assert_eq!(bytes, (1..6).flat_map(|number| [number; 700]).collect::<Vec<u8>>());
    assert_eq!(stream(pcap(1, &[vec![0; 60]])), None);
}

#[test]
fn no_bytes_break_the_reader() {
    let frames = |number| ethernet(&numbered(&vdif_frame(number, 3, 72, false), number as u32), 0);
    let packets: Vec<Vec<u8>> = (0..3).map(frames).collect();
    let corpus = vec![pcap(1, &packets), pcapng(1, &packets), pcapng(101, &[ipv6(b"bytes")])];
    nilometer_fuzz::fuzz("captures", corpus, |bytes| {
        let length = bytes.len() as u64;
        let file = InMemory(bytes.to_vec());
        let any = ForeignWish::default();
        let votes = votes_of(&file, length, &any).expect("memory can be read");
        let Some(layout) = votes.winner() else { return };
        let (runs, counts) = taken(&file, length, layout, &any).expect("memory can be read");
        assert!(runs.length() <= length, "{:?}", counts.faults());
        let ended = each_packet(&file, length, &mut |packet| {
            assert!(packet.at + u64::from(packet.captured) <= length);
            ControlFlow::Continue(())
        });
        ended.expect("memory can be read");
    });
}
