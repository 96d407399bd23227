//! A description gives sizes and numbers, and nonsense is refused with its key.

use super::*;
use crate::Instrument;

const PACKETS: &str = r#"
name = "t"
title = "a test"
source = "a test"
shape = [7168]
pixel = "uint8"
frame_rate = "30 kHz"
[packets.format.numbered]
header = "32 B"
payload = "7168 B"
keep = "all"
number = { at = { offset = 8, bytes = 8 }, step = 2048 }
stream = { at = { offset = 0, bytes = 8, shift = 26, bits = 8 }, ids = [4, 0] }
magic = [{ at = { offset = 0, bytes = 8, bits = 6 }, value = 3 }]
fields = [{ name = "crate", at = { offset = 0, bytes = 8, shift = 12, bits = 10 }, value = 5 }]
"#;

fn parse(from: &str, to: &str) -> Result<NumberedPackets, String> {
    assert!(PACKETS.contains(from), "{from}");
    let read =
        Instrument::parse(&PACKETS.replacen(from, to, 1), "t.toml").map_err(|error| error.to_string())?;
    let text = serde_json::to_string(&read).expect("it can be written");
    assert_eq!(
        serde_json::from_str::<Instrument>(&text).expect("it was written"),
        read,
        "as records keep it"
    );
    match read.packets.expect("it has some").format {
        super::super::PacketFormat::Numbered(packets) => Ok(packets),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_description_says_sizes_and_numbers() {
    let packets = parse("keep", "keep").expect("valid");
    assert_eq!((packets.frame_size(), packets.dropped(), packets.streams()), (Bytes(7200), Bytes(0), 2));
    assert_eq!(packets.modulus(), 1 << 64);
    let part = parse(
        "keep = \"all\"",
        "keep = { from = \"8 B\" }\nlast = \"100 B\"\npackets = 3\npacket = { at = { offset = 16, bytes = 2 } }",
    );
    assert!(part.expect_err("the stream's number is dropped").contains("stream: keep the part"));
    let number = "number = { at = { offset = 12, bytes = 4 } }\nupper = { at = { offset = 8, bytes = 4 }, numbers = 195312.5 }";
    let lofar = parse("number = { at = { offset = 8, bytes = 8 }, step = 2048 }", number).expect("valid");
    assert_eq!(lofar.upper.and_then(|upper| upper.ratio()), Some((390_625, 2)));
    assert_eq!(lofar.modulus(), 390_625 << 31);
}

const NUMBER: &str = "number = { at = { offset = 8, bytes = 8 }, step = 2048 }";

/// A part of the description, another in its place, and a part of the message.
const NONSENSE: &[[&str; 3]] = &[
    ["header = \"32 B\"", "header = \"0 B\"", "at least 1 B"],
    [
        "header = \"32 B\"",
        "header = \"12 B\"",
        "number.at: 8 B from byte 8 on do not lie in the header of 12 B",
    ],
    ["payload = \"7168 B\"", "payload = \"80 kB\"", "at most 65507 B"],
    ["keep = \"all\"", "keep = \"some\"", "`nothing`, `all`, `from`"],
    ["keep = \"all\"", "keep = { from = \"32 B\" }", "write less than the 32 B"],
    ["keep = \"all\"", "keep = { from = \"12 B\" }", "in the middle of number.at: keep from byte 8 or 16 on"],
    ["keep = \"all\"", "keep = \"nothing\"", "the recording tells streams apart by it"],
    ["offset = 8, bytes = 8", "offset = 8, bytes = 9", "number.at.bytes = 9: write 1 to 8"],
    ["offset = 8, bytes = 8", "offset = 8, bytes = 8, shift = 64", "number.at.shift = 64: write 0 to 63"],
    [
        "offset = 8, bytes = 8",
        "offset = 8, bytes = 8, shift = 4, bits = 61",
        "number.at.bits = 61: write 1 to 60",
    ],
    ["offset = 8, bytes = 8", "offset = 0, bytes = 4", "stream.at and number.at stand in the same bits"],
    ["step = 2048", "step = 0", "number.step = 0"],
    ["step = 2048", "wrap = 0", "number.wrap = 0"],
    [
        "offset = 8, bytes = 8 }, step = 2048",
        "offset = 8, bytes = 2 }, step = 2048",
        "begins again after 32 frames",
    ],
    ["shift = 26, bits = 8", "shift = 22, bits = 17", "stream.at.bits = 17: write 1 to 16"],
    ["ids = [4, 0]", "ids = []", "name 1 to 1024 streams"],
    ["ids = [4, 0]", "ids = [4, 256]", "stream.ids has 256: write 0 to 255"],
    ["ids = [4, 0]", "ids = [4, 4]", "stream.ids has 4 twice"],
    ["value = 3", "value = 64", "magic 1: 64 does not fit into 6 bits"],
    ["value = 5", "value = 1024", "crate: 1024 does not fit into 10 bits"],
    ["\"crate\"", "\"cr ate\"", "letters, digits and _"],
    ["\"crate\"", "\"number\"", "choose another"],
    ["keep = ", "packets = 2\nkeep = ", "packet: say where its number stands"],
    ["keep = ", "packets = 0\nkeep = ", "packets = 0: write 1 to 65536"],
    ["keep = ", "packet = { at = { offset = 16, bytes = 1 } }\nkeep = ", "packet: write packets"],
    [
        "keep = ",
        "packets = 9\npacket = { at = { offset = 16, bytes = 2 }, step = 8192 }\nkeep = ",
        "16 bits do not count 9 packets in steps of 8192",
    ],
    ["keep = ", "last = \"8 B\"\nkeep = ", "last: a frame of one packet"],
    ["keep = ", "upper = { at = { offset = 16, bytes = 4 }, numbers = 0.3 }\nkeep = ", "upper.numbers = 0.3"],
    [
        "keep = ",
        "upper = { at = { offset = 16, bytes = 4 }, numbers = 1e18 }\nkeep = ",
        "upper.numbers = 1000000000000000000",
    ],
    [
        NUMBER,
        "number = { at = { offset = 8, bytes = 2 } }\nupper = { at = { offset = 16, bytes = 4 }, numbers = 65537 }",
        "the 16 bits of number count less",
    ],
    [
        "[packets.format.numbered]",
        "[packets]\nserial = \"none\"\n[packets.format.numbered]",
        "leave them out",
    ],
    ["step = 2048", "steps = 2048", "`step`"],
];

#[test]
fn nonsense_is_refused_with_its_key_and_the_choices() {
    for [from, to, part] in NONSENSE {
        let error = parse(from, to).expect_err(to);
        assert!(error.contains(part) && error.contains("t.toml"), "{to}: {error}");
    }
}
