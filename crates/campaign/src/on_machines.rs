//! Work that the first process on each machine does for all others there.

use nilometer_cluster::{CampaignRanks, Cluster, RankReport};

use crate::machine_settings::take_back_left_here;

/// Does the work if this process is the first on its machine, and gathers the reports. `work` gets the name of the
/// machine. Returns the reasons of all failures, at rank 0 only.
pub(crate) fn settled(
    cluster: &dyn Cluster,
    ranks: &CampaignRanks,
    work: impl FnOnce(&str) -> Result<(), String>,
) -> Vec<String> {
    let node = cluster.node();
    let is_first = ranks.nodes.is_first_on_node(cluster.rank());
    let done = if is_first { work(&node) } else { Ok(()) };
    let reports = cluster.gather(RankReport::Settled(done.map_err(|why| format!("{node}: {why}"))));
    let failed = |report| match report {
        RankReport::Settled(done) => done.err(),
        other => unreachable!("every rank reports on its machine, but one sent {other:?}"),
    };
    reports.into_iter().filter_map(failed).collect()
}

/// Takes back the settings that killed campaigns left on this machine.
pub(crate) fn restore(node: &str) -> Result<(), String> {
    let all = take_back_left_here(node).map_err(|error| error.to_string())?;
    all.into_iter().try_for_each(|one| one.map(drop))
}
