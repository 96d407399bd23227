//! Tests Mark5B in halves: their order, and the content that replaces missing ones.

use super::*;
use crate::{
    tests::{again, format, made, placed},
    time::MJD_2000,
};

/// 1 MB/s: 100 frames a second.
const TELESCOPE: &str = "shape = [40_000]\npixel = \"uint2\"\nframe_rate = \"100 Hz\"\n";
const HALVES: &str = "format.mark5b = {}";
const WHOLE: &str = "serial = \"none\"\nformat.mark5b = { frame = \"whole\" }";

#[test]
fn halves_stand_behind_a_serial_number_of_32_bits() {
    let mark5b = format(TELESCOPE, HALVES, 0, 0xffff_fffe);
    assert_eq!((mark5b.geometry().packet_size(), mark5b.geometry().number_bits), (5016, 31));
    assert_eq!(made(&*mark5b, 0, 1).0, [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    let (prefix, body) = made(&*mark5b, 1, 0);
    assert_eq!((prefix, &body[..4]), (vec![0; 8], [0xed, 0xde, 0xad, 0xab].as_slice()));
    assert!(
        body[16..].iter().chain(&made(&*mark5b, 1, 1).1).all(|byte| *byte == 0xee),
        "samples are left alone"
    );
}

#[test]
fn the_parity_is_learned_from_the_first_header_and_learned_anew() {
    for serial in [6, 7] {
        let sender = format(TELESCOPE, HALVES, 0, serial);
        let mut mark5b = format(TELESCOPE, HALVES, 0, 0);
        let second = made(&*sender, 0, 1);
        assert_eq!(placed(&mut *mark5b, &second), Err(Ignored::Foreign), "it could be either");
        assert_eq!(placed(&mut *mark5b, &made(&*sender, 0, 0)), Ok(Part { frame: 3, part: 0 }));
        assert_eq!(placed(&mut *mark5b, &second), Ok(Part { frame: 3, part: 1 }));
    }
    let mut mark5b = format(TELESCOPE, HALVES, 0, 6);
    assert!(again(&mut *mark5b, 0, 0).is_ok());
    let other = format(TELESCOPE, HALVES, 0, 101);
    let mut contrary = |number| placed(&mut *mark5b, &made(&*other, number, 0));
    assert!(
        (1..u64::from(TURNED)).all(|number| contrary(number) == Err(Ignored::Corrupt)),
        "one stream has one parity"
    );
    assert_eq!(again(&mut *mark5b, 1, 0), Ok(Part { frame: 4, part: 0 }));
    let mut contrary = |number| placed(&mut *mark5b, &made(&*other, number, 0));
    assert!(
        (1..u64::from(TURNED)).all(|number| contrary(number) == Err(Ignored::Corrupt)),
        "it was still there"
    );
    assert_eq!(contrary(8), Ok(Part { frame: 58, part: 0 }), "it began anew");
}

#[test]
fn headers_that_can_not_be_are_refused() {
    let mut mark5b = format(TELESCOPE, HALVES, 800_000_000, 0);
    let good = made(&*mark5b, 5, 0);
    assert!(placed(&mut *mark5b, &good).is_ok());
    let (prefix, mut body) = good.clone();
    body[0] ^= 1;
    assert_eq!(placed(&mut *mark5b, &(prefix.clone(), body)), Err(Ignored::Foreign), "no sync word");
    let (_, mut body) = good.clone();
    body[8] ^= 1;
    let damaged = (prefix.clone(), body);
    assert_eq!(placed(&mut *mark5b, &damaged), Ok(Part { frame: 5, part: 0 }), "the serial number places it");
    assert_eq!(placed(&mut *mark5b, &damaged), Ok(Part { frame: 5, part: 0 }));
    assert_eq!(mark5b.unchecked(), 1, "one frame, though the receiver looked twice");
    let (_, mut body) = good;
    Mark5bHeader { frame: 100, ..Mark5bHeader::parse(&body).expect("it was made") }.write(&mut body);
    assert_eq!(
        placed(&mut *mark5b, &(prefix, body)),
        Err(Ignored::Corrupt),
        "there are 100 a second, from 0"
    );
}

#[test]
fn days_are_those_near_the_beginning() {
    // MJD 59999, the last of a thousand days, half a second before its end.
    let begins = (59_999 - MJD_2000) * DAY + DAY - 1;
    let mut mark5b = format(TELESCOPE, WHOLE, begins, 0);
    for number in [0, 50, 99, 100, 8_640_100] {
        let placed = again(&mut *mark5b, number, 0);
        assert_eq!(placed, Ok(Part { frame: begins * 100 + number, part: 0 }), "frame {number}");
    }
    for near in [begins + 499 * DAY, begins - 499 * DAY] {
        let mut receiver = format(TELESCOPE, WHOLE, near, 0);
        let placed = placed(&mut *receiver, &made(&*mark5b, 7, 0));
        assert_eq!(placed, Ok(Part { frame: begins * 100 + 7, part: 0 }), "from {near}");
    }
}

#[test]
fn a_missing_half_has_the_header_it_would_have_had() {
    let mark5b = format(TELESCOPE, HALVES, (59_999 - MJD_2000) * DAY + DAY - 1, 0);
    let near = made(&*mark5b, 90, 0).1;
    let word = |bytes: &[u8]| bytes.as_chunks().0.iter().all(|word| u32::from_le_bytes(*word) == 0x1122_3344);
    for ahead in [-90, -1, 1, 9, 10, 300] {
        let mut missing = vec![0; 5008];
        mark5b.fill(Some(Near { bytes: &near, ahead }), 0, &mut missing);
        let expected = made(&*mark5b, 90_u64.wrapping_add_signed(ahead), 0).1;
        assert_eq!(missing[..16], expected[..16], "{ahead}");
        assert!(word(&missing[16..]));
        mark5b.fill(Some(Near { bytes: &near, ahead }), 1, &mut missing);
        assert!(word(&missing), "the second half has no header");
    }
    let mut missing = vec![0; 5008];
    mark5b.fill(None, 0, &mut missing);
    assert!(word(&missing), "nothing is known");
}

#[test]
fn the_rate_is_seen_where_it_was_not_said() {
    let packets = crate::tests::instrument(TELESCOPE, HALVES).packets.expect("it has some");
    let mut mark5b = crate::of(&packets, &Known::default()).expect("it can be made");
    let sender = format(TELESCOPE, HALVES, 1000, 0);
    for number in 95..105 {
        assert!(placed(&mut *mark5b, &made(&*sender, number, 0)).is_ok());
    }
    let mut missing = vec![0; 5008];
    mark5b.fill(Some(Near { bytes: &made(&*sender, 199, 0).1, ahead: 1 }), 0, &mut missing);
    assert_eq!(missing[..16], made(&*sender, 200, 0).1[..16]);
}

/// A packet whose header has no checksum.
fn without_checksum(format: &dyn WireFormat, number: u64) -> (Vec<u8>, Vec<u8>) {
    let (prefix, mut body) = made(format, number, 0);
    body[12..14].fill(0);
    (prefix, body)
}

#[test]
fn a_stream_without_checksums_is_recorded_and_counted() {
    let begins = 800_000_000;
    let mut mark5b = format(TELESCOPE, HALVES, begins, 6);
    for number in 0..250 {
        let first = without_checksum(&*mark5b, number);
        assert_eq!(placed(&mut *mark5b, &first), Ok(Part { frame: 3 + number, part: 0 }));
        assert_eq!(again(&mut *mark5b, number, 1), Ok(Part { frame: 3 + number, part: 1 }));
    }
    assert_eq!(mark5b.unchecked(), 250);
    let mut missing = vec![0; 5008];
    let near = without_checksum(&*mark5b, 199).1;
    mark5b.fill(Some(Near { bytes: &near, ahead: 1 }), 0, &mut missing);
    assert_eq!(missing[..16], without_checksum(&*mark5b, 200).1[..16], "the same kind of header");

    let mut whole = format(TELESCOPE, WHOLE, begins, 0);
    let packet = without_checksum(&*whole, 7);
    assert_eq!(placed(&mut *whole, &packet), Ok(Part { frame: begins * 100 + 7, part: 0 }));
    let (prefix, mut body) = packet;
    body[12] = 1;
    assert_eq!(placed(&mut *whole, &(prefix, body)), Err(Ignored::Corrupt), "nothing else numbers it");
}
