//! Tests the bytes of detector packets, taken from the sources of their receivers.

use crate::{
    Ignored, Known, Packet, Part, WireFormat, of,
    tests::{instrument, made, placed},
};

const EXCALIBUR: (&str, &str) = (
    "shape = [6, 256, 2048]\npixel = \"uint16\"\nframe_rate = \"95.4 Hz\"\n",
    "format.excalibur = { modules = 6 }",
);
const JUNGFRAU: (&str, &str) = (
    "shape = [8, 512, 1024]\npixel = \"uint16\"\nframe_rate = \"1 kHz\"\n",
    "format.jungfrau = { modules = 8 }",
);
const EIGER: (&str, &str) =
    ("shape = [4, 256, 512]\npixel = \"uint16\"\nframe_rate = \"1 kHz\"\n", "format.eiger = { halves = 2 }");
const DUMMY: (&str, &str) =
    ("shape = [1024, 1400]\npixel = \"uint16\"\nframe_rate = \"1 Hz\"\n", "format.dummy_udp = {}");

fn format((shape, packets): (&str, &str), port: u16) -> Box<dyn WireFormat> {
    let instrument = instrument(shape, packets);
    let known = Known { port, ..Known::of(&instrument) };
    of(&instrument.packets.expect("it has some"), &known).expect("it can be made")
}

#[test]
fn excalibur_sends_two_subframes_of_each_module() {
    let mut third = format(EXCALIBUR, 2);
    let geometry = third.geometry().clone();
    assert_eq!((geometry.prefix, geometry.parts.len(), geometry.number_bits), (8, 6 * 2 * 66, 31));
    assert_eq!(geometry.frame_size(), 6 * 2 * (512 * 512 * 2));
    // Sub-frame 7 is the second one of frame 3. Its last packet has the mark, and a trailer with frame 4
    // because that counts from 1.
    let part = (2 * 2 + 1) * 66 + 65;
    let (prefix, body) = made(&*third, 3, part);
    assert_eq!(prefix, [7, 0, 0, 0, 65, 0, 0, 0x40]);
    assert_eq!(
        (body.len(), &body[4280..]),
        (4296, [0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 4, 0, 0, 0, 0, 0, 0, 0].as_slice())
    );
    assert_eq!(placed(&mut *third, &(prefix, body)), Ok(Part { frame: 3, part }));
    let (prefix, body) = made(&*third, 3, part - 65);
    assert_eq!((prefix.as_slice(), body.len()), ([7, 0, 0, 0, 0, 0, 0, 0x80].as_slice(), 8000));
    assert!(body.iter().all(|byte| *byte == 0xee), "pixels are left alone");
    let mut first = format(EXCALIBUR, 0);
    assert_eq!(
        placed(&mut *first, &(prefix, body)),
        Ok(Part { frame: 3, part: 66 }),
        "the port tells the module"
    );
}

#[test]
fn what_an_excalibur_packet_can_not_say_is_corrupt() {
    let mut format = format(EXCALIBUR, 0);
    let place = |format: &mut dyn WireFormat, packet: u8, size: usize| {
        format.place(Packet { prefix: &[0, 0, 0, 0, packet, 0, 0, 0], body: &vec![0; size] })
    };
    assert_eq!(place(&mut *format, 64, 8000), Ok(Part { frame: 0, part: 64 }));
    assert_eq!(place(&mut *format, 66, 8000), Err(Ignored::Corrupt), "there are 66");
    assert_eq!(place(&mut *format, 65, 8000), Err(Ignored::Corrupt), "the last is shorter");
    assert_eq!(place(&mut *format, 0, 4296), Err(Ignored::Corrupt));
}

#[test]
fn jungfrau_has_the_header_of_its_package() {
    let mut format = format(JUNGFRAU, 5);
    assert_eq!((format.geometry().packet_size(), format.geometry().frame_size()), (8240, 8 << 20));
    let part = 5 * 128 + 127;
    let (mut prefix, body) = made(&*format, 0x0102_0304_0506_0708, part);
    assert_eq!(prefix[..8], [8, 7, 6, 5, 4, 3, 2, 1], "frame number");
    assert_eq!(prefix[12..16], [127, 0, 0, 0], "packet number");
    assert_eq!(prefix[46..], [3, 2], "type of the detector, version of the header");
    assert_eq!(
        placed(&mut *format, &(prefix.clone(), body.clone())),
        Ok(Part { frame: 0x0102_0304_0506_0708, part })
    );
    prefix[46] = 1;
    assert_eq!(placed(&mut *format, &(prefix, body)), Err(Ignored::Foreign), "an EIGER");
}

#[test]
fn an_eiger_sends_the_rows_of_each_port_in_their_order() {
    let mut right = format(EIGER, 3);
    assert_eq!((right.geometry().packet_size(), right.geometry().frame_size()), (4144, 1 << 20));
    assert_eq!(right.port_name(), Some("the right port of half module 1"));
    let instrument = instrument(EIGER.0, EIGER.1);
    let second = Known { port: 1, parts_before: 2, ..Known::of(&instrument) };
    let second = of(&instrument.packets.expect("it has some"), &second).expect("it can be made");
    assert_eq!(
        second.port_name(),
        Some("the right port of half module 1"),
        "another recorder takes the first"
    );
    // Four rows of 512 pixels are a packet: the 64th of the fourth port has the last ones.
    let part = 3 * 64 + 63;
    let (mut prefix, body) = made(&*right, 7, part);
    assert_eq!((&prefix[..8], &prefix[12..16]), (&[7, 0, 0, 0, 0, 0, 0, 0][..], &[63, 0, 0, 0][..]));
    assert_eq!(prefix[46..], [1, 2], "type of the detector, version of the header");
    assert_eq!(placed(&mut *right, &(prefix.clone(), body.clone())), Ok(Part { frame: 7, part }));
    prefix[12] = 64;
    assert_eq!(placed(&mut *right, &(prefix.clone(), body.clone())), Err(Ignored::Corrupt), "there are 64");
    prefix[46] = 3;
    assert_eq!(placed(&mut *right, &(prefix, body)), Err(Ignored::Foreign), "a JUNGFRAU");
}

#[test]
fn the_test_stream_of_odin_data_has_a_shorter_last_packet() {
    let mut dummy = format(DUMMY, 0);
    // 1400 x 1024 pixels of 16 bits take 358 packets of 8000 bytes, and one of 3200.
    assert_eq!((dummy.geometry().parts.len(), dummy.geometry().parts[358]), (359, 3200));
    assert_eq!(made(&*dummy, 9, 0).0, [9, 0, 0, 0, 0, 0, 0, 0x80]);
    let last = made(&*dummy, 9, 358);
    assert_eq!(last.0, [9, 0, 0, 0, 0x66, 1, 0, 0x40]);
    assert_eq!(placed(&mut *dummy, &last), Ok(Part { frame: 9, part: 358 }));
}

#[test]
fn modules_in_the_header_are_told_apart_and_missing_pixels_have_a_value() {
    let shape = "shape = [3, 10]\npixel = \"uint8\"\nframe_rate = \"1 Hz\"\n";
    let packets = "format.described = { header = \"2 B\", frame = { offset = 0, bytes = 1 }, module = { at = { offset = 1, bytes = 1 } }, modules = 3, packets = 1, payload = \"10 B\", fill = 7 }";
    let mut format = format((shape, packets), 0);
    assert_eq!(format.place(Packet { prefix: &[4, 2], body: &[0; 10] }), Ok(Part { frame: 4, part: 2 }));
    assert_eq!(format.place(Packet { prefix: &[4, 3], body: &[0; 10] }), Err(Ignored::OtherStream));
    let mut missing = [0; 10];
    format.fill(None, 2, &mut missing);
    assert_eq!(missing, [7; 10]);
}
