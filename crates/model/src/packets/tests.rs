//! Tests of valid descriptions of packets, and of refused ones.

use super::*;
use crate::Instrument;

const TELESCOPE: &str = r#"
name = "t"
title = "a test"
source = "a test"
shape = [40_000_000]
pixel = "uint2"
frame_rate = "12.8 Hz"
"#;
const DETECTOR: &str = r#"
name = "t"
title = "a test"
source = "a test"
shape = [2, 512, 1024]
pixel = "uint16"
frame_rate = "100 Hz"
"#;
const DESCRIBED: &str = r#"
[packets.format.described]
header = "16 B"
frame = { offset = 0, bytes = 8 }
packet = { offset = 8, bytes = 2, endian = "big", bits = 14 }
marks = { first = 14, last = 15 }
module = { at = { offset = 10, bytes = 2 } }
constants = [{ offset = 12, bytes = 4, value = 77 }]
modules = 2
subframes = 2
packets = 66
payload = "8000 B"
last = "4296 B"
trailer = "8 B"
"#;

fn parse(instrument: &str, packets: &str) -> Result<Packets, String> {
    let read =
        Instrument::parse(&format!("{instrument}{packets}"), "t.toml").map_err(|error| error.to_string())?;
    let text = serde_json::to_string(&read).expect("it can be written");
    assert_eq!(
        serde_json::from_str::<Instrument>(&text).expect("it was written"),
        read,
        "as records keep it"
    );
    Ok(read.packets.expect("it has some"))
}

fn frames_per_second(packets: &Packets) -> Option<u64> {
    packets.frames_per_second(ByteRate(128e6)).expect("it was checked")
}

#[test]
fn a_back_end_sends_what_it_is_known_to_send() {
    let fila10g = parse(TELESCOPE, "[packets.format.vdif]").expect("valid");
    assert_eq!((fila10g.port, fila10g.prefix(), fila10g.serial()), (46227, Bytes(8), Some(Field::new(0, 8))));
    assert_eq!((fila10g.packet_max(Bytes(0)), frames_per_second(&fila10g)), (8040, Some(16_000)));
    let mark5b = parse(TELESCOPE, "packets = { format = { mark5b = {} } }").expect("valid");
    assert_eq!((mark5b.prefix(), mark5b.serial()), (Bytes(8), Some(Field::new(4, 4))));
    assert_eq!((mark5b.packet_max(Bytes(0)), frames_per_second(&mark5b)), (5016, Some(12_800)));
    let rdbe = "packets = { serial = \"none\", format = { raw = { payload = \"8224 B\" } } }";
    let rdbe = parse(TELESCOPE, rdbe).expect("valid");
    assert_eq!((rdbe.prefix(), rdbe.serial(), rdbe.packet_max(Bytes(0))), (Bytes(0), None, 8224));
    assert_eq!(frames_per_second(&rdbe), None);
}

#[test]
fn threads_and_stations_share_the_rate() {
    let four = "[packets.format.vdif]\nthreads = [3, 1]\nstations = [\"Mc\", 7]\npayload = \"4000 B\"";
    let four = parse(TELESCOPE, four).expect("valid");
    assert_eq!(frames_per_second(&four), Some(8000));
    let PacketFormat::Vdif(vdif) = four.format else { panic!("{four:?}") };
    assert_eq!(vdif.stations, Some(vec![Station(0x4d63), Station(7)]));
    assert_eq!([Station(0x4d63), Station(7)].map(|station| station.to_string()), ["Mc", "7"]);
}

#[test]
fn sampling_rates_are_told_as_a_sample_file_tells_them() {
    // 5000 bytes of two bits at 1600 frames a second are 32 million samples a second: 16 MHz in the header of EDV 3.
    let vdif = Vdif {
        payload: Bytes(5000),
        stations: None,
        threads: None,
        edv: 3,
        header: HeaderKind::Full,
        bits: 2,
        channels: 1,
        complex: false,
    };
    assert_eq!(vdif.sampling(1600), Some(0x0080_0010));
    assert_eq!(vdif.sampling(25), Some(250), "in kHz");
    assert_eq!(Vdif { payload: Bytes(8), ..vdif }.sampling(1), None, "16 Hz");
}

/// A module of EIGER, of two halves with two ports each.
const HALVES: &str = r#"
name = "t"
title = "a test"
source = "a test"
shape = [4, 256, 512]
pixel = "uint16"
frame_rate = "100 Hz"
"#;

#[test]
fn an_eiger_has_frames_of_its_halves() {
    for (pixel, columns, link, packets) in [
        ("uint8", 256, 4096, 16),
        ("uint8", 512, 4096, 32),
        ("uint12", 512, 4096, 48),
        ("uint16", 512, 1024, 256),
        ("uint32", 512, 4096, 128),
        ("uint32", 512, 1024, 512),
    ] {
        let shape = HALVES.replace("512]", &format!("{columns}]")).replace("uint16", pixel);
        let format =
            format!("packets = {{ format = {{ eiger = {{ halves = 2, payload = \"{link} B\" }} }} }}");
        let eiger = parse(&shape, &format).unwrap_or_else(|error| panic!("{pixel}: {error}"));
        let frame = Bytes(packets * link * 4);
        assert_eq!(
            eiger.detector(frame).map(|detector| detector.packets),
            Some(packets),
            "{pixel}, {link} B"
        );
    }
    for (eiger, part) in [
        ("halves = 0", "write 1 to 512"),
        ("halves = 3", "write shape = [6, 256, 512]"),
        ("halves = 2, payload = \"8192 B\"", "\"1024 B\" for 1 Gbit/s"),
        ("modules = 2", "unknown key `modules`"),
    ] {
        let error = parse(HALVES, &format!("packets.format.eiger = {{ {eiger} }}")).expect_err(eiger);
        assert!(error.contains(part) && error.contains("t.toml"), "{eiger}: {error}");
    }
}

#[test]
fn a_detector_can_be_described() {
    let packets = parse(DETECTOR, DESCRIBED).expect("valid");
    assert_eq!((packets.ports(), packets.serial(), packets.prefix()), (1, None, Bytes(0)));
    let detector = packets.detector(Bytes(2 << 20)).expect("it is one");
    assert_eq!((detector.pixels(), detector.all_subframes()), (2 << 20, 4));
    let excalibur = parse(DETECTOR, "packets = { format = { excalibur = { modules = 2 } } }").expect("valid");
    assert_eq!((excalibur.ports(), excalibur.packet_max(Bytes(0))), (2, 8008));
    let jungfrau = parse(DETECTOR, "packets = { format = { jungfrau = { modules = 2 } } }").expect("valid");
    assert_eq!((jungfrau.ports(), jungfrau.packet_max(Bytes(0))), (2, 8240));
    let eiger = parse(HALVES, "packets = { format = { eiger = { halves = 2 } } }").expect("valid");
    assert_eq!((eiger.ports(), eiger.packet_max(Bytes(1 << 20))), (4, 4144));
    assert_eq!(eiger.detector(Bytes(1 << 20)).map(|detector| detector.packets), Some(64));
    assert_eq!(eiger.port_name(3), "the right port of half module 1");
    let dummy = parse(DETECTOR, "packets = { format = { dummy_udp = {} } }").expect("valid");
    let detector = dummy.detector(Bytes(2 << 20)).expect("it is one");
    assert_eq!((detector.packets, detector.last, dummy.ports()), (263, Some(Bytes(1152)), 1));
}

#[test]
fn nonsense_of_a_telescope_is_refused() {
    for (packets, part) in [
        ("[packets]", "`format`"),
        ("packets = { format = { vdiff = {} } }", "`vdif`, `mark5b`"),
        ("[packets.format.vdif]\npayloads = 1", "`payload`"),
        ("[packets.format.vdif]\npayload = \"8001 B\"", "multiple of 8"),
        (
            "packets = { serial = \"none\", format = { vdif = { payload = \"7992 B\", threads = [0] } } }",
            "16016.016016 frames a second",
        ),
        ("[packets.format.vdif]\npayload = \"80 kB\"", "at most 65507 B"),
        ("[packets.format.vdif]\npayload = \"4000000000000000000 B\"", "at most 65507 B"),
        ("[packets.format.vdif]\npayload = \"8 B\"\nthreads = [0]\nbits = 40", "1 to 32"),
        ("[packets.format.vdif]\nchannels = 3", "power of two"),
        ("[packets.format.vdif]\nthreads = [1, 2, 1]", "threads has 1 twice"),
        ("[packets.format.vdif]\nthreads = []", "threads = []"),
        ("[packets.format.vdif]\nthreads = [1024]", "0 to 1023"),
        ("[packets.format.vdif]\nstations = [\"Medicina\"]", "two ASCII characters"),
        ("[packets.format.vdif]\nstations = [\"!a\"]", "two ASCII characters"),
        ("[packets.format.vdif]\nstations = [70000]", "0 to 65535"),
        ("[packets.format.vdif]\nedv = 5", "0 to 4, or 171"),
        ("[packets.format.vdif]\nedv = 3", "\"1000 B\" or \"5000 B\""),
        ("[packets.format.vdif]\nedv = 1\nheader = \"legacy\"", "legacy header"),
        ("[packets.format.vdif]\nheader = \"short\"", "`legacy`"),
        ("packets = { serial = \"none\", format = { vdif = {} } }", "threads: name them"),
        ("packets = { serial = \"none\", format = { mark5b = {} } }", "need a serial number"),
        (
            "packets = { serial = { at = { offset = 0, bytes = 6 } }, format = { vdif = {} } }",
            "bytes = 4 or bytes = 8",
        ),
        ("packets = { serial = { at = { offset = 4, bytes = 8 } }, format = { vdif = {} } }", "8 B in front"),
        ("packets = { prefix = \"4 B\", format = { vdif = {} } }", "4 B in front"),
        ("packets = { prefix = \"1 MB\", format = { vdif = {} } }", "at most 65507"),
        ("packets = { port = 0, format = { vdif = {} } }", "1 to 65535"),
        ("packets = { port = 65535, format = { vdif = {} } }\nstreams = 2", "1 to 65535"),
        ("packets = { format = { raw = { payload = \"0 B\" } } }", "at least 1 B"),
    ] {
        let error = parse(TELESCOPE, packets).expect_err(packets);
        assert!(error.contains(part) && error.contains("t.toml"), "{packets}: {error}");
    }
    let fast = TELESCOPE.replace("12.8 Hz", "128 Hz");
    let error = parse(&fast, "packets = { format = { mark5b = {} } }").expect_err("too fast");
    assert!(error.contains("at most 32768"), "{error}");
}

#[test]
fn nonsense_of_a_detector_is_refused() {
    for (from, to, part) in [
        ("header = \"16 B\"", "header = \"15 B\"", "constants: 4 B from byte 12 on"),
        ("header = \"16 B\"", "header = \"0 B\"", "1 B to 1024 B"),
        ("bytes = 8 }", "bytes = 9 }", "frame.bytes = 9"),
        ("bytes = 8 }", "bytes = 8, bits = 65 }", "frame.bits = 65"),
        ("bytes = 8 }", "bytes = 18446744073709551615 }", "frame.bytes = 18446744073709551615"),
        ("offset = 8,", "offset = 7,", "packet and frame stand in the same bytes"),
        ("value = 77", "value = 5000000000", "5000000000 does not fit"),
        ("modules = 2", "modules = 0", "modules = 0"),
        ("subframes = 2", "subframes = 3", "1, 2, 4, 8"),
        ("packets = 66", "packets = 0", "packets = 0"),
        ("packets = 66", "packets = 20000", "14 bits do not count 20000"),
        ("first = 14", "first = 13", "above the 14"),
        ("last = 15", "last = 14", "two bits above"),
        ("last = \"4296 B\"", "last = \"8001 B\"", "no longer last"),
        ("trailer = \"8 B\"", "trailer = \"4 B\"", "0 B or 8 B"),
        ("payload = \"8000 B\"", "payload = \"4000000000000000000 B\"", "its shape has 2097152 B"),
        ("payload = \"8000 B\"", "payload = \"8008 B\"", "its shape has 2097152 B"),
        ("packet = {", "packets = {", "duplicate"),
    ] {
        assert!(DESCRIBED.contains(from), "{from}");
        let error = parse(DETECTOR, &DESCRIBED.replacen(from, to, 1)).expect_err(to);
        assert!(error.contains(part) && error.contains("t.toml"), "{to}: {error}");
    }
    for (packets, part) in [
        ("packets = { serial = \"none\", format = { jungfrau = { modules = 2 } } }", "leave them out"),
        ("packets = { format = { jungfrau = { modules = 3 } } }", "its shape has"),
        ("packets = { format = { jungfrau = { modules = 2000 } } }", "1 to 1024"),
        ("packets = { format = { dummy_udp = { payload = \"0 B\" } } }", "at least 1 B"),
        ("packets = { port = 65535, format = { jungfrau = { modules = 2 } } }", "1 to 65535"),
    ] {
        let error = parse(DETECTOR, packets).expect_err(packets);
        assert!(error.contains(part), "{packets}: {error}");
    }
}
