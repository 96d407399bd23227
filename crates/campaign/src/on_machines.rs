//! Work that the first process on each machine does for all others there.

use nilometer_cluster::{CampaignRanks, Cluster, RankReport, SettingsReport};

use crate::setting_notes::take_back_left_here;

/// Does the work if this process is the first on its machine, and gathers the reports. `work` gets the name of the
/// machine. Returns the reports of all machines as one, at rank 0 only.
pub(crate) fn settled(
    cluster: &dyn Cluster,
    ranks: &CampaignRanks,
    work: impl FnOnce(&str) -> SettingsReport,
) -> SettingsReport {
    let node = cluster.node();
    let is_first = ranks.nodes.is_first_on_node(cluster.rank());
    let own = if is_first { work(&node).on(&node) } else { SettingsReport::default() };
    SettingsReport::of_all(cluster.gather(RankReport::Settled(own)))
}

/// Takes back the settings that killed campaigns left on this machine.
pub(crate) fn restore(node: &str) -> SettingsReport {
    match take_back_left_here(node) {
        Ok(left) => SettingsReport { notes: left.undone, failed: left.stuck },
        Err(error) => Err(error.to_string()).into(),
    }
}
