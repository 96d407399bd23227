//! Headers as the descriptions of experiments say them.

use super::*;
use crate::tests::{again, format, made, placed};

const SHAPE: &str = "shape = [7168]\npixel = \"uint8\"\nframe_rate = \"30 kHz\"\n";
const DUNE: &str = r#"[packets.format.numbered]
header = "32 B"
payload = "7168 B"
keep = "all"
number = { at = { offset = 8, bytes = 8 }, step = 2048 }
stream = { at = { offset = 0, bytes = 8, shift = 26, bits = 8 }, ids = [4, 0, 9] }
magic = [{ at = { offset = 0, bytes = 8, bits = 6 }, value = 3 }]
fields = [{ name = "block_length", at = { offset = 0, bytes = 8, shift = 52, bits = 12 }, value = 896 }, { name = "seq", at = { offset = 0, bytes = 8, shift = 40, bits = 12 }, step = 1 }]
"#;

fn dune() -> Box<dyn WireFormat> {
    format(SHAPE, DUNE, 0, 5)
}

#[test]
fn streams_take_turns_and_have_numbers_in_common() {
    let mut format = dune();
    for number in 0..30 {
        assert_eq!(again(&mut *format, number, 0), Ok(Part { frame: 15 + number, part: 0 }));
    }
    let (prefix, mut body) = made(&*format, 31, 0);
    assert_eq!((prefix.len(), body.len()), (0, 7200));
    assert_eq!(
        u64::from_le_bytes(body[..8].try_into().expect("eight")),
        3 | 10 << 40 | 896 << 52,
        "stream 0"
    );
    assert_eq!(u64::from_le_bytes(body[8..16].try_into().expect("eight")), 15 * 2048);
    assert_eq!(format.thread_of(&body), Some((0, 0)));
    let came: Vec<_> = format.threads().iter().map(|thread| (thread.thread, thread.came)).collect();
    assert_eq!(came, [(4, 10), (0, 10), (9, 10)]);
    // Another stream, and another version.
    body[3] |= 1 << 3;
    assert_eq!(placed(&mut *format, &(prefix.clone(), body.clone())), Err(Ignored::Foreign));
    body[3] = 0;
    body[0] = 2;
    assert_eq!(placed(&mut *format, &(prefix, body)), Err(Ignored::Foreign));
}

#[test]
fn a_missing_packet_has_its_number_and_its_stream() {
    let mut format = dune();
    let (_, near) = made(&*format, 30, 0);
    for (ahead, of) in [(1, 31), (2, 32), (3, 33), (-1, 29), (-30, 0)] {
        let mut missing = vec![0xee; 7200];
        format.fill(Some(Near { bytes: &near[..64], ahead }), 0, &mut missing);
        let (_, expected) = made(&*format, of, 0);
        // All but the fields that only their sender knows.
        let id = u64::from_le_bytes(expected[..8].try_into().expect("eight")) & ((1 << 34) - 1);
        assert_eq!(missing[..32], [&id.to_le_bytes(), &expected[8..32]].concat(), "{ahead}");
        assert_eq!(missing[32..36], 0x1122_3344_u32.to_le_bytes());
        assert_eq!(placed(&mut *format, &(Vec::new(), missing)), Ok(Part { frame: 15 + of, part: 0 }));
    }
    let mut missing = vec![0xee; 7200];
    format.fill(None, 0, &mut missing);
    assert_eq!(missing[..32], [&[3], &[0; 31][..]].concat(), "nothing is known but the magic");
}

#[test]
fn parts_of_a_heap_have_an_offset() {
    let spead = r#"[packets.format.numbered]
header = "16 B"
payload = "1024 B"
keep = { from = "8 B" }
packets = 3
last = "100 B"
number = { at = { offset = 0, bytes = 8, endian = "big", bits = 48 }, step = 100 }
packet = { at = { offset = 8, bytes = 8, endian = "big", bits = 48 }, step = 1024 }
"#;
    let mut format = format(SHAPE, spead, 0, 7);
    assert_eq!(format.geometry().parts, [1032, 1032, 108]);
    for number in 0..5 {
        for part in 0..3 {
            assert_eq!(again(&mut *format, number, part), Ok(Part { frame: 7 + number, part }));
        }
    }
    let (prefix, mut body) = made(&*format, 0, 1);
    assert_eq!((&prefix[..], &body[..8]), (&700_u64.to_be_bytes()[..], &1024_u64.to_be_bytes()[..]));
    body[7] = 1;
    assert_eq!(
        placed(&mut *format, &(prefix.clone(), body.clone())),
        Err(Ignored::Corrupt),
        "no whole packet"
    );
    body[..8].copy_from_slice(&2048_u64.to_be_bytes());
    assert_eq!(
        placed(&mut *format, &(prefix.clone(), body.clone())),
        Err(Ignored::Corrupt),
        "the last is shorter"
    );
    body[..8].copy_from_slice(&3072_u64.to_be_bytes());
    assert_eq!(placed(&mut *format, &(prefix, body)), Err(Ignored::Corrupt), "there is no fourth");
}

#[test]
fn the_first_packet_of_a_heap_may_carry_less() {
    let spead2 = r#"[packets.format.numbered]
header = "40 B"
payload = "1432 B"
last = "1416 B"
packets = 14
keep = "all"
number = { at = { offset = 10, bytes = 6, endian = "big" } }
packet = { at = { offset = 26, bytes = 6, endian = "big" }, step = 1432, second = 1400 }
"#;
    let mut format = format(SHAPE, spead2, 0, 1);
    let offset = |part| u64::from_be_bytes(made(&*format, 0, part).1[24..32].try_into().expect("eight"));
    assert_eq!([0, 1, 2, 13].map(offset), [0, 1400, 2832, 18_584], "as spead2 sends a heap of 20000 B");
    for part in 0..14 {
        assert_eq!(again(&mut *format, 3, part), Ok(Part { frame: 4, part }));
    }
}

#[test]
fn another_sender_counts_from_its_own_number() {
    let one = DUNE.lines().filter(|line| !line.starts_with("stream")).collect::<Vec<_>>().join("\n");
    let format = format(SHAPE, &one, 0, 0);
    let mut another = format.of_another_sender().expect("each sender may have its own");
    assert_eq!(again(&mut *another, 9, 0), Ok(Part { frame: 9, part: 0 }));
    assert!(dune().of_another_sender().is_none());
    assert_eq!((format.threads(), format.thread_of(&[0; 64])), (Vec::new(), None));
}

#[test]
fn a_simulated_second_is_the_time_of_its_beginning() {
    let lofar = r#"[packets.format.numbered]
header = "16 B"
payload = "7808 B"
number = { at = { offset = 12, bytes = 4 }, step = 16 }
upper = { at = { offset = 8, bytes = 4 }, numbers = 195312.5, clock = "unix" }
"#;
    let format = format(SHAPE, lofar, 800_000_000, 0);
    let second = |number| {
        let (prefix, _) = made(&*format, number, 0);
        u32::from_le_bytes(prefix[8..12].try_into().expect("four"))
    };
    let begin = 800_000_000 + 946_684_800;
    assert_eq!(
        [second(0), second(12_206), second(12_208), second(24_415)],
        [begin, begin, begin + 1, begin + 2]
    );
}
