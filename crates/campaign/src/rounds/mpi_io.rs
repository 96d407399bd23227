//! MPI-IO in a campaign: what is noted of it, and how a campaign ends in which a call of it does not come back.

use std::sync::atomic::Ordering;

use nilometer_model::MpiIoInForce;
use nilometer_plan::Key;

use super::{Campaign, CampaignError, State};

impl Campaign {
    /// Notes with what else is known of where it was measured by which implementation and with which hints the files of a cell
    /// were opened on a target.
    pub(super) fn note_mpi_io(&mut self, key: Key, found: &MpiIoInForce) -> Result<(), CampaignError> {
        let cell = &self.resolved.plan.cells[key.cell];
        let target = &self.resolved.targets[key.target].address;
        let fact = format!("MPI-IO of {}: {cell}, on {target}", cell.stage);
        Ok(self.record.note_fact(&fact, &found.to_string())?)
    }

    /// Ends the campaign where a call of MPI has not come back: nothing can be said to other processes any more.
    pub(super) fn end_if_stuck(&mut self, state: &mut State<'_>, stuck: bool) -> Result<(), CampaignError> {
        if !stuck {
            return Ok(());
        }
        state.run.stop.store(true, Ordering::Relaxed);
        self.note(
            state,
            "a call of MPI-IO has not come back, and MPI takes no other meanwhile: the campaign ends here, and goes on with \
             --resume",
        )
    }
}
