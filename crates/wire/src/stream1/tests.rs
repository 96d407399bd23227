//! What is said is read; what is broken is refused with its part and field.

use nilometer_fuzz::fuzz;

use super::*;
use crate::{
    cbor::ByteCut,
    series::SeriesName,
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
        (vec![514, 1030], 600, ElementType::Uint16)
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
    assert_eq!(said(&[b"{\"htype\": 3}".to_vec()]), "htype: a text is wanted");
    assert!(said(&[b"{\"htype\"".to_vec()]).starts_with("part 0: EOF while parsing"));
    let none = b"{\"htype\": \"dheader-1.0\", \"series\": 1, \"header_detail\": \"none\"}".to_vec();
    assert!(said(&[none]).contains("set it to basic or all"));
    assert!(said(&image(Packing::Plain, &[9; 11])).starts_with("shape: the pixels have 11 B"));
    let parts = image(Packing::Plain, &[9; 12]);
    assert_eq!(said(&parts[..2]), "dimage-1.0 has no part of pixels");
    assert_eq!(said(&parts[..1]), "dimage_d-1.0 has no part 1");
    assert!(said(&[vec![b' '; JSON_MAX + 1]]).contains("4194304 B of JSON"));
}

#[test]
fn any_message_is_read_or_refused() {
    // Parts are told apart by a byte that JSON has none of.
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
