//! A receiver that reads nothing, one that reads everything, and the images at each of them.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    thread::{ScopedJoinHandle, yield_now},
};

use nilometer_model::{Burst, Data, DataKind, PixelType};
use nilometer_storage::Buffer;
use nilometer_wire::{
    series::{ElementType, MetadataField, MetadataValue, SeriesImage, SeriesMessage, SeriesName, TimeRatio},
    stream1, stream2,
};

use super::{
    course::{SendEnd, patience},
    *,
};
use crate::transport::{
    faults::{Departures, Leaving},
    zeromq::{MessageLimits, MessageRoom, PullSocket, RoomAnswer, RoomRequest, ZmqEndpoint, ZmqMessage},
};

/// All of a message lies together.
struct NoRoom;

impl MessageRoom for NoRoom {
    fn room(&mut self, _: RoomRequest<'_>) -> RoomAnswer {
        RoomAnswer::Along
    }
    fn give_back(&mut self, _: Buffer) {}
}

const ROWS: u64 = 512;
const COLUMNS: u64 = 512;

/// Images of half a mebibyte that nothing packs, a millisecond apart.
fn series(images: u64) -> SimulatedSeries {
    let shape = vec![ROWS, COLUMNS];
    let data = Data { distinct: Some(2), ..Data::from(DataKind::Incompressible) };
    let content = Content::prepare(&data, &shape, PixelType::Uint16, Seed(4)).expect("it can be made");
    SimulatedSeries {
        start: SeriesStart {
            series: SeriesName { number: 3, unique: "a series".to_owned() },
            images,
            shape,
            element: ElementType::Uint16,
            channels: vec!["low".to_owned()],
            fields: vec![MetadataField::new("incident_wavelength", MetadataValue::Float(1.0))],
        },
        version: StreamVersion::Two,
        compression: FrameCompression::None,
        schedule: Schedule::every(Nanos::from_millis(1)),
        exposure: Nanos(700_000),
        content,
        threads: 1,
        queue: SendQueueLimits { images: 4, bytes: u64::MAX },
        overflow: SendOverflow::Drop,
        first_dropped: |_| {},
        faults: Faults::default(),
        seed: Seed(9),
    }
}

/// A sender, and a receiver that is connected to it.
fn connected(clock: Clock) -> (PushSocket, PullSocket) {
    let at = ZmqEndpoint::bind("tcp://127.0.0.1:0").expect("an address");
    let mut push = PushSocket::open(at).expect("a free port");
    let to = ZmqEndpoint::Connect(push.address().expect("it is bound"));
    let mut pull = PullSocket::open(&[to], MessageLimits::default()).expect("nothing to fail");
    while push.connected() == 0 || pull.counted().connected == 0 {
        push.tend().expect("the network is there");
        assert!(next(&mut pull, clock).is_none());
    }
    (push, pull)
}

fn next(pull: &mut PullSocket, clock: Clock) -> Option<ZmqMessage> {
    pull.receive(clock.now(), Nanos::from_millis(5), &mut NoRoom).expect("the network is there")
}

fn said(message: &ZmqMessage) -> SeriesMessage {
    let parts = message.parts();
    let said = if parts.len() == 1 && !stream1::is_json(parts[0].bytes) {
        stream2::decode(parts[0])
    } else {
        stream1::decode(&parts)
    };
    said.expect("it is well")
}

/// All images up to the end of the series.
fn all_of(pull: &mut PullSocket, clock: Clock) -> Vec<SeriesImage> {
    let mut images = Vec::new();
    loop {
        let Some(message) = next(pull, clock) else { continue };
        match said(&message) {
            SeriesMessage::Start(_) => assert!(images.is_empty()),
            SeriesMessage::Image(image) => images.push(image),
            SeriesMessage::End(_) => return images,
        }
    }
}

fn number_of(leaving: &Leaving) -> Option<u64> {
    let Leaving::Packet(number) = leaving else { return None };
    Some(*number)
}

fn numbers(images: &[SeriesImage]) -> Vec<u64> {
    images.iter().map(|image| image.image).collect()
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().expect("it ended well")
}

#[test]
fn an_image_that_finds_the_queue_full_is_dropped_and_counted() {
    let clock = Clock::start();
    let (mut push, mut pull) = connected(clock);
    let series = series(150);
    let stop = AtomicBool::new(false);
    let pool = Arc::new(series.pool());
    let (sent, came) = thread::scope(|scope| {
        let ready = series.make_all(scope, &pool);
        let mut course = SeriesCourse::new(&series, &mut push, clock, &stop, ready);
        // Nobody reads while images are due: the kernel takes some, the queue four.
        course.begin().expect("the network is there");
        course.all_images().expect("the network is there");
        let reader = scope.spawn(|| all_of(&mut pull, clock));
        let sent = course.finish().expect("the network is there");
        pool.close();
        (sent, numbers(&joined(reader)))
    });
    assert!(sent.dropped > 50 && sent.dropped_alone == 0, "{sent:?}");
    assert_eq!((sent.due, sent.images + sent.dropped, sent.unsent, sent.lost), (150, 150, 0, 0));
    assert_eq!((came.len() as u64, sent.queued_most), (sent.images, 4));
    assert!(came.is_sorted() && came[..5] == [0, 1, 2, 3, 4], "the first find room: {came:?}");
    assert_eq!(sent.lateness.count(), sent.images);
    assert_eq!(sent.bytes, sent.images * ROWS * COLUMNS * 2);
    assert!(pool.made() <= 3 + 4 + 3, "{} images in memory", pool.made());
}

#[test]
fn images_that_are_to_wait_do_and_none_is_lost() {
    let clock = Clock::start();
    let (mut push, mut pull) = connected(clock);
    let series = SimulatedSeries { overflow: SendOverflow::Wait, ..series(150) };
    let stop = AtomicBool::new(false);
    let pool = Arc::new(series.pool());
    let (sent, came) = thread::scope(|scope| {
        let ready = series.make_all(scope, &pool);
        let reader = scope.spawn(|| {
            // Three at the thread, one under way, one that nobody takes, and four in the queue: it is full.
            while pool.made() < 9 {
                yield_now();
            }
            all_of(&mut pull, clock)
        });
        let sent = SeriesCourse::new(&series, &mut push, clock, &stop, ready).run();
        pool.close();
        (sent.expect("the network is there"), numbers(&joined(reader)))
    });
    assert!(came.iter().copied().eq(0..150), "{came:?}");
    assert_eq!((sent.images, sent.dropped, sent.unsent, sent.queued_most), (150, 0, 0, 4));
    assert!(sent.wall >= series.schedule.due(149), "no image leaves before it is due");
}

#[test]
fn faults_are_those_of_the_seed_and_times_those_of_the_instrument() {
    let clock = Clock::start();
    let (mut push, mut pull) = connected(clock);
    let burst = Some(Burst { frames: 10, pause: Nanos::from_millis(5) });
    let faults = Faults { loss: 0.1, reorder: 0.2, distance: 3, duplicate: 0.2, ..Faults::default() };
    let queue = SendQueueLimits { images: 300, bytes: u64::MAX };
    let schedule = Schedule { burst, ..Schedule::every(Nanos::from_millis(1)) };
    let series = SimulatedSeries {
        schedule,
        faults,
        queue,
        compression: FrameCompression::Bslz4,
        threads: 3,
        ..series(200)
    };
    let (sent, came) = thread::scope(|scope| {
        let reader = scope.spawn(|| all_of(&mut pull, clock));
        let sent = series.send(&mut push, clock, &AtomicBool::new(false));
        (sent.expect("the network is there"), joined(reader))
    });
    let mut departures = Departures::new(faults, &[1], Seed(9));
    let mut leaving = Vec::new();
    (0..200).for_each(|_| departures.next(&mut leaving));
    departures.finish(&mut leaving);
    let expected: Vec<_> = leaving.iter().filter_map(number_of).collect();
    assert_eq!(numbers(&came), expected);
    let different: BTreeSet<_> = expected.iter().copied().collect();
    assert_eq!((different.len() as u64, sent.images + sent.lost), (sent.images, 200));
    assert_eq!(sent.duplicated, came.len() as u64 - sent.images);
    assert!(sent.lost > 0 && sent.duplicated > 0 && sent.reordered > 0 && sent.dropped == 0, "{sent:?}");
    let ratio = |time: Nanos| Some(TimeRatio { numerator: time.0, denominator: 1_000_000_000 });
    for image in &came {
        let due = schedule.due(image.image);
        assert_eq!(
            (image.times.start, image.times.real),
            (ratio(due), ratio(series.exposure)),
            "over no pause"
        );
        assert_eq!(image.times.stop, ratio(due + series.exposure));
        assert!(image.times.series_date.as_ref().is_some_and(|date| date.ends_with('Z')));
    }
}

#[test]
fn version_1_has_the_hash_of_pixels_and_all_of_the_configuration() {
    let clock = Clock::start();
    let (mut push, mut pull) = connected(clock);
    let series = SimulatedSeries { version: StreamVersion::One, ..series(3) };
    let messages = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut messages = Vec::new();
            while messages.len() < 5 {
                messages.extend(next(&mut pull, clock));
            }
            messages
        });
        let sent = series.send(&mut push, clock, &AtomicBool::new(false)).expect("the network is there");
        assert_eq!(sent.images, 3);
        joined(reader)
    });
    let SeriesMessage::Start(start) = said(&messages[0]) else { panic!("a start") };
    let field = |name: &str| start.fields.iter().find(|field| field.name == name).map(|field| &field.value);
    assert_eq!(field("wavelength"), Some(&MetadataValue::Float(1.0)));
    assert!(
        matches!(field("photon_energy"), Some(MetadataValue::Float(energy)) if (12_398.0..12_399.0).contains(energy))
    );
    assert_eq!(field("trigger_mode"), Some(&MetadataValue::Text("ints".to_owned())));
    for message in &messages[1..4] {
        let parts = message.parts();
        let first = String::from_utf8(parts[0].bytes.to_vec()).expect("JSON");
        let hash = stream1::hash_of(parts[2].bytes);
        assert!(hash.len() == 32 && first.contains(&format!("\"hash\":\"{hash}\"")), "{first}");
    }
    assert!(matches!(said(&messages[4]), SeriesMessage::End(_)));
}

#[test]
fn a_stop_gives_up_what_waits() {
    let clock = Clock::start();
    let (mut push, _pull) = connected(clock);
    let series = series(150);
    let stop = AtomicBool::new(false);
    let pool = Arc::new(series.pool());
    let sent = thread::scope(|scope| {
        let ready = series.make_all(scope, &pool);
        let mut course = SeriesCourse::new(&series, &mut push, clock, &stop, ready);
        course.begin().expect("the network is there");
        course.all_images().expect("the network is there");
        stop.store(true, Ordering::Relaxed);
        let sent = course.finish().expect("the network is there");
        pool.close();
        sent
    });
    assert!(sent.unsent >= 4, "those of the queue at least: {sent:?}");
    assert_eq!(sent.images + sent.dropped + sent.unsent, 150);
}

#[test]
fn nobody_is_waited_for_without_end_unless_that_was_asked_for() {
    let ten = Nanos::from_millis(10_000);
    let one = Nanos::from_millis(1_000);
    let (drop, wait) = (SendOverflow::Drop, SendOverflow::Wait);
    for (overflow, [stopped, alone, only_end], expected) in [
        (drop, [false, false, false], ten),
        (drop, [false, true, false], ten),
        (drop, [false, false, true], ten),
        (wait, [false, false, false], Nanos::MAX),
        (wait, [false, true, false], ten),
        (drop, [false, true, true], one),
        (wait, [false, true, true], one),
        (wait, [true, false, false], one),
    ] {
        let state = SendEnd { stopped, alone, only_end };
        assert_eq!(patience(overflow, state), expected, "{overflow:?} {state:?}");
    }
}

#[test]
fn what_is_held_back_at_the_end_finds_room_one_after_the_other() {
    let clock = Clock::start();
    let (mut push, mut pull) = connected(clock);
    let faults = Faults { reorder: 1.0, distance: 100, ..Faults::default() };
    let series = SimulatedSeries { faults, ..series(30) };
    let (sent, came) = thread::scope(|scope| {
        let reader = scope.spawn(|| all_of(&mut pull, clock));
        let sent = series.send(&mut push, clock, &AtomicBool::new(false));
        (sent.expect("the network is there"), numbers(&joined(reader)))
    });
    assert_eq!((sent.images, sent.dropped, came.len(), sent.queued_most), (30, 0, 30, 4), "{came:?}");
}
