//! MPI-IO in a campaign: notes for the record, and the end of a campaign in which an MPI call does not return.

use std::sync::atomic::Ordering;

use nilometer_model::MpiIoInForce;
use nilometer_plan::Key;

use super::{Campaign, CampaignError, State};

impl Campaign {
    /// Notes which MPI-IO implementation and which hints opened the files of a cell on a target. The note joins
    /// the other facts about the environment.
    pub(super) fn note_mpi_io(&mut self, key: Key, found: &MpiIoInForce) -> Result<(), CampaignError> {
        let cell = &self.resolved.plan.cells[key.cell];
        let target = &self.resolved.targets[key.target].address;
        let fact = format!("MPI-IO of {}: {cell}, on {target}", cell.stage);
        Ok(self.record.note_fact(&fact, &found.to_string())?)
    }

    /// Ends the campaign if an MPI call has not returned: this process can no longer send messages to the
    /// others.
    pub(super) fn end_if_stuck(&mut self, state: &mut State<'_>, stuck: bool) -> Result<(), CampaignError> {
        if !stuck {
            return Ok(());
        }
        state.run.stop.store(true, Ordering::Relaxed);
        self.note(
            state,
            "a call of MPI-IO has not returned, and MPI takes no other meanwhile: the campaign ends here, \
             and goes on with --resume",
        )
    }
}
