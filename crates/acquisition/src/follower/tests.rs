//! Tests a follower with operations answered by hand: its counts, and the operations that it issues.

use nilometer_recording::{
    instrument::{Content, Pattern},
    journal::{Encoding, FrameExtent, Head, RECORD},
};
use nilometer_ring::Chronicle;

use super::*;
use nilometer_model::{FileNames, Format, Seed, Storing};
use nilometer_storage::Open;

fn follower() -> Follower {
    let purpose = Purpose::Check(Expected::Frames(Content::Pattern(Pattern::new(Seed(1), 16))));
    following(Storing::Files, purpose)
}

fn following(storing: Storing, purpose: Purpose) -> Follower {
    let head = |lane| Head {
        recording: 1,
        lane,
        lanes: 2,
        frame_size: 16,
        stride: 16,
        frames_per_file: 10,
        storing,
        format: Format::Raw,
        names: FileNames::default(),
    };
    let lanes = [0, 1].map(|lane| RawLayout::suited("n".into(), head(lane), false));
    Follower::new(lanes.into(), purpose, Following::default(), Arc::default())
}

fn frame(number: u64, file: u64) -> Entry {
    let extent = FrameExtent { file, offset: 0, length: 16, encoding: Encoding::Raw, size: 16 };
    Entry::Frame { number, extent, due: 0, checksum: None }
}

fn done(operation: Operation, result: Result<u32, Errno>) -> Completion {
    Completion { operation, result, due: Nanos(0), issued: Nanos(0), finished: Nanos(1) }
}

/// Answers the follower's next operation with this result.
fn answer(follower: &mut Follower, result: Result<u32, Errno>) -> OpKind {
    let Step::Issue(operation, _) = follower.next(Nanos(1)) else { panic!("it has something to do") };
    let kind = operation.kind;
    follower.completed(done(operation, result));
    kind
}

#[test]
fn a_frame_that_two_lanes_have_is_read_once() {
    let mut follower = follower();
    follower.lanes[0].opened();
    follower.take(0, &[frame(5, 0)]);
    assert!(matches!(answer(&mut follower, Ok(0)), OpKind::Open(_)));
    assert_eq!(answer(&mut follower, Ok(16)), OpKind::Read);
    // The frame is wrong, and the journal gives no reason.
    assert_eq!(answer(&mut follower, Ok(0)), OpKind::Read);
    follower.take(1, &[frame(5, 0), frame(6, 0)]);
    assert_eq!(follower.pending.keys().collect::<Vec<_>>(), [&6]);
    // If a frame can't be read at its first location, it may be read at its next one.
    assert!(matches!(answer(&mut follower, Err(Errno::EIO)), OpKind::Open(_)));
    follower.take(0, &[frame(6, 1)]);
    assert_eq!(follower.pending.keys().collect::<Vec<_>>(), [&6]);
}

#[test]
fn a_file_that_is_gone_was_removed_only_if_the_journal_says_so() {
    for (removed, expected) in [(true, (3, 0)), (false, (0, 3))] {
        let mut follower = follower();
        follower.take(0, &[frame(0, 7), frame(1, 7)]);
        assert!(matches!(answer(&mut follower, Err(Errno::ENOENT)), OpKind::Open(_)));
        // Its journal continues with another frame of the same file.
        follower.take(0, &[frame(2, 7)]);
        let Step::Issue(operation, _) = follower.next(Nanos(1)) else { panic!("it has something to do") };
        let name = follower.lanes[0].layout.head.file_name("n", 7);
        assert_eq!((operation.name(), operation.kind), (name.as_bytes(), OpKind::Open(Open::READ)));
        follower.completed(done(operation, Err(Errno::ENOENT)));
        follower.take(0, removed.then_some(Entry::Removed { file: 7 }).as_slice());
        (0..2).for_each(|lane| follower.take(lane, &[Entry::End { due: None }]));
        assert!(matches!(follower.next(Nanos(1)), Step::Done));
        assert_eq!((follower.totals.missed, follower.totals.failed), expected, "removed: {removed}");
    }
}

/// Opens the file of a frame at this time, which storage refuses. Returns false if there is nothing to open.
fn refuse_at(follower: &mut Follower, now: Nanos) -> bool {
    let Step::Issue(operation, _) = follower.next(now) else { return false };
    assert!(matches!(operation.kind, OpKind::Open(_)), "{:?}", operation.kind);
    let refused = Completion { finished: now, ..done(operation, Err(Errno::EIO)) };
    follower.completed(refused);
    true
}

#[test]
fn storage_that_refuses_a_file_for_a_moment_costs_no_frame() {
    let ended = || {
        let mut follower = follower();
        follower.take(0, &[frame(0, 7), Entry::End { due: None }]);
        follower.take(1, &[Entry::End { due: None }]);
        follower
    };
    let at = |millis| Nanos::from_millis(millis);
    let mut short = ended();
    assert!(refuse_at(&mut short, at(1)) && refuse_at(&mut short, at(500)));
    let Step::Issue(operation, _) = short.next(at(900)) else { panic!("it tries again") };
    short.completed(done(operation, Ok(0)));
    assert_eq!(short.totals().failed, 0);
    assert!(matches!(short.next(at(901)), Step::Issue(Operation { kind: OpKind::Read, .. }, _)));
    let mut long = ended();
    assert!(refuse_at(&mut long, at(1)) && refuse_at(&mut long, at(1001)));
    assert!(!refuse_at(&mut long, at(2000)));
    assert_eq!(long.totals().failed, 1);
}

#[test]
fn a_journal_that_storage_refuses_counts_once_when_that_lasts() {
    let mut follower = follower();
    for (millis, failed) in [(1, 0), (900, 0), (1001, 1), (2000, 1)] {
        let now = Nanos::from_millis(millis);
        for _ in 0..2 {
            let Step::Issue(operation, _) = follower.next(now) else { panic!("it looks at two journals") };
            let is_refused = operation.name() == b"n.1.journal";
            let result = if is_refused { Err(Errno::EIO) } else { Ok(0) };
            follower.completed(Completion { finished: now, ..done(operation, result) });
        }
        assert_eq!(follower.totals().failed, failed, "{millis} ms");
    }
}

#[test]
fn what_is_written_over_while_it_is_read_is_missed_and_what_is_wrong_else_is_wrong() {
    for (result, removed, expected) in [
        (Ok(16), true, (1, 0, 0)),
        (Ok(8), true, (1, 0, 0)),
        (Ok(16), false, (0, 1, 0)),
        (Ok(8), false, (0, 0, 1)),
        (Err(Errno::EIO), false, (0, 0, 1)),
    ] {
        let mut follower = follower();
        follower.lanes[0].opened();
        follower.take(0, &[frame(3, 0), frame(4, 1)]);
        assert!(matches!(answer(&mut follower, Ok(0)), OpKind::Open(_)));
        // All zeros, so it differs from the frame delivered.
        assert_eq!(answer(&mut follower, result), OpKind::Read);
        let totals = |follower: &Follower| {
            let ReaderTotals { missed, wrong, failed, .. } = follower.totals();
            (missed, wrong, failed)
        };
        assert_eq!(totals(&follower), (0, 0, 0), "the journal may know more: {result:?}");
        let Step::Issue(mut operation, _) = follower.next(Nanos(1)) else { panic!("it has something to do") };
        assert_eq!((operation.kind, operation.offset), (OpKind::Read, 2 * RECORD as u64));
        let length = operation.length as usize;
        for (sequence, record) in (2..).zip(operation.buffer[..length].chunks_exact_mut(RECORD)) {
            Entry::Durable { file: 9 }.put(sequence, record);
        }
        let next = 2 + (length / RECORD) as u64;
        follower.completed(done(operation, Ok(length as u32)));
        assert_eq!(totals(&follower), (0, 0, 0), "as much as was looked at: there may be more");
        let Step::Issue(mut operation, _) = follower.next(Nanos(1)) else { panic!("it has something to do") };
        let entry = if removed { Entry::Removed { file: 0 } } else { Entry::Durable { file: 9 } };
        entry.put(next, &mut operation.buffer[..RECORD]);
        follower.completed(done(operation, Ok(RECORD as u32)));
        assert_eq!(totals(&follower), expected, "{result:?}, removed: {removed}");
        // The follower reads the next frame.
        assert_eq!(answer(&mut follower, Ok(0)), OpKind::Close);
    }
}

#[test]
fn what_a_ring_wrote_over_while_it_was_read_is_not_copied() {
    for (overwritten, expected) in [(false, (1, 0)), (true, (0, 1))] {
        let (_, room) = Arena::shared_out(2, 16);
        let ring = Ring::new(room, 1, Chronicle::new(16, Nanos(0)));

        let mut follower = following(Storing::Ring, Purpose::Copy(ring));
        follower.lanes[0].opened();
        follower.take(0, &[frame(3, 0), frame(4, 1)]);
        assert!(matches!(answer(&mut follower, Ok(0)), OpKind::Open(_)));
        assert_eq!(answer(&mut follower, Ok(16)), OpKind::Read);
        assert_eq!(follower.totals().frames, 0, "its journal may know more");
        let Step::Issue(mut operation, _) = follower.next(Nanos(1)) else { panic!("it has something to do") };
        assert_eq!((operation.kind, operation.offset), (OpKind::Read, 2 * RECORD as u64));
        Entry::Removed { file: 0 }.put(2, &mut operation.buffer[..RECORD]);
        let length = if overwritten { RECORD as u32 } else { 0 };
        follower.completed(done(operation, Ok(length)));
        let ReaderTotals { frames, missed, wrong, failed, .. } = follower.totals();
        assert_eq!((frames, missed), expected, "overwritten: {overwritten}");
        assert_eq!((wrong, failed), (0, 0));
    }
}

#[test]
fn a_journal_that_says_what_can_not_be_is_one_fault_and_the_end_of_its_lane() {
    let mut follower = follower();
    let mut records = vec![0; RECORD];
    Entry::Removed { file: u64::MAX }.put(0, &mut records);
    for _ in 0..3 {
        assert!(!follower.take_records(0, &records));
    }
    assert_eq!(follower.totals().failed, 1);
    follower.take(1, &[Entry::End { due: None }]);
    assert!(matches!(follower.next(Nanos(1)), Step::Done));
    assert_eq!(follower.totals().failed, 1);
}
