//! Repeats under settings that are applied before and taken back behind each.

use nilometer_model::{Invalid, Sample, TargetAddress, plan::WorkloadRun};

use super::{Campaign, CampaignError, State};
use crate::{setting, turns::ScheduledRepeat};

impl Campaign {
    /// All phases of a cell under its settings, which are taken back in any case, the last one first. A target on which one
    /// can't be applied is not measured in this repeat; one on which it can't be taken back is left out.
    pub(super) fn take_with_settings(
        &mut self,
        state: &mut State<'_>,
        turn: &ScheduledRepeat,
        run: &WorkloadRun,
    ) -> Result<(), CampaignError> {
        if run.settings.is_empty() {
            return self.take_phases(state, turn, run);
        }
        let mut going = Vec::new();
        for &number in &turn.targets {
            match self.apply(state, number, run)? {
                Ok(()) => going.push(number),
                Err(why) => {
                    let refused = Sample::invalid(Invalid::Refused(why));
                    let first = run.phases().into_iter().find(|phase| !phase.is_setup());
                    let phase = first.unwrap_or(run.phases()[0]);
                    self.keep_broken(state, turn, number, phase, refused)?;
                }
            }
        }
        let mut taken = Ok(());
        if !going.is_empty() {
            let turn = ScheduledRepeat { targets: going.clone(), ..turn.clone() };
            taken = self.take_phases(state, &turn, run);
        }
        for number in going {
            self.undo(state, number, run, run.settings.len())?;
        }
        taken
    }

    /// What can't be applied is taken back with those before it.
    fn apply(
        &mut self,
        state: &mut State<'_>,
        number: usize,
        run: &WorkloadRun,
    ) -> Result<Result<(), String>, CampaignError> {
        let at = self.address(number);
        for (count, setting) in (1..).zip(&run.settings) {
            self.note(state, &setting::applied(setting, &at))?;
            if let Err(why) = setting::apply(setting, &at) {
                self.undo(state, number, run, count)?;
                return Ok(Err(format!("setting `{}`: {why}", setting.name)));
            }
        }
        Ok(Ok(()))
    }

    /// Takes the first so many settings back.
    fn undo(
        &mut self,
        state: &mut State<'_>,
        number: usize,
        run: &WorkloadRun,
        count: usize,
    ) -> Result<(), CampaignError> {
        let at = self.address(number);
        for setting in run.settings[..count].iter().rev() {
            let undone = setting::undone(setting, &at);
            match setting::undo(setting, &at) {
                Ok(()) => self.note(state, &undone)?,
                Err(why) => {
                    let why = format!("{undone} not: {why}");
                    self.note(state, &why)?;
                    // What would be measured now is not the target as it is.
                    self.leave_out(state, number, &why)?;
                }
            }
        }
        Ok(())
    }

    fn address(&self, number: usize) -> TargetAddress {
        self.resolved.targets[number].address.clone()
    }
}
