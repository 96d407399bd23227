//! `nilometer evaluate --resume`: continues the campaign of a record from its interruption.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use nilometer_campaign::{
    difference, go_on, leave_conditions, recorded_rates, recorded_trials, remove_left_runs, resolve,
};
use nilometer_cluster::Cluster;
use nilometer_model::{RunHandle, TargetAddress, TargetDescription};
use nilometer_plan::{Event, PlannedCampaign, RankNodes, Results};
use nilometer_record::{Begun, Record};
use nilometer_remote::describe_in_child;
use nilometer_storage::Calendar;

use crate::{
    Blame, Failure,
    acceptance::refuse_another_program,
    evaluate::Evaluate,
    occupied::refuse_in_use,
    ranks,
    ready_campaign::{ReadyCampaign, sourced},
    tell,
    trusted::refuse_to_act_for_others,
    version,
};

/// Reads the campaign of the record, and prepares to continue.
pub(crate) fn resumed(
    asked: &Evaluate,
    cluster: &dyn Cluster,
    nodes: &RankNodes,
) -> Result<ReadyCampaign, Failure> {
    let path = asked.recorded_at();
    let (mut record, begun) = Record::resume(&path).input()?;
    let recorded = begun.campaign.clone();
    check_same(asked, &recorded, nodes, &path).input()?;
    let results = nilometer_record::read(&path).run()?;
    refuse_to_act_for_others(asked, &recorded, &results, &path).input()?;
    refuse_another_program(&results).input()?;
    ranks::check_network(cluster, &recorded.plan, &begun.network)?;
    // This comes first: in its condition, a target may be out of reach.
    let LeftInForce { stuck, .. } = leave_all(&mut record, &recorded, &results).run()?;
    let found = find_again(&recorded, &begun).input()?;
    let in_use: Vec<bool> =
        found.iter().zip(&stuck).map(|(found, stuck)| found.is_some() && stuck.is_none()).collect();
    let was = recorded.targets.into_iter();
    let targets = was.zip(found).map(|(was, is)| is.unwrap_or(was)).collect();
    let mut resolved = sourced(resolve(recorded.plan, targets).input()?).input()?;
    refuse_in_use(&resolved).input()?;
    resolved.ceiling = recorded.ceiling;
    resolved.plan.time_limit = asked.time_limit.unwrap_or(resolved.plan.time_limit);
    go_on(&mut record, &resolved, &begun, &in_use, version::PACKAGE).run()?;
    for (index, why) in stuck.iter().enumerate() {
        why.as_ref().map_or(Ok(()), |why| record.leave_out(index, why)).run()?;
    }
    let trials = recorded_trials(&results);
    let rates = recorded_rates(&results, &resolved.plan);
    let Begun { done, network, .. } = begun;
    Ok(ReadyCampaign { path, resolved, record, done, trials, rates, in_use, network })
}

/// The outcome of undoing the conditions and settings of a killed campaign.
#[derive(Debug, Default)]
pub(crate) struct LeftInForce {
    /// By target: the reason why one could not be undone, if so.
    pub(crate) stuck: Vec<Option<String>>,
    /// The number of settings and conditions that were in force.
    pub(crate) tried: usize,
}

/// Ends the conditions and settings that the killed campaign left in force. If that fails on a target, its
/// figures would not be its own, and the campaign leaves it out.
pub(crate) fn leave_all(
    record: &mut Record,
    recorded: &PlannedCampaign,
    results: &Results,
) -> Result<LeftInForce> {
    let mut left = LeftInForce { stuck: vec![None; recorded.targets.len()], tried: 0 };
    for (target, told) in leave_conditions(recorded, &results.events) {
        let what = match told {
            Ok(what) => what,
            Err(why) => left.stuck[target].insert(why).clone(),
        };
        left.tried += 1;
        tell::note(&what);
        record.note(&Event { at: Calendar::now().time, what })?;
    }
    Ok(left)
}

/// Refuses other targets and another plan on the command line than those of the record.
fn check_same(asked: &Evaluate, recorded: &PlannedCampaign, nodes: &RankNodes, record: &Path) -> Result<()> {
    let another = |why: String| anyhow!("{}: the record is of another campaign: {why}", record.display());
    let names = |addresses: &[TargetAddress]| {
        addresses.iter().map(TargetAddress::to_string).collect::<Vec<_>>().join(" ")
    };
    if !asked.targets.is_empty() {
        let there = recorded.named().map(|target| recorded.targets[target].address.clone());
        let there: Vec<_> = there.collect();
        let here: Vec<_> = asked.targets.iter().map(whole).collect();
        if there != here {
            return Err(another(format!("its targets are {}, not {}", names(&there), names(&here))));
        }
    }
    let asked = asked.plan_like(&recorded.plan, nodes)?;
    difference(&recorded.plan, &asked).map_or(Ok(()), |why| Err(another(why)))
}

/// An address in the form of descriptions: a directory without symlinks.
fn whole(address: &TargetAddress) -> TargetAddress {
    let real = address.directory().and_then(|path| path.canonicalize().ok());
    real.map_or_else(|| address.clone(), TargetAddress::from)
}

/// Describes each target now, after removing the killed campaign's remains. `None` for a target that was left
/// out before and still can't be used.
fn find_again(recorded: &PlannedCampaign, begun: &Begun) -> Result<Vec<Option<TargetDescription>>> {
    let mut found: Vec<Option<TargetDescription>> = Vec::new();
    for (index, was) in recorded.targets.iter().enumerate() {
        if was.is_joined() {
            // Joined targets follow their members.
            let members =
                recorded.members(index).into_iter().map(|member| found.get(member).cloned().flatten());
            let members: Option<Vec<TargetDescription>> = members.collect();
            found.push(members.map(|members| TargetDescription::joined(&members)));
            continue;
        }
        let left: Vec<&RunHandle> =
            begun.runs.iter().filter(|(target, _)| *target == index).map(|(_, handle)| handle).collect();
        for place in recorded.source.iter().chain(&recorded.archive) {
            remove_left_runs(place, &left, &mut |why| tell::note(why));
        }
        match again(was, &left) {
            Ok(is) => found.push(Some(is)),
            Err(error) if begun.left_out.get(index).is_some_and(Option::is_some) => {
                tell::note(format_args!("{}: stays left out: {error:#}", was.address));
                found.push(None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn again(was: &TargetDescription, left: &[&RunHandle]) -> Result<TargetDescription> {
    let is = describe_in_child(&was.address)?;
    let identity = |of: &TargetDescription| format!("{} of {}", of.file_system, of.source);
    if (&is.address, identity(&is)) != (&was.address, identity(was)) {
        let path = &was.address;
        bail!("{path}: not the same storage as before: {} then, {} now", identity(was), identity(&is));
    }
    // The remains took space.
    if remove_left_runs(was, left, &mut |why| tell::note(why)) {
        Ok(describe_in_child(&was.address)?)
    } else {
        Ok(is)
    }
}
