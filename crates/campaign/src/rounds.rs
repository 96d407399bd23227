//! The campaign: repeats are rounds; in each, all cells on all targets in an order drawn from the seed, so that drift
//! hits all alike. Every sample is in the record before the next phase begins.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nilometer_model::{
    Event, Invalid, Key, Measured, Nanos, Sample, Seed,
    plan::{Cell, Phase},
};
use nilometer_record::{Record, RecordError};
use nilometer_storage::{Clock, Target, process, target::TargetError};

use crate::{
    ingest::run_ingest,
    patience::within,
    phase::{Reached, Run, run_phase},
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
        let hang_after = self.resolved.plan.hang_after;
        let run = Run { clock, idle_cores: idle_cores(&clock), hang_after, reached: Reached::default() };
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
            let mut round: Vec<_> =
                all.filter(|turn| self.resolved.applies(turn.cell, turn.target)).collect();
            round.sort_by_key(|turn| seed.part(turn.cell as u64).part(turn.target as u64).0);
            turns.extend(round);
        }
        turns.extend(self.ingest_turns());
        turns
    }

    /// Recordings come last, in the plan's order: they are long, and each reads against what was measured before.
    fn ingest_turns(&self) -> Vec<Turn> {
        let cells = self.resolved.plan.cells.len();
        let mut turns = Vec::new();
        for (index, ingest) in self.resolved.plan.ingests.iter().enumerate() {
            for repeat in 0..ingest.repeats {
                turns.extend((0..self.targets.len()).map(|target| Turn {
                    target,
                    cell: cells + index,
                    repeat,
                }));
            }
        }
        turns
    }

    /// One cell on one target, all its phases. Why the target must be left out, if so.
    fn take(
        &mut self,
        run: &Run,
        turn: Turn,
        place: (usize, usize),
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Option<String>, CampaignError> {
        let cells = self.resolved.plan.cells.len();
        let seed = Seed(self.resolved.plan.seed).part(turn.cell as u64).part(u64::from(turn.repeat));
        let target = self.targets[turn.target].clone();
        let hung = match turn.cell.checked_sub(cells) {
            Some(ingest) => {
                let cell = &self.resolved.plan.ingests[ingest];
                let sample = run_ingest(run, &target, cell, seed, &self.stop);
                let hung = (sample.invalid == Some(Invalid::Hung)).then(|| format!("hung in ingest: {cell}"));
                self.keep(turn.key(Phase::Ingest), sample, place, progress)?;
                hung
            }
            None => self.take_phases(run, turn, seed, place, progress)?,
        };
        Ok(hung.or_else(|| self.clear(run, turn).err().map(|error| error.to_string())))
    }

    /// Removes what a cell left; each file may take its time.
    fn clear(&self, run: &Run, turn: Turn) -> Result<(), TargetError> {
        let cell = self.resolved.plan.cells.get(turn.cell);
        let files = cell.map_or(0, |cell| cell.footprint().entries);
        let limit = run.hang_after + Nanos(files.saturating_mul(UNLINK_AT_MOST.0));
        within(limit, &self.targets[turn.target], |target| target.clear())?
    }

    /// All phases of a cell. Why the target must be left out, if one hung.
    fn take_phases(
        &mut self,
        run: &Run,
        turn: Turn,
        seed: Seed,
        place: (usize, usize),
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Option<String>, CampaignError> {
        let cell = self.resolved.plan.cells[turn.cell].clone();
        if let Err(error) = self.stripe(run, turn, &cell)? {
            let refused = Sample::invalid(Invalid::Refused(error.to_string()));
            self.keep(turn.key(cell.phases()[0]), refused, place, progress)?;
            return Ok(None);
        }
        for phase in cell.phases() {
            let sample = run_phase(run, &self.targets[turn.target], &cell, phase, seed);
            let hung = sample.invalid == Some(Invalid::Hung);
            let failed = matches!(sample.invalid, Some(Invalid::Errors | Invalid::Refused(_)));
            if !phase.is_setup() || hung || failed {
                self.keep(turn.key(phase), sample, place, progress)?;
            }
            if hung {
                return Ok(Some(format!("hung in {}: {cell}", phase.name())));
            }
            if failed {
                break;
            }
        }
        Ok(None)
    }

    /// Spreads the files of a cell as it asks. A target that gives another count than asked is noted.
    fn stripe(
        &mut self,
        run: &Run,
        turn: Turn,
        cell: &Cell,
    ) -> Result<Result<(), TargetError>, CampaignError> {
        let (target, asked) = (&self.targets[turn.target], cell.stripe_count);
        let given = match within(run.hang_after, target, move |target| target.stripe(asked)) {
            Ok(Ok(given)) => given,
            Ok(Err(error)) | Err(error) => return Ok(Err(error)),
        };
        if let (Some(asked), Some(given)) = (asked, given)
            && asked != given
        {
            let path = target.description().path.display();
            let what = format!("{path}: stripe count {asked} was asked, {given} given: {cell}");
            self.record.note(&Event { at: process::calendar(), what })?;
        }
        Ok(Ok(()))
    }

    fn keep(
        &mut self,
        key: Key,
        sample: Sample,
        (done, of): (usize, usize),
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), CampaignError> {
        self.record.add(key, &sample)?;
        progress(Progress::Measured { done, of, measured: &Measured { key, sample } });
        Ok(())
    }
}

impl Turn {
    fn key(self, phase: Phase) -> Key {
        Key { target: self.target, cell: self.cell, repeat: self.repeat, phase }
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
