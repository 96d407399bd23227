//! What is measured of the network, as rank 0 leads it and the others follow.

use std::{
    net::{IpAddr, SocketAddr},
    sync::atomic::{AtomicBool, Ordering},
};

use nilometer_cluster::{Cluster, ClusterDecision, RankReport};
use nilometer_model::{
    FlowEnd, FlowSample, Nanos, NetworkCell, NetworkFlow, NetworkMachine, NetworkProtocol, NetworkResults,
    NetworkSample, NetworkTraffic, Seed, TrafficPattern,
};
use nilometer_storage::Clock;

use crate::{
    Subnet,
    part::{Part, Span},
    reach::{addresses, chosen},
};

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct NetworkTrials {
    /// Flows between two machines; each of these numbers.
    pub flows: Vec<u32>,
    /// How long data are sent in each trial.
    pub duration: Nanos,
    /// Rounds.
    pub repeats: u32,
    /// Whether the highest rate without loss is searched for, of each pair by UDP.
    pub udp: bool,
    /// Which network, where machines are in several.
    pub network: Option<Subnet>,
    /// The order of trials follows from it.
    pub seed: Seed,
}

/// What was measured last.
#[derive(Debug)]
pub struct NetworkProgress<'a> {
    /// So far.
    pub results: &'a NetworkResults,
    /// Trials that are done, and of how many; those of searches apart.
    pub done: usize,
    /// See `done`.
    pub of: usize,
}

/// Takes part in what rank 0 leads, to its end.
pub fn follow_network(cluster: &dyn Cluster) {
    let clock = Clock::start();
    cluster.gather(reachable(cluster));
    while let ClusterDecision::Traffic(traffic) = cluster.broadcast(None) {
        take_part(cluster, clock, &traffic, &[]);
    }
}

fn reachable(cluster: &dyn Cluster) -> RankReport {
    RankReport::Reachable { node: cluster.node(), addresses: addresses().map_err(|error| error.to_string()) }
}

/// Measures at rank 0; the others follow, also where it fails.
///
/// # Errors
/// If there is nothing to measure: all are on one machine, or one can't be reached.
pub fn lead_network(
    cluster: &dyn Cluster,
    trials: &NetworkTrials,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&NetworkProgress<'_>),
) -> Result<NetworkResults, String> {
    let machines = machines(cluster.gather(reachable(cluster)), trials.network);
    let results = machines.map(|machines| Leading::new(cluster, trials, machines).run(stop, tell));
    cluster.broadcast(Some(ClusterDecision::End));
    results
}

/// A machine and the address at which it receives.
#[derive(Debug)]
struct Reached {
    name: String,
    ranks: Vec<u32>,
    address: IpAddr,
}

impl Reached {
    fn known(&self) -> NetworkMachine {
        let Reached { name, ranks, address } = self;
        NetworkMachine { name: name.clone(), ranks: ranks.clone(), addresses: vec![address.to_string()] }
    }

    /// Which of its ranks has the flow with this number of those between two machines.
    fn rank_of(&self, number: usize) -> u32 {
        self.ranks[number % self.ranks.len()]
    }
}

/// The machines of the ranks, in the order of their first ranks.
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
                "{name} and {other} both have the address {address}: say which network is meant, with --network"
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
    let addresses = addresses.map_err(|why| format!("{name}: its addresses can't be found out: {why}"))?;
    let address = chosen(&addresses, network).ok_or_else(|| match network {
        None => format!("{name} has no address but that of its loopback"),
        Some(network) => format!("{name} has no address in {network}: it has {}", in_words(&addresses)),
    })?;
    Ok(Reached { name, ranks: vec![rank], address })
}

fn in_words(addresses: &[IpAddr]) -> String {
    let all: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

/// Rank 0 at work.
struct Leading<'a> {
    cluster: &'a dyn Cluster,
    clock: Clock,
    trials: &'a NetworkTrials,
    machines: Vec<Reached>,
    results: NetworkResults,
    /// Trials so far: each has a number that its flows are known by.
    made: u64,
}

impl<'a> Leading<'a> {
    fn new(cluster: &'a dyn Cluster, trials: &'a NetworkTrials, machines: Vec<Reached>) -> Self {
        let patterns = TrafficPattern::all_of(machines.len());
        let protocol = NetworkProtocol::Tcp;
        let mut cells = Vec::new();
        for &flows in &trials.flows {
            cells.extend(patterns.iter().map(|&pattern| NetworkCell { pattern, protocol, flows }));
        }
        let machines_known = machines.iter().map(Reached::known).collect();
        let results = NetworkResults { machines: machines_known, cells, samples: Vec::new() };
        Leading { cluster, clock: Clock::start(), trials, machines, results, made: 0 }
    }

    fn run(mut self, stop: &AtomicBool, tell: &mut dyn FnMut(&NetworkProgress<'_>)) -> NetworkResults {
        let cells = self.results.cells.len();
        let of = cells * self.trials.repeats as usize;
        for repeat in 0..self.trials.repeats {
            for cell in self.order(cells, repeat) {
                if stop.load(Ordering::Relaxed) {
                    return self.results;
                }
                let sample = self.sample(cell, repeat, None);
                self.results.samples.push(sample);
                let done = self.results.samples.len();
                tell(&NetworkProgress { results: &self.results, done, of });
            }
        }
        if self.trials.udp {
            self.search_all(stop, tell);
        }
        self.results
    }

    /// Another in each round, so that drift hits all cells alike.
    fn order(&self, cells: usize, repeat: u32) -> Vec<usize> {
        let seed = self.trials.seed.named("network").part(u64::from(repeat));
        let mut order: Vec<usize> = (0..cells).collect();
        order.sort_by_key(|cell| seed.part(*cell as u64).0);
        order
    }

    fn sample(&mut self, number: usize, repeat: u32, rate: Option<u64>) -> NetworkSample {
        let cell = self.results.cells[number];
        self.made += 1;
        let traffic = NetworkTraffic {
            flows: flows(&self.machines, cell),
            protocol: cell.protocol,
            duration: self.trials.duration,
            rate: rate.unwrap_or_default(),
            trial: self.trials.seed.named("trial").part(self.made).0,
            version_six: self.machines.iter().all(|machine| machine.address.is_ipv6()),
        };
        self.cluster.broadcast(Some(ClusterDecision::Traffic(traffic.clone())));
        let flows = take_part(self.cluster, self.clock, &traffic, &self.machines);
        NetworkSample { cell: number, repeat, asked: rate, flows }
    }

    /// The highest rate at which nothing is lost, of each pair, below that of TCP.
    fn search_all(&mut self, stop: &AtomicBool, tell: &mut dyn FnMut(&NetworkProgress<'_>)) {
        let pairs = self.results.cells.iter().enumerate().filter(|(_, cell)| {
            matches!(cell.pattern, TrafficPattern::Pair { .. })
                && Some(&cell.flows) == self.trials.flows.first()
        });
        let pairs: Vec<(usize, TrafficPattern)> =
            pairs.map(|(number, cell)| (number, cell.pattern)).collect();
        for (tcp, pattern) in pairs {
            let fastest = self.results.of_cell(tcp).map(NetworkSample::fastest_flow).max().unwrap_or(0);
            let cell = NetworkCell { pattern, protocol: NetworkProtocol::Udp, flows: 1 };
            self.results.cells.push(cell);
            self.search(self.results.cells.len() - 1, fastest, stop, tell);
        }
    }

    /// Halves what lies between the highest rate without loss and the lowest with loss.
    fn search(
        &mut self,
        cell: usize,
        fastest: u64,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&NetworkProgress<'_>),
    ) {
        let mut whole: u64 = 0;
        let mut lossy = None;
        for trial in 0..HALVINGS {
            let rate = lossy.map_or(fastest, |lossy: u64| whole.midpoint(lossy));
            if stop.load(Ordering::Relaxed) || rate == 0 {
                return;
            }
            let sample = self.sample(cell, trial, Some(rate));
            let is_whole = sample.failed().is_none() && sample.lost() == 0;
            let is_sent = sample.offered().0 >= SENT * rate as f64;
            self.results.samples.push(sample);
            let done = self.results.samples.len();
            tell(&NetworkProgress { results: &self.results, done, of: done });
            match is_whole {
                true if lossy.is_none() || !is_sent => return,
                true => whole = rate,
                false => lossy = Some(rate),
            }
        }
    }
}

/// A sender that does less of what was asked can do no more.
const SENT: f64 = 0.95;

/// Trials of a search: what is left open is a 128th of where it began.
const HALVINGS: u32 = 8;

/// The flows of a cell: those between two machines are shared out among the ranks of both.
fn flows(machines: &[Reached], cell: NetworkCell) -> Vec<NetworkFlow> {
    let mut flows = Vec::new();
    for (from, to) in cell.pattern.pairs(machines.len()) {
        flows.extend((0..cell.flows as usize).map(|number| NetworkFlow {
            from: machines[from].rank_of(number),
            to: machines[to].rank_of(number),
        }));
    }
    flows
}

/// One trial, at every rank; at rank 0, which knows the machines, what came of it.
fn take_part(
    cluster: &dyn Cluster,
    clock: Clock,
    traffic: &NetworkTraffic,
    machines: &[Reached],
) -> Vec<FlowSample> {
    let failed = |why: String| failed_flows(traffic, &why);
    let part = Part::listen(traffic, cluster.rank()).and_then(|part| Ok((part.ports()?, part)));
    let (ports, part) = match part {
        Ok((ports, part)) => (Ok(ports), Some(part)),
        Err(error) => (Err(of_node(cluster, &error)), None),
    };
    let reports = cluster.gather(RankReport::Listens(ports));
    let found = (cluster.rank() == 0).then(|| where_to(reports, traffic, machines));
    let decided = found.as_ref().map(|found| match found {
        Ok(addresses) => ClusterDecision::Connect(addresses.clone()),
        Err(_) => ClusterDecision::Cancel,
    });
    let ClusterDecision::Connect(to) = cluster.broadcast(decided) else {
        return failed(found.and_then(Result::err).unwrap_or_default());
    };
    let part = part.expect("one that could not listen has said so");
    let connected = part.connect(&to, clock);
    let report = connected.as_ref().map(drop).map_err(|error| of_node(cluster, error));
    let refused = refused(cluster.gather(RankReport::Connected(report)));
    let decided = (cluster.rank() == 0).then(|| match &refused {
        None => ClusterDecision::Begin(Vec::new()),
        Some(_) => ClusterDecision::Cancel,
    });
    let ClusterDecision::Begin(_) = cluster.broadcast(decided) else {
        return failed(refused.unwrap_or_default());
    };
    // A start is agreed upon when all listen, so that it can be near.
    cluster.barrier();
    let from = cluster.agree_start(&clock);
    let span = Span { clock, from, until: from + traffic.duration };
    let ends = connected.expect("one that could not connect has said so").run(span);
    united(cluster.gather(RankReport::Carried(ends)), traffic)
}

fn of_node(cluster: &dyn Cluster, error: &std::io::Error) -> String {
    format!("{}: {error}", cluster.node())
}

/// Where each flow goes.
fn where_to(
    reports: Vec<RankReport>,
    traffic: &NetworkTraffic,
    machines: &[Reached],
) -> Result<Vec<SocketAddr>, String> {
    let mut ports = vec![0; traffic.flows.len()];
    for report in reports {
        let RankReport::Listens(said) = report else { continue };
        for (flow, port) in said? {
            ports[flow] = port;
        }
    }
    let address =
        |rank: u32| machines.iter().find(|machine| machine.ranks.contains(&rank)).map(|found| found.address);
    let to = |(flow, port): (&NetworkFlow, u16)| Some(SocketAddr::from((address(flow.to)?, port)));
    let all: Option<Vec<SocketAddr>> = traffic.flows.iter().zip(ports).map(to).collect();
    all.ok_or_else(|| "a flow goes to a rank that is on no machine".into())
}

/// Why some could not connect, a line each.
fn refused(reports: Vec<RankReport>) -> Option<String> {
    let why = reports.into_iter().filter_map(|report| match report {
        RankReport::Connected(Err(why)) => Some(why),
        _ => None,
    });
    let all: Vec<String> = why.collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn failed_flows(traffic: &NetworkTraffic, why: &str) -> Vec<FlowSample> {
    let sent = FlowEnd { failed: Some(why.into()), ..FlowEnd::default() };
    traffic.flows.iter().map(|flow| FlowSample { sent: sent.clone(), ..between(*flow) }).collect()
}

fn between(flow: NetworkFlow) -> FlowSample {
    FlowSample { from: flow.from, to: flow.to, ..FlowSample::default() }
}

/// Each rank reports first the ends of flows that it sends or receives, by number.
fn united(reports: Vec<RankReport>, traffic: &NetworkTraffic) -> Vec<FlowSample> {
    let mut flows: Vec<FlowSample> = traffic.flows.iter().copied().map(between).collect();
    for (rank, report) in (0..).zip(reports) {
        let RankReport::Carried(ends) = report else { continue };
        for end in ends {
            let flow = &mut flows[end.flow];
            let side = if flow.from == rank { &mut flow.sent } else { &mut flow.received };
            *side = end;
        }
    }
    flows
}
