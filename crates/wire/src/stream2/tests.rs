//! Tests that decoding restores encoded messages, received in any pieces, and that errors name the position of
//! the fault.

use nilometer_fuzz::fuzz;
use proptest::prelude::*;

use super::*;
use crate::{
    cbor::{CborError, CborFault, DataPlace, ITEMS_MAX, MessageBytes, tests::taken_apart},
    series::{
        ImageTimes, MetadataField, MetadataValue, Packing, SeriesError, SeriesMessage, SeriesMessageKind,
        SeriesName, SeriesStart, TimeRatio,
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

/// Returns an image of two channels, one of them compressed.
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
    assert_eq!(read(&message), Ok(SeriesMessage::Start(Box::new(start().into()))));
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
    // Maps and arrays of unknown length, as some libraries write them.
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
    wrong.truncate(at);
    assert_eq!(said(&wrong), format!("byte {at}: the message ends within an item"));
    // With fewer pixels than the shape states, that channel can't be read.
    let mut message = image(b"x");
    let at = message.windows(3).position(|bytes| bytes == [0x82, 2, 3]).expect("a shape");
    message[at + 2] = 4;
    let Ok(SeriesMessage::Image(image)) = read(&message) else { panic!("one channel is whole") };
    let said_of_channel: Vec<String> = image.unread_channels.iter().map(ToString::to_string).collect();
    assert_eq!(said_of_channel, ["data: must be an array of numbers (tag 40 of a typed array)"]);
    // Huge numbers are valid numbers.
    for length in ["\u{9b}", "\u{bb}"] {
        let mut message = vec![length.chars().map(|byte| byte as u8).next().expect("one")];
        message.extend([0xff; 8]);
        assert!(said(&message).contains("ends within an item"), "{length:?}");
    }
    let deep = [0x81; 100];
    let fault = CborFault::Short;
    assert_eq!(read(&deep), Err(SeriesError::Cbor(CborError { at: 100, fault })));
    let many = [&[0x9f][..], &vec![0; ITEMS_MAX as usize]].concat();
    assert!(said(&many).contains("more than 262144 items"));
}

/// Returns a message of these fields in CBOR, by name.
fn message(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut encoder = minicbor::Encoder::new(Vec::new());
    encoder.map(fields.len() as u64).expect("room");
    for (name, value) in fields {
        encoder.str(name).expect("room");
        encoder.writer_mut().extend(*value);
    }
    encoder.into_writer()
}

const SERIES: [(&str, &[u8]); 2] = [("series_id", b"\x07"), ("series_unique_id", b"\x6401HJ")];
/// {"a": 40([[2, 1], 69(h'01000200')])}
const DATA: (&str, &[u8]) = ("data", b"\xa1\x61a\xd8\x28\x82\x82\x02\x01\xd8\x45\x44\x01\x00\x02\x00");

fn image_with(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let head = [&[("type", &b"\x65image"[..])][..], &SERIES, &[("image_id", b"\x02")], fields];
    message(&head.concat())
}

#[test]
fn whatever_an_image_says_beside_its_pixels_costs_no_pixels() {
    let deep = [&[0x81; 40][..], &[0]].concat();
    for (field, value, unread) in [
        ("series_date", &b"\xc1\xfb\x41\xda\x4a\x00\x00\x00\x00\x00"[..], 0),
        ("series_date", b"\xc1\x00", 0),
        ("series_date", b"\x00", 1),
        ("series_date", b"\xf6", 0),
        ("series_date", b"\x43\x01\x02\x03", 1),
        ("start_time", b"\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a", 1),
        ("start_time", b"\x82\x01\x00", 1),
        ("start_time", b"\x82\x20\x01", 1),
        ("start_time", b"\x81\x01", 1),
        ("real_time", b"\xd9\xff\xff\x82\x01\x02", 0),
        ("user_data", b"\x62\xc3\x28", 0),
        ("user_data", b"\x7f\x61a\x61b\xff", 0),
        ("user_data", b"\x5f\x41a\x41b\xff", 0),
        ("user_data", b"\xa1\xf5\x82\x01\x02", 0),
        ("user_data", b"\xc2\x49\x01\x00\x00\x00\x00\x00\x00\x00\x00", 0),
        ("user_data", &deep, 0),
    ] {
        let message = image_with(&[(field, value), DATA]);
        let Ok(SeriesMessage::Image(image)) = read(&message) else {
            panic!("{field} {value:x?}: {:?}", read(&message))
        };
        assert_eq!(image.unread.len(), unread, "{field} {value:x?}: {:?}", image.unread);
        let DataPlace::Within(place) = image.channels[0].array.place.clone() else { panic!("it lies there") };
        assert_eq!(&message[place], b"\x01\x00\x02\x00");
    }
    let dated = image_with(&[("series_date", b"\xc1\xfb\x41\xda\x49\xe5\x20\x20\x00\x00"), DATA]);
    let Ok(SeriesMessage::Image(image)) = read(&dated) else { panic!("an image") };
    assert_eq!(image.times.series_date.as_deref(), Some("2025-11-27T00:00:00.5Z"));
}

#[test]
fn a_channel_that_can_not_be_read_costs_itself() {
    // Half floats, which have no type here, next to a valid array.
    let halves = b"\x61b\xd8\x28\x82\x82\x02\x01\xd8\x54\x44\x01\x00\x02\x00";
    let both = [&b"\xa2"[..], &DATA.1[1..], halves].concat();
    let Ok(SeriesMessage::Image(image)) = read(&image_with(&[("data", &both)])) else { panic!("an image") };
    assert_eq!((image.channels.len(), image.unread_channels.len(), image.unread.len()), (1, 1, 0));
    let only = [&b"\xa1"[..], halves].concat();
    assert!(read(&image_with(&[("data", &only)])).is_err_and(|error| error.to_string().contains("tag 40")));
}

#[test]
fn whatever_a_start_leaves_out_the_first_image_says() {
    let Ok(SeriesMessage::Image(first)) = read(&image_with(&[DATA])) else { panic!("an image") };
    let kind = ("type", &b"\x65start"[..]);
    for (fields, unread) in [
        (&[][..], 0),
        (
            &[("image_dtype", &b"\x66vint32"[..]), ("image_size_x", b"\x00"), ("number_of_images", b"\x20")]
                [..],
            3,
        ),
        (&[("channels", &b"\x80"[..]), ("image_dtype", b"\x05"), ("image_size_y", b"\xf6")][..], 2),
        (&[("channels", &b"\x82\x61a\x01"[..]), ("number_of_images", b"\x00")][..], 1),
    ] {
        let message = message(&[&[kind][..], &SERIES, fields].concat());
        let Ok(SeriesMessage::Start(start)) = read(&message) else { panic!("{:?}", read(&message)) };
        assert_eq!((start.completed(None), start.unread.len()), (None, unread), "{start:?}");
        let completed = start.completed(Some(&first)).expect("the image says it");
        let expected = SeriesStart {
            series: name(),
            images: 0,
            shape: vec![2, 1],
            element: ElementType::Uint16,
            channels: vec!["a".to_owned()],
            fields: Vec::new(),
        };
        assert_eq!(completed, expected);
    }
    assert!(read(&message(&[kind])).is_err_and(|error| error.to_string().contains("series_id")));
}

#[test]
fn a_series_has_a_number_or_a_unique_name() {
    let of = |fields: &[(&str, &[u8])]| {
        let message = message(&[&[("type", &b"\x63end"[..])][..], fields].concat());
        match read(&message) {
            Ok(SeriesMessage::End(name)) => Some(name),
            _ => None,
        }
    };
    assert!(of(&SERIES).is_some_and(|of| of == name()));
    assert!(of(&SERIES[1..]).is_some_and(|of| of.is_same(&name())));
    assert!(of(&SERIES[..1]).is_some_and(|of| of.is_same(&name())));
    assert!(of(&[("series_id", b"\x61\x37")]).is_some_and(|of| of.is_same(&name())), "in digits");
    assert!(of(&[("series_id", b"\x08"), SERIES[1]]).is_some_and(|of| of.is_same(&name())));
    assert!(of(&[SERIES[0], ("series_unique_id", b"\x05")]).is_some_and(|of| !of.is_same(&name())));
    assert_eq!(of(&[]), None);
}

#[test]
fn a_message_is_known_from_its_beginning() {
    let image = image(&[7; 100]);
    let before = image.windows(4).position(|bytes| bytes == b"data").expect("it is there");
    assert_eq!(
        (kind_of(&image[..20]), series_of(&image[..before])),
        (Some(SeriesMessageKind::Image), Some(name()))
    );
    assert_eq!(series_of(&image[..16]), None);
    let start = encode_start(&start()).expect("it can be said");
    assert_eq!(kind_of(&start), Some(SeriesMessageKind::Start));
    assert_eq!((kind_of(&encode_end(&name())), kind_of(b"{")), (Some(SeriesMessageKind::End), None));
}

fn corpus() -> Vec<Vec<u8>> {
    let user = b"\xa2\x64type\x63end\x69series_id\xd8\x28\x82\x81\x02\xd8\x40\x42\x01\x02".to_vec();
    vec![encode_start(&start()).expect("it can be said"), image(&[1; 300]), encode_end(&name()), user]
}

/// Reads a message as received and in pieces, and checks that both give the same result.
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
