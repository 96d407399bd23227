//! `nilometer evaluate` in several processes of an MPI launcher: all processes follow the first one.

use std::sync::{Arc, atomic::AtomicBool};

use anyhow::{Context, anyhow};
use nilometer_campaign::{SharedPlaces, all_present, dismiss, follow, joined_by_all, with_mpi_io};
use nilometer_cluster::{Alone, CampaignRanks, Cluster, MessageCluster, MpiMessages, launched};
use nilometer_model::{Nanos, NetworkStage};
use nilometer_network::NetworkLead;
use nilometer_plan::{RankNodes, ResolvedPlan};
use nilometer_remote::describe_in_child;

use crate::{Blame, Failure, evaluate::Evaluate, version};

/// The processes that a launcher started, or this one alone.
pub(crate) fn cluster() -> Result<Arc<dyn Cluster>, Failure> {
    let Some(launcher) = launched() else { return Ok(Arc::new(Alone)) };
    let messages = MpiMessages::start(launcher.processes);
    let messages = messages.with_context(|| format!("started several times, by {}", launcher.said_by));
    Ok(Arc::new(MessageCluster::new(messages.input()?)))
}

/// Follows the first process. Prints nothing unless storage hangs, and has no record.
pub(crate) fn follow_first(cluster: &dyn Cluster, stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    follow(cluster, version::SHORT, &describe_in_child, stop).map_err(|why| anyhow!(why)).run()
}

/// Finds the node of each process, and its MPI-IO if the plan uses it. The first process calls this before
/// all else.
pub(crate) fn present(cluster: &dyn Cluster, asked: &Evaluate) -> Result<RankNodes, Failure> {
    let nodes = all_present(cluster);
    if cluster.size() == 1 || !uses_mpi_io(asked) {
        return Ok(nodes);
    }
    let found = with_mpi_io(cluster, nodes).map_err(|why| anyhow!(why));
    found.input().inspect_err(|_| dismiss(cluster))
}

/// True if the plan, or the plan of the record, uses MPI-IO. Later steps refuse a plan that can't be read.
fn uses_mpi_io(asked: &Evaluate) -> bool {
    if !asked.resume {
        return asked.plans().is_ok_and(|plan| plan.uses_mpi_io());
    }
    let recorded = nilometer_record::read(&asked.recorded_at()).ok().and_then(|results| results.campaign);
    recorded.is_some_and(|campaign| campaign.plan.uses_mpi_io())
}

/// Lets all other processes join these directories.
pub(crate) fn join_all(
    cluster: &dyn Cluster,
    places: SharedPlaces<'_>,
    hang_after: Nanos,
    nodes: RankNodes,
) -> Result<CampaignRanks, Failure> {
    joined_by_all(cluster, version::SHORT, places, hang_after, nodes).map_err(|why| anyhow!(why)).input()
}

/// Checks that the machines can make a plan's network measurements, before anything exists on the targets.
pub(crate) fn check_network(
    cluster: &dyn Cluster,
    plan: &ResolvedPlan,
    before: &[NetworkStage],
) -> Result<(), Failure> {
    nilometer_campaign::check_network(cluster, plan, before).map_err(|why| anyhow!(why)).input()
}

/// The stages of a plan that measure the network, with their earlier results.
pub(crate) fn network_stages(
    cluster: &dyn Cluster,
    plan: &ResolvedPlan,
    before: &[NetworkStage],
) -> Result<Vec<NetworkLead>, Failure> {
    nilometer_campaign::network_stages(cluster, plan, before).map_err(|why| anyhow!(why)).input()
}
