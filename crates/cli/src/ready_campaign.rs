//! A campaign that can run, new or continued.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use nilometer_campaign::{MeasuredRates, Trials, with_archive, with_source};
use nilometer_model::{Invalid, NetworkStage};
use nilometer_plan::{Key, PlannedCampaign};
use nilometer_record::Record;
use nilometer_remote::describe_in_child;

/// A campaign that can run.
#[derive(Debug)]
pub(crate) struct ReadyCampaign {
    /// The path of the record.
    pub(crate) path: PathBuf,
    pub(crate) resolved: PlannedCampaign,
    pub(crate) record: Record,
    /// The measurements that the record already has. If one must not be used, with the reason.
    pub(crate) done: BTreeMap<Key, Option<Invalid>>,
    /// The trials of searches among them.
    pub(crate) trials: Trials,
    /// The measured rates of workloads among them.
    pub(crate) rates: MeasuredRates,
    /// One entry for each target: true if the campaign uses it.
    pub(crate) in_use: Vec<bool>,
    /// The measurements of the network.
    pub(crate) network: Vec<NetworkStage>,
}

/// Adds the storage that the plan copies from and to, if it has any.
pub(crate) fn sourced(resolved: PlannedCampaign) -> anyhow::Result<PlannedCampaign> {
    let resolved = match resolved.plan.source.clone() {
        Some(source) if resolved.copies() => {
            with_source(resolved, describe_in_child(&Path::new(&source).into())?)?
        }
        _ => resolved,
    };
    let Some(archive) = resolved.plan.copy_to.clone() else { return Ok(resolved) };
    let copies = resolved.plan.migrates() || resolved.plan.recordings().any(|(_, run)| run.readers.copy);
    ensure!(
        copies,
        "--copy-to {archive}: nothing of this plan is copied: name an instrument with --for, or a plan such as \
         migration"
    );
    Ok(with_archive(resolved, describe_in_child(&Path::new(&archive).into())?)?)
}
