//! The network between clients and servers in several records, whose machines have other names.

use nilometer_analysis::made_up::planned;
use nilometer_model::{MachineGroups, NetworkCell, NetworkSample, PatternKind, TrafficPattern};
use nilometer_plan::{NetworkRun, Results};

use super::compared::{compared, with_network};

const BEFORE: &str = "2026-11-23T08:00:00Z";
const AFTER: &str = "2026-11-24T08:00:00Z";

/// The same with a client and a server of these names.
fn of_client_and_server(seed: u64, started: &'static str, names: [&str; 2]) -> Results {
    let mut results = with_network(seed, started, 1_000_000_000, 500_000_000);
    let groups = MachineGroups { clients: 1, servers: 1 };
    let stage = &mut results.network[0].results;
    for (machine, name) in stage.machines.iter_mut().zip(names) {
        machine.name = name.into();
    }
    let both = [TrafficPattern::ClientsToServers(groups), TrafficPattern::AllToAll];
    let traffic = NetworkCell { pattern: both[0], ..stage.cells[0] };
    stage.cells.extend(both.map(|pattern| NetworkCell { pattern, ..traffic }));
    for cell in [2, 3] {
        let again = stage.samples.iter().filter(|sample| sample.cell == 0).cloned();
        let again: Vec<NetworkSample> = again.map(|sample| NetworkSample { cell, ..sample }).collect();
        stage.samples.extend(again);
    }
    let campaign = results.campaign.get_or_insert_with(|| planned(results.cells.clone(), 3));
    let patterns = vec![PatternKind::ClientServerPairs];
    campaign.plan.network = vec![NetworkRun { patterns, ..NetworkRun::usual("between") }];
    results
}

#[test]
fn clients_and_servers_of_other_names_are_compared_by_their_roles_and_numbers() {
    let other = of_client_and_server(2, AFTER, ["of-a-study", "storage"]);
    let all = [of_client_and_server(1, BEFORE, ["node1", "node2"]), other];
    let with_others = compared(&all);
    let network = &with_others.networks[0];
    let words: Vec<&str> = network.rows.iter().map(|row| row.words.as_str()).collect();
    assert_eq!(
        words,
        [
            "client 1 to server 1, TCP, one flow",
            "server 1 to client 1, TCP, one flow",
            "1 client to 1 server, TCP, one flow",
            "all to all, TCP, one flow"
        ]
    );
    assert_eq!((network.pairs.len(), network.pairs[0].cells.len(), network.lone.len()), (1, 4, 0));
    let all = [all[0].clone(), of_client_and_server(3, AFTER, ["node1", "node2"])];
    let with_the_same = compared(&all);
    assert_eq!(with_the_same.networks[0].rows[0].words, "node1 to node2, TCP, one flow");
    let mut all = all;
    all[1].network[0].results.machines[1].name = "node9".into();
    if let Some(campaign) = &mut all[1].campaign {
        campaign.plan.network.clear();
    }
    let without_roles = compared(&all);
    let of_all: Vec<usize> = without_roles.networks[0].pairs[0].cells.iter().map(|cell| cell.row).collect();
    assert_eq!(of_all, [2, 3], "the plan of one record does not tell clients from servers");
}
