//! Checks a plan against its targets, and reports problems before anything starts.

mod accept;
mod error;
mod joined;
mod layouts;
mod processes;

use nilometer_model::{Bytes, Capability, DirectIo, FileSystemSpace, TargetDescription, check_expected};
use nilometer_plan::{
    Access, BackgroundLoad, EstimatedSpeed, Footprint, PlannedCampaign, RecordingRun, ResolvedPlan, Volumes,
    WorkloadRun,
};
use nilometer_storage::{Target, process, target::NullTarget};

pub use error::ResolveError;

use crate::{ingest::Shape, turns, workload};

/// Checks every cell against every target.
pub fn resolve(plan: ResolvedPlan, targets: Vec<TargetDescription>) -> Result<PlannedCampaign, ResolveError> {
    // The targets of a record are resolved again when its campaign continues.
    let campaign = PlannedCampaign::new(plan, targets);
    check_named(&campaign)?;
    let campaign = joined::with_joined(campaign)?;
    for (cell, run) in campaign.plan.recordings() {
        processes::check_recorders(&campaign.plan, &campaign.plan.cells[cell].stage, run)?;
        check_recording(&campaign, cell)?;
    }
    (0..campaign.targets.len()).try_for_each(|target| check_able(&campaign, target))?;
    Ok(campaign)
}

/// Checks the plan, and its workloads, against the targets that the user named.
fn check_named(campaign: &PlannedCampaign) -> Result<(), ResolveError> {
    let plan = &campaign.plan;
    let targets = named(campaign);
    check_expected(&targets, &plan.expect)?;
    accept::check_acceptance(&plan.accept, &targets)?;
    processes::check_machines(plan)?;
    check_time(plan, targets.len())?;
    plan.cells.iter().try_for_each(|cell| processes::check_background(plan, cell))?;
    for (_, stage, run) in plan.workloads() {
        processes::check_mpi_io(plan, stage, run, &targets)?;
        processes::check_processes(plan, stage, run)?;
        let on_this = plan.processes_a_node(run).first().copied().unwrap_or(1);
        let own_memory = workload::memory(run).0.saturating_mul(on_this.into());
        check_memory(stage, Bytes(own_memory))?;
        check_space_limit(plan, stage, run)?;
        check_source(plan, stage, run)?;
        processes::check_siblings(stage, run, targets.len())?;
        let needs = run.needs();
        for target in targets.iter().filter(|target| target.capabilities.lacking(&needs).is_empty()) {
            check_writable(target)?;
            let sharing = sharing(run, &targets, target);
            let LoadNeeds { memory, footprint } = of_load(plan, run.background.as_deref(), target);
            check_memory(stage, Bytes(own_memory.saturating_add(memory)))?;
            let own = run.own_footprint(plan.processes_of(run));
            check_space(stage, own.and(footprint).times(sharing), target, plan)?;
            check_access(stage, run, target)?;
        }
    }
    Ok(())
}

/// The targets that the user named.
fn named(campaign: &PlannedCampaign) -> Vec<TargetDescription> {
    campaign.named().map(|target| campaign.targets[target].clone()).collect()
}

/// Checks that the target can measure something of the plan.
fn check_able(campaign: &PlannedCampaign, target: usize) -> Result<(), ResolveError> {
    let cells = 0..campaign.plan.cells.len();
    if cells.clone().any(|cell| campaign.applies(cell, target)) || cells.is_empty() {
        return Ok(());
    }
    // The target has a part of a recording over several.
    if (0..campaign.targets.len()).any(|joined| campaign.members(joined).contains(&target)) {
        return Ok(());
    }
    let mut lacking: Vec<Capability> = cells.flat_map(|cell| campaign.lacking(cell, target)).collect();
    lacking.sort_unstable();
    lacking.dedup();
    let lacking: Vec<_> = lacking.into_iter().map(Capability::name).collect();
    let path = campaign.targets[target].address.to_string();
    if lacking.is_empty() {
        return Err(ResolveError::NotAmong { path, targets: campaign.targets.len() });
    }
    Err(ResolveError::Unable { path, lacking: lacking.join(", ") })
}

fn check_writable(target: &TargetDescription) -> Result<(), ResolveError> {
    if target.writable {
        return Ok(());
    }
    let path = target.address.to_string();
    Err(ResolveError::ReadOnly { path, why: target.why_not_written() })
}

fn check_access(stage: &str, run: &WorkloadRun, target: &TargetDescription) -> Result<(), ResolveError> {
    let path = target.address.to_string();
    let stage = stage.to_owned();
    match (run.access(), &target.direct) {
        (Some(Access::Direct | Access::Best), &DirectIo::Real { alignment }) => {
            let sizes = run.workload.parameters().alignments(run.workers);
            let odd = sizes.into_iter().find(|(_, size)| !size.0.is_multiple_of(u64::from(alignment)));
            let Some((key, block)) = odd else { return Ok(()) };
            Err(ResolveError::Alignment { stage, key, block, alignment: Bytes(u64::from(alignment)), path })
        }
        (Some(Access::Direct), other) => Err(ResolveError::NoDirect { stage, path, why: other.to_string() }),
        _ => Ok(()),
    }
}

fn check_memory(stage: &str, needed: Bytes) -> Result<(), ResolveError> {
    match process::available_memory() {
        Some(available) if needed.0 > available.0 / 2 => {
            let limit = process::memory_limit_words();
            Err(ResolveError::Memory { stage: stage.into(), needed, available, limit })
        }
        _ => Ok(()),
    }
}

fn check_time(plan: &ResolvedPlan, targets: usize) -> Result<(), ResolveError> {
    let needed = plan.estimate(targets, EstimatedSpeed::UTMOST).time;
    if needed <= plan.time_limit {
        return Ok(());
    }
    let EstimatedSpeed { rate, operations, .. } = EstimatedSpeed::UTMOST;
    let remedy = if plan.accept.is_empty() { "lower --scale " } else { "" };
    Err(ResolveError::Time { needed, rate, operations: operations / 1e6, limit: plan.time_limit, remedy })
}

fn check_space_limit(plan: &ResolvedPlan, stage: &str, run: &WorkloadRun) -> Result<(), ResolveError> {
    let needed = run.footprint(plan.processes_of(run)).bytes;
    match plan.space_limit {
        Some(limit) if needed > limit => {
            let remedy = smaller(plan, needed, limit);
            Err(ResolveError::SpaceLimit { stage: stage.into(), needed, limit, remedy })
        }
        _ => Ok(()),
    }
}

fn check_source(plan: &ResolvedPlan, stage: &str, run: &WorkloadRun) -> Result<(), ResolveError> {
    if run.copies() && plan.source.is_none() {
        return Err(ResolveError::NoSource { stage: stage.into() });
    }
    Ok(())
}

/// The sizes with which the bytes now `needed` fit into `room`. A plan with criteria fixes its sizes: it takes no
/// `--scale`.
fn smaller(plan: &ResolvedPlan, needed: Bytes, room: Bytes) -> String {
    if plan.accept.is_empty() {
        return format!("--scale {}", fitting(plan.scale, needed, room));
    }
    "smaller sizes in the plan, since a plan with [accept] takes no --scale".into()
}

/// The largest scale, in one digit, at which the bytes now `needed` fit into `room`.
fn fitting(scale: f64, needed: Bytes, room: Bytes) -> f64 {
    let whole = (scale * room.0 as f64 / needed.0.max(1) as f64).max(1e-9);
    let digit = 10_f64.powf(whole.log10().floor());
    // Format and parse it, to get the decimal number that a person would write.
    format!("{:.9}", (whole / digit).floor() * digit).parse().unwrap_or(scale)
}

fn check_space(
    stage: &str,
    Footprint { bytes: needed, entries }: Footprint,
    target: &TargetDescription,
    plan: &ResolvedPlan,
) -> Result<(), ResolveError> {
    let FileSystemSpace { free, free_inodes, .. } = target.space;
    let stage = stage.to_owned();
    let path = target.address.to_string();
    let reserve = plan.reserve;
    if needed.0.saturating_add(reserve.0) > free.0 {
        let room = Bytes(free.0.saturating_sub(reserve.0));
        let fits = reserve < free && needed > free;
        let remedy = if fits { smaller(plan, needed, room) } else { "a smaller --reserve".into() };
        return Err(ResolveError::Space { stage, path, needed, free, reserve, remedy });
    }
    // The run's directory and its marker are two more entries.
    let needed = entries.saturating_add(2);
    match free_inodes {
        Some(free) if needed > free => Err(ResolveError::Inodes { stage, path, needed, free }),
        _ => Ok(()),
    }
}

/// The number of targets that have files on the file system of this one at the same time.
fn sharing(run: &WorkloadRun, targets: &[TargetDescription], on: &TargetDescription) -> u64 {
    let needs = run.needs();
    let able: Vec<_> =
        targets.iter().filter(|target| target.capabilities.lacking(&needs).is_empty()).collect();
    let sharing = |among: &[&TargetDescription]| {
        among.iter().filter(|target| target.shares_space_with(on)).count() as u64
    };
    match (run.volumes, run.volumes.at_once(able.len())) {
        (_, None) => 0,
        (Volumes::Alone, Some(_)) => sharing(&able).min(1),
        (_, Some(count)) => sharing(&able[..count]),
    }
}

/// The needs of a load of all processes, on a target.
#[derive(Debug, Clone, Copy, Default)]
struct LoadNeeds {
    /// Memory of instruments, in bytes. They may all be on one machine.
    memory: u64,
    footprint: Footprint,
}

/// The needs of the load beside a cell; zero if there is none.
fn of_load(plan: &ResolvedPlan, load: Option<&BackgroundLoad>, target: &TargetDescription) -> LoadNeeds {
    let Some(load) = load else { return LoadNeeds::default() };
    let Some(run) = load.recording() else {
        let footprint = load.footprint().times(plan.ranks.max(1).into());
        return LoadNeeds { footprint, ..LoadNeeds::default() };
    };
    let shape = Shape::of(&run, target);
    let count = u64::from(run.count);
    let footprint = Footprint { bytes: Bytes(count * shape.footprint().0), entries: count * shape.files() };
    LoadNeeds { memory: count * shape.memory().0, footprint }
}

/// Checks all recordings that run at the same time, on each target.
fn check_recording(campaign: &PlannedCampaign, cell: usize) -> Result<(), ResolveError> {
    let plan = &campaign.plan;
    let members: Vec<_> = turns::company(plan, cell).into_iter().map(|(_, run)| run).collect();
    let name = members.iter().map(|cell| cell.who()).collect::<Vec<_>>().join(" + ");
    if members.iter().any(|cell| cell.readers.copy) && plan.copy_to.is_none() {
        return Err(ResolveError::NoArchive { instrument: name });
    }
    let needs = members.iter().map(|run| run.needs()).collect::<Vec<_>>();
    let is_able = |target: &TargetDescription| {
        needs.first().is_some_and(|needs| target.capabilities.lacking(needs).is_empty())
    };
    let stage = &plan.cells[cell].stage;
    members.iter().try_for_each(|run| layouts::check_frames(stage, run))?;
    for target in 0..campaign.targets.len() {
        if is_able(&campaign.targets[target]) && campaign.is_about(cell, target) {
            layouts::check_stripes(stage, &members, &campaign.described(target))?;
            check_recorded_onto(plan, &members, &name, &campaign.described(target))?;
        }
    }
    Ok(())
}

/// Checks the room for recordings that run at the same time onto one target, or over several, each of which has
/// a part.
fn check_recorded_onto(
    plan: &ResolvedPlan,
    members: &[&RecordingRun],
    name: &str,
    onto: &[TargetDescription],
) -> Result<(), ResolveError> {
    onto.iter().try_for_each(check_writable)?;
    let load = members.first().and_then(|run| run.background.as_deref());
    let LoadNeeds { mut memory, mut footprint } =
        onto.first().map_or_else(LoadNeeds::default, |on| of_load(plan, load, on));
    for cell in members {
        let recorders = plan.recorders_of(cell);
        let most_on_one = plan.recorders_a_node(cell).into_iter().max().unwrap_or(1);
        for number in 0..recorders {
            let cell = cell.part(number, recorders);
            let shape = Shape::over(&cell, onto);
            check_lines(&cell, &shape, onto)?;
            let count = u64::from(cell.count);
            memory += if number < most_on_one { count * shape.memory().0 } else { 0 };
            footprint.bytes.0 += count * shape.footprint().0;
            footprint.entries += count * shape.files();
        }
    }
    // Targets in memory count as memory, too.
    let in_memory = onto.iter().filter(|on| on.is_memory()).count() as u64;
    check_memory(name, Bytes(memory + in_memory * footprint.bytes.0))?;
    for on in onto {
        let sharing = onto.iter().filter(|other| other.shares_space_with(on)).count().max(1) as u64;
        check_space(name, footprint.times(sharing), on, plan).map_err(|error| match error {
            ResolveError::Space { stage: instrument, path, needed, free, reserve, .. } => {
                ResolveError::Recording { instrument, path, needed, free, reserve }
            }
            other => other,
        })?;
    }
    Ok(())
}

/// Checks that each of several writers finds lines of a scan to write, and that the storage takes such files.
fn check_lines(cell: &RecordingRun, shape: &Shape, onto: &[TargetDescription]) -> Result<(), ResolveError> {
    let checked = shape.plan.check_lines().and_then(|()| shape.plan.check_storage(onto));
    let names = || onto.iter().map(|on| on.address.to_string()).collect::<Vec<_>>();
    checked.map_err(|why| ResolveError::Lines {
        instrument: cell.who(),
        path: names().join(TargetDescription::BETWEEN),
        why,
    })
}

fn check_keeps(storage: &TargetDescription, way: &'static str) -> Result<(), ResolveError> {
    let path = storage.address.to_string();
    if storage.keeps() { Ok(()) } else { Err(ResolveError::KeepsNothing { path, way }) }
}

/// Adds the storage that copies come from, if it has room for the sources.
pub fn with_source(
    campaign: PlannedCampaign,
    source: TargetDescription,
) -> Result<PlannedCampaign, ResolveError> {
    check_keeps(&source, "from")?;
    check_writable(&source)?;
    let plan = &campaign.plan;
    let targets = named(&campaign);
    for (_, stage, run) in plan.workloads().filter(|(_, _, run)| run.copies()) {
        // Targets that are written at the same time have a source each.
        let sources = run.volumes.at_once(targets.len()).unwrap_or(0) as u64;
        let processes = plan.processes_of(run);
        let Footprint { bytes, entries } = run.footprint(processes);
        let workers = u64::from(run.workers) * u64::from(processes);
        let each = Footprint { bytes, entries: entries.max(workers) };
        let all = each.times(sources + sharing(run, &targets, &source));
        check_space(stage, all, &source, plan)?;
    }
    Ok(PlannedCampaign { source: Some(source), ..campaign })
}

/// Adds a target after the others that discards all data, to measure the tool itself in each workload. Adds
/// none if the user named one, or if it would measure nothing.
pub fn with_ceiling(mut campaign: PlannedCampaign) -> PlannedCampaign {
    let null = NullTarget::new().description().clone();
    if campaign.targets.iter().any(|target| target.address == null.address) {
        return campaign;
    }
    let last = campaign.targets.len();
    campaign.targets.push(null);
    campaign.ceiling = Some(last);
    if !(0..campaign.plan.cells.len()).any(|cell| campaign.applies(cell, last)) {
        campaign.targets.pop();
        campaign.ceiling = None;
    }
    campaign
}

/// Adds the storage that recordings are copied to, if they have room there.
pub fn with_archive(
    campaign: PlannedCampaign,
    archive: TargetDescription,
) -> Result<PlannedCampaign, ResolveError> {
    check_keeps(&archive, "to")?;
    check_writable(&archive)?;
    for (_, run) in campaign.plan.recordings().filter(|(_, run)| run.readers.copy) {
        let shape = Shape::of(run, &archive);
        check_lines(run, &shape, std::slice::from_ref(&archive))?;
        let count = u64::from(run.count);
        let bytes = Bytes(count * shape.footprint().0);
        let footprint = Footprint { bytes, entries: count * shape.files() };
        check_space(&run.who(), footprint, &archive, &campaign.plan)?;
    }
    for cell in &campaign.plan.cells {
        let Some(load) = cell.background().filter(|load| !load.is_none()) else { continue };
        if !load.migrates() && campaign.plan.migrates() {
            let why = "another load of the plan copies to --copy-to: write two plans".into();
            return Err(ResolveError::Lacking { stage: cell.stage.clone(), why });
        }
        check_space(&cell.stage, load.footprint(), &archive, &campaign.plan)?;
    }
    Ok(PlannedCampaign { archive: Some(archive), ..campaign })
}

#[cfg(test)]
mod tests;
