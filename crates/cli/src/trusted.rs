//! A record may come from anybody. Everything in it is data, except for two kinds of act in its plan.
//! Commands bring a target into a condition, and recordings read files as frames. The program runs and reads
//! these only if the user names them again, or passes `--trust-record`.

use std::{collections::BTreeSet, os::unix::fs::MetadataExt, path::Path};

use anyhow::{Context, Result, ensure};

use nilometer_model::DataKind;
use nilometer_plan::{AppliedSetting, PlannedCampaign, Results};

use crate::evaluate::Evaluate;

/// Refuses a record whose plan would act without this user's consent.
pub(crate) fn refuse_to_act_for_others(
    asked: &Evaluate,
    recorded: &PlannedCampaign,
    results: &Results,
    path: &Path,
) -> Result<()> {
    if asked.trust_record {
        return Ok(());
    }
    let record = path.display();
    let owner = path.metadata().with_context(|| format!("can't look at {record}"))?.uid();
    let ours = rustix::process::geteuid().as_raw();
    ensure!(
        owner == ours || owner == 0,
        "{record}: it belongs to user {owner}, not to you: --trust-record goes on with it all the same"
    );
    let acts = unnamed_acts(asked, recorded)?;
    ensure!(
        acts.is_empty(),
        "{record}: its plan would {} as you: name the same again (--condition FILE, --for, --plan), or add \
         --trust-record",
        acts.join(", ")
    );
    same_host(recorded, results).with_context(|| format!("{record}: add --trust-record to go on here"))
}

/// The acts of the plan that the user has not named: all except writing frames into its own directories.
fn unnamed_acts(asked: &Evaluate, recorded: &PlannedCampaign) -> Result<Vec<String>> {
    let (conditions, instruments) = asked.named()?;
    let settings = asked.named_settings()?;
    let mut acts = Vec::new();
    let unnamed = recorded.plan.settings().filter(|setting| !settings.contains(setting));
    acts.extend(unnamed.flat_map(AppliedSetting::commands).map(|command| format!("run `{command}`")));
    for (_, cell) in recorded.plan.recordings() {
        let unnamed = cell.condition.iter().filter(|condition| !conditions.contains(condition));
        let commands = unnamed.flat_map(|condition| [&condition.enter, &condition.leave]);
        acts.extend(commands.map(|command| format!("run `{command}`")));
    }
    let recorded_ones = recorded.plan.recordings().map(|(_, run)| run.instrument.clone());
    let beside = recorded.plan.cells.iter().filter_map(|cell| cell.background()?.recording());
    for instrument in recorded_ones.chain(beside.map(|run| run.instrument)) {
        match &instrument.data.kind {
            DataKind::Files(pattern) if !instruments.contains(&instrument) => {
                acts.push(format!("read {pattern}"));
            }
            _ => {}
        }
    }
    let mut seen = BTreeSet::new();
    acts.retain(|act| seen.insert(act.clone()));
    Ok(acts)
}

/// Refuses another machine: a command that ends a condition belongs to the machine where it began.
fn same_host(recorded: &PlannedCampaign, results: &Results) -> Result<()> {
    let has_setting = recorded.plan.settings().next().is_some();
    let has_condition = recorded.plan.recordings().any(|(_, run)| run.condition.is_some()) || has_setting;
    let there = results.environment.iter().find(|(key, _)| key == "host").map(|(_, host)| host.as_str());
    let uname = rustix::system::uname();
    let here = uname.nodename().to_string_lossy();
    ensure!(
        !has_condition || there.is_none_or(|there| there == here),
        "its conditions and settings are those of the machine {}, and this is {here}",
        there.unwrap_or_default()
    );
    Ok(())
}
