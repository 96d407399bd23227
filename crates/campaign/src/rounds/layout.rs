//! The distribution of a cell's files over storage devices, which the campaign sets before it makes them.

use std::{fmt::Display, sync::Arc};

use nilometer_model::{StripeLayout, TargetDescription};
use nilometer_storage::{Target, target::TargetError, within};

use super::{Campaign, CampaignError, State};

/// The layout that a cell asks for on a target.
pub(super) type LayoutOn<'a> = &'a dyn Fn(&TargetDescription) -> StripeLayout;

impl Campaign {
    /// Spreads the new files of a target, or of each target that is part of it, as `cell` asks. If storage gives
    /// another layout, the campaign notes the difference.
    pub(super) fn lay_out(
        &mut self,
        state: &mut State<'_>,
        target: usize,
        layout_on: LayoutOn<'_>,
        cell: &dyn Display,
    ) -> Result<Result<(), TargetError>, CampaignError> {
        let Some(target) = self.targets[target].clone() else { return Ok(Ok(())) };
        let members = if target.members().is_empty() { vec![target] } else { target.members().to_vec() };
        for member in &members {
            match self.lay_out_member(state, member, layout_on, cell)? {
                Ok(()) => {}
                failed => return Ok(failed),
            }
        }
        Ok(Ok(()))
    }

    fn lay_out_member(
        &mut self,
        state: &mut State<'_>,
        target: &Arc<dyn Target>,
        layout_on: LayoutOn<'_>,
        cell: &dyn Display,
    ) -> Result<Result<(), TargetError>, CampaignError> {
        let asked = layout_on(target.description());
        let wanted = asked.clone();
        let given = match within(state.run.hang_after, target, move |target| target.lay_out(&wanted)) {
            Ok(Ok(given)) => given,
            Ok(Err(error)) | Err(error) => return Ok(Err(error)),
        };
        let address = &target.description().address;
        let differing = given.map(|given| asked.not_given(&given)).unwrap_or_default();
        let notes: Vec<String> = differing.iter().map(|what| format!("{address}: {what}: {cell}")).collect();
        for note in notes {
            if !state.noted.contains(&note) {
                self.note(state, &note)?;
                state.noted.push(note);
            }
        }
        Ok(Ok(()))
    }
}
