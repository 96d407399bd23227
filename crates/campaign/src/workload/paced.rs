//! A workload that is held to a rate: open loop, like arrivals in queueing theory. The due time of an operation
//! follows from those before it, and from nothing that the storage does. If the operations before it took too
//! long, it is issued late and counts as late.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nilometer_model::{Bytes, Nanos};
use nilometer_plan::OfferedRate;
use nilometer_storage::{Completion, Counted, OpKind, Operation, Step, Wait, Workload};

use super::WorkerPlace;

/// The rate and the place of a paced worker.
#[derive(Debug, Clone, Copy)]
pub struct WorkerPace {
    /// The rate of all workers together.
    pub offered: OfferedRate,
    /// The place of this worker among them.
    pub place: WorkerPlace,
    /// The operations that count.
    pub counted: Counted,
    /// The largest number of bytes that an operation moves.
    pub block: Bytes,
    /// The time at which the phase began.
    pub start: Nanos,
    /// From this time on nothing is held back: the remaining files are closed.
    pub stop_at: Nanos,
}

/// Wraps the workload of a worker and holds it to a rate.
pub struct Paced {
    inner: Box<dyn Workload>,
    pace: WorkerPace,
    /// The due time of its first operation: workers take turns.
    first: Nanos,
    /// The number of bytes, or operations, issued so far.
    issued: u64,
    /// Set when no more may be issued.
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

/// A waiting worker checks this often if it may go on.
const LOOK_UP: Nanos = Nanos::from_millis(100);

impl Paced {
    /// Holds `inner` to its pace until `cease` is set.
    pub fn new(inner: Box<dyn Workload>, pace: WorkerPace, cease: Arc<AtomicBool>) -> Self {
        let turn = pace.offered.interval(pace.block).0 * u64::from(pace.place.number());
        Paced { inner, pace, first: pace.start + Nanos(turn), issued: 0, cease }
    }

    /// The due time of the next operation.
    fn due(&self) -> Nanos {
        let share = f64::from(self.pace.place.total().max(1));
        let (unit, all) = match self.pace.offered {
            OfferedRate::None => return Nanos(0),
            OfferedRate::Rate(rate) => (rate.0, self.issued as f64),
            OfferedRate::RateIops(count) => (f64::from(count), self.issued as f64),
        };
        self.first + Nanos::from_seconds(all * share / unit)
    }

    /// The amount that an operation adds to `issued`.
    fn units(&self, operation: &Operation) -> u64 {
        let kind = operation.kind;
        match (self.pace.offered, self.pace.counted) {
            // In a copy only the writes count: they move the same bytes as the reads.
            (OfferedRate::Rate(_), Counted::Copied | Counted::CopiedFiles) if kind == OpKind::Read => 0,
            (OfferedRate::Rate(_), _) if kind.is_data() => u64::from(operation.length),
            (OfferedRate::None | OfferedRate::Rate(_), _) => 0,
            (_, Counted::All) => 1,
            (_, Counted::Copied) => u64::from(kind != OpKind::Read),
            (_, Counted::Kind(counted)) => u64::from(kind == counted),
            (_, Counted::Files) => u64::from(matches!(kind, OpKind::Open(_))),
            (_, Counted::CopiedFiles) => u64::from(matches!(kind, OpKind::Open(open) if open.writes())),
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
                // An operation that does not count is issued without delay.
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

    /// The due and the issue time of each write on a device whose operations take the time `takes`, with the
    /// tally.
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
        // Write 64 KiB each 10 ms; each write takes 1 ms.
        let rate = OfferedRate::Rate(ByteRate(SIZE as f64 * 100.0));
        let (writes, _) = written(rate, Nanos::from_millis(1), None);
        assert_eq!(writes.len() as u64, BLOCKS);
        for (number, [due, issued]) in (0..).zip(&writes).skip(1) {
            assert_eq!((due, issued), (&Nanos::from_millis(10 * number), due));
        }
    }

    #[test]
    fn what_it_can_not_do_is_late_by_all_that_came_before() {
        // Write 64 KiB each 1 ms; each write takes 3 ms.
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
