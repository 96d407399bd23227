//! The recordings of a campaign: alone, together with others, or as the trials of a search.

use nilometer_cluster::ClusterDecision;
use nilometer_model::{Invalid, Phase, Sample, Seed};
use nilometer_plan::{Condition, RecordingRun, search::SearchBound};
use nilometer_storage::{target::TargetError, within};

use super::{Campaign, CampaignError, Progress, State, now};
use crate::{
    background::Loads,
    condition,
    ingest::{Job, Pass, RecordedFiles, RecordingRanks, run_ingest},
    turns::{self, ScheduledRepeat},
};

impl Campaign {
    pub(super) fn take_recording(
        &mut self,
        state: &mut State<'_>,
        turn: &ScheduledRepeat,
    ) -> Result<(), CampaignError> {
        let members = turns::company(&self.resolved.plan, turn.cell);
        let turns: Vec<ScheduledRepeat> =
            members.iter().map(|(cell, _)| ScheduledRepeat { cell: *cell, ..turn.clone() }).collect();
        let cells: Vec<_> =
            members.iter().zip(&turns).map(|((_, run), turn)| ((*run).clone(), self.seed(turn))).collect();
        let settings = cells[0].0.settings.clone();
        for &number in &turn.targets {
            let mut record = |campaign: &mut Campaign, state: &mut State<'_>| {
                campaign.record_on(state, number, &turns, &cells)
            };
            if !self.record_with_settings(state, turn, number, &settings, &mut record)? {
                return Ok(());
            }
        }
        self.clear_archive(state)
    }

    /// Makes all recordings that run at the same time on a target. Returns true if the campaign goes on.
    fn record_on(
        &mut self,
        state: &mut State<'_>,
        number: usize,
        turns: &[ScheduledRepeat],
        cells: &[(RecordingRun, Seed)],
    ) -> Result<bool, CampaignError> {
        let Some(target) = self.targets[number].clone() else { return Ok(true) };
        let turn = &turns[0];
        let archive = self.archive.clone();
        let pass = self.pass(cells, number);
        let cluster = self.cluster.clone();
        let ranks = self.ranks.clone();
        let attempt = state.next_attempt(cluster.as_ref());
        let together = RecordingRanks { cluster: cluster.as_ref(), ranks: &ranks, attempt };
        let archive = archive.as_ref();
        let job = Job { number, target: &target, archive, cells, pass, together };
        let swept = cells[0].0.swept;
        if let Err(error) = self.lay_out(state, number, &|on| swept.layout_on(on), &cells[0].0)? {
            self.keep_unstriped(state, turns, number, &error)?;
            return Ok(true);
        }
        let mut going = vec![number];
        let mut loads = self.prepare_loads(state, turn, &mut going)?;
        if going.is_empty() {
            self.clear_loads(state, turn, loads);
            return Ok(true);
        }
        let recorded = match cells[0].0.condition.clone() {
            Some(condition) => self.record_in(state, turn, &job, &condition, &mut loads)?,
            None => state.record(turn, &job, &mut loads),
        };
        self.clear_loads(state, turn, loads);
        let Some(samples) = recorded else { return Ok(false) };
        let hung = samples.iter().any(|sample| sample.invalid == Some(Invalid::Hung));
        let stored: Vec<_> = samples.iter().map(|sample| (!hung).then(|| stored_frames(sample))).collect();
        for ((turn, sample), (cell, _)) in turns.iter().zip(samples).zip(cells) {
            let written = cell.read.map(|_| Sample { ingest: None, ..sample.clone() });
            self.keep(state, turn.key(number, Phase::Ingest), sample)?;
            if let Some(written) = written {
                self.keep(state, turn.key(number, Phase::Write), written)?;
            }
        }
        self.read_recordings(state, turns, &job, &stored)?;
        if hung {
            self.leave_out(state, number, &format!("hung in ingest: {}", cells[0].0))?;
        }
        Ok(true)
    }

    /// Reads the recordings of a job afterwards, if their cells ask for it. `stored` has the number of frames of
    /// each recording, or `None` if one hung.
    fn read_recordings(
        &mut self,
        state: &mut State<'_>,
        turns: &[ScheduledRepeat],
        job: &Job<'_>,
        stored: &[Option<u64>],
    ) -> Result<(), CampaignError> {
        for (index, (turn, stored)) in turns.iter().zip(stored).enumerate() {
            let Some(recorded) = job.recorded_files(index) else { continue };
            if let Some(sample) = state.read_back(&recorded, *stored) {
                self.keep(state, turn.key(job.number, Phase::Read), sample)?;
            }
        }
        Ok(())
    }

    /// Keeps the reason why no recording of a turn could begin, as its only result.
    fn keep_unstriped(
        &mut self,
        state: &mut State<'_>,
        turns: &[ScheduledRepeat],
        number: usize,
        error: &TargetError,
    ) -> Result<(), CampaignError> {
        for turn in turns {
            let refused = Sample::invalid(Invalid::Refused(error.to_string()));
            self.keep_broken(state, turn, number, Phase::Ingest, refused)?;
        }
        Ok(())
    }

    /// Returns when a pass at full speed may end. Recorders in several processes run to the end together: if
    /// one left early the others would take its share.
    fn pass(&self, cells: &[(RecordingRun, Seed)], target: usize) -> Pass {
        if cells.iter().any(|(cell, _)| self.ranks.nodes.recorded_by(cell).len() > 1) {
            return Pass::Whole;
        }
        self.trials.pass(&cells[0].0, target)
    }

    /// Makes a recording while the target is in a condition, and leaves the condition in any case.
    fn record_in(
        &mut self,
        state: &mut State<'_>,
        turn: &ScheduledRepeat,
        job: &Job<'_>,
        condition: &Condition,
        loads: &mut Loads,
    ) -> Result<Option<Vec<Sample>>, CampaignError> {
        let at = job.target.description().address.clone();
        self.note(state, &condition::entered(condition, &at))?;
        let entered = condition::enter(condition, &at, || state.run.is_over());
        let samples = match entered {
            Ok(()) => state.record(turn, job, loads),
            Err(why) => {
                let refused =
                    Sample::invalid(Invalid::Refused(format!("condition `{}`: {why}", condition.name)));
                (!state.run.is_over()).then(|| job.cells.iter().map(|_| refused.clone()).collect())
            }
        };
        let left = condition::left(condition, &at);
        match condition::leave(condition, &at) {
            Ok(()) => self.note(state, &left)?,
            Err(why) => {
                let why = format!("{left} not: {why}");
                self.note(state, &why)?;
                // The target is no longer in its normal state, so a measurement would not be of it.
                self.leave_out(state, job.number, &why)?;
            }
        }
        Ok(samples)
    }

    /// Makes all trials of a search that are still missing, on each target.
    pub(super) fn take_search(
        &mut self,
        state: &mut State<'_>,
        turn: &ScheduledRepeat,
    ) -> Result<(), CampaignError> {
        let Some(cell) = turn.search(&self.resolved.plan).cloned() else { return Ok(()) };
        for &number in &turn.targets {
            let bound = SearchBound::of(&cell);
            (state.tell)(Progress::Searches { target: number, cell: turn.cell, bound });
            while let Some((made, next)) = self.trials.next(&self.done, &cell, turn.cell, number) {
                let trial = ScheduledRepeat { repeat: turn.repeat + made, ..turn.clone() };
                if !self.take_trial(state, &trial, number, next)? {
                    return Ok(());
                }
            }
            if let Some(found) = self.trials.found(&cell, turn.cell, number) {
                (state.tell)(Progress::Found { target: number, cell: turn.cell, found: &found });
            }
        }
        Ok(())
    }

    /// Makes a trial of a search. Returns true if another one can follow.
    fn take_trial(
        &mut self,
        state: &mut State<'_>,
        turn: &ScheduledRepeat,
        number: usize,
        cell: RecordingRun,
    ) -> Result<bool, CampaignError> {
        let Some(target) = self.targets[number].clone() else { return Ok(false) };
        let cells = [(cell, self.seed(turn))];
        let swept = cells[0].0.swept;
        if let Err(error) = self.lay_out(state, number, &|on| swept.layout_on(on), &cells[0].0)? {
            self.keep_unstriped(state, std::slice::from_ref(turn), number, &error)?;
            return Ok(false);
        }
        let pass = Pass::Whole;
        let cluster = self.cluster.clone();
        let ranks = self.ranks.clone();
        let attempt = state.next_attempt(cluster.as_ref());
        let together = RecordingRanks { cluster: cluster.as_ref(), ranks: &ranks, attempt };
        let job = Job { number, target: &target, archive: None, cells: &cells, pass, together };
        let Some(samples) = state.record(turn, &job, &mut Loads::default()) else { return Ok(false) };
        let mut hangs = false;
        for sample in samples {
            hangs |= sample.invalid == Some(Invalid::Hung);
            self.keep(state, turn.key(number, Phase::Ingest), sample)?;
        }
        if hangs {
            self.leave_out(state, number, &format!("hung in ingest: {}", cells[0].0))?;
            return Ok(false);
        }
        if let Err(error) = self.clear(state, turn, number) {
            self.leave_out(state, number, &error.to_string())?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Removes the copies.
    fn clear_archive(&mut self, state: &mut State<'_>) -> Result<(), CampaignError> {
        let Some(archive) = &self.archive else { return Ok(()) };
        let cleared = within(state.run.hang_after, archive, |archive| archive.clear());
        if let Err(error) = cleared.and_then(|cleared| cleared) {
            self.note(state, &format!("removing the copies failed, no more copies from now on: {error}"))?;
            self.archive = None;
        }
        Ok(())
    }
}

impl State<'_> {
    /// Makes a recording. Returns `None` if the campaign ended first.
    fn record(&mut self, turn: &ScheduledRepeat, job: &Job<'_>, loads: &mut Loads) -> Option<Vec<Sample>> {
        let State { run, surroundings, place, tell, remaining, turn_begun, turn: running, .. } = self;
        let (done, of) = *place;
        let left = || remaining.time(running.as_ref(), run.clock.now().since(*turn_begun));
        job.together.cluster.broadcast(Some(ClusterDecision::Record {
            cells: job.cells.to_vec(),
            attempt: job.together.attempt,
            target: job.number,
            left: run.ends.since(run.clock.now()),
        }));
        run_ingest(run, surroundings, job, loads, &mut |so_far| {
            tell(now(turn, Phase::Ingest, so_far, done, of, left()));
        })
    }

    /// Reads a recording of `stored` frames back, with the processes that recorded it. Nothing of one that hung is
    /// read. Returns `None` if the campaign ended first.
    fn read_back(&mut self, recorded: &RecordedFiles<'_>, stored: Option<u64>) -> Option<Sample> {
        if self.run.is_over() {
            return None;
        }
        let Some(stored) = stored else { return Some(Sample::invalid(Invalid::Hung)) };
        let RecordingRanks { cluster, attempt, .. } = recorded.together;
        cluster.broadcast(Some(ClusterDecision::ReadBack {
            cell: Box::new(recorded.cell.clone()),
            seed: recorded.seed,
            attempt,
            target: recorded.number,
            left: self.run.ends.since(self.run.clock.now()),
        }));
        let sample = recorded.read(&self.run, &mut self.surroundings);
        self.surroundings.pass(&self.run.clock);
        sample.map(|sample| recorded.compared(sample, stored))
    }
}

/// The frames that a recording stored; none if it could not begin.
fn stored_frames(sample: &Sample) -> u64 {
    sample.ingest.as_ref().map_or(0, |ingest| ingest.stored)
}
