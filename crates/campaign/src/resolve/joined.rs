//! Several targets as one, for a recording that is striped over them. They come after the targets that the user
//! named.

use nilometer_model::TargetDescription;
use nilometer_plan::{PlannedCampaign, RecordingRun, Volumes};

use super::ResolveError;

/// Adds the joined targets of all recordings. A campaign from a record has them already, and they keep their
/// positions.
pub(super) fn with_joined(mut campaign: PlannedCampaign) -> Result<PlannedCampaign, ResolveError> {
    let mut joined: Vec<TargetDescription> = Vec::new();
    for (cell, run) in campaign.plan.recordings() {
        check_joined(&campaign, &campaign.plan.cells[cell].stage, run)?;
        for members in campaign.recorded_over(run) {
            let members: Vec<TargetDescription> =
                members.into_iter().map(|member| campaign.targets[member].clone()).collect();
            let description = TargetDescription::joined(&members);
            let mut known = campaign.targets.iter().chain(&joined);
            if !known.any(|known| known.address == description.address) {
                joined.push(description);
            }
        }
    }
    campaign.targets.extend(joined);
    Ok(campaign)
}

/// Checks that one process makes a recording over several targets, and that there are as many targets.
fn check_joined(campaign: &PlannedCampaign, stage: &str, run: &RecordingRun) -> Result<(), ResolveError> {
    if run.volumes.iter().all(|volumes| *volumes == Volumes::Alone) {
        return Ok(());
    }
    let refused = |why: String| Err(ResolveError::Lacking { stage: stage.to_owned(), why });
    let ranks = campaign.plan.ranks;
    if ranks > 1 {
        return refused(format!(
            "volumes: one process makes a recording over several targets, and there are {ranks}: start one, or leave volumes out"
        ));
    }
    if run.is_onto_each() || !campaign.recorded_over(run).is_empty() {
        return Ok(());
    }
    let least = run.volumes.iter().filter_map(|volumes| match volumes {
        Volumes::First(count) => Some(*count),
        Volumes::Together => Some(2),
        Volumes::Alone => None,
    });
    let least = least.min().unwrap_or(2);
    refused(format!(
        "volumes: a recording over several targets needs {least} directories that can be recorded onto: name as many, or add \
         \"alone\""
    ))
}
