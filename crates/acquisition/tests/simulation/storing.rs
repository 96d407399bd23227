//! One file instead of many: growing, or shared by lanes.

use nilometer_acquisition::sink::Durability;
use nilometer_model::{Nanos, Storing};
use nilometer_recording::reader::Trust;
use nilometer_storage::{
    Completion, Engine, Errno, OpKind, Operation, Slot, Wait,
    testing::{Cost, Device},
};

use crate::lab::{Lab, PAGE};

/// The slot of a lane's only file of frames, behind the directory and the journal.
const FILE: Slot = Slot(2);

/// Storage that only appends: each write begins where the file ends, one at a time; space is not reserved, and nothing is
/// cut off.
struct AppendOnly {
    inner: Box<dyn Engine>,
    end: u64,
    writing: bool,
}

impl Engine for AppendOnly {
    crate::forwards!(inner);

    fn submit(&mut self, operation: Operation, due: Nanos) {
        let Operation { kind, file, offset, length, .. } = operation;
        if file == FILE {
            assert!(!matches!(kind, OpKind::Allocate | OpKind::Truncate), "{kind:?}");
        }
        if file == FILE && kind == OpKind::Write {
            assert_eq!((offset, self.writing), (self.end, false), "it is no append");
            (self.end, self.writing) = (offset + u64::from(length), true);
        }
        self.inner.submit(operation, due);
    }
    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        let before = done.len();
        self.inner.reap(wait, done);
        let written = |done: &Completion| done.operation.file == FILE && done.operation.kind == OpKind::Write;
        self.writing &= !done[before..].iter().any(written);
    }
    fn next_event(&self) -> Option<Nanos> {
        self.inner.next_event()
    }
}

/// A page takes a microsecond, on a device that does several at a time and not in order.
fn device() -> Device {
    let write = Cost { base: Nanos(500), picoseconds_per_byte: 120 };
    Device { write, sync: Cost::fixed(Nanos(20_000)), parallel: 3, ..Device::default() }
}

fn lab(storing: Storing) -> Lab {
    Lab {
        frame_size: PAGE + 9,
        frames: 1003,
        period: Nanos(3000),
        slots: 300,
        depth: 3,
        frames_per_file: 50,
        storing,
        devices: vec![device()],
        ..Lab::default()
    }
}

#[test]
fn a_growing_file_is_stored_by_appending() {
    let wrap = |inner| -> Box<dyn Engine> { Box::new(AppendOnly { inner, end: 0, writing: false }) };
    for devices in [vec![device()], vec![device(), device()]] {
        // Faster than the devices, so that there is always a frame to be written behind the one in flight.
        let lab = Lab { devices, wrap, period: Nanos(300), slots: 1003, ..lab(Storing::Growing) };
        let run = lab.run(Nanos::MAX);
        let index = run.index(Trust::Durable);
        assert_eq!((index.missing(), index.due, run.ring.books().lost()), (vec![], Some(1003), 0));
        assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new());
        let stored: usize = index.heads.iter().map(|head| run.file(head, 0).len()).sum();
        assert_eq!(stored as u64, 1003 * index.heads[0].stride, "nothing is beyond the frames");
    }
}

/// A device that does so many writes and no more, whatever their size: each frame by itself is too much for it.
#[test]
fn small_frames_are_written_together_side_by_side_when_they_come_faster_than_writes() {
    let write = Cost::fixed(Nanos(20_000));
    let device = Device { write, parallel: 1, ..Device::default() };
    for storing in Storing::STORED {
        let frames_per_file = if storing == Storing::Scattered { 60 } else { 250 };
        let small = Lab {
            frame_size: 1024,
            frames: 1000,
            period: Nanos(2_000),
            // Room for what comes while files are made.
            slots: 200,
            frames_per_file,
            storing,
            keep: (storing == Storing::Ring).then_some(30),
            devices: vec![device.clone()],
            durability: Durability::Never,
            ..Lab::default()
        };
        let apart = small.run(Nanos::MAX);
        assert!(apart.ring.books().lost() > 500, "{storing:?}: {} are lost", apart.ring.books().lost());
        let together = Lab { together: 64 * 1024, ..small.clone() };
        let run = together.run(Nanos::MAX);
        assert_eq!(run.ring.books().lost(), 0, "{storing:?}");
        let index = run.index(Trust::Acknowledged);
        assert_eq!((index.missing(), index.ended), (vec![], 1), "{storing:?}");
        assert_eq!(run.wrong(&index, &together.pattern()), Vec::<u64>::new(), "{storing:?}");
        let frames = run.names(0).into_iter().filter(|name| !name.ends_with(".journal"));
        let bytes: usize = frames.map(|name| run.read(0, &name).len()).sum();
        assert_eq!(bytes, 1000 * 1024, "{storing:?}: there is nothing but frames");
    }
}

#[test]
fn a_small_frame_that_comes_alone_is_written_when_it_comes() {
    let lab = Lab {
        frame_size: 1024,
        frames: 50,
        period: Nanos(1_000_000),
        together: 1 << 20,
        devices: vec![device()],
        ..Lab::default()
    };
    let run = lab.run(Nanos::MAX);
    let longest = run.lanes[0].longest;
    assert!(longest < Nanos(100_000), "one waited {longest} for others to be written with");
}

#[test]
fn a_ring_has_the_latest_frames_in_a_file_that_does_not_grow() {
    for devices in [vec![device()], vec![device(), device()]] {
        let (lanes, keep) = (devices.len() as u64, 3);
        let lab = Lab { devices, keep: Some(keep), period: Nanos(300), slots: 1003, ..lab(Storing::Ring) };
        let run = lab.run(Nanos::MAX);
        let index = run.index(Trust::Durable);
        assert_eq!((index.due, index.ended as u64, run.ring.books().lost()), (Some(1003), lanes, 0));
        assert_eq!((index.frames.len() as u64 + index.removed.count(), index.missing()), (1003, vec![]));
        assert!(1003 - index.first() >= keep * lab.frames_per_file, "from {} on", index.first());
        assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new());
        for head in &index.heads {
            let size = run.file(head, 0).len() as u64;
            assert_eq!(size, (keep + 2) * lab.frames_per_file * head.stride);
        }
    }
}

#[test]
fn a_ring_that_has_not_come_round_is_as_long_as_what_is_in_it() {
    let lab = Lab { keep: Some(30), ..lab(Storing::Ring) };
    let run = lab.run(Nanos::MAX);
    let index = run.index(Trust::Durable);
    assert_eq!((index.frames.len(), index.first(), run.ring.books().lost()), (1003, 0, 0));
    assert_eq!(run.file(&index.heads[0], 0).len() as u64, 1003 * index.heads[0].stride);
}

#[test]
fn a_ring_for_which_there_is_no_room_is_not_begun() {
    let size = 32 * 50 * (PAGE + 512);
    for (capacity, stored) in [(size, 0), (size + 300_000, 1003)] {
        let devices = vec![Device { capacity, ..device() }];
        let lab = Lab { keep: Some(30), reserve: Some(4096), devices, ..lab(Storing::Ring) };
        let run = lab.run(Nanos::MAX);
        let index = run.index(Trust::Durable);
        let lane = &run.lanes[0];
        assert_eq!((index.frames.len(), lane.full, lane.fault), (stored, stored == 0, None));
    }
}

#[test]
fn a_ring_whose_journal_has_no_room_left_ends_in_order() {
    let ring = 5 * 50 * (PAGE + 512);
    let devices = vec![Device { capacity: ring + 110_000, ..device() }];
    let lab = Lab { keep: Some(3), reserve: Some(4096), devices, ..lab(Storing::Ring) };
    let run = lab.run(Nanos::MAX);
    let (index, lane) = (run.index(Trust::Durable), &run.lanes[0]);
    assert_eq!((lane.full, lane.fault, index.ended), (true, None, 1));
    assert!((200..1003).contains(&lane.stored), "{} frames", lane.stored);
    assert!(index.frames.len() >= 150, "{} frames", index.frames.len());
    assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new());
}

#[test]
fn a_ring_whose_space_can_not_be_reserved_is_not_begun() {
    use nilometer_storage::testing::wrap::{FaultEffect, Faulty, Rule, When};
    fn wrap(inner: Box<dyn Engine>) -> Box<dyn Engine> {
        let effect = FaultEffect::Error(Errno::ENOSPC);
        let rule = Rule { on: Some(OpKind::Allocate), when: When::Every(1), effect };
        Box::new(Faulty::new(inner, &[rule], nilometer_model::Seed(1)))
    }
    let run = Lab { keep: Some(3), wrap, ..lab(Storing::Ring) }.run(Nanos::MAX);
    assert_eq!((run.lanes[0].stored, run.lanes[0].fault), (0, Some(Errno::ENOSPC)));
}

#[test]
fn a_shared_file_has_each_frame_at_its_number_whoever_wrote_it() {
    for writers in [1, 2, 5] {
        // Faster than one writer can, so that all have something to do.
        let lab = Lab { writers, period: Nanos(300), slots: 1003, ..lab(Storing::Shared) };
        let run = lab.run(Nanos::MAX);
        let index = run.index(Trust::Durable);
        assert_eq!((index.missing(), index.ended, run.ring.books().lost()), (vec![], writers, 0));
        let (head, pattern) = (index.heads[0], lab.pattern());
        let bytes = run.file(&head, 0);
        let frames = bytes.chunks_exact(head.stride as usize);
        assert_eq!(frames.len(), 1003);
        for (number, frame) in (0..).zip(frames) {
            assert_eq!(pattern.verify(number, &frame[..head.frame_size as usize]), Ok(()), "frame {number}");
        }
        assert!(run.lanes.iter().all(|lane| lane.stored > 0), "every writer wrote some");
    }
}

#[test]
fn a_writer_of_a_shared_file_that_fails_leaves_its_frames_to_the_others() {
    /// The first engine that is made fails after some operations.
    fn wrap(inner: Box<dyn Engine>) -> Box<dyn Engine> {
        use nilometer_storage::testing::wrap::{FaultEffect, Faulty, Rule, When};
        let rule = Rule {
            on: Some(OpKind::SyncData),
            when: When::FromNth(4),
            effect: FaultEffect::Error(Errno::EIO),
        };
        Box::new(Faulty::new(inner, &[rule], nilometer_model::Seed(1)))
    }
    let lab = Lab { writers: 2, frames: 300, wrap, ..lab(Storing::Shared) };
    let run = lab.run(Nanos::MAX);
    assert!(run.lanes.iter().any(|lane| lane.fault == Some(Errno::EIO)), "{:?}", run.lanes);
    let stored: u64 = run.lanes.iter().map(|lane| lane.stored).sum();
    assert_eq!(stored + run.ring.books().lost(), run.due, "each frame is stored or counted as lost");
    let index = run.index(Trust::Acknowledged);
    assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new());
}

#[test]
fn one_file_ends_in_order_where_its_storage_is_full_up_to_the_reserve() {
    let (part, reserve) = (50 * (PAGE + 512), 100 * PAGE);
    for (storing, parts) in [(Storing::Growing, 4), (Storing::Growing, 0), (Storing::Shared, 4)] {
        // Half a part more, for the journal.
        let device = Device { capacity: reserve + parts * part + part / 2, ..device() };
        let lab = Lab { devices: vec![device], reserve: Some(reserve), ..lab(storing) };
        let run = lab.run(Nanos::MAX);
        let lane = &run.lanes[0];
        assert_eq!(
            (lane.full, lane.fault, lane.stored),
            (true, None, parts * 50),
            "{storing:?}, {parts} parts"
        );
        assert_eq!(lane.stored + run.ring.books().lost(), run.due);
        let index = run.index(Trust::Durable);
        assert_eq!((index.frames.len() as u64, index.ended), (parts * 50, 1), "{storing:?}, {parts} parts");
    }
}
