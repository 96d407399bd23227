//! Decides which samples go into the record: the first of each key, unless it was spoilt and a later one is
//! not.

use nilometer_model::{Invalid, Phase, Sample};
use nilometer_plan::{Key, Measured};
use nilometer_storage::Calendar;

use super::{Campaign, CampaignError, Progress, State};
use crate::turns::ScheduledRepeat;

impl Campaign {
    /// Returns true if a sample of this key would be kept: the record has none, or only a spoilt one.
    fn is_open(&self, key: &Key) -> bool {
        self.done.get(key).is_none_or(|invalid| invalid.as_ref().is_some_and(Invalid::is_spoilt))
    }

    /// Keeps the sample of a phase that failed.
    ///
    /// A turn that runs again, after a kill or because it was spoilt, may fail in a phase that has a good
    /// sample. The first phase without a sample, or with a spoilt one, then gets the failure.
    pub(super) fn keep_broken(
        &mut self,
        state: &mut State<'_>,
        turn: &ScheduledRepeat,
        target: usize,
        phase: Phase,
        sample: Sample,
    ) -> Result<(), CampaignError> {
        let phases = self.resolved.plan.cells[turn.cell].measured_phases();
        if self.is_open(&turn.key(target, phase)) {
            return self.keep(state, turn.key(target, phase), sample);
        }
        let missing = |phase: &&Phase| self.is_open(&turn.key(target, **phase));
        let Some(&missing) = phases.iter().find(missing) else { return Ok(()) };
        let why = sample.invalid.as_ref().map(ToString::to_string).unwrap_or_default();
        let why = Invalid::Refused(format!("when {} was run again: {why}", phase.name()));
        self.keep(state, turn.key(target, missing), Sample { invalid: Some(why), ..sample })
    }

    /// Puts a sample into the record, unless the record has one of this key. A sample that is not spoilt
    /// replaces a spoilt one.
    pub(super) fn keep(
        &mut self,
        state: &mut State<'_>,
        key: Key,
        mut sample: Sample,
    ) -> Result<(), CampaignError> {
        if let Some(found) = sample.mpi_io.take() {
            self.note_mpi_io(key, &found)?;
        }
        if let Some(what) = state.calendar.look(Calendar::now()) {
            self.note(state, &what)?;
        }
        let is_spoilt = sample.invalid.as_ref().is_some_and(Invalid::is_spoilt);
        match self.done.contains_key(&key) {
            false => self.record.add(key, &sample)?,
            true if self.is_open(&key) && !is_spoilt => self.record.replace(key, &sample)?,
            true => return Ok(()),
        }
        self.done.insert(key, sample.invalid.clone());
        self.rates.add(&self.resolved.plan, key, &sample);
        let run = self.resolved.plan.cells[key.cell].as_recording();
        let searches = run.is_some_and(|run| run.goal.searches());
        if let Some(run) = run {
            self.trials.add(run, key, &sample);
        }
        let (done, of) = state.place;
        let left = state.left();
        let trial = searches.then(|| self.trials.count(key.cell, key.target));
        (state.tell)(Progress::Measured { done, of, left, measured: &Measured { key, sample }, trial });
        Ok(())
    }
}
