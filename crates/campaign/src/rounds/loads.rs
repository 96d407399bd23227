//! The loads that run beside the measurements. They are laid out once for each cell, before its first phase
//! that counts.

use nilometer_cluster::{ClusterDecision, RankReport, failed_on_any};
use nilometer_model::{Invalid, Sample};
use nilometer_plan::BackgroundLoad;

use super::{Campaign, CampaignError, State};
use crate::{
    background::{Loads, SharedLoad},
    load_share::LoadShare,
    turns::ScheduledRepeat,
};

impl Campaign {
    /// The load of a turn's cell; `None` without one.
    fn load(&self, turn: &ScheduledRepeat) -> Option<BackgroundLoad> {
        let cell = &self.resolved.plan.cells[turn.cell];
        cell.background().filter(|load| !load.is_none()).cloned()
    }

    /// Prepares the loads of a turn's cell, at all processes. A target on which a load can't be laid out is dropped
    /// from this turn.
    pub(super) fn prepare_loads(
        &mut self,
        state: &mut State<'_>,
        turn: &ScheduledRepeat,
        going: &mut Vec<usize>,
    ) -> Result<Loads, CampaignError> {
        let mut loads = Loads::default();
        let first = self.resolved.plan.cells[turn.cell].measured_phases().first().copied();
        let (Some(load), Some(first)) = (self.load(turn), first) else { return Ok(loads) };
        let targets = going.clone();
        let failed = self.laid_out(state, &load, turn, &targets, &mut loads);
        for (number, why) in targets.into_iter().zip(failed) {
            let Some(why) = why else { continue };
            going.retain(|going| *going != number);
            // The campaign ends here, so nothing can be concluded about this repeat.
            if state.run.is_over() {
                going.clear();
                break;
            }
            let why = Sample::invalid(Invalid::Refused(why.to_string()));
            for cell in turn.cells(&self.resolved.plan) {
                let turn = ScheduledRepeat { cell, ..turn.clone() };
                self.keep_broken(state, &turn, number, first, why.clone())?;
            }
        }
        Ok(loads)
    }

    /// Lets all processes lay out their shares of a load on these targets. Returns, for each target, why one of
    /// them failed.
    fn laid_out(
        &self,
        state: &State<'_>,
        load: &BackgroundLoad,
        turn: &ScheduledRepeat,
        targets: &[usize],
        loads: &mut Loads,
    ) -> Vec<Option<Invalid>> {
        let run = &state.run;
        let cluster = self.cluster.as_ref();
        let seed = self.seed(turn);
        cluster.broadcast(Some(ClusterDecision::Load {
            load: Box::new(load.clone()),
            seed,
            targets: targets.to_vec(),
            left: run.ends.since(run.clock.now()),
        }));
        let share = LoadShare::of(cluster.rank(), &self.ranks, load);
        let places = self.load_places.first().map_or(&[][..], Vec::as_slice);
        let shared = SharedLoad { load, share: &share, seed, cluster };
        let failed = loads.prepare_all(run, places, targets, shared);
        failed_on_any(cluster.gather(RankReport::Ready(failed)))
    }

    /// Removes the loads of a turn's cell, at all processes.
    pub(super) fn clear_loads(&self, state: &State<'_>, turn: &ScheduledRepeat, loads: Loads) {
        if self.load(turn).is_some() {
            self.cluster.broadcast(Some(ClusterDecision::Unload));
        }
        loads.clear(state.run.hang_after);
    }
}
