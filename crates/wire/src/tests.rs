//! Tests for every format: packets made are placed in their frame and part, and no bytes cause a panic.

use proptest::prelude::*;

use super::*;

const TELESCOPE: &str = "shape = [40_000]\npixel = \"uint2\"\nframe_rate = \"100 Hz\"\n";
const DETECTOR: &str = "shape = [2, 100, 100]\npixel = \"uint16\"\nframe_rate = \"100 Hz\"\n";
/// Formats with 1 MB/s in 10 kB and 40 kB frames, respectively: 100 Mark5B frames, or 500 VDIF frames of 2000
/// B.
const FORMATS: [(&str, &str); 18] = [
    (TELESCOPE, "format.vdif = { payload = \"2000 B\" }"),
    (TELESCOPE, "format.vdif = { payload = \"2000 B\", threads = [3, 1, 0, 7, 9], header = \"legacy\" }"),
    (TELESCOPE, "serial = \"none\"\nformat.vdif = { payload = \"2000 B\", threads = [5] }"),
    (
        TELESCOPE,
        "serial = \"none\"\nformat.vdif = { payload = \"1000 B\", threads = [3, 1], stations = [\"Mc\", 7] }",
    ),
    (
        TELESCOPE,
        "serial = { at = { offset = 2, bytes = 4, endian = \"big\" } }\nprefix = \"11 B\"\nformat.vdif = { payload = \"10000 B\", edv = 171, threads = [0] }",
    ),
    (TELESCOPE, "format.mark5b = {}"),
    (TELESCOPE, "format.mark5b = { frame = \"whole\" }"),
    (TELESCOPE, "serial = \"none\"\nformat.mark5b = { frame = \"whole\" }"),
    (TELESCOPE, "format.raw = { payload = \"8224 B\" }"),
    (TELESCOPE, "serial = { at = { offset = 0, bytes = 4 } }\nformat.raw = { payload = \"8224 B\" }"),
    (DETECTOR, "format.dummy_udp = {}"),
    (
        DETECTOR,
        "format.described = { header = \"7 B\", frame = { offset = 0, bytes = 3 }, packet = { offset = 3, bytes = 2, endian = \"big\", bits = 9 }, marks = { first = 14, last = 9 }, module = { at = { offset = 5, bytes = 1 } }, constants = [{ offset = 6, bytes = 1, value = 9 }], modules = 2, subframes = 4, packets = 3, payload = \"2000 B\", last = \"1008 B\", trailer = \"8 B\" }",
    ),
    (
        DETECTOR,
        "format.described = { header = \"8 B\", frame = { offset = 0, bytes = 8, endian = \"big\" }, packets = 1, payload = \"40000 B\" }",
    ),
    (
        DETECTOR,
        "format.described = { header = \"8 B\", frame = { offset = 0, bytes = 4 }, packet = { offset = 4, bytes = 4 }, packets = 40, payload = \"1000 B\" }",
    ),
    (
        TELESCOPE,
        "format.numbered = { header = \"32 B\", payload = \"7168 B\", keep = \"all\", number = { at = { offset = 8, bytes = 8 }, step = 2048 }, stream = { at = { offset = 0, bytes = 8, shift = 26, bits = 8 }, ids = [4, 0, 9] }, magic = [{ at = { offset = 0, bytes = 1, bits = 6 }, value = 3 }] }",
    ),
    (
        TELESCOPE,
        "format.numbered = { header = \"8 B\", payload = \"4608 B\", number = { at = { offset = 0, bytes = 8, endian = \"big\", shift = 29, bits = 35 }, step = 4 } }",
    ),
    (
        TELESCOPE,
        "format.numbered = { header = \"16 B\", payload = \"7808 B\", keep = { from = \"8 B\" }, number = { at = { offset = 12, bytes = 4 }, step = 16 }, upper = { at = { offset = 8, bytes = 4 }, numbers = 195312.5, clock = \"unix\" } }",
    ),
    (
        TELESCOPE,
        "format.numbered = { header = \"9 B\", payload = \"1000 B\", packets = 5, last = \"7 B\", number = { at = { offset = 0, bytes = 4 }, step = 3, wrap = 30000 }, packet = { at = { offset = 4, bytes = 4, endian = \"big\" }, step = 1000 } }",
    ),
];

/// Parses an instrument with these packets.
pub(crate) fn instrument(shape: &str, packets: &str) -> Instrument {
    let head = "name = \"t\"\ntitle = \"t\"\nsource = \"t\"\n";
    let text = format!("{head}{shape}[packets]\n{packets}\n");
    Instrument::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// Creates the format of an instrument.
pub(super) fn format(shape: &str, packets: &str, begins: u64, serial: u64) -> Box<dyn WireFormat> {
    let instrument = instrument(shape, packets);
    let known = Known { begins, serial, ..Known::of(&instrument) };
    of(&instrument.packets.expect("it has some"), &known).expect("it can be made")
}

/// Makes a packet as the sender sends it.
pub(super) fn made(format: &dyn WireFormat, number: u64, part: usize) -> (Vec<u8>, Vec<u8>) {
    let geometry = format.geometry();
    let (mut prefix, mut body) = (vec![0xee; geometry.prefix], vec![0xee; geometry.sent(part)]);
    format.make(number, part, &mut prefix, &mut body);
    (prefix, body)
}

/// Places a packet.
pub(super) fn placed(
    format: &mut dyn WireFormat,
    (prefix, body): &(Vec<u8>, Vec<u8>),
) -> Result<Part, Ignored> {
    format.place(Packet { prefix, body })
}

/// Places a packet that the format made itself.
pub(super) fn again(format: &mut dyn WireFormat, number: u64, part: usize) -> Result<Part, Ignored> {
    let packet = made(format, number, part);
    placed(format, &packet)
}

/// Places frames from `first` on. Each must be the successor of the one before.
fn goes_round(format: &mut dyn WireFormat, first: u64, frames: u64) -> Result<(), TestCaseError> {
    let geometry = format.geometry().clone();
    let mask = u64::MAX >> (64 - geometry.number_bits);
    let mut begin = None;
    for number in first..first + frames {
        for part in 0..geometry.parts.len() {
            let place = again(format, number, part);
            let begin = *begin.get_or_insert(place.map_or(0, |place| place.frame));
            let frame = begin.wrapping_add(number - first) & mask;
            prop_assert_eq!(place, Ok(Part { frame, part }), "frame {}", number);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_is_made_is_placed(
        which in 0..FORMATS.len(), begins in 0..900_000_000_u64, serial: u64, first in 0..1_000_000_u64,
    ) {
        let (shape, packets) = FORMATS[which];
        goes_round(&mut *format(shape, packets, begins, serial), first, 30)?;
    }

    #[test]
    fn serial_numbers_begin_again(which in 0..FORMATS.len(), before in 0..20_u64) {
        let (shape, packets) = FORMATS[which];
        let serial = (1_u64 << 32).wrapping_sub(before);
        goes_round(&mut *format(shape, packets, 0, serial), 0, 30)?;
        goes_round(&mut *format(shape, packets, 0, 0_u64.wrapping_sub(before)), 0, 30)?;
    }

    #[test]
    fn seconds_and_epochs_are_passed(which in 0..FORMATS.len(), epoch in 1..60_u8, before in 0..3_u64, first in 0..2000_u64) {
        let (shape, packets) = FORMATS[which];
        let begins = time::epoch_begins(epoch) - before;
        goes_round(&mut *format(shape, packets, begins, 1), first, 30)?;
    }

    #[test]
    fn any_bytes_of_the_right_size_are_borne(
        which in 0..FORMATS.len(), packets_before in 0..3_u64, ahead: i64,
        wild in prop::collection::vec((any::<[u8; 64]>(), any::<prop::sample::Index>()), 1..8),
    ) {
        let (shape, packets) = FORMATS[which];
        let mut format = format(shape, packets, 800_000_000, 7);
        for number in 0..packets_before {
            prop_assert!(again(&mut *format, number, 0).is_ok());
        }
        let geometry = format.geometry().clone();
        for (bytes, part) in wild {
            let part = part.index(geometry.parts.len());
            let fresh = |size| bytes.iter().copied().cycle().take(size).collect::<Vec<_>>();
            let packet = (fresh(geometry.prefix), fresh(geometry.sent(part)));
            // A packet as made, with some of its bytes changed.
            let (prefix, mut body) = made(&*format, u64::from(bytes[0]), part);
            body.iter_mut().zip(bytes).for_each(|(byte, turned)| *byte ^= turned & 0x41);
            let turned = (prefix, body);
            for place in [&packet, &turned].map(|packet| placed(&mut *format, packet)).into_iter().flatten() {
                prop_assert!(place.part < geometry.parts.len());
                prop_assert!(place.frame <= u64::MAX >> (64 - geometry.number_bits));
            }
            let mut into = vec![0; geometry.parts[part]];
            let first = [packet.1, turned.1, fresh(geometry.parts[0])];
            for bytes in first.iter().filter(|bytes| bytes.len() == geometry.parts[0]) {
                format.fill(Some(Near { bytes, ahead }), part, &mut into);
                format.fill(Some(Near { bytes, ahead: ahead % 1000 }), part, &mut into);
            }
            format.fill(None, part, &mut into);
        }
    }
}

#[test]
fn what_must_be_known_is_asked_for() {
    let telescope = |packets| instrument(TELESCOPE, packets).packets.expect("it has some");
    for packets in [
        "serial = \"none\"\nformat.vdif = { threads = [0], payload = \"2000 B\" }",
        "serial = \"none\"\nformat.mark5b = { frame = \"whole\" }",
    ] {
        assert!(of(&telescope(packets), &Known::default()).expect_err(packets).contains("known"));
    }
    let detector = instrument(
        DETECTOR,
        "format.described = { header = \"8 B\", frame = { offset = 0, bytes = 4 }, modules = 2, packets = 1, payload = \"20000 B\" }",
    );
    let known = Known { port: 2, ..Known::of(&detector) };
    let error = of(&detector.packets.expect("it has some"), &known).expect_err("there are two modules");
    assert!(error.contains("port 2 of a detector with 2 modules"), "{error}");
}

#[test]
fn raw_packets_are_numbered_as_they_come_or_as_they_say() {
    let mut raw = format(TELESCOPE, "serial = \"none\"\nformat.raw = { payload = \"100 B\" }", 0, 0);
    for frame in 0..3 {
        assert_eq!(placed(&mut *raw, &(vec![], vec![0; 100])), Ok(Part { frame, part: 0 }));
    }
    let mut raw = format(TELESCOPE, FORMATS[9].1, 0, 0);
    assert_eq!((raw.geometry().number_bits, raw.geometry().packet_size()), (32, 8232));
    let packet = (vec![1, 2, 3, 4, 5, 6, 7, 8], vec![0; 8224]);
    assert_eq!(placed(&mut *raw, &packet), Ok(Part { frame: 0x0403_0201, part: 0 }));
    let mut missing = vec![0; 8224];
    raw.fill(None, 0, &mut missing);
    assert!(missing.as_chunks().0.iter().all(|word| u32::from_le_bytes(*word) == 0x1122_3344));
}
