//! What happens when there is no room, in the ring or on the storage, against what theory says.

use nilometer_acquisition::sink::Durability;
use nilometer_model::{Nanos, Seed, Storing};
use nilometer_recording::reader::Trust;
use nilometer_ring::{RingCounters, WhenFull};
use nilometer_storage::{
    Target,
    testing::{Cost, Device},
};

use crate::lab::{Lab, PAGE, Run};

/// One stall of lanes that otherwise take no time.
#[derive(Debug, Clone, Copy)]
struct Stall {
    period: u64,
    /// The first frame that is due in it.
    first: u64,
    /// Frames that are due in it.
    frames: u64,
    /// Slots of the ring; fewer than are needed.
    slots: u64,
    lanes: u64,
    depth: u64,
}

impl Stall {
    fn random(seed: u64) -> Self {
        let mut stream = Seed(seed).named("stall").stream();
        let (lanes, depth) = (1 + stream.below(3), 1 + stream.below(3));
        let slots = lanes * depth + 1 + stream.below(200);
        Stall {
            period: 2 * (100 + stream.below(5000)),
            first: 20 + stream.below(300),
            frames: slots + 1 + stream.below(300),
            slots,
            lanes,
            depth,
        }
    }

    /// Frames that the lanes hold while they stand still: one for each operation in flight.
    fn held(&self) -> u64 {
        self.lanes * self.depth
    }

    /// Frames that find no room.
    fn beyond(&self) -> u64 {
        self.frames - self.slots
    }

    fn total(&self) -> u64 {
        self.first + self.frames + 50
    }

    /// Begins and ends half a period before a frame is due, so that nothing happens at the same time.
    fn run(&self, when_full: WhenFull) -> Run {
        let at = |frame: u64| Nanos(frame * self.period - self.period / 2);
        let stalls = vec![(at(self.first), at(self.first + self.frames))];
        let device = Device { stalls, ..Device::default() };
        let lab = Lab {
            frame_size: 512,
            frames: self.total(),
            period: Nanos(self.period),
            slots: self.slots as usize,
            depth: self.depth as usize,
            devices: vec![device; self.lanes as usize],
            when_full,
            ..Lab::default()
        };
        lab.run(Nanos::MAX)
    }
}

/// The books, and which frames are missing.
fn missing(run: &Run) -> (RingCounters, Vec<(u64, u64)>) {
    (run.ring.books(), run.index(Trust::Durable).missing())
}

fn seeds() -> u64 {
    if std::env::var_os("NILOMETER_LONG").is_some() { 20_000 } else { 500 }
}

#[test]
fn drop_newest_loses_exactly_the_end_of_a_stall() {
    for seed in 0..seeds() {
        let stall = Stall::random(seed);
        let (books, missing) = missing(&stall.run(WhenFull::DropNewest));
        let counted = (books.refused, books.displaced, books.stranded);
        assert_eq!(counted, (stall.beyond(), 0, 0), "seed {seed}: {stall:?}");
        assert_eq!(missing, [(stall.first + stall.slots, stall.beyond())], "seed {seed}: {stall:?}");
    }
}

#[test]
fn drop_oldest_loses_exactly_what_waits_longest() {
    for seed in 0..seeds() {
        let stall = Stall::random(seed);
        let (books, missing) = missing(&stall.run(WhenFull::DropOldest));
        let counted = (books.refused, books.displaced, books.stranded);
        assert_eq!(counted, (0, stall.beyond(), 0), "seed {seed}: {stall:?}");
        assert_eq!(missing, [(stall.first + stall.held(), stall.beyond())], "seed {seed}: {stall:?}");
    }
}

#[test]
fn stop_ends_with_a_recording_that_is_whole_up_to_there() {
    for seed in 0..seeds() {
        let stall = Stall::random(seed);
        let run = stall.run(WhenFull::Stop);
        let (books, missing) = missing(&run);
        let last = stall.first + stall.slots;
        assert!(run.stopped, "seed {seed}: {stall:?}");
        assert_eq!((run.due, books.lost(), run.mark), (last + 1, 1, last + 1), "seed {seed}: {stall:?}");
        assert_eq!(missing, [(last, 1)], "seed {seed}: {stall:?}");
        let index = run.index(Trust::Durable);
        assert_eq!((index.due, index.ended), (Some(last + 1), stall.lanes as usize), "seed {seed}");
    }
}

#[test]
fn with_slots_enough_no_policy_does_anything() {
    for (seed, when_full) in (0..seeds() / 5).zip(WhenFull::ALL.into_iter().cycle()) {
        let stall = Stall::random(seed);
        let ample = Stall { slots: stall.frames + 1, ..stall };
        let run = ample.run(when_full);
        assert_eq!((missing(&run).1, run.stopped, run.due), (vec![], false, stall.total()), "seed {seed}");
    }
}

fn paced(period: u64, picoseconds: u64) -> Device {
    let write = Cost { base: Nanos(period), picoseconds_per_byte: picoseconds };
    Device { write, ..Device::default() }
}

#[test]
fn a_lane_gets_frames_as_it_is_fast_at_this_moment() {
    // A frame and its record take 2 us in one lane and 6 us in the other: together 4 frames in 6 us.
    let (quick, slow) = (paced(1000, 0), paced(3000, 0));
    let lab = Lab { frames: 40_000, period: Nanos(1500), slots: 64, ..Lab::default() };
    let run = Lab { devices: vec![quick.clone(), slow.clone()], ..lab.clone() }.run(Nanos::MAX);
    let share = |run: &Run| run.lanes[0].stored as f64 / run.lanes[1].stored as f64;
    assert!((2.9..3.1).contains(&share(&run)), "the quick lane got {:.3} times as many", share(&run));
    // It stands still for half of the time.
    let half = Device { stalls: vec![(Nanos(15_000_000), Nanos(45_000_000))], ..quick };
    let run = Lab { devices: vec![half, slow], when_full: WhenFull::DropOldest, ..lab }.run(Nanos::MAX);
    assert!((1.4..1.6).contains(&share(&run)), "the stalled lane got {:.3} times as many", share(&run));
}

const FILE: u64 = 10;

#[test]
fn a_lane_whose_storage_is_full_up_to_the_reserve_ends_in_order() {
    let (file, reserve) = (FILE * PAGE, 123 * PAGE);
    for (files, depth) in [(0, 1), (1, 1), (2, 3), (7, 1), (7, 4)] {
        // Half a file more, for the journal.
        let small = Device { capacity: reserve + files * file + file / 2, ..paced(10, 0) };
        let lab = Lab {
            frames: 1000,
            depth,
            frames_per_file: FILE,
            devices: vec![small, paced(10, 0)],
            reserve: Some(reserve),
            ..Lab::default()
        };
        let run = lab.run(Nanos::MAX);
        let [small, large] = [&run.lanes[0], &run.lanes[1]];
        let case = format!("{files} files at depth {depth}");
        assert_eq!((small.full, small.fault, small.stored), (true, None, files * FILE), "{case}");
        assert_eq!((large.full, large.fault, large.stored), (false, None, 1000 - files * FILE), "{case}");
        assert_eq!((run.ring.books().lost(), run.mark), (0, 1000), "{case}");
        let index = run.index(Trust::Durable);
        assert_eq!((index.missing(), index.ended, index.due), (vec![], 2, Some(1000)), "{case}");
        assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new(), "{case}");
    }
}

#[test]
fn lanes_on_one_storage_leave_its_reserve_alone_together() {
    let (file, reserve) = (FILE * PAGE, 50 * PAGE);
    for (files, writers) in (2..9).flat_map(|files| [1, 2, 3].map(|writers| (files, writers))) {
        for (storing, cost) in [Storing::Files, Storing::Growing].into_iter().zip([10, 0]) {
            let device = Device { capacity: reserve + files * file + file / 2, ..paced(10, cost) };
            let lab = Lab {
                frames: 1000,
                frames_per_file: FILE,
                devices: vec![device],
                writers,
                storing,
                reserve: Some(reserve),
                ..Lab::default()
            };
            let run = lab.run(Nanos::MAX);
            let case = format!("{files} files by {writers} writers, {storing:?}");
            let free = run.targets[0].space().expect("a simulated one knows").free.0;
            // A journal has a page for each record at the most.
            let journals = run.lanes.iter().map(|lane| 64 * (lane.stored + 40)).sum::<u64>();
            assert!(free + journals >= reserve, "{case}: {free} B of {reserve} B are left");
            assert!(
                run.lanes.iter().all(|lane| lane.full && lane.fault.is_none()),
                "{case}: {:?}",
                run.lanes
            );
            let stored: u64 = run.lanes.iter().map(|lane| lane.stored).sum();
            assert_eq!(stored + run.ring.books().lost(), run.due, "{case}");
        }
    }
}

#[test]
fn with_every_storage_full_the_rest_is_lost_and_counted() {
    let small = Device { capacity: 10 * FILE * PAGE, ..paced(10, 0) };
    let lab = Lab {
        frames: 1000,
        frames_per_file: FILE,
        devices: vec![small.clone(), small],
        reserve: Some(0),
        ..Lab::default()
    };
    let run = lab.run(Nanos::MAX);
    let stored: u64 = run.lanes.iter().map(|lane| lane.stored).sum();
    // A tenth file does not fit beside the journal.
    assert_eq!((stored, run.lanes.iter().all(|lane| lane.full)), (2 * 9 * FILE, true));
    assert_eq!(stored + run.ring.books().lost(), run.due, "each frame is stored or counted as lost");
    let index = run.index(Trust::Durable);
    assert_eq!((index.frames.len() as u64, index.ended, index.due), (stored, 2, None));
}

#[test]
fn a_file_a_frame_is_stored_at_any_depth_without_syncing_each() {
    for depth in [1, 2, 5] {
        let lab = Lab {
            frames: 500,
            depth,
            frames_per_file: 1,
            durability: Durability::Never,
            checksums: true,
            devices: vec![paced(100, 0), paced(300, 0)],
            ..Lab::default()
        };
        let run = lab.run(Nanos::MAX);
        let index = run.index(Trust::Acknowledged);
        assert_eq!((index.missing(), index.due, run.ring.books().lost()), (vec![], Some(500), 0));
        assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new());
        let noted: Vec<_> = (0..index.heads.len()).flat_map(|lane| run.checksums(lane)).flatten().collect();
        assert_eq!(noted.len(), 500);
        assert!(run.index(Trust::Durable).frames.is_empty(), "nothing was called durable");
    }
}
