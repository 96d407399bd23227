//! Tests that the reader follows RFC 8949, reports faults with their position, and finds long strings as they
//! arrive.

use proptest::prelude::*;

use super::*;

fn items(bytes: &[u8]) -> Result<Vec<String>, CborError> {
    let mut reader = CborReader::new(MessageBytes::whole(bytes));
    let mut items = Vec::new();
    while reader.finish().is_err() {
        let item = reader.item()?;
        if let CborItem::Bytes(length) = item {
            reader.place(length)?;
        }
        items.push(format!("{item:?}"));
    }
    Ok(items)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte =
        |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("digits");
    digits.chunks(2).map(byte).collect()
}

#[test]
fn items_are_those_of_the_examples_in_rfc_8949() {
    for (hex, item) in [
        ("00", "Integer(0)"),
        ("1818", "Integer(24)"),
        ("1903e8", "Integer(1000)"),
        ("1bffffffffffffffff", "Integer(18446744073709551615)"),
        ("3bffffffffffffffff", "Integer(-18446744073709551616)"),
        ("3863", "Integer(-100)"),
        ("f90001", "Float(5.960464477539063e-8)"),
        ("f9c400", "Float(-4.0)"),
        ("f97c00", "Float(inf)"),
        ("f97e00", "Float(NaN)"),
        ("f93e00", "Float(1.5)"),
        ("fa47c35000", "Float(100000.0)"),
        ("fb3ff199999999999a", "Float(1.1)"),
        ("f4", "Bool(false)"),
        ("f6", "Nothing"),
        ("f0", "Nothing"),
        ("f8ff", "Nothing"),
        ("4401020304", "Bytes(4)"),
        ("62c3bc", "Text(\"ü\")"),
        ("80", "Array(Some(0))"),
        ("9f", "Array(None)"),
        ("bf", "Map(None)"),
        ("ff", "Break"),
        ("62c328", "Garbled([195, 40])"),
        ("5f", "Pieces { text: false }"),
        ("7f", "Pieces { text: true }"),
        ("d9dcb4", "Tag(56500)"),
    ] {
        assert_eq!(items(&bytes(hex)).as_deref(), Ok(&[item.to_owned()][..]), "{hex}");
    }
}

#[test]
fn what_is_broken_is_named_with_its_place() {
    for (hex, at, fault) in [
        ("00 1c", 1, CborFault::Reserved),
        ("fc", 0, CborFault::Reserved),
        ("00 19 03", 2, CborFault::Short),
        ("44 0102", 1, CborFault::Short),
        ("5b ffffffffffffffff 00", 9, CborFault::Short),
        ("7b ffffffffffffffff 00", 9, CborFault::Short),
    ] {
        assert_eq!(items(&bytes(hex)), Err(CborError { at, fault }), "{hex}");
    }
    let many = vec![0; ITEMS_MAX as usize + 1];
    assert_eq!(items(&many), Err(CborError { at: ITEMS_MAX.into(), fault: CborFault::Many }));
}

#[test]
fn an_item_is_passed_with_all_that_is_in_it() {
    let deep = [&[0x81; 5000][..], &[0]].concat();
    for inner in [
        bytes("01"),
        bytes("c1 fb 41d9 0000 0000 0000"),
        bytes("9f 01 bf 61 61 9f ff ff ff"),
        bytes("7f 61 61 61 62 ff"),
        bytes("a1 f5 44 01020304"),
        deep,
    ] {
        let message = [&inner[..], &[0x18, 99]].concat();
        let mut reader = CborReader::new(MessageBytes::whole(&message));
        assert_eq!(reader.skip(), Ok(()), "{inner:?}");
        assert_eq!(reader.item(), Ok(CborItem::Integer(99)));
    }
    let mut reader = CborReader::new(MessageBytes::whole(&[0x82, 0x00, 0xff]));
    assert_eq!(reader.skip(), Err(CborError { at: 3, fault: CborFault::Break }));
}

#[test]
fn places_are_counted_as_they_were_sent_though_a_string_lies_elsewhere() {
    // A string of 300 bytes, followed by a broken item.
    let own = bytes("00 59 012c 1c");
    let cuts = [ByteCut { at: 4, length: 300 }];
    let mut reader = CborReader::new(MessageBytes { bytes: &own, cuts: &cuts });
    assert_eq!(reader.item(), Ok(CborItem::Integer(0)));
    assert_eq!(reader.item(), Ok(CborItem::Bytes(300)));
    assert_eq!(reader.place(300), Ok(DataPlace::Apart { cut: 0, length: 300 }));
    assert_eq!(reader.item(), Err(CborError { at: 304, fault: CborFault::Reserved }));
    // A cut in a position without a string.
    let cuts = [ByteCut { at: 1, length: 300 }];
    let mut reader = CborReader::new(MessageBytes { bytes: &own, cuts: &cuts });
    assert_eq!(reader.item(), Ok(CborItem::Integer(0)));
    assert_eq!(reader.item(), Err(CborError { at: 1, fault: CborFault::Short }));
}

/// Takes long strings out of a message that arrives in pieces of these sizes.
pub(crate) fn taken_apart(
    message: &[u8],
    least: u64,
    pieces: &[usize],
) -> (Vec<u8>, Vec<ByteCut>, Vec<Vec<u8>>) {
    let (mut own, mut cuts, mut apart) = (Vec::new(), Vec::new(), Vec::new());
    let mut scanner = StringScanner::default();
    let mut rest = message;
    let mut pieces = pieces.iter().copied().chain(std::iter::repeat(usize::MAX));
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(pieces.next().expect("no end").min(rest.len()));
        let before = own.len();
        own.extend_from_slice(piece);
        rest = behind;
        while let Scanned::String { at, length } = scanner.next(&own, least) {
            // The bytes of the string in this piece and after it.
            assert!(at >= before, "found as soon as it could be");
            let begin = message.len() - rest.len() - (own.len() - at);
            let Some(end) = begin.checked_add(length as usize).filter(|end| *end <= message.len()) else {
                scanner.along(length);
                continue;
            };
            cuts.push(ByteCut { at, length: length as usize });
            apart.push(message[begin..end].to_vec());
            let came = (own.len() - at).min(length as usize);
            own.drain(at..at + came);
            rest = &rest[length as usize - came..];
        }
    }
    (own, cuts, apart)
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(input in prop::collection::vec(any::<u8>(), 0..200)) {
        items(&input).ok();
    }

    #[test]
    fn a_message_is_the_same_in_whatever_pieces_it_comes(
        strings in prop::collection::vec((0..100_usize, any::<bool>(), any::<u8>()), 0..12),
        pieces in prop::collection::vec(1..60_usize, 0..40),
    ) {
        let mut encoder = minicbor::Encoder::new(Vec::new());
        encoder.array(strings.len() as u64).expect("room");
        for (length, is_text, byte) in &strings {
            if *is_text {
                encoder.str(&"t".repeat(*length)).expect("room");
            } else {
                encoder.bytes(&vec![*byte; *length]).expect("room");
            }
        }
        let (own, cuts, apart) = taken_apart(encoder.writer(), 40, &pieces);
        let long: Vec<Vec<u8>> = strings.iter().filter(|(length, is_text, _)| *length >= 40 && !is_text)
            .map(|(length, _, byte)| vec![*byte; *length]).collect();
        prop_assert_eq!(apart, long);
        let mut reader = CborReader::new(MessageBytes { bytes: &own, cuts: &cuts });
        while reader.finish().is_err() {
            if let CborItem::Bytes(length) = reader.item().expect("it is whole") {
                prop_assert_eq!(reader.place(length).expect("it is whole").length() as u64, length);
            }
        }
    }
}
