//! A lane that fails while operations of it are in flight.

use nilometer_acquisition::sink::{Gauge, LaneFiles, RawLayout, Stored};
use nilometer_model::Nanos;
use nilometer_ring::Frame;
use nilometer_storage::{Arena, Buffer, Completion, Errno, Operation};

use crate::lab::{Lab, PAGE};

fn done(operation: Operation, result: Result<u32, Errno>) -> Completion {
    Completion { operation, result, due: Nanos(0), issued: Nanos(0), finished: Nanos(1) }
}

/// Completes whatever comes next as it was asked for, until nothing does.
fn settle(sink: &mut LaneFiles, stored: &mut Stored) {
    while let Some((operation, _)) = sink.next(Nanos(0)) {
        let length = operation.length;
        assert_eq!(sink.completed(done(operation, Ok(length)), stored), Ok(()));
    }
}

/// Submits a frame; the write of it.
fn write(sink: &mut LaneFiles, number: u64, data: Buffer) -> Operation {
    assert!(sink.has_room());
    sink.submit(Frame::new(number, Nanos(0), Nanos(0), data));
    let (operation, _) = sink.next(Nanos(0)).expect("a file is ready");
    assert!(LaneFiles::writes_frame(&operation));
    operation
}

#[test]
fn a_journal_write_in_flight_when_its_lane_fails_acknowledges_nothing() {
    let (mut sink, mut stored) =
        (LaneFiles::new(Lab::default().layout(0), Gauge::with_reserve(0)), Stored::default());
    let (_, mut slots) = Arena::shared_out(2, PAGE as usize);
    settle(&mut sink, &mut stored);
    let first = write(&mut sink, 0, slots.pop().expect("two slots"));
    let second = write(&mut sink, 1, slots.pop().expect("two slots"));
    assert_eq!(sink.completed(done(first, Ok(PAGE as u32)), &mut stored), Ok(()));
    let (journal, _) = sink.next(Nanos(0)).expect("the first frame's record");
    let length = journal.length;
    assert_eq!(sink.completed(done(second, Err(Errno::EIO)), &mut stored), Err(Errno::EIO));
    let given_back: Vec<u64> = sink.abandon().iter().map(|frame| frame.number).collect();
    assert_eq!(given_back, [1, 0], "another lane stores both");
    assert_eq!(sink.completed(done(journal, Ok(length)), &mut stored), Err(Errno::EIO));
    assert!(stored.acknowledged.is_empty() && sink.abandon().is_empty());
}

/// Small frames that are collected to be written together are in nobody's hands but the sink's.
#[test]
fn a_lane_that_fails_gives_back_frames_that_are_written_together_and_those_that_would_be() {
    let layout = RawLayout { together: 3 * PAGE as u32, ..Lab::default().layout(0) };
    let (mut sink, mut stored) = (LaneFiles::new(layout, Gauge::with_reserve(0)), Stored::default());
    let (_, mut slots) = Arena::shared_out(5, PAGE as usize);
    settle(&mut sink, &mut stored);
    let mut writes = Vec::new();
    for number in 0..5 {
        assert!(sink.has_room());
        let data = slots.pop().expect("five slots");
        sink.submit(Frame::new(number, Nanos(0), Nanos(0), data));
        writes.extend(sink.next(Nanos(0)).map(|(operation, _)| operation));
    }
    assert_eq!(writes.len(), 1, "two more are not a whole group");
    let three = writes.pop().expect("one");
    assert_eq!((u64::from(three.length), three.offset), (3 * PAGE, 0));
    assert_eq!(sink.completed(done(three, Err(Errno::EIO)), &mut stored), Err(Errno::EIO));
    let mut given_back: Vec<u64> = sink.abandon().iter().map(|frame| frame.number).collect();
    given_back.sort_unstable();
    assert_eq!(given_back, [0, 1, 2, 3, 4], "another lane stores all");
    assert!(stored.acknowledged.is_empty() && sink.abandon().is_empty());
}
