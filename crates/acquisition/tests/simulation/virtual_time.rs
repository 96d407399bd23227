//! The recorder's stages on one virtual clock, against what theory says.

use nilometer_model::{Histogram, Nanos, Seed};
use nilometer_recording::reader::Trust;
use nilometer_storage::{
    Engine, Errno, OpKind,
    testing::wrap::{FaultEffect, Faulty, Rule, When},
    testing::{Cost, Device},
};

use crate::lab::{Lab, PAGE};

/// A page takes 1.6 us: two lanes have 1.25 times the capacity that a frame a microsecond needs.
fn lane() -> Device {
    Device { write: Cost { base: Nanos(0), picoseconds_per_byte: 1_600_000 / PAGE }, ..Device::default() }
}

fn stalled() -> Device {
    Device { stalls: vec![(Nanos(1_000_000), Nanos(2_000_000))], ..lane() }
}

#[test]
fn a_stall_needs_exactly_the_buffer_that_theory_says() {
    let run = |slots| Lab { slots, devices: vec![stalled(), stalled()], ..Lab::default() }.run(Nanos::MAX);
    let ample = run(5000);
    let books = ample.ring.books();
    assert_eq!(books.lost(), 0);
    // A frame each microsecond of a stall of a millisecond, and what the lanes hold when it begins.
    assert!((1000..=1004).contains(&books.high), "{} slots were in use", books.high);
    assert_eq!(run(books.high).ring.books().lost(), 0, "the slots that were in use are enough");
    assert!(run(books.high - 1).ring.books().lost() > 0, "one fewer is not");
}

#[test]
fn a_stall_is_seen_as_long_as_it_is() {
    for stall in [50_000, 5_000_000] {
        let device = Device { stalls: vec![(Nanos(1_000_000), Nanos(1_000_000 + stall))], ..lane() };
        let lab = Lab { period: Nanos(10_000), frames: 2000, devices: vec![device], ..Lab::default() };
        let longest = lab.run(Nanos::MAX).lanes[0].longest.0;
        // A frame may have been due just before the stall; its write and its record take 2 us more.
        assert!(
            (stall - 10_000..=stall + 4_000).contains(&longest),
            "a stall of {stall} ns looked like {longest} ns"
        );
    }
}

#[test]
fn the_chronicle_says_when_it_stalled_and_how_full_it_was() {
    let (begun, length) = (1_000_000, 5_000_000);
    let device = Device { stalls: vec![(Nanos(begun), Nanos(begun + length))], ..lane() };
    let lab = Lab { period: Nanos(10_000), frames: 2000, devices: vec![device], ..Lab::default() };
    let run = lab.run(Nanos::MAX);
    let chronicle = run.ring.chronicle();
    let [stall] = chronicle.stalls[..] else { panic!("{:?}", chronicle.stalls) };
    let near = |found: Nanos, expected: u64| found.0.abs_diff(expected) <= 14_000;
    assert!(near(stall.at, begun) && near(stall.length, length), "{stall:?}");
    assert_eq!(chronicle.stalled, (1, stall.length));
    let highest = chronicle.levels.bins().iter().map(|level| level.most).max();
    assert_eq!(highest, Some(run.ring.books().high as u64));
    let bytes: u64 = chronicle.work.bins().iter().map(|bin| bin.bytes).sum();
    assert_eq!((bytes, chronicle.readable.count()), (2000 * PAGE, 2000));
    // Frames are late until the lane has caught up: it takes 1.6 us and a record for each, and one comes every 10 us.
    assert!((500..700).contains(&chronicle.late), "{} were late", chronicle.late);
}

#[test]
fn a_frame_is_acknowledged_then_readable_then_durable() {
    let sync = Cost::fixed(Nanos(50_000));
    let device = Device { sync, ..lane() };
    let devices = vec![device.clone(), device];
    let lab = Lab { frames: 1000, period: Nanos(5_000), frames_per_file: 50, devices, ..Lab::default() };
    let run = lab.run(Nanos::MAX);
    let (mut free, mut durable) = (Histogram::default(), Histogram::default());
    for lane in &run.lanes {
        free.merge(&lane.lateness);
        durable.merge(&lane.durable);
    }
    let readable = run.ring.chronicle().readable;
    assert_eq!([free.count(), readable.count(), durable.count()], [1000; 3]);
    for part in [0.1, 0.5, 0.9, 1.0] {
        let [free, readable, durable] = [&free, &readable, &durable].map(|times| times.quantile(part));
        assert!(free <= readable && readable < durable, "{part}: {free}, {readable}, {durable}");
    }
    assert!(
        durable.quantile(0.0) >= 3 * 50_000 * 31 / 32,
        "data, name and note are synced before a file is durable"
    );
}

#[test]
fn a_dying_lane_hands_its_frames_to_the_other() {
    for depth in [1, 4] {
        let fast = Device {
            write: Cost { base: Nanos(0), picoseconds_per_byte: 600_000 / PAGE },
            ..Device::default()
        };
        let dying = Device { dead_from: Nanos(3_000_000), ..fast.clone() };
        let lab = Lab { depth, devices: vec![dying, fast], frames_per_file: 1000, ..Lab::default() };
        let run = lab.run(Nanos::MAX);
        assert_eq!((run.ring.books().lost(), run.mark), (0, 20_000), "no frame is lost at depth {depth}");
        let [dead, alive] = [&run.lanes[0], &run.lanes[1]];
        assert_eq!(dead.fault, Some(Errno::EIO));
        assert!(dead.stored > 500, "the lane stored {} frames before it died", dead.stored);
        assert_eq!((alive.fault, dead.stored + alive.stored), (None, 20_000));
    }
}

#[test]
fn with_every_lane_dead_the_rest_is_lost_and_counted() {
    let dying = Device { dead_from: Nanos(3_000_000), ..lane() };
    let run = Lab { devices: vec![dying.clone(), dying], ..Lab::default() }.run(Nanos::MAX);
    let stored: u64 = run.lanes.iter().map(|lane| lane.stored).sum();
    assert!(stored > 2000, "{stored} frames were stored before");
    assert_eq!(stored + run.ring.books().lost(), run.due, "each frame is stored or counted as lost");
}

#[test]
fn a_full_disk_hands_its_frames_to_the_other() {
    let small = Device { capacity: 3000 * PAGE, ..lane() };
    let large = Device { write: Cost::fixed(Nanos(300)), ..Device::default() };
    let run = Lab { devices: vec![small, large], frames_per_file: 500, ..Lab::default() }.run(Nanos::MAX);
    assert_eq!((run.lanes[0].fault, run.lanes[1].fault), (Some(Errno::ENOSPC), None));
    assert_eq!((run.ring.books().lost(), run.mark), (0, 20_000));
}

#[test]
fn what_is_recorded_is_read_back_whole_over_all_lanes() {
    let lab = Lab {
        frame_size: 3 * PAGE + 100,
        frames: 1003,
        period: Nanos(10_000),
        depth: 3,
        frames_per_file: 7,
        devices: vec![lane(), lane(), lane()],
        ..Lab::default()
    };
    let run = lab.run(Nanos::MAX);
    for trust in [Trust::Acknowledged, Trust::Durable] {
        let index = run.index(trust);
        assert_eq!((index.frames.len(), index.missing(), index.ended), (1003, vec![], 3));
        assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new());
    }
}

#[test]
fn with_a_limit_only_the_newest_files_stay_and_the_reader_knows() {
    let lab = Lab { frames: 1000, frames_per_file: 10, keep: Some(3), ..Lab::default() };
    let run = lab.run(Nanos::MAX);
    let index = run.index(Trust::Durable);
    let numbers: Vec<u64> = index.frames.numbers(0..u64::MAX).collect();
    assert_eq!(numbers, (970..1000).collect::<Vec<_>>());
    assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new());
}

#[test]
fn where_space_cannot_be_reserved_files_grow_as_they_are_written() {
    let rule = |engine| -> Box<dyn Engine> {
        let effect = FaultEffect::Error(Errno::EOPNOTSUPP);
        let rule = Rule { on: Some(OpKind::Allocate), when: When::Every(1), effect };
        Box::new(Faulty::new(engine, &[rule], Seed(1)))
    };
    let lab = Lab { frames: 100, frames_per_file: 10, wrap: rule, ..Lab::default() };
    let run = lab.run(Nanos::MAX);
    let index = run.index(Trust::Durable);
    assert_eq!((index.frames.len(), run.lanes[0].fault), (100, None));
    assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new());
}

#[test]
fn short_writes_are_faults_and_hand_the_frame_on() {
    let rule = |engine| -> Box<dyn Engine> {
        let rule = Rule { on: Some(OpKind::Write), when: When::FromNth(50), effect: FaultEffect::Short };
        Box::new(Faulty::new(engine, &[rule], Seed(1)))
    };
    let run = Lab { frames: 100, wrap: rule, ..Lab::default() }.run(Nanos::MAX);
    assert_eq!(run.lanes[0].fault, Some(Errno::EIO), "a short write is no write");
    assert!(run.lanes[0].stored > 20, "{} frames were stored before", run.lanes[0].stored);
    assert_eq!(
        run.lanes[0].stored + run.ring.books().lost(),
        run.due,
        "each frame is stored or counted as lost"
    );
}
