//! The network between machines, in the rounds of a campaign. Each round measures it once, before the cells on
//! targets, so that drift affects both alike.

use nilometer_model::NetworkStage;
use nilometer_network::{NetworkLead, NetworkProgress};
use nilometer_plan::NetworkTrials;

use super::{Campaign, CampaignError, Progress, State};

impl Campaign {
    /// Makes the trials of all network stages that are due up to a round, one after the other, unless the
    /// campaign ends before. Rounds count from 0.
    pub(super) fn take_network(&mut self, state: &mut State<'_>, round: u32) -> Result<(), CampaignError> {
        for number in 0..self.network.len() {
            let lead = &mut self.network[number];
            while lead.is_due(round + 1) && !state.run.is_over() {
                let Some(sample) = lead.measure(self.cluster.as_ref(), state.run.clock, round + 1) else {
                    break;
                };
                self.record.add_network_sample(number, sample)?;
                // The traffic of a trial is no load of others before the next phase.
                state.surroundings.pass(&state.run.clock);
                let NetworkProgress { results, done, of } = lead.progress();
                (state.tell)(Progress::Network { stage: lead.stage(), results, done, of });
            }
        }
        Ok(())
    }

    /// The number of the last round.
    pub(super) fn last_round(&self) -> u32 {
        let plan = &self.resolved.plan;
        (plan.warm_up + plan.repeats).saturating_sub(1)
    }

    /// The number of trials of all rounds, and of searches.
    pub(super) fn network_planned(&self) -> usize {
        self.network.iter().map(|lead| NetworkTrials::planned(lead.results(), self.last_round() + 1)).sum()
    }

    /// The number of trials of rounds that were not made; a search that is not over counts as one.
    pub(super) fn network_missing(&self) -> usize {
        let rounds = self.last_round() + 1;
        let open = |lead: &NetworkLead| {
            NetworkTrials::planned(lead.results(), rounds).saturating_sub(NetworkTrials::made(lead.results()))
        };
        self.network.iter().map(open).sum()
    }

    /// Notes the machines and the network cells, unless the record has them already.
    pub(super) fn note_machines(&mut self) -> Result<(), CampaignError> {
        let others = crate::machines::described(self.cluster.as_ref(), &self.ranks);
        self.record.note_machines(&others)?;
        for (number, lead) in self.network.iter().enumerate() {
            let stage = NetworkStage { stage: lead.stage().into(), results: lead.results().clone() };
            self.record.note_network_stage(number, &stage)?;
        }
        Ok(())
    }
}
