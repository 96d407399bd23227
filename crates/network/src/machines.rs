//! The machines of a campaign and their addresses, as rank 0 finds them.

use std::{collections::BTreeSet, net::IpAddr};

use nilometer_cluster::{Cluster, ClusterDecision, LinkAddress, RankReport, SocketLimits, node_name};
use nilometer_model::{ByteRate, NetworkCell, NetworkFlow, NetworkMachine, Subnet};
use nilometer_plan::{NetworkRun, UnavailableSetting};

use crate::{
    reach::{addresses, chosen},
    socket_settings::{socket_limits, too_large, why_not},
};

/// Several machines, in the order of the first rank on each.
#[derive(Debug, Clone)]
pub struct ReachedMachines(Vec<Reached>);

/// A machine and the address at which it receives.
#[derive(Debug, Clone)]
struct Reached {
    name: String,
    ranks: Vec<u32>,
    address: IpAddr,
    /// The speed of the link with the address.
    speed: Option<ByteRate>,
    /// The limits of its first rank.
    sockets: SocketLimits,
}

/// Reports this rank's machine and addresses for [`reached_machines`].
pub fn say_reachable(cluster: &dyn Cluster) {
    cluster.gather(reachable(cluster));
}

fn reachable(cluster: &dyn Cluster) -> RankReport {
    RankReport::Reachable {
        node: cluster.node(),
        addresses: addresses().map_err(|error| error.to_string()),
        sockets: socket_limits(),
    }
}

/// The address of this machine in a network, or its first address.
///
/// # Errors
/// In words, if there is none.
pub fn own_address(network: Option<Subnet>) -> Result<IpAddr, String> {
    let found = addresses().map_err(|error| error.to_string());
    address_of(&node_name(), found, network).map(|found| found.address)
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

    /// Checks that these machines can make a measurement.
    ///
    /// # Errors
    /// In words, if there are too few machines or processes, or a machine's sockets can't have a setting.
    pub fn check(&self, run: &NetworkRun) -> Result<(), String> {
        run.check_machines(self.count())?;
        self.0.iter().try_for_each(|machine| machine.check(run))
    }

    /// The flows of a cell. The flows between two machines are distributed among the ranks of both.
    pub(crate) fn flows(&self, cell: &NetworkCell) -> Vec<NetworkFlow> {
        let processes = cell.settings.processes.map_or(usize::MAX, |count| count as usize);
        let mut flows = Vec::new();
        for (from, to) in cell.pattern.pairs(self.count()) {
            flows.extend((0..cell.flows as usize).map(|number| NetworkFlow {
                from: self.0[from].rank_of(number, processes),
                to: self.0[to].rank_of(number, processes),
            }));
        }
        flows
    }

    /// The first rank of each machine that takes part in a cell's trials.
    pub(crate) fn observers(&self, cell: &NetworkCell) -> Vec<u32> {
        let ends = cell.pattern.pairs(self.count());
        let machines: BTreeSet<usize> = ends.into_iter().flat_map(|(from, to)| [from, to]).collect();
        machines.into_iter().map(|machine| self.0[machine].ranks[0]).collect()
    }

    /// The number of a rank's machine.
    pub(crate) fn number_of(&self, rank: u32) -> Option<usize> {
        self.0.iter().position(|machine| machine.ranks.contains(&rank))
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
        let Reached { name, ranks, address, speed, sockets } = self;
        NetworkMachine {
            name: name.clone(),
            ranks: ranks.clone(),
            addresses: vec![address.to_string()],
            link_speed: *speed,
            congestion: sockets.congestion.clone(),
        }
    }

    /// The rank for a flow, by its number among those between two machines. The first `processes` ranks take
    /// part.
    fn rank_of(&self, number: usize, processes: usize) -> u32 {
        self.ranks[number % self.ranks.len().min(processes)]
    }

    fn check(&self, run: &NetworkRun) -> Result<(), String> {
        let Reached { name, ranks, sockets, .. } = self;
        if run.unavailable == UnavailableSetting::LeaveOut {
            return too_large(sockets, run).map_or(Ok(()), |why| Err(format!("{why} on {name}")));
        }
        let most = run.processes.iter().max().map_or(0, |count| *count as usize);
        if most > ranks.len() {
            let there = ranks.len();
            return Err(format!("processes = {most}: {name} has {there}; start {most} on each machine"));
        }
        why_not(sockets, run).map_or(Ok(()), |why| Err(format!("{why} on {name}")))
    }
}

fn machines(reports: Vec<RankReport>, network: Option<Subnet>) -> Result<Vec<Reached>, String> {
    let mut machines: Vec<Reached> = Vec::new();
    for (rank, report) in (0..).zip(reports) {
        let RankReport::Reachable { node, addresses, sockets } = report else { continue };
        if let Some(machine) = machines.iter_mut().find(|machine| machine.name == node) {
            machine.ranks.push(rank);
            continue;
        }
        let LinkAddress { address, speed } = address_of(&node, addresses, network)?;
        machines.push(Reached { name: node, ranks: vec![rank], address, speed, sockets });
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

/// The address for a machine among its addresses.
fn address_of(
    name: &str,
    addresses: Result<Vec<LinkAddress>, String>,
    network: Option<Subnet>,
) -> Result<LinkAddress, String> {
    let addresses = addresses.map_err(|why| format!("{name}: its addresses can't be found out: {why}"))?;
    chosen(&addresses, network).ok_or_else(|| match network {
        None => format!("{name} has no address but that of its loopback"),
        Some(network) => format!("{name} has no address in {network}: it has {}", in_words(&addresses)),
    })
}

fn in_words(addresses: &[LinkAddress]) -> String {
    let all: Vec<String> = addresses.iter().map(|of| of.address.to_string()).collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Bytes, FlowSettings, NetworkProtocol, PatternKind, TrafficPattern};

    use super::*;

    fn report(node: &str, address: &str) -> RankReport {
        let address =
            LinkAddress { address: address.parse().expect("an address"), speed: Some(ByteRate(1.25e9)) };
        let congestion = ["cubic", "reno"].map(|name| name.parse().expect("a name")).into();
        let sockets = SocketLimits { congestion, buffer: Bytes(1 << 20) };
        RankReport::Reachable { node: node.into(), addresses: Ok(vec![address]), sockets }
    }

    fn three_ranks() -> Vec<RankReport> {
        vec![report("a", "10.1.0.1"), report("b", "10.1.0.2"), report("a", "10.1.0.1")]
    }

    #[test]
    fn flows_between_two_machines_are_shared_out_among_their_ranks() {
        let machines = ReachedMachines(machines(three_ranks(), None).expect("two machines"));
        let ends = |processes| {
            let settings = FlowSettings { processes, ..FlowSettings::default() };
            let pattern = TrafficPattern::Pair { from: 0, to: 1 };
            let cell = NetworkCell { pattern, protocol: NetworkProtocol::Tcp, flows: 3, settings };
            machines.flows(&cell).iter().map(|flow| [flow.from, flow.to]).collect::<Vec<_>>()
        };
        assert_eq!(ends(None), [[0, 1], [2, 1], [0, 1]]);
        assert_eq!(ends(Some(1)), [[0, 1], [0, 1], [0, 1]], "the first process alone");
        let pattern = TrafficPattern::Pair { from: 1, to: 0 };
        let settings = FlowSettings::default();
        let cell = NetworkCell { pattern, protocol: NetworkProtocol::Tcp, flows: 3, settings };
        assert_eq!(machines.observers(&cell), [0, 1], "the first rank of each");
        assert_eq!((machines.number_of(2), machines.number_of(3)), (Some(0), None));
        assert_eq!(machines.known()[0].link_speed, Some(ByteRate(1.25e9)));
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

    #[test]
    fn a_run_that_these_machines_can_not_make_is_refused_with_the_reason() {
        let machines = ReachedMachines(machines(three_ranks(), None).expect("two machines"));
        let usual = || NetworkRun::usual("network");
        assert_eq!(machines.check(&usual()), Ok(()));
        let grouped = NetworkRun { patterns: vec![PatternKind::ClientsToServers], ..usual() };
        assert_eq!(machines.check(&grouped), Ok(()));
        let refused = |run: NetworkRun| machines.check(&run).expect_err("it is refused");
        let many = refused(NetworkRun { clients: Some(2), servers: Some(9), ..grouped.clone() });
        assert!(many.starts_with("clients = 2 and servers = 9 need 11 machines, and there are 2"), "{many}");
        let none = refused(NetworkRun { clients: Some(2), ..grouped });
        assert!(none.starts_with("clients = 2 and servers = 1 need 3 machines"), "{none}");
        let one = refused(NetworkRun { processes: vec![1, 2], ..usual() });
        assert_eq!(one, "processes = 2: b has 1; start 2 on each machine");
        let unknown = refused(NetworkRun { congestion: vec!["htcp".parse().expect("a name")], ..usual() });
        assert_eq!(unknown, "congestion = \"htcp\": this process may use cubic, reno on a");
        let left_out = NetworkRun {
            processes: vec![1, 2],
            congestion: vec!["htcp".parse().expect("a name")],
            unavailable: UnavailableSetting::LeaveOut,
            ..usual()
        };
        assert_eq!(machines.check(&left_out), Ok(()), "reports name the trials that it leaves out");
        for run in [usual(), left_out] {
            let large = refused(NetworkRun { buffers: vec![Bytes(2 << 20)], ..run });
            assert!(large.starts_with("buffer = \"2 MiB\": at most 1 MiB"), "{large}");
        }
    }
}
