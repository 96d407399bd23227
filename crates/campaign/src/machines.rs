//! The machines of a campaign's processes: a description of each for the record, and the network between them,
//! which stages of a plan measure.

use nilometer_cluster::{CampaignRanks, Cluster, ClusterDecision, RankReport, node_name};
use nilometer_model::{CampaignMachine, NetworkMachine, NetworkResults, NetworkStage, Seed, Subnet};
use nilometer_network::{NetworkLead, ReachedMachines, reached_machines};
use nilometer_plan::{NetworkRun, NetworkTrials, ResolvedPlan, Route};
use nilometer_storage::network::links::links;

use crate::{environment::environment, join::dismiss};

/// This machine, with the facts that the record's environment lacks.
pub(crate) fn this_machine() -> CampaignMachine {
    CampaignMachine { name: node_name(), facts: Vec::new(), links: links() }
}

/// A rank's part of [`described`].
pub(crate) fn describe_machine(cluster: &dyn Cluster, ranks: &CampaignRanks) {
    cluster.gather(RankReport::Machine(own_machine(cluster, ranks)));
}

/// The description of this machine, from its first rank. Rank 0's machine is in the record from the start.
fn own_machine(cluster: &dyn Cluster, ranks: &CampaignRanks) -> Option<CampaignMachine> {
    if cluster.rank() == 0 || !ranks.nodes.is_first_on_node(cluster.rank()) {
        return None;
    }
    // The command is the same on all machines.
    let facts = environment(&[]).into_iter().filter(|(key, _)| key != "command").collect();
    Some(CampaignMachine { name: cluster.node(), facts, ..this_machine() })
}

/// At rank 0, all machines but its own, in the order of the first rank on each.
pub(crate) fn described(cluster: &dyn Cluster, ranks: &CampaignRanks) -> Vec<CampaignMachine> {
    if cluster.size() == 1 {
        return Vec::new();
    }
    cluster.broadcast(Some(ClusterDecision::Describe));
    let reports = cluster.gather(RankReport::Machine(own_machine(cluster, ranks)));
    let machines = reports.into_iter().filter_map(|report| match report {
        RankReport::Machine(machine) => machine,
        _ => None,
    });
    machines.collect()
}

/// At rank 0, after [`crate::all_present`]: checks that machines can make the trials of a plan's network stages, and
/// exchange its packets. `before` has the results in a record.
///
/// # Errors
/// If machines can't be reached, can't make the trials, or are not those of the record, with the reason in words.
pub fn check_network(
    cluster: &dyn Cluster,
    plan: &ResolvedPlan,
    before: &[NetworkStage],
) -> Result<(), String> {
    reach_for_packets(cluster, plan)?;
    (0..plan.network.len()).try_for_each(|number| reached_by(cluster, plan, number, before).map(drop))
}

/// The machines of a stage of the network, checked.
fn reached_by(
    cluster: &dyn Cluster,
    plan: &ResolvedPlan,
    number: usize,
    before: &[NetworkStage],
) -> Result<ReachedMachines, String> {
    let run = &plan.network[number];
    let recorded = before.get(number).map(|stage| &stage.results);
    reached_machines(cluster, run.network)
        .and_then(|machines| machines.check(run).map(|()| machines))
        .and_then(|machines| are_those_of(recorded, &machines.known(), run).map(|()| machines))
        .map_err(|why| format!("stage `{}`: {why}", run.stage))
}

/// Prepares the stages of a plan that measure the network. They begin, or continue from the results in a
/// record.
///
/// # Errors
/// The errors of [`check_network`], if machines have changed since. All others have then ended, and the campaign
/// must not begin.
pub fn network_stages(
    cluster: &dyn Cluster,
    plan: &ResolvedPlan,
    before: &[NetworkStage],
) -> Result<Vec<NetworkLead>, String> {
    let mut leads = Vec::new();
    for (number, run) in plan.network.iter().enumerate() {
        let machines = reached_by(cluster, plan, number, before).inspect_err(|_| dismiss(cluster))?;
        let recorded = before.get(number).map(|stage| stage.results.clone());
        let seed = Seed(plan.seed).named(&run.stage).part(number as u64);
        let trials =
            NetworkTrials { run: run.clone(), rounds: plan.warm_up + plan.repeats, seed, packet_rate: None };
        leads.push(NetworkLead::new(trials, machines, recorded.unwrap_or_default()));
    }
    Ok(leads)
}

/// Checks that machines which exchange packets reach each other, each at an address of its own.
fn reach_for_packets(cluster: &dyn Cluster, plan: &ResolvedPlan) -> Result<(), String> {
    let mut networks: Vec<Option<Subnet>> = Vec::new();
    for (_, run) in plan.recordings().filter(|(_, run)| run.route == Route::Network) {
        if !networks.contains(&run.network) {
            networks.push(run.network);
            let reached = reached_machines(cluster, run.network);
            reached.map_err(|why| format!("packets of {} from another machine: {why}", run.who()))?;
        }
    }
    Ok(())
}

/// Checks that these are the machines and the cells of the record. Figures of other machines do not apply, and
/// another version of the program may number the cells of a plan in another way.
fn are_those_of(
    recorded: Option<&NetworkResults>,
    found: &[NetworkMachine],
    run: &NetworkRun,
) -> Result<(), String> {
    let Some(recorded) = recorded.filter(|results| !results.samples.is_empty()) else { return Ok(()) };
    let names = recorded.names();
    if recorded.machines.len() == found.len() && recorded.cells != run.cells(found.len()) {
        return Err(
            "the program that began the record measured other cells for this plan: measure again".into()
        );
    }
    let found: Vec<String> = found.iter().map(|machine| machine.name.clone()).collect();
    if names == found {
        return Ok(());
    }
    Err(format!(
        "the record is of the network between {}, and here are {}",
        names.join(", "),
        found.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::NetworkSample;

    #[test]
    fn the_network_of_other_machines_is_another() {
        let machine =
            |name: &str| NetworkMachine { name: name.into(), ranks: vec![0], ..NetworkMachine::default() };
        let there = [machine("a"), machine("b")];
        let run = NetworkRun::usual("network");
        let check = |recorded: &NetworkResults| are_those_of(Some(recorded), &there, &run);
        assert_eq!(are_those_of(None, &there, &run), Ok(()));
        let sample =
            NetworkSample { cell: 0, repeat: 0, asked: None, flows: Vec::new(), intervals: Vec::new() };
        let machines = vec![machine("a"), machine("c")];
        let mut recorded = NetworkResults { machines, cells: run.cells(2), samples: Vec::new() };
        assert_eq!(check(&recorded), Ok(()), "nothing was measured yet");
        recorded.samples.push(sample);
        let why = check(&recorded).expect_err("others");
        assert_eq!(why, "the record is of the network between a, c, and here are a, b");
        recorded.machines = there.clone().into();
        assert_eq!(check(&recorded), Ok(()));
        recorded.cells.reverse();
        let why = check(&recorded).expect_err("other cells");
        assert!(why.contains("measured other cells for this plan"), "{why}");
    }

    #[test]
    fn this_machine_has_a_name() {
        assert!(!this_machine().name.is_empty());
    }
}
