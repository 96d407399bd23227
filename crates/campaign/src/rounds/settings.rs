//! Repeats under settings that are applied before and taken back behind each.

use nilometer_model::{Invalid, Phase, Sample, TargetAddress};
use nilometer_plan::{AppliedSetting, WorkloadRun};

use super::{Campaign, CampaignError, State};
use crate::{setting, turns::ScheduledRepeat};

impl Campaign {
    /// All phases of a cell under its settings, which are taken back in any case, the last one first. Where one can't be
    /// applied, this repeat is not measured; a target on which it can't be taken back is left out.
    pub(super) fn take_with_settings(
        &mut self,
        state: &mut State<'_>,
        turn: &ScheduledRepeat,
        run: &WorkloadRun,
    ) -> Result<(), CampaignError> {
        if run.settings.is_empty() {
            return self.take_phases(state, turn, run);
        }
        let mut applied: Vec<(usize, usize)> = Vec::new();
        let mut refused = None;
        for &number in &turn.targets {
            let (count, why) = self.apply(state, number, &run.settings);
            applied.push((number, count));
            if let Err(why) = why {
                refused = Some(why);
                break;
            }
        }
        let taken = match refused {
            None => self.take_phases(state, turn, run),
            // Of targets that are measured together none is measured without its settings.
            Some(why) => why.and_then(|why| self.keep_refused(state, turn, run, &why)),
        };
        // In any case and all of them, whatever can't be noted.
        let undone: Vec<_> = applied
            .into_iter()
            .map(|(number, count)| self.undo(state, number, &run.settings[..count]))
            .collect();
        undone.into_iter().fold(taken, Result::and)
    }

    /// A recording on a target under its settings, which are taken back in any case; whether the campaign goes on.
    pub(super) fn record_with_settings(
        &mut self,
        state: &mut State<'_>,
        turn: &ScheduledRepeat,
        number: usize,
        settings: &[AppliedSetting],
        record: &mut dyn FnMut(&mut Self, &mut State<'_>) -> Result<bool, CampaignError>,
    ) -> Result<bool, CampaignError> {
        if settings.is_empty() {
            return record(self, state);
        }
        let (count, refused) = self.apply(state, number, settings);
        let taken = match refused {
            Ok(()) => record(self, state),
            Err(why) => why.and_then(|why| {
                let refused = Sample::invalid(Invalid::Refused(why));
                self.keep_broken(state, turn, number, Phase::Ingest, refused).map(|()| true)
            }),
        };
        let undone = self.undo(state, number, &settings[..count]);
        taken.and_then(|goes_on| undone.map(|()| goes_on))
    }

    fn keep_refused(
        &mut self,
        state: &mut State<'_>,
        turn: &ScheduledRepeat,
        run: &WorkloadRun,
        why: &str,
    ) -> Result<(), CampaignError> {
        let first = run.phases().into_iter().find(|phase| !phase.is_setup());
        let phase = first.unwrap_or(run.phases()[0]);
        for &number in &turn.targets {
            let refused = Sample::invalid(Invalid::Refused(why.to_owned()));
            self.keep_broken(state, turn, number, phase, refused)?;
        }
        Ok(())
    }

    /// How many settings are to be taken back, and why one can't be applied, if so; an error of its own where that can't be
    /// noted.
    fn apply(
        &mut self,
        state: &mut State<'_>,
        number: usize,
        settings: &[AppliedSetting],
    ) -> (usize, Result<(), Result<String, CampaignError>>) {
        let at = self.address(number);
        for (count, setting) in (0..).zip(settings) {
            if let Err(error) = self.note(state, &setting::applied(setting, &at)) {
                return (count, Err(Err(error)));
            }
            if let Err(why) = setting::apply(setting, &at) {
                return (count + 1, Err(Ok(format!("setting `{}` on {at}: {why}", setting.name))));
            }
        }
        (settings.len(), Ok(()))
    }

    /// Takes settings back, the last one first. What can't be noted stops none.
    fn undo(
        &mut self,
        state: &mut State<'_>,
        number: usize,
        applied: &[AppliedSetting],
    ) -> Result<(), CampaignError> {
        let at = self.address(number);
        let mut noted = Ok(());
        for setting in applied.iter().rev() {
            let undone = setting::undone(setting, &at);
            let now = match setting::undo(setting, &at) {
                Ok(()) => self.note(state, &undone),
                Err(why) => {
                    let why = format!("{undone} not: {why}");
                    // What would be measured now is not the target as it is.
                    self.note(state, &why).and_then(|()| self.leave_out(state, number, &why))
                }
            };
            noted = noted.and(now);
        }
        noted
    }

    fn address(&self, number: usize) -> TargetAddress {
        self.resolved.targets[number].address.clone()
    }
}
