//! The loads that run beside the measurements. They are laid out once for each cell, before its first phase
//! that counts.

use nilometer_model::{Invalid, Sample};

use super::{Campaign, CampaignError, State};
use crate::{background::Loads, turns::ScheduledRepeat};

impl Campaign {
    /// Prepares the loads of a turn's cell. A target on which a load can't be laid out is dropped from this
    /// turn.
    pub(super) fn prepare_loads(
        &mut self,
        state: &mut State<'_>,
        turn: &ScheduledRepeat,
        going: &mut Vec<usize>,
    ) -> Result<Loads, CampaignError> {
        let mut loads = Loads::default();
        let cell = &self.resolved.plan.cells[turn.cell];
        let first = cell.measured_phases().first().copied();
        let (Some(load), Some(first)) = (cell.background().cloned(), first) else { return Ok(loads) };
        let seed = self.seed(turn);
        for number in going.clone() {
            let Some(place) = self.load_places.get(number).cloned().flatten() else { continue };
            let Err(why) = loads.prepare(&state.run, number, &place, &load, seed) else { continue };
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
}
