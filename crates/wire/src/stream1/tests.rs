//! Tests that decoding restores encoded messages, and that errors name the broken part and field.

use nilometer_fuzz::fuzz;

use super::*;
use crate::{
    cbor::ByteCut,
    series::{SeriesName, SeriesStart},
    stream2::{ImageChannel, MessagePiece},
};

fn name() -> SeriesName {
    SeriesName { number: 7, unique: String::new() }
}

fn start() -> SeriesStart {
    SeriesStart {
        series: name(),
        images: 600,
        shape: vec![514, 1030],
        element: ElementType::Uint16,
        channels: vec![CHANNEL.to_owned()],
        fields: Vec::new(),
    }
}

fn image(packing: Packing, bytes: &[u8]) -> Vec<Vec<u8>> {
    let element = ElementType::Uint16;
    let channel = ImageChannel { name: CHANNEL, shape: &[2, 3], element, packing, bytes };
    let start = Some(TimeRatio { numerator: 3, denominator: 2 });
    let times = ImageTimes { start, ..ImageTimes::default() };
    let pieces = encode_image(&name(), 41, &times, &channel, &hash_of(bytes)).expect("it has a word");
    pieces.iter().map(MessagePiece::bytes).map(<[u8]>::to_vec).collect()
}

fn read(parts: &[Vec<u8>]) -> Result<SeriesMessage, SeriesError> {
    let parts: Vec<_> = parts.iter().map(|part| MessageBytes::whole(part)).collect();
    decode(&parts)
}

#[test]
fn what_is_said_is_read() {
    let header = encode_header(&start()).expect("two dimensions");
    let Ok(SeriesMessage::Start(read_back)) = read(&header) else { panic!("a start") };
    assert_eq!(
        (read_back.shape, read_back.images, read_back.element),
        (Some(vec![514, 1030]), Some(600), Some(ElementType::Uint16))
    );
    assert_eq!(read(&[encode_end(&name())]), Ok(SeriesMessage::End(name())));
    for packing in [Packing::Plain, Packing::Lz4Block, Packing::BitshuffleLz4 { element: 2 }] {
        let parts = image(packing, &[9; 12]);
        let Ok(SeriesMessage::Image(image)) = read(&parts) else { panic!("an image") };
        let array = &image.channels[0].array;
        assert_eq!((&array.shape[..], array.packing), (&[2, 3][..], packing));
        assert_eq!(image.times.start, Some(TimeRatio { numerator: 1_500_000_000, denominator: TICKS }));
        let DataPlace::Within(place) = array.place.clone() else { panic!("in the message") };
        assert_eq!(&parts.concat()[place], &[9; 12]);
    }
    let own = image(Packing::Lz4Block, &[]);
    let cuts = [ByteCut { at: 0, length: 5000 }];
    let mut parts: Vec<_> = own.iter().map(|part| MessageBytes::whole(part)).collect();
    parts[2].cuts = &cuts;
    let Ok(SeriesMessage::Image(image)) = decode(&parts) else { panic!("an image") };
    assert_eq!(image.channels[0].array.place, DataPlace::Apart { cut: 0, length: 5000 });
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let said = |parts: &[Vec<u8>]| read(parts).expect_err("it is refused").to_string();
    assert_eq!(said(&[]), "the message has no part 0");
    assert_eq!(said(&[b"{\"htype\": 3}".to_vec()]), "htype: must be a text");
    assert!(said(&[b"{\"htype\"".to_vec()]).starts_with("part 0: EOF while parsing"));
    assert!(said(&image(Packing::Plain, &[9; 11])).starts_with("shape: the pixels have 11 B"));
    let parts = image(Packing::Plain, &[9; 12]);
    assert_eq!(said(&parts[..2]), "dimage-1.0 has no part of pixels");
    assert_eq!(said(&parts[..1]), "dimage_d-1.0 has no part 1");
    assert!(said(&[vec![b' '; JSON_MAX + 1]]).contains("4194304 B of JSON"));
}

/// Returns the parts of a header with this configuration.
fn header(config: &str) -> Vec<Vec<u8>> {
    let first = b"{\"htype\": \"dheader-1.0\", \"series\": 7, \"header_detail\": \"basic\"}";
    vec![first.to_vec(), config.as_bytes().to_vec()]
}

fn read_start(parts: &[Vec<u8>]) -> SeriesAnnouncement {
    let Ok(SeriesMessage::Start(start)) = read(parts) else { panic!("a start: {:?}", read(parts)) };
    *start
}

#[test]
fn whatever_a_header_leaves_out_the_first_image_says() {
    let parts = image(Packing::Plain, &[9; 12]);
    let Ok(SeriesMessage::Image(first)) = read(&parts) else { panic!("an image") };
    for (parts, images, unread) in [
        (header("{}"), 0, 0),
        (header("")[..1].to_vec(), 0, 0),
        (header("{\"nimages\": 3, \"ntrigger\": \"two\", \"bit_depth_image\": 12}"), 3, 2),
        (header("{\"nimages\": 3, \"count_time\": NaN"), 0, 1),
        (header("{\"nimages\": 3.0, \"ntrigger\": 2, \"count_time\": NaN}"), 6, 0),
        (header("{\"nimages\": 0, \"x_pixels_in_detector\": 0, \"y_pixels_in_detector\": []}"), 0, 2),
    ] {
        let start = read_start(&parts);
        assert_eq!((start.completed(None), start.unread.len()), (None, unread), "{start:?}");
        let completed = start.completed(Some(&first)).expect("the image says it");
        let expected =
            SeriesStart { images, shape: vec![2, 3], fields: completed.fields.clone(), ..self::start() };
        assert_eq!(completed, expected);
    }
}

#[test]
fn the_appendix_of_a_header_stands_behind_all_other_parts() {
    let appendix = |extra: &[&[u8]]| {
        let mut parts = encode_header(&start()).expect("two dimensions");
        parts.extend(extra.iter().map(|part| part.to_vec()));
        read_start(&parts).fields.into_iter().find(|field| field.name == "header_appendix")
    };
    let text = |text: &str| Some(MetadataField::new("header_appendix", MetadataValue::Text(text.into())));
    assert_eq!(appendix(&[]), None);
    assert_eq!(appendix(&[b"scan 5"]), text("scan 5"));
    let tables: [&[u8]; 2] = [b"{\"htype\": \"dpixelmask-1.0\"}", &[0; 24]];
    assert_eq!(appendix(&tables), None);
    assert_eq!(appendix(&[tables[0], tables[1], b"scan 6"]), text("scan 6"));
    let Some(MetadataField { value: MetadataValue::Map(fields), .. }) = appendix(&[b"{\"name\": \"x\"}"])
    else {
        panic!("JSON")
    };
    assert_eq!(fields, [MetadataField::new("name", MetadataValue::Text("x".into()))]);
}

#[test]
fn flat_field_and_pixel_mask_of_a_header_are_arrays_as_in_version_2() {
    let mut parts = encode_header(&start()).expect("two dimensions");
    let before: usize = parts.iter().map(Vec::len).sum();
    let said = |kind: &str, element: &str| {
        format!("{{\"htype\": \"{kind}\", \"shape\": [3, 2], \"type\": \"{element}\"}}").into_bytes()
    };
    let field = said("dflatfield-1.0", "float32");
    let begin = before + field.len();
    parts.extend([field, vec![1; 24], said("dpixelmask-1.0", "uint32"), vec![2; 24]]);
    parts.extend([said("dcountrate_table-1.0", "float32"), vec![3; 24]]);
    let start = read_start(&parts);
    assert!(start.unread.is_empty(), "{start:?}");
    let array = |name: &str| match start.fields.iter().find(|field| field.name == name) {
        Some(MetadataField { value: MetadataValue::Array(array), .. }) => array.clone(),
        other => panic!("{other:?}"),
    };
    let flatfield = array("flatfield");
    assert_eq!((flatfield.shape, flatfield.element), (vec![2, 3], ElementType::Float32));
    assert_eq!(flatfield.place, DataPlace::Within(begin..begin + 24));
    assert_eq!(array("pixel_mask").element, ElementType::Uint32);
    parts[4] = said("dpixelmask-1.0", "complex");
    let broken = read_start(&parts);
    assert_eq!(broken.unread.len(), 1, "its type is unknown: {broken:?}");
}

#[test]
fn what_an_image_says_beside_its_pixels_costs_no_pixels() {
    for (part, unread) in [("{\"start_time\": -5, \"stop_time\": \"soon\"}", 2), ("no JSON", 1), ("[]", 1)] {
        let mut parts = image(Packing::Plain, &[9; 12]);
        parts[3] = part.as_bytes().to_vec();
        parts.push(vec![0xff, b'x']);
        let Ok(SeriesMessage::Image(image)) = read(&parts) else { panic!("{part}: {:?}", read(&parts)) };
        assert_eq!(
            (image.unread.len(), image.channels.len(), image.times.start),
            (unread, 1, None),
            "{part}"
        );
    }
}

#[test]
fn a_message_is_known_from_its_beginning() {
    let header = encode_header(&start()).expect("two dimensions");
    assert_eq!(kind_of(&header[0]), Some(SeriesMessageKind::Start));
    assert_eq!(kind_of(&encode_end(&name())), Some(SeriesMessageKind::End));
    let parts = image(Packing::Plain, &[9; 12]);
    assert_eq!(kind_of(&parts[0]), Some(SeriesMessageKind::Image));
    assert!(is_pixels(&parts[..2].concat(), 2) && !is_pixels(&parts[..2].concat(), 3));
    assert_eq!(series_of(&parts[..2].concat()), Some(name()));
    assert_eq!((series_of(&parts[0][..9]), kind_of(b"\xa1\x64type\x63end")), (None, None));
}

#[test]
fn any_message_is_read_or_refused() {
    // A byte that JSON never has separates the parts.
    let joined = |parts: Vec<Vec<u8>>| parts.join(&0);
    let corpus = vec![
        joined(encode_header(&start()).expect("two dimensions")),
        joined(image(Packing::Plain, &[9; 12])),
        joined(image(Packing::Lz4Block, &[9; 3])),
        encode_end(&name()),
    ];
    fuzz("stream1", corpus, |input| {
        let parts: Vec<_> = input.split(|byte| *byte == 0).map(MessageBytes::whole).collect();
        decode(&parts).ok();
    });
}
