//! Series over real connections: frames get to their place in any order, and a faulty message affects nothing
//! else.

use std::collections::{BTreeMap, VecDeque};

use nilometer_model::Nanos;
use nilometer_recording::journal::Encoding;
use nilometer_ring::{Chronicle, Ring, Taken};
use nilometer_storage::{Arena, Buffer, Clock};
use nilometer_wire::{
    series::{ElementType, ImageTimes, Packing, SeriesName, SeriesStart},
    stream1,
    stream2::{self, ImageChannel, MessagePiece},
};

use super::*;
use crate::transport::zeromq::{MessageLimits, PullSocket, PushSocket, ZmqEndpoint};

mod between_series;

const ROWS: u64 = 100;
const COLUMNS: u64 = 30;
const FRAME: usize = (ROWS * COLUMNS * 2) as usize;

/// Frames in memory, with slots that are free again at once, unless they are kept.
#[derive(Debug)]
struct MemoryIntake {
    free: Vec<Buffer>,
    kept: Vec<Buffer>,
    keeps: bool,
    loses: bool,
    frames: BTreeMap<u64, (Vec<u8>, Packing)>,
    missing: Vec<Range<u64>>,
    halts: u64,
}

impl FrameIntake for MemoryIntake {
    fn slot(&mut self, _: Nanos, length: usize) -> SlotAnswer {
        match self.free.pop() {
            Some(slot) if slot.len() < length => {
                self.free.push(slot);
                SlotAnswer::TooLong
            }
            Some(slot) => SlotAnswer::Free(slot),
            None if self.loses => SlotAnswer::Lost,
            None => SlotAnswer::Wait,
        }
    }

    fn give_back(&mut self, slot: Buffer) {
        self.free.push(slot);
    }

    fn begin(&mut self, _: Nanos, start: &SeriesStart, _: &ZmqMessage) -> Result<(), String> {
        if start.images == 666 { Err("it is not wanted".to_owned()) } else { Ok(()) }
    }

    fn take(&mut self, _: Nanos, frame: SeriesFrame) -> Result<(), RefusedFrame> {
        let bytes = frame.data[..frame.length].to_vec();
        assert!(self.frames.insert(frame.number, (bytes, frame.packing)).is_none(), "it is there");
        if self.keeps { &mut self.kept } else { &mut self.free }.push(frame.data);
        Ok(())
    }

    fn halted(&mut self, _: Nanos) {
        self.halts += 1;
    }

    fn missing(&mut self, _: Nanos, frames: Range<u64>) {
        self.missing.push(frames);
    }
}

/// A detector, a receiver, and the network between them.
struct Lab {
    clock: Clock,
    push: PushSocket,
    receiver: SeriesReceiver,
    intake: MemoryIntake,
}

impl Lab {
    fn new(slots: usize, until: SeriesUntil) -> Self {
        let at = ZmqEndpoint::bind("tcp://127.0.0.1:0").expect("an address");
        let push = PushSocket::open(at).expect("a free port");
        let to = ZmqEndpoint::Connect(push.address().expect("it is bound"));
        let socket = PullSocket::open(&[to], MessageLimits::default()).expect("nothing to fail");
        let free = Arena::shared_out(slots, FRAME + 100).1;
        let intake = MemoryIntake {
            free,
            kept: Vec::new(),
            keeps: false,
            loses: false,
            frames: BTreeMap::new(),
            missing: Vec::new(),
            halts: 0,
        };
        let receiver = SeriesReceiver::new(socket, until);
        let mut lab = Lab { clock: Clock::start(), push, receiver, intake };
        while lab.push.connected() == 0 {
            lab.turn();
            lab.push.tend().expect("the network is there");
        }
        lab
    }

    fn turn(&mut self) {
        self.receiver.turn(self.clock.now(), &mut self.intake).expect("the network is there");
    }

    /// Sends a message of these parts, which fits into the kernel.
    fn send(&mut self, parts: &[Vec<u8>]) {
        let pieces: Vec<[&[u8]; 1]> = parts.iter().map(|part| [part.as_slice()]).collect();
        let parts: Vec<&[&[u8]]> = pieces.iter().map(|part| &part[..]).collect();
        assert!(self.push.send(&parts, 0).expect("the network is there"));
    }

    /// Sends and waits until it is counted.
    fn deliver(&mut self, parts: &[Vec<u8>]) {
        let before = self.receiver.tally().clone();
        self.send(parts);
        while *self.receiver.tally() == before {
            self.turn();
        }
    }

    fn refused(&self, why: SeriesRefusal) -> u64 {
        self.receiver.tally().refused(why)
    }
}

fn name() -> SeriesName {
    SeriesName { number: 3, unique: "a series".to_owned() }
}

fn start() -> SeriesStart {
    SeriesStart {
        series: name(),
        images: 10,
        shape: vec![ROWS, COLUMNS],
        element: ElementType::Uint16,
        channels: vec!["low".to_owned(), "high".to_owned()],
        fields: Vec::new(),
    }
}

fn starts(start: &SeriesStart) -> Vec<Vec<u8>> {
    vec![stream2::encode_start(start).expect("it can be said")]
}

fn pixels(number: u64) -> Vec<u8> {
    (0..FRAME).map(|at| (at as u64 * 13 + number) as u8).collect()
}

fn channel<'a>(name: &'a str, bytes: &'a [u8]) -> ImageChannel<'a> {
    ImageChannel {
        name,
        shape: &[ROWS, COLUMNS],
        element: ElementType::Uint16,
        packing: Packing::Plain,
        bytes,
    }
}

fn says(image: u64, channels: &[ImageChannel<'_>]) -> Vec<Vec<u8>> {
    let pieces = stream2::encode_image(&name(), image, &ImageTimes::default(), channels);
    vec![pieces.expect("they have words").iter().flat_map(MessagePiece::bytes).copied().collect()]
}

/// An image of both channels, the first of which stands behind the second.
fn image(number: u64) -> Vec<Vec<u8>> {
    let bytes = [pixels(2 * number), pixels(2 * number + 1)];
    says(number, &[channel("high", &bytes[1]), channel("low", &bytes[0])])
}

#[test]
fn frames_get_to_their_place_in_any_order_and_whatever_comes_before_the_start() {
    let mut lab = Lab::new(20, SeriesUntil::default());
    for number in [9, 2] {
        lab.send(&image(number));
    }
    lab.deliver(&starts(&start()));
    // Its end message overtakes most of it.
    lab.deliver(&[stream2::encode_end(&name())]);
    lab.deliver(&starts(&start()));
    assert_eq!(lab.receiver.is_over(lab.clock.now()), None);
    for number in [0, 8, 3, 1, 4, 7, 5, 6] {
        lab.deliver(&image(number));
    }
    assert_eq!(lab.receiver.is_over(lab.clock.now()), Some(SeriesEnding::Complete));
    let all: BTreeMap<_, _> = (0..20).map(|number| (number, (pixels(number), Packing::Plain))).collect();
    assert!(lab.intake.frames == all);
    let tally = lab.receiver.tally();
    assert_eq!((tally.frames, tally.bytes, tally.starts, tally.ends), (20, 20 * FRAME as u64, 2, 1));
    assert!(SeriesRefusal::ALL.iter().all(|why| tally.refused(*why) == 0));
    assert_eq!(lab.intake.free.len(), 20);
}

/// The header of compressed pixels: their length, and the length of a block.
fn chunk(bytes: usize) -> Vec<u8> {
    [&(bytes as u64).to_be_bytes()[..], &8192_u32.to_be_bytes(), &[9; 5000]].concat()
}

#[test]
fn what_is_wrong_costs_itself_and_is_counted_by_its_reason() {
    let mut lab = Lab::new(4, SeriesUntil::default());
    let deliver = |lab: &mut Lab, message: &[Vec<u8>], why: SeriesRefusal, fault: &str| {
        let before = lab.refused(why);
        lab.deliver(message);
        assert_eq!(lab.refused(why), before + 1, "{why:?}: {:?}", lab.receiver.tally());
        let said = lab.receiver.tally().fault.clone().unwrap_or_default();
        assert!(said.contains(fault), "{said} has no {fault}");
    };
    let unwanted = SeriesStart { images: 666, ..start() };
    deliver(&mut lab, &starts(&unwanted), SeriesRefusal::Start, "it is not wanted");
    let endless = SeriesStart { images: u64::MAX, ..start() };
    deliver(&mut lab, &starts(&endless), SeriesRefusal::Start, "more images than can be counted");
    let many = SeriesStart { images: 1 << 33, ..start() };
    deliver(&mut lab, &starts(&many), SeriesRefusal::Start, "at most 4294967295");
    deliver(&mut lab, &[b"\xa1\x64type\x65start".to_vec()], SeriesRefusal::Start, "no series_id");
    lab.deliver(&starts(&start()));
    let bytes = pixels(0);
    let low = channel("low", &bytes);
    deliver(&mut lab, &[b"nonsense".to_vec()], SeriesRefusal::Malformed, "byte");
    deliver(&mut lab, &[b"{]".to_vec()], SeriesRefusal::Malformed, "part 0: ");
    let other = SeriesStart { images: 11, ..start() };
    deliver(
        &mut lab,
        &starts(&other),
        SeriesRefusal::Shape,
        "a second start describes the series differently",
    );
    deliver(&mut lab, &says(1 << 40, &[low]), SeriesRefusal::Number, "image 1099511627776 of a series of 10");
    deliver(&mut lab, &says(1, &[channel("middle", &bytes)]), SeriesRefusal::Channel, "none of low, high");
    let turned = ImageChannel { shape: &[COLUMNS, ROWS], ..low };
    deliver(
        &mut lab,
        &says(1, &[turned]),
        SeriesRefusal::Shape,
        "[30, 100] of uint16 in a series of [100, 30]",
    );
    let signed = ImageChannel { element: ElementType::Int16, ..low };
    deliver(&mut lab, &says(1, &[signed]), SeriesRefusal::Shape, "of int16 in");
    let chunk_of =
        |element, bytes| ImageChannel { packing: Packing::BitshuffleLz4 { element }, bytes, ..low };
    let short = chunk(FRAME - 2);
    let whole = chunk(FRAME);
    deliver(
        &mut lab,
        &says(1, &[chunk_of(2, &short)]),
        SeriesRefusal::Packing,
        "unpacks to 5998 B, not 6000 B",
    );
    deliver(
        &mut lab,
        &says(1, &[chunk_of(4, &whole)]),
        SeriesRefusal::Packing,
        "uint16 shuffled as elements of 4 B",
    );
    deliver(&mut lab, &says(1, &[chunk_of(2, &[0; 3])]), SeriesRefusal::Packing, "too few to say");
    let long = [&whole[..], &[0; 5000]].concat();
    deliver(&mut lab, &says(1, &[chunk_of(2, &long)]), SeriesRefusal::TooLong, "frame 2 of 10012 B");
    // After all of this the frame comes, and comes again.
    lab.deliver(&says(1, &[chunk_of(2, &whole)]));
    assert_eq!(lab.intake.frames[&2], (whole.clone(), Packing::BitshuffleLz4 { element: 2 }));
    deliver(&mut lab, &says(1, &[chunk_of(2, &whole)]), SeriesRefusal::Duplicate, "");
    assert_eq!((lab.receiver.tally().frames, lab.intake.free.len()), (1, 4));
}

#[test]
fn the_first_image_says_what_the_start_left_out() {
    // In slots, and small ones that are copied.
    for rows in [ROWS, 10] {
        let shape = [rows, COLUMNS];
        let message = |number: u64| {
            let all = pixels(number);
            let bytes = &all[..(rows * COLUMNS * 2) as usize];
            says(number, &[ImageChannel { shape: &shape, ..channel("low", bytes) }])
        };
        let mut lab = Lab::new(3, SeriesUntil::default());
        let incomplete = b"\xa3\x64type\x65start\x69series_id\x03\x70series_unique_id\x68a series";
        lab.send(&[incomplete.to_vec()]);
        (0..5).for_each(|number| lab.send(&message(number)));
        while lab.receiver.tally().frames < 5 {
            lab.turn();
        }
        let started = lab.receiver.series().expect("it began").start();
        assert_eq!(
            (started.images, &started.shape[..], &started.channels[..]),
            (0, &shape[..], &["low".to_owned()][..])
        );
        assert_eq!((lab.receiver.tally().refused_all(), lab.intake.free.len()), (0, 3));
        assert!(lab.intake.free.iter().all(|slot| slot.len() == FRAME + 100), "no memory of another");
        assert_eq!(lab.receiver.is_over(lab.clock.now() + Nanos::from_millis(50_000)), None, "until its end");
        lab.deliver(&[stream2::encode_end(&name())]);
        let over = lab.receiver.is_over(lab.clock.now() + Nanos::from_millis(5000));
        assert_eq!(over, Some(SeriesEnding::Complete));
    }
}

#[test]
fn without_a_slot_the_sender_waits_or_the_frame_is_lost() {
    // Frames that are read into slots, and small ones that are copied.
    for (rows, size) in [(ROWS, FRAME), (10, 600)] {
        let shape = [rows, COLUMNS];
        let message = |number: u64| {
            let all = pixels(number);
            says(number, &[ImageChannel { shape: &shape, ..channel("low", &all[..size]) }])
        };
        let mut lab = Lab::new(3, SeriesUntil::default());
        lab.intake.keeps = true;
        lab.deliver(&starts(&SeriesStart { shape: shape.to_vec(), ..start() }));
        for number in 0..7 {
            lab.send(&message(number));
        }
        for _ in 0..2 {
            while !lab.intake.free.is_empty() {
                lab.turn();
            }
            (0..5).for_each(|_| lab.turn());
            lab.intake.free.append(&mut lab.intake.kept);
        }
        while lab.receiver.tally().frames < 7 {
            lab.turn();
        }
        assert!(lab.intake.frames.iter().all(|(number, (bytes, _))| *bytes == pixels(number / 2)[..size]));
        lab.intake.kept.append(&mut lab.intake.free);
        lab.intake.loses = true;
        lab.deliver(&message(7));
        assert_eq!((lab.refused(SeriesRefusal::NoRoom), lab.receiver.tally().frames), (1, 7));
        assert_eq!(lab.intake.kept.len(), 3);
    }
}

#[test]
fn version_1_comes_the_same_way() {
    let mut lab = Lab::new(2, SeriesUntil::default());
    let series = SeriesName { number: 9, unique: String::new() };
    let start = SeriesStart { series: series.clone(), images: 3, ..start() };
    lab.deliver(&stream1::encode_header(&start).expect("two dimensions"));
    let chunk = chunk(FRAME);
    for (number, packing) in
        [(2, Packing::Plain), (0, Packing::BitshuffleLz4 { element: 2 }), (1, Packing::Lz4Block)]
    {
        let plain = pixels(number);
        let bytes = if packing == Packing::Plain { &plain } else { &chunk };
        let channel = ImageChannel { packing, ..channel(stream1::CHANNEL, bytes) };
        let parts = stream1::encode_image(&series, number, &ImageTimes::default(), &channel, "");
        let parts: Vec<_> = parts.expect("it has a word").iter().map(|part| part.bytes().to_vec()).collect();
        lab.deliver(&parts);
        assert!(lab.intake.frames[&number] == (bytes.clone(), packing));
    }
    lab.deliver(&[stream1::encode_end(&series)]);
    assert_eq!(lab.receiver.is_over(lab.clock.now()), Some(SeriesEnding::Complete));
    assert_eq!(lab.receiver.tally().ends, 1);
}

#[test]
fn frames_pass_a_ring_in_their_slots() {
    let mut lab = Lab::new(1, SeriesUntil::default());
    let ring = Ring::new(Arena::shared_out(3, FRAME + 16).1, 1, Chronicle::new(FRAME as u64, Nanos(1)));
    let storage = SeriesStorage {
        frame_size: FRAME as u64,
        encoding: Encoding::Raw,
        in_order: false,
        frames_max: None,
    };
    let mut intake = RingIntake::new(ring.clone(), storage);
    lab.send(&starts(&start()));
    for number in [1, 0, 3, 2, 5, 4, 9, 8, 7] {
        lab.send(&image(number));
    }
    let mut taken = VecDeque::new();
    let mut came = BTreeMap::new();
    while came.len() < 18 {
        let now = lab.clock.now();
        lab.receiver.turn(now, &mut intake).expect("the network is there");
        while ring.take(now, 0, &mut taken) == Taken::Frames {
            came.extend(taken.iter().map(|frame| (frame.number, frame.data[..FRAME].to_vec())));
            ring.release(now, &mut taken.drain(..).collect());
        }
    }
    assert!(came.iter().all(|(number, bytes)| *bytes == pixels(*number)));
    lab.receiver.finish(lab.clock.now(), &mut intake);
    assert_eq!(ring.mark(), 12, "12 and 13 did not come");
}
