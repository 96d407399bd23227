//! What is said is read, in whatever pieces it came; what is broken is refused with its place.

use nilometer_fuzz::fuzz;
use proptest::prelude::*;

use super::*;
use crate::{
    cbor::{CborError, CborFault, DataPlace, ITEMS_MAX, MessageBytes, tests::taken_apart},
    series::{
        ImageTimes, MetadataField, MetadataValue, Packing, SeriesError, SeriesMessage, SeriesName,
        SeriesStart, TimeRatio,
    },
};

fn name() -> SeriesName {
    SeriesName { number: 7, unique: "01HJ".to_owned() }
}

fn start() -> SeriesStart {
    let increment = MetadataField::new("increment", MetadataValue::Float(0.1));
    let omega = MetadataField::new("omega", MetadataValue::Map(vec![increment]));
    SeriesStart {
        series: name(),
        images: 1000,
        shape: vec![2, 3],
        element: ElementType::Uint32,
        channels: vec!["threshold_1".to_owned(), "threshold_2".to_owned()],
        fields: vec![
            MetadataField::new("count_time", MetadataValue::Float(0.001)),
            MetadataField::new("goniometer", MetadataValue::Map(vec![omega])),
            MetadataField::new("flatfield_enabled", MetadataValue::Bool(false)),
            MetadataField::new(
                "user_data",
                MetadataValue::List(vec![MetadataValue::Integer(-5), MetadataValue::Null]),
            ),
        ],
    }
}

fn times() -> ImageTimes {
    let ratio = |numerator| Some(TimeRatio { numerator, denominator: 50_000_000 });
    ImageTimes {
        start: ratio(1),
        stop: ratio(2),
        real: None,
        series_date: Some("2026-11-25T00:00:00Z".to_owned()),
    }
}

fn joined(pieces: &[MessagePiece<'_>]) -> Vec<u8> {
    pieces.iter().flat_map(MessagePiece::bytes).copied().collect()
}

/// An image of two channels, one of which is compressed.
fn image(bytes: &[u8]) -> Vec<u8> {
    let plain = ImageChannel {
        name: "threshold_1",
        shape: &[2, 3],
        element: ElementType::Uint32,
        packing: Packing::Plain,
        bytes: &[5; 24],
    };
    let packed =
        ImageChannel { name: "threshold_2", packing: Packing::BitshuffleLz4 { element: 4 }, bytes, ..plain };
    joined(&encode_image(&name(), 41, &times(), &[plain, packed]).expect("both have words"))
}

fn read(message: &[u8]) -> Result<SeriesMessage, SeriesError> {
    decode(MessageBytes::whole(message))
}

#[test]
fn what_is_said_is_read() {
    let message = encode_start(&start()).expect("it can be said");
    assert_eq!(read(&message), Ok(SeriesMessage::Start(Box::new(start()))));
    assert!(!is_image(&message));
    assert_eq!(read(&encode_end(&name())), Ok(SeriesMessage::End(name())));
    let message = image(b"compressed pixels");
    assert!(is_image(&message) && is_image(&message[..14]) && !is_image(&message[..10]));
    let Ok(SeriesMessage::Image(image)) = read(&message) else { panic!("an image") };
    assert_eq!((image.series, image.image, image.times), (name(), 41, times()));
    let [plain, packed] = &image.channels[..] else { panic!("two channels") };
    assert_eq!((plain.channel.as_str(), packed.channel.as_str()), ("threshold_1", "threshold_2"));
    assert_eq!((&plain.array.shape[..], plain.array.element), (&[2, 3][..], ElementType::Uint32));
    assert_eq!(packed.array.packing, Packing::BitshuffleLz4 { element: 4 });
    let DataPlace::Within(place) = packed.array.place.clone() else { panic!("it is in the message") };
    assert_eq!(&message[place], b"compressed pixels");
}

#[test]
fn an_array_is_that_of_the_documentation() {
    // {"type": "image", "series_id": 1, "image_id": 2, "data": {"a": 40([[2, 1], 69(h'01000200')])}}
    let mut message = b"\xa4\x64type\x65image\x69series_id\x01\x68image_id\x02\x64data\xa1\x61a".to_vec();
    message.extend(b"\xd8\x28\x82\x82\x02\x01\xd8\x45\x44\x01\x00\x02\x00");
    let Ok(SeriesMessage::Image(image)) = read(&message) else { panic!("an image") };
    let array = &image.channels[0].array;
    assert_eq!(
        (&array.shape[..], array.element, array.big_endian),
        (&[2, 1][..], ElementType::Uint16, false)
    );
    assert_eq!(array.place, DataPlace::Within(message.len() - 4..message.len()));
    // Maps and arrays of unknown length, as other libraries write them.
    let mut open = vec![0xbf];
    open.extend(&message[1..]);
    open.push(0xff);
    assert!(matches!(read(&open), Ok(SeriesMessage::Image(_))));
}

#[test]
fn every_type_has_the_tag_of_rfc_8746_both_ways() {
    for element in ElementType::ALL {
        assert_eq!(typed(tag_of(element)), Some((element, false)), "{element:?}");
        assert_eq!(ElementType::of_name(element.name()), Some(element));
    }
    assert_eq!(typed(65), Some((ElementType::Uint16, true)));
    assert_eq!(typed(82), Some((ElementType::Float64, true)));
    assert_eq!([76, 80, 83, 84, 87].map(typed), [None; 5], "reserved, and floats of 16 and 128 bits");
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let said = |message: &[u8]| read(message).expect_err("it is refused").to_string();
    assert_eq!(said(b"\xa0"), "the message has no type");
    assert_eq!(said(b"\x80"), "byte 0: a message is a map, and this is none");
    assert_eq!(said(b"\xa1\x64type\x63bad"), "type: \"bad\" is none of start, image, end");
    assert_eq!(said(b"\xa1\x64type\x63end"), "the end message has no series_id");
    let mut wrong = encode_start(&start()).expect("it can be said");
    let at = wrong.windows(6).position(|word| word == b"uint32").expect("it is there");
    wrong[at] = b'v';
    assert!(said(&wrong).starts_with("image_dtype: \"vint32\" is none of uint8, uint16"), "{}", said(&wrong));
    wrong.truncate(at);
    assert_eq!(said(&wrong), format!("byte {at}: the message ends within an item"));
    // The pixels are fewer than the shape says.
    let mut message = image(b"x");
    let at = message.windows(3).position(|bytes| bytes == [0x82, 2, 3]).expect("a shape");
    message[at + 2] = 4;
    assert_eq!(said(&message), "data: an array of numbers is wanted (tag 40 of a typed array)");
    // Numbers beyond all measure are numbers.
    for length in ["\u{9b}", "\u{bb}"] {
        let mut message = vec![length.chars().map(|byte| byte as u8).next().expect("one")];
        message.extend([0xff; 8]);
        assert!(said(&message).contains("ends within an item"), "{length:?}");
    }
    let deep = [0x81; 100];
    let fault = CborFault::Deep;
    assert_eq!(read(&deep), Err(SeriesError::Cbor(CborError { at: 17, fault })));
    let many = [&[0x9f][..], &vec![0; ITEMS_MAX as usize]].concat();
    assert!(said(&many).contains("more than 262144 items"));
}

fn corpus() -> Vec<Vec<u8>> {
    let user = b"\xa2\x64type\x63end\x69series_id\xd8\x28\x82\x81\x02\xd8\x40\x42\x01\x02".to_vec();
    vec![encode_start(&start()).expect("it can be said"), image(&[1; 300]), encode_end(&name()), user]
}

/// Reads a message as it came and in pieces; what it says must be the same.
fn read_both_ways(message: &[u8], pieces: &[usize]) {
    let whole = read(message);
    let (own, cuts, apart) = taken_apart(message, 100, pieces);
    let parted = decode(MessageBytes { bytes: &own, cuts: &cuts });
    match (whole, parted) {
        (Ok(SeriesMessage::Image(whole)), Ok(SeriesMessage::Image(parted))) => {
            for (whole, parted) in whole.channels.iter().zip(&parted.channels) {
                let bytes = |place: &DataPlace, own: &[u8]| match place {
                    DataPlace::Within(range) => own[range.clone()].to_vec(),
                    DataPlace::Apart { cut, .. } => apart[*cut].clone(),
                };
                assert_eq!(bytes(&whole.array.place, message), bytes(&parted.array.place, &own));
                assert_eq!(whole.array.shape, parted.array.shape);
            }
        }
        (whole, parted) => {
            assert_eq!(whole.is_ok(), parted.is_ok(), "{whole:?} {parted:?}");
            assert_eq!(
                whole.err().map(|error| error.to_string()),
                parted.err().map(|error| error.to_string())
            );
        }
    }
}

proptest! {
    #[test]
    fn a_message_says_the_same_in_whatever_pieces_it_comes(
        which in 0..4_usize, pieces in prop::collection::vec(1..90_usize, 0..40),
    ) {
        read_both_ways(&corpus()[which], &pieces);
    }
}

#[test]
fn any_message_is_read_or_refused() {
    fuzz("stream2", corpus(), |input| read_both_ways(input, &[7, 1, 50, 3]));
}
