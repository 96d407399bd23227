//! A workload that is held to a rate: open loop, as arrivals in queueing are. When an operation is due follows from those before
//! it and from nothing that the storage does; one that is issued late, because those before it took too long, is late by that.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nilometer_model::{Bytes, Nanos};
use nilometer_plan::OfferedRate;
use nilometer_storage::{Completion, Counted, OpKind, Operation, Step, Wait, Workload};

use super::WorkerPlace;

/// What a worker is held to.
#[derive(Debug, Clone, Copy)]
pub struct WorkerPace {
    /// Of all workers together.
    pub offered: OfferedRate,
    /// Which of them it is.
    pub place: WorkerPlace,
    /// What counts as an operation.
    pub counted: Counted,
    /// The most bytes that an operation moves.
    pub block: Bytes,
    /// When the phase began.
    pub start: Nanos,
    /// From when on nothing is held back any more: what is left is to be closed.
    pub stop_at: Nanos,
}

/// Around the workload of a worker.
pub struct Paced {
    inner: Box<dyn Workload>,
    pace: WorkerPace,
    /// When its first operation is due: workers take turns.
    first: Nanos,
    /// Bytes, or operations, that were issued.
    issued: u64,
    /// No more is to be issued.
    cease: Arc<AtomicBool>,
}

impl std::fmt::Debug for Paced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paced")
            .field("pace", &self.pace)
            .field("issued", &self.issued)
            .finish_non_exhaustive()
    }
}

/// Who waits looks up so often whether it is to go on.
const LOOK_UP: Nanos = Nanos::from_millis(100);

impl Paced {
    /// Holds `inner` to its pace until `cease` is set.
    pub fn new(inner: Box<dyn Workload>, pace: WorkerPace, cease: Arc<AtomicBool>) -> Self {
        let turn = pace.offered.interval(pace.block).0 * u64::from(pace.place.number());
        Paced { inner, pace, first: pace.start + Nanos(turn), issued: 0, cease }
    }

    /// When the next operation is due.
    fn due(&self) -> Nanos {
        let share = f64::from(self.pace.place.total().max(1));
        let (unit, all) = match self.pace.offered {
            OfferedRate::None => return Nanos(0),
            OfferedRate::Rate(rate) => (rate.0, self.issued as f64),
            OfferedRate::RateIops(count) => (f64::from(count), self.issued as f64),
        };
        self.first + Nanos::from_seconds(all * share / unit)
    }

    /// What an operation adds to what was issued.
    fn units(&self, operation: &Operation) -> u64 {
        let kind = operation.kind;
        match (self.pace.offered, self.pace.counted) {
            // Of a copy, what it reads is what it writes.
            (OfferedRate::Rate(_), Counted::Copied) if kind == OpKind::Read => 0,
            (OfferedRate::Rate(_), _) if kind.is_data() => u64::from(operation.length),
            (OfferedRate::None | OfferedRate::Rate(_), _) => 0,
            (_, Counted::All) => 1,
            (_, Counted::Copied) => u64::from(kind != OpKind::Read),
            (_, Counted::Kind(counted)) => u64::from(kind == counted),
            (_, Counted::Files) => u64::from(matches!(kind, OpKind::Open(_))),
        }
    }
}

impl Workload for Paced {
    fn next(&mut self, now: Nanos) -> Step {
        if self.cease.load(Ordering::Relaxed) {
            return Step::Done;
        }
        let due = self.due();
        if now < due.min(self.pace.stop_at) {
            return Step::Wait(Wait::Until(due.min(self.pace.stop_at).min(now + LOOK_UP)));
        }
        match self.inner.next(now) {
            Step::Issue(operation, _) => {
                let units = self.units(&operation);
                self.issued += units;
                // What does not count goes along with what does.
                let due = if units > 0 && due < self.pace.stop_at { due } else { now };
                Step::Issue(operation, due)
            }
            step => step,
        }
    }

    fn completed(&mut self, completion: Completion) {
        self.inner.completed(completion);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use nilometer_model::{ByteRate, Phase, Seed};
    use nilometer_plan::parse;
    use nilometer_storage::{
        Arena, Drive, Tally,
        clock::VirtualClock,
        interleave,
        testing::{Cost, Device, Simulated},
    };

    use super::*;
    use crate::workload::{self, WorkerPart};

    const SIZE: u64 = 64 << 10;
    const BLOCKS: u64 = 100;

    /// Writes on a device, each operation of which takes this long: when each write was due and issued, and what was recorded.
    fn written(offered: OfferedRate, takes: Nanos, cease_at: Option<usize>) -> (Vec<[Nanos; 2]>, Tally) {
        let text = format!(
            "title = \"t\"\n[[stage]]\nname = \"s\"\n[stage.workload.stream]\nfile_size = \"{} KiB\"\nblock_size = \"64 KiB\"\naccess = \"buffered\"\nsync = \"none\"\n",
            64 * BLOCKS
        );
        let plan = parse(&text, "t.toml", 1.0).expect("a valid plan");
        let run = plan.cells[0].as_workload().expect("a workload").clone();
        let clock = VirtualClock::default();
        let device = Device { write: Cost::fixed(takes), ..Device::default() };
        let mut engine = Simulated::new(device, clock.clone()).attach(1, 8);
        let (_arena, buffers) = Arena::shared_out(1, SIZE as usize);
        let place = WorkerPlace::alone(0, 1);
        let part =
            WorkerPart { reached: Arc::new(AtomicU64::new(0)), ..WorkerPart::new(place, Seed(1), buffers) };
        let limits = WorkerPace {
            offered,
            place,
            counted: Counted::All,
            block: Bytes(SIZE),
            start: Nanos(0),
            stop_at: Nanos::MAX,
        };
        let cease = Arc::new(AtomicBool::new(false));
        let mut paced = Paced::new(workload::build(&run.workload, Phase::Write, part), limits, cease.clone());
        let mut tally = Tally::new(Nanos(0)).from_due();
        let mut writes = Vec::new();
        let mut drives = [Drive::new(&mut paced, &mut engine)];
        interleave(&clock, &mut drives, Nanos::MAX, &mut |_, completion| {
            tally.observe(completion);
            if completion.operation.kind == OpKind::Write {
                writes.push([completion.due, completion.issued]);
            }
            cease.store(cease_at.is_some_and(|at| writes.len() >= at), Ordering::Relaxed);
        });
        (writes, tally)
    }

    #[test]
    fn what_the_storage_can_do_is_issued_when_it_is_due() {
        // 64 KiB each 10 ms, which takes 1 ms.
        let rate = OfferedRate::Rate(ByteRate(SIZE as f64 * 100.0));
        let (writes, _) = written(rate, Nanos::from_millis(1), None);
        assert_eq!(writes.len() as u64, BLOCKS);
        for (number, [due, issued]) in (0..).zip(&writes).skip(1) {
            assert_eq!((due, issued), (&Nanos::from_millis(10 * number), due));
        }
    }

    #[test]
    fn what_it_can_not_do_is_late_by_all_that_came_before() {
        // Each 1 ms, which takes 3 ms.
        let rate = OfferedRate::Rate(ByteRate(SIZE as f64 * 1000.0));
        let (writes, tally) = written(rate, Nanos::from_millis(3), None);
        let [due, issued] = writes[99];
        assert_eq!(due, Nanos::from_millis(99), "when it is due follows from nothing that the storage does");
        assert!(issued.since(due) > Nanos::from_millis(190), "{issued}");
        let mut sample = nilometer_model::Sample::new(Nanos(0));
        tally.add_to(&mut sample);
        assert!(Nanos(sample.latency.max()) > Nanos::from_millis(190), "latency counts from when it was due");
    }

    #[test]
    fn operations_are_counted_and_it_ends_when_told() {
        let (all, _) = written(OfferedRate::RateIops(50), Nanos(1), None);
        let (first, last) = (all[0][0], all[all.len() - 1][0]);
        assert_eq!(last.since(first), Nanos::from_millis(20 * (BLOCKS - 1)));
        let (some, _) = written(OfferedRate::RateIops(50), Nanos(1), Some(7));
        assert_eq!(some.len(), 7);
    }
}
