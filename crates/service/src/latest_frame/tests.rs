//! Tests of pictures of growing recordings that are laid out by hand.

use nilometer_model::{Instrument, Storing};
use nilometer_recording::{
    Missing, Stream,
    view::laid_out::{FRAMES_OF_BLOCK, LaidOut, instrument},
};
use nilometer_wire::Known;

use super::*;

const SHAPE: &str = "shape = [4, 8]\npixel = \"uint8\"\nframe_rate = \"100 Hz\"\n";
const PACKETS: &str = "format.described = { header = \"8 B\", frame = { offset = 0, bytes = 8 }, packets = 1, payload = \"32 B\" }";
const SIZE: usize = 32;

fn detector() -> Instrument {
    instrument(SHAPE, PACKETS)
}

/// A recording with this number of lanes, and the source of its pictures.
fn recording(lanes: usize) -> (LaidOut, Arc<PictureSource>) {
    let instrument = detector();
    let packets = instrument.packets.as_ref().expect("it has some");
    let known = Known::of(&instrument);
    let format = nilometer_wire::of(packets, &known).expect("it can be made");
    let stored = nilometer_model::Format::Raw;
    let stream = Stream::new(stored, format.geometry(), Missing::Filled).sent_as(packets, &known);
    let laid_out = LaidOut::new(lanes, Storing::Growing, &stream);
    let source = Arc::new(PictureSource::new("n", laid_out.paths(), &instrument));
    (laid_out, source)
}

/// A block in which each pixel of a frame has the frame's number.
fn block(number: u64) -> Vec<u8> {
    let frames = number * FRAMES_OF_BLOCK..(number + 1) * FRAMES_OF_BLOCK;
    frames.flat_map(|frame| [frame as u8; SIZE]).collect()
}

fn shown(reader: &mut PictureReader) -> Option<(u64, u32)> {
    let read = reader.read().expect("a picture");
    read.map(|frame| {
        let json = serde_json::to_value(&frame).expect("numbers and texts");
        assert_eq!(frame.codes().len(), SIZE);
        (json["frame"].as_u64().expect("a number"), json["greatest"].as_u64().expect("a number") as u32)
    })
}

#[test]
fn the_last_frame_that_is_acknowledged_is_shown_once() {
    let (mut laid_out, source) = recording(1);
    let mut reader = PictureReader::new(source);
    let none = reader.read().expect_err("there is no journal");
    assert!(none.starts_with("no frame is acknowledged yet"), "{none}");
    laid_out.store(0, 0, &block(0), 0, &[]);
    laid_out.publish(1);
    assert_eq!(reader.read().expect_err("its record is missing"), "no frame is acknowledged yet");
    laid_out.publish(0);
    assert_eq!(shown(&mut reader), Some((3, 3)));
    assert_eq!(shown(&mut reader), None, "it is the same");
    laid_out.store(0, 1, &block(1)[..2 * SIZE], 1, &[]);
    laid_out.publish(0);
    assert_eq!(shown(&mut reader), Some((5, 5)), "a block that ended early");
}

#[test]
fn what_is_behind_the_watermark_is_not_shown() {
    let (mut laid_out, source) = recording(2);
    laid_out.store(0, 0, &block(0), 0, &[]);
    laid_out.store(0, 2, &block(2), 1, &[]);
    laid_out.publish(0);
    let mut reader = PictureReader::new(source);
    assert_eq!(shown(&mut reader), Some((3, 3)), "block 1 may be on its way");
    laid_out.store(1, 1, &block(1), 1, &[]);
    laid_out.publish(0);
    assert_eq!(shown(&mut reader), Some((11, 11)));
}

#[test]
fn many_who_ask_cost_one_picture_a_second() {
    let (mut laid_out, source) = recording(1);
    laid_out.store(0, 0, &block(0), 0, &[]);
    laid_out.publish(0);
    let frames = Arc::new(LatestFrames::new());
    let all: Vec<_> = (0..8)
        .map(|_| {
            let (frames, source) = (frames.clone(), source.clone());
            thread::spawn(move || frames.latest(&source))
        })
        .collect();
    let all: Vec<_> = all.into_iter().map(|one| one.join().expect("no panic")).collect();
    // A busy machine may show no frame in time, but never the same one twice.
    let mut made = all.into_iter().flatten();
    if let Some(first) = made.next() {
        assert!(made.all(|other| Arc::ptr_eq(&first, &other)));
    }
    let state = frames.state.lock().expect("no panic");
    assert!(state.next >= EVERY || state.reading.is_some(), "the next one is not due");
}

#[test]
fn pictures_of_another_recording_are_forgotten() {
    let (mut laid_out, source) = recording(1);
    laid_out.store(0, 0, &block(0), 0, &[]);
    laid_out.publish(0);
    let frames = LatestFrames::new();
    while frames.latest(&source).is_err() {}
    let (_other, next) = recording(1);
    assert!(frames.latest(&next).is_err(), "nothing of it is there");
    let none = Instrument { packets: None, shape: vec![1000], ..detector() };
    let none = Arc::new(PictureSource::new("n", Vec::new(), &none));
    assert!(frames.latest(&none).expect_err("no pictures").contains("one dimension"));
}
