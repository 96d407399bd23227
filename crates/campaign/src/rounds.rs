//! The campaign: repeats are rounds; in each, all cells on all targets in an order drawn from the seed, so that drift
//! hits all alike. Every sample is in the record before the next phase begins.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nilometer_model::{Invalid, Key, Measured, Nanos, Seed, plan::Cell};
use nilometer_record::{Record, RecordError};
use nilometer_storage::{Clock, Target, process, target::TargetError};

use crate::{
    patience::within,
    phase::{Run, run_phase},
    resolve::Resolved,
};

/// A resolved plan with its targets and its record.
#[derive(Debug)]
pub struct Campaign {
    /// What is measured.
    pub resolved: Resolved,
    /// In the order of the plan's targets.
    pub targets: Vec<Arc<dyn Target>>,
    /// Where samples go.
    pub record: Record,
    /// Set from elsewhere to end the campaign after the current phase.
    pub stop: Arc<AtomicBool>,
}

/// What a campaign tells while it runs.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A phase was measured.
    Measured {
        /// How many cells and repeats are done.
        done: usize,
        /// Of how many.
        of: usize,
        /// What was measured.
        measured: &'a Measured,
    },
    /// A target is no longer used.
    LeftOut {
        /// Which.
        target: usize,
        /// Why.
        why: &'a str,
    },
}

/// A campaign that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

#[derive(Debug, Clone, Copy)]
struct Turn {
    target: usize,
    cell: usize,
    repeat: u32,
}

impl Campaign {
    /// Runs all rounds. Faults of a target are in its samples, and the others go on; only a fault of the record ends it.
    pub fn run(mut self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Record, CampaignError> {
        let clock = Clock::start();
        let run = Run { clock, idle_cores: idle_cores(&clock), hang_after: self.resolved.plan.hang_after };
        let turns = self.turns();
        let mut left_out = vec![false; self.targets.len()];
        for (done, &turn) in turns.iter().enumerate() {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            if left_out[turn.target] {
                continue;
            }
            let place = (done + 1, turns.len());
            if let Some(why) = self.take(&run, turn, place, progress)? {
                left_out[turn.target] = true;
                self.record.leave_out(turn.target, &why)?;
                progress(Progress::LeftOut { target: turn.target, why: &why });
            }
        }
        Ok(self.record)
    }

    /// Every repeat of every cell on every target, in the order in which they run.
    fn turns(&self) -> Vec<Turn> {
        let (cells, targets) = (self.resolved.plan.cells.len(), self.targets.len());
        let mut turns = Vec::new();
        for repeat in 0..self.resolved.plan.repeats {
            let seed = Seed(self.resolved.plan.seed).named("order").part(u64::from(repeat));
            let all =
                (0..cells).flat_map(|cell| (0..targets).map(move |target| Turn { target, cell, repeat }));
            let mut round: Vec<_> = all.collect();
            round.sort_by_key(|turn| seed.part(turn.cell as u64).part(turn.target as u64).0);
            turns.extend(round);
        }
        turns
    }

    /// One cell on one target, all its phases. Why the target must be left out, if so.
    fn take(
        &mut self,
        run: &Run,
        turn: Turn,
        (done, of): (usize, usize),
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Option<String>, CampaignError> {
        let Turn { target, cell: index, repeat } = turn;
        let cell = self.resolved.plan.cells[index].clone();
        let seed = Seed(self.resolved.plan.seed).part(index as u64).part(u64::from(repeat));
        for &phase in cell.workload.phases() {
            let sample = run_phase(run, &self.targets[target], &cell, phase, seed);
            let (invalid, setup) = (sample.invalid.clone(), cell.workload.is_setup(phase));
            if !setup || invalid.is_some() {
                let measured = Measured { key: Key { target, cell: index, repeat, phase }, sample };
                self.record.add(measured.key, &measured.sample)?;
                progress(Progress::Measured { done, of, measured: &measured });
            }
            match invalid {
                Some(Invalid::Hung) => return Ok(Some(format!("hung in {}: {cell}", phase.name()))),
                Some(Invalid::Errors | Invalid::Refused(_)) => break,
                _ => {}
            }
        }
        Ok(self.clear(run, target, &cell).err().map(|error| error.to_string()))
    }

    /// Removes what a cell left; each file may take its time.
    fn clear(&self, run: &Run, target: usize, cell: &Cell) -> Result<(), TargetError> {
        let files = cell.workload.footprint().1.saturating_mul(u64::from(cell.workers));
        let limit = run.hang_after + Nanos(files.saturating_mul(UNLINK_AT_MOST.0));
        within(limit, &self.targets[target], |target| target.clear())?
    }
}

/// How long a storage system that still works may take to remove a file.
const UNLINK_AT_MOST: Nanos = Nanos::from_millis(10);

/// What the machine spends when this program does nothing, as cores: half a second of it.
fn idle_cores(clock: &Clock) -> f64 {
    let (begin, before) = (clock.now(), process::machine_busy());
    std::thread::sleep(Nanos::from_millis(500).duration());
    let spent = before.zip(process::machine_busy()).map_or(Nanos(0), |(was, is)| is.since(was));
    spent.seconds() / clock.now().since(begin).seconds()
}
