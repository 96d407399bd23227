//! Rounds beyond those of the plan, for cells whose figures are not as precise as the plan asks.

use super::{Campaign, CampaignError, State};
use crate::turns::{self, ScheduledRepeat};

impl Campaign {
    /// Repeats cells until all figures are precise enough, or as often as the plan allows. These rounds come
    /// last, after all that the plan asks for once.
    pub(super) fn take_until_precise(
        &mut self,
        state: &mut State<'_>,
        turns: &[ScheduledRepeat],
    ) -> Result<(), CampaignError> {
        let (planned, most) = (self.resolved.plan.repeats, self.resolved.plan.repeats_most);
        let Some(precision) = self.resolved.plan.precision else { return Ok(()) };
        let mut rounds = 0;
        for round in planned..most {
            let wide = self.wide(turns, round);
            if wide.is_empty() || state.run.is_over() {
                break;
            }
            let before = self.done.len();
            for turn in &wide {
                state.remaining.add(turn);
            }
            let taken = self.take_round(state, turns, &wide)?;
            self.take_again(state, &taken)?;
            rounds += u32::from(self.done.len() > before);
        }
        if rounds == 0 {
            return Ok(());
        }
        let left = self.wide(turns, most).len();
        let still = if left == 0 {
            "all figures have it".to_owned()
        } else {
            format!("{left} measurements still lack it")
        };
        self.note(
            state,
            &format!(
                "measured {rounds} more rounds, of at most {most}, for a precision of {precision} %: {still}"
            ),
        )
    }

    /// The turns of a round that have a figure not yet precise enough, in the order of the plan's last round.
    fn wide(&self, turns: &[ScheduledRepeat], round: u32) -> Vec<ScheduledRepeat> {
        let plan = &self.resolved.plan;
        let last = plan.warm_up + plan.repeats - 1;
        let of_last = turns.iter().filter(|turn| {
            turn.repeat == last
                && plan.cells[turn.cell].as_workload().is_some()
                && !turns::is_ceiling(&self.resolved, turn)
        });
        let wide = of_last.filter(|turn| self.rates.is_wide(&self.resolved, turn.cell, &turn.targets));
        wide.map(|turn| ScheduledRepeat { repeat: plan.warm_up + round, ..turn.clone() }).collect()
    }
}
