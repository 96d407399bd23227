//! The machines of a campaign and their addresses, as rank 0 finds them.

use std::net::IpAddr;

use nilometer_cluster::{Cluster, ClusterDecision, RankReport, node_name};
use nilometer_model::{NetworkFlow, NetworkMachine, Subnet, TrafficPattern};

use crate::reach::{addresses, chosen};

/// Several machines, in the order of the first rank on each.
#[derive(Debug, Clone)]
pub struct ReachedMachines(Vec<Reached>);

/// A machine and the address at which it receives.
#[derive(Debug, Clone)]
struct Reached {
    name: String,
    ranks: Vec<u32>,
    address: IpAddr,
}

/// Reports this rank's machine and addresses for [`reached_machines`].
pub fn say_reachable(cluster: &dyn Cluster) {
    cluster.gather(reachable(cluster));
}

fn reachable(cluster: &dyn Cluster) -> RankReport {
    RankReport::Reachable { node: cluster.node(), addresses: addresses().map_err(|error| error.to_string()) }
}

/// The address of this machine in a network, or its first address.
///
/// # Errors
/// In words, if there is none.
pub fn own_address(network: Option<Subnet>) -> Result<IpAddr, String> {
    address_of(&node_name(), addresses().map_err(|error| error.to_string()), network)
}

/// Collects the machines of all ranks, at rank 0. Each has its address in the network, or its first one.
///
/// # Errors
/// In words, if all are on one machine, or one can't be reached.
pub fn reached_machines(cluster: &dyn Cluster, network: Option<Subnet>) -> Result<ReachedMachines, String> {
    cluster.broadcast(Some(ClusterDecision::Reach));
    machines(cluster.gather(reachable(cluster)), network).map(ReachedMachines)
}

impl ReachedMachines {
    /// Number of machines.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The machines as they appear in results.
    pub fn known(&self) -> Vec<NetworkMachine> {
        self.0.iter().map(Reached::known).collect()
    }

    /// The flows of a pattern. The flows between two machines are distributed among the ranks of both.
    pub(crate) fn flows(&self, pattern: TrafficPattern, count: u32) -> Vec<NetworkFlow> {
        let mut flows = Vec::new();
        for (from, to) in pattern.pairs(self.count()) {
            flows.extend((0..count as usize).map(|number| NetworkFlow {
                from: self.0[from].rank_of(number),
                to: self.0[to].rank_of(number),
            }));
        }
        flows
    }

    /// The address at which a rank receives.
    pub(crate) fn address(&self, rank: u32) -> Option<IpAddr> {
        self.0.iter().find(|machine| machine.ranks.contains(&rank)).map(|found| found.address)
    }

    /// Returns true if all addresses are of IP version 6.
    pub(crate) fn version_six(&self) -> bool {
        self.0.iter().all(|machine| machine.address.is_ipv6())
    }
}

impl Reached {
    fn known(&self) -> NetworkMachine {
        let Reached { name, ranks, address } = self;
        NetworkMachine { name: name.clone(), ranks: ranks.clone(), addresses: vec![address.to_string()] }
    }

    /// The rank for a flow, by its number among those between two machines.
    fn rank_of(&self, number: usize) -> u32 {
        self.ranks[number % self.ranks.len()]
    }
}

fn machines(reports: Vec<RankReport>, network: Option<Subnet>) -> Result<Vec<Reached>, String> {
    let mut machines: Vec<Reached> = Vec::new();
    for (rank, report) in (0..).zip(reports) {
        let RankReport::Reachable { node, addresses } = report else { continue };
        match machines.iter_mut().find(|machine| machine.name == node) {
            Some(machine) => machine.ranks.push(rank),
            None => machines.push(reached(node, rank, addresses, network)?),
        }
    }
    for (number, machine) in machines.iter().enumerate() {
        let alike = machines[..number].iter().find(|other| other.address == machine.address);
        if let Some(Reached { name, address, .. }) = alike {
            let other = &machine.name;
            return Err(format!(
                "{name} and {other} both have the address {address}: select the network, with --network, or \
                 with network in a plan"
            ));
        }
    }
    if machines.len() < 2 {
        return Err(
            "there is no network to measure: all processes are on one machine; start them on several".into(),
        );
    }
    Ok(machines)
}

fn reached(
    name: String,
    rank: u32,
    addresses: Result<Vec<IpAddr>, String>,
    network: Option<Subnet>,
) -> Result<Reached, String> {
    let address = address_of(&name, addresses, network)?;
    Ok(Reached { name, ranks: vec![rank], address })
}

/// The address for a machine among its addresses.
fn address_of(
    name: &str,
    addresses: Result<Vec<IpAddr>, String>,
    network: Option<Subnet>,
) -> Result<IpAddr, String> {
    let addresses = addresses.map_err(|why| format!("{name}: its addresses can't be found out: {why}"))?;
    chosen(&addresses, network).ok_or_else(|| match network {
        None => format!("{name} has no address but that of its loopback"),
        Some(network) => format!("{name} has no address in {network}: it has {}", in_words(&addresses)),
    })
}

fn in_words(addresses: &[IpAddr]) -> String {
    let all: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(node: &str, address: &str) -> RankReport {
        RankReport::Reachable { node: node.into(), addresses: Ok(vec![address.parse().expect("an address")]) }
    }

    fn three_ranks() -> Vec<RankReport> {
        vec![report("a", "10.1.0.1"), report("b", "10.1.0.2"), report("a", "10.1.0.1")]
    }

    #[test]
    fn flows_between_two_machines_are_shared_out_among_their_ranks() {
        let machines = ReachedMachines(machines(three_ranks(), None).expect("two machines"));
        let flows = machines.flows(TrafficPattern::Pair { from: 0, to: 1 }, 3);
        let ends: Vec<[u32; 2]> = flows.iter().map(|flow| [flow.from, flow.to]).collect();
        assert_eq!(ends, [[0, 1], [2, 1], [0, 1]]);
        assert_eq!(machines.address(2), machines.address(0), "they are on one machine");
        assert_eq!((machines.address(3), machines.version_six()), (None, false));
    }

    #[test]
    fn who_can_not_be_told_apart_or_reached_is_named() {
        let refused = |reports: Vec<RankReport>, network: Option<&str>| {
            let network = network.map(|text| text.parse().expect("a network"));
            machines(reports, network).map(drop).expect_err("it is refused")
        };
        assert!(refused(vec![report("a", "10.1.0.1")], None).contains("on one machine"));
        let alike = refused(vec![report("a", "10.1.0.1"), report("b", "10.1.0.1")], None);
        assert!(alike.contains("a and b both have the address 10.1.0.1"), "{alike}");
        let elsewhere = refused(three_ranks(), Some("192.168.0.0/16"));
        assert_eq!(elsewhere, "a has no address in 192.168.0.0/16: it has 10.1.0.1");
    }
}
