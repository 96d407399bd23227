//! Repeats under settings: each repeat applies them before and takes them back afterwards.

use nilometer_cluster::{ClusterDecision, SettingsReport};
use nilometer_model::{Invalid, Phase, Sample, TargetAddress};
use nilometer_plan::{AppliedSetting, WorkloadRun};

use super::{Campaign, CampaignError, State};
use crate::{
    on_machines::{restore, settled},
    setting,
    turns::ScheduledRepeat,
};

impl Campaign {
    /// Runs all phases of a cell under its settings, and takes these back in any case, the last one first.
    ///
    /// If one can't be applied this repeat is not measured. A target on which one can't be taken back is left
    /// out.
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
            // If targets are measured together, none is measured unless all have their settings.
            Some(why) => why.and_then(|why| self.keep_refused(state, turn, run, &why)),
        };
        // Take back all settings in any case, even if the record can't be written.
        let undone: Vec<_> = applied
            .into_iter()
            .map(|(number, count)| self.undo(state, number, &run.settings[..count]))
            .collect();
        undone.into_iter().fold(taken, Result::and)
    }

    /// Makes a recording on a target under its settings, and takes these back in any case. Returns true if the
    /// campaign goes on.
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

    /// Applies settings. Returns how many to take back, and why one could not be applied, if so. Fails if the
    /// record can't be written.
    fn apply(
        &mut self,
        state: &mut State<'_>,
        number: usize,
        settings: &[AppliedSetting],
    ) -> (usize, Result<(), Result<String, CampaignError>>) {
        let at = self.address(number);
        for (count, setting) in (0..).zip(settings) {
            if let Err(error) = self.note(state, &self.before_applied(setting, &at)) {
                return (count, Err(Err(error)));
            }
            if let Err(why) = self.apply_everywhere(state, number, setting) {
                return (count + 1, Err(Ok(format!("setting `{}` on {at}: {why}", setting.name))));
            }
        }
        (settings.len(), Ok(()))
    }

    /// Takes settings back, the last one first. A failure to write the record stops none of them.
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
            let now = match self.undo_everywhere(state, number, setting) {
                Ok(()) => self.note(state, &undone),
                Err(why) => {
                    let why = format!("{undone} not: {why}");
                    // The target is no longer in its normal state, so a measurement would not be of it.
                    self.note(state, &why).and_then(|()| self.leave_out(state, number, &why))
                }
            };
            noted = noted.and(now);
        }
        noted
    }

    /// The note before a setting is applied.
    fn before_applied(&self, setting: &AppliedSetting, at: &TargetAddress) -> String {
        if self.is_alone() {
            return setting::applied(setting, at);
        }
        setting::applied_on_all(setting, at, self.ranks.nodes.counts().len() as u32)
    }

    /// Applies a setting on each machine.
    fn apply_everywhere(
        &self,
        state: &mut State<'_>,
        number: usize,
        setting: &AppliedSetting,
    ) -> Result<(), String> {
        let at = self.address(number);
        if self.is_alone() {
            return setting::apply(setting, &at, None);
        }
        let decision = ClusterDecision::Apply { setting: Box::new(setting.clone()), target: number };
        self.on_machines(decision, |node| state.settings.apply(node, setting, &at).into()).outcome()
    }

    /// Takes back a setting on each machine.
    fn undo_everywhere(
        &self,
        state: &mut State<'_>,
        number: usize,
        setting: &AppliedSetting,
    ) -> Result<(), String> {
        let at = self.address(number);
        if self.is_alone() {
            return setting::undo(setting, &at);
        }
        let decision = ClusterDecision::Undo { setting: Box::new(setting.clone()), target: number };
        self.on_machines(decision, |_| state.settings.undo(setting, &at).into()).outcome()
    }

    /// Has the first process on each machine carry out a decision. `work` is that of this process.
    fn on_machines(
        &self,
        decision: ClusterDecision,
        work: impl FnOnce(&str) -> SettingsReport,
    ) -> SettingsReport {
        self.cluster.broadcast(Some(decision));
        settled(self.cluster.as_ref(), &self.ranks, work)
    }

    /// Takes back the settings that killed campaigns of several processes left on each machine, if the plan has
    /// settings. If that fails all targets are left out: none is in its normal state for certain.
    pub(super) fn restore_machines(&mut self, state: &mut State<'_>) -> Result<(), CampaignError> {
        let has_settings = self.resolved.plan.cells.iter().any(|cell| !cell.settings().is_empty());
        if !has_settings || self.is_alone() {
            return Ok(());
        }
        let restored = self.on_machines(ClusterDecision::Restore, restore);
        restored.notes.iter().try_for_each(|note| self.note(state, note))?;
        let Err(why) = restored.outcome() else { return Ok(()) };
        let targets: Vec<usize> = (0..self.targets.len()).collect();
        let in_use = state.in_use(&targets);
        in_use.into_iter().try_for_each(|target| self.leave_out(state, target, &why))
    }

    /// Returns true if the campaign has one process. Its record then shows which settings are in force.
    fn is_alone(&self) -> bool {
        self.cluster.size() == 1
    }

    fn address(&self, number: usize) -> TargetAddress {
        self.resolved.targets[number].address.clone()
    }
}
