//! The beginning of a campaign: the head of its record, and the places that it makes on its targets.

use std::sync::Arc;

use nilometer_model::{RunHandle, Seed, TargetDescription};
use nilometer_plan::{PlannedCampaign, ResolvedPlan, Results, ShownScale, TargetEntry};
use nilometer_record::{Record, RecordError};
use nilometer_remote::{CopySource, open, run_handle};
use nilometer_storage::{Target, TargetError, target::run_id};

use crate::{
    environment::{environment, layouts},
    joined::JoinedTarget,
    machines::this_machine,
};

/// A campaign that can't begin.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A target can't be used.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// The plan's title; a small scale is a part of it, since it is another measurement.
fn titled(plan: &ResolvedPlan) -> String {
    if (plan.scale - 1.0).abs() < f64::EPSILON {
        return plan.title.clone();
    }
    format!("{} (at scale {})", plan.title, ShownScale(plan.scale))
}

/// The head of the record of a campaign run by this `version` of the program.
pub fn record_head(resolved: &PlannedCampaign, version: &str) -> Results {
    let mut targets = Vec::new();
    for description in &resolved.targets {
        targets.push(TargetEntry {
            path: description.address.to_string(),
            file_system: description.file_system.clone(),
            description: Some(description.clone()),
            left_out: None,
        });
    }
    Results {
        title: titled(&resolved.plan),
        version: version.into(),
        campaign: Some(resolved.clone()),
        margin: resolved.plan.margin,
        repeats: resolved.plan.repeats,
        targets,
        cells: resolved.plan.cells.clone(),
        environment: environment(&resolved.targets).into_iter().chain(layouts(resolved)).collect(),
        machines: vec![this_machine()],
        ..Results::default()
    }
}

/// Makes the place to which recordings are copied, a directory as on a target. The record lists it with that of
/// the first target.
///
/// # Errors
/// If it can't be made, or the record not be written.
pub fn make_archive(
    resolved: &PlannedCampaign,
    record: &mut Record,
) -> Result<Option<Arc<dyn Target>>, BeginError> {
    let Some(archive) = &resolved.archive else { return Ok(None) };
    let id = run_id().named("archive").0;
    record.note_runs(&run_handle(archive, id).map(|handle| (0, handle)).into_iter().collect::<Vec<_>>())?;
    Ok(Some(open(archive, id, None)?))
}

/// Places on the targets, in their order; `None` for a target without one.
pub type TargetPlaces = Vec<Option<Arc<dyn Target>>>;

/// Makes a separate place for the loads of each rank on each target in use. Returns them by rank and target. A target
/// without a load has none.
///
/// # Errors
/// If one can't be made, or the record not be written.
pub fn make_load_places(
    resolved: &PlannedCampaign,
    in_use: &[bool],
    record: &mut Record,
) -> Result<Vec<TargetPlaces>, BeginError> {
    let id = run_id().named("background");
    let ranks = 0..u64::from(resolved.plan.ranks.max(1));
    ranks.map(|rank| places_of_rank(resolved, in_use, record, id.part(rank))).collect()
}

/// Makes the places for the loads of one rank, from this seed of their names.
fn places_of_rank(
    resolved: &PlannedCampaign,
    in_use: &[bool],
    record: &mut Record,
    id: Seed,
) -> Result<TargetPlaces, BeginError> {
    let mut places: TargetPlaces = vec![None; resolved.targets.len()];
    for (index, description) in resolved.targets.iter().enumerate() {
        let has_load = |cell: usize| {
            let load = resolved.plan.cells[cell].background();
            load.is_some_and(|load| !load.is_none()) && resolved.applies(cell, index)
        };
        if !in_use[index] || resolved.ceiling == Some(index) || !(0..resolved.plan.cells.len()).any(has_load)
        {
            continue;
        }
        let run = id.part(index as u64);
        let own = CopySource { description: description.clone(), run: run.0 };
        // A load that copies reads the target and writes to the archive.
        let place = match &resolved.archive {
            Some(archive) if resolved.plan.migrates() => {
                LoadPlace { run: run.named("copies").0, description: archive, source: Some(own) }
            }
            _ => LoadPlace { run: run.0, description, source: None },
        };
        record.note_runs(&place.handles(index))?;
        places[index] = Some(open(place.description, place.run, place.source)?);
    }
    Ok(places)
}

/// The place of a load.
struct LoadPlace<'a> {
    description: &'a TargetDescription,
    /// The number of its run.
    run: u64,
    /// The target that it copies from; `None` if it copies nothing.
    source: Option<CopySource>,
}

impl LoadPlace<'_> {
    /// The handles of its directories, for the record.
    fn handles(&self, target: usize) -> Vec<(usize, RunHandle)> {
        let source = self.source.as_ref().and_then(|source| run_handle(&source.description, source.run));
        let own = run_handle(self.description, self.run);
        own.into_iter().chain(source).map(|handle| (target, handle)).collect()
    }
}

/// Makes the run's place on each target in use; `None` for others. The record lists each before it is made, so
/// that a resumed campaign finds it.
///
/// # Errors
/// If one can't be made, or the record not be written.
pub fn make_targets(
    resolved: &PlannedCampaign,
    in_use: &[bool],
    record: &mut Record,
) -> Result<Vec<Option<Arc<dyn Target>>>, BeginError> {
    let id = run_id();
    let used: Vec<_> = resolved
        .targets
        .iter()
        .enumerate()
        .filter(|(index, target)| in_use[*index] && !target.is_joined())
        .collect();
    let run = |index: usize| id.part(index as u64);
    // There is a source for each target, since several targets may be written at the same time.
    let origin = |index: usize| {
        let description = resolved.source.clone()?;
        Some(CopySource { description, run: run(index).named("source").0 })
    };
    let mut handles = Vec::new();
    for &(index, target) in &used {
        let of_source = origin(index).and_then(|origin| run_handle(&origin.description, origin.run));
        let of_both = run_handle(target, run(index).0).into_iter().chain(of_source);
        handles.extend(of_both.map(|handle| (index, handle)));
    }
    record.note_runs(&handles)?;
    let mut targets: Vec<Option<Arc<dyn Target>>> = vec![None; resolved.targets.len()];
    for (index, description) in used {
        targets[index] = Some(open(description, run(index).0, origin(index))?);
    }
    for index in 0..targets.len() {
        if resolved.targets[index].is_joined() {
            targets[index] = joined(resolved, &targets, index);
        }
    }
    Ok(targets)
}

/// Opens several of the made targets as one; `None` if one of them is not used.
fn joined(
    resolved: &PlannedCampaign,
    opened: &[Option<Arc<dyn Target>>],
    index: usize,
) -> Option<Arc<dyn Target>> {
    let members = resolved.members(index).into_iter().map(|member| opened[member].clone());
    let members = members.collect::<Option<Vec<_>>>()?;
    Some(Arc::new(JoinedTarget::of(resolved.targets[index].clone(), members)))
}
