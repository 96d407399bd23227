//! One trial, at every rank: all listen, connect, begin at the same time, and report their results.

use std::{net::SocketAddr, thread};

use nilometer_cluster::{Cluster, ClusterDecision, RankReport};
use nilometer_model::{FlowEnd, FlowSample, NetworkFlow, NetworkTraffic, TrafficInterval};
use nilometer_storage::Clock;

use crate::{
    machines::ReachedMachines,
    observe::intervals,
    part::{ConnectedPart, Part},
    span::Span,
};

/// Runs a rank's part of a trial that rank 0 has announced.
pub fn take_part(cluster: &dyn Cluster, clock: Clock, traffic: &NetworkTraffic) {
    carried(cluster, clock, traffic, None);
}

/// The results of a trial.
#[derive(Debug, Default)]
pub(crate) struct CarriedTraffic {
    /// All flows.
    pub(crate) flows: Vec<FlowSample>,
    /// The traffic of each machine.
    pub(crate) intervals: Vec<TrafficInterval>,
}

/// Runs one trial at any rank. At rank 0, which knows the machines, it returns the results.
pub(crate) fn carried(
    cluster: &dyn Cluster,
    clock: Clock,
    traffic: &NetworkTraffic,
    machines: Option<&ReachedMachines>,
) -> CarriedTraffic {
    let failed = |why: String| CarriedTraffic { flows: failed_flows(traffic, &why), intervals: Vec::new() };
    let part = Part::listen(traffic, cluster.rank()).and_then(|part| Ok((part.ports()?, part)));
    let (ports, part) = match part {
        Ok((ports, part)) => (Ok(ports), Some(part)),
        Err(error) => (Err(of_node(cluster, &error)), None),
    };
    let reports = cluster.gather(RankReport::Listens(ports));
    let found = machines.map(|machines| where_to(reports, traffic, machines));
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
    let decided = machines.map(|_| match &refused {
        None => ClusterDecision::Begin(Vec::new()),
        Some(_) => ClusterDecision::Cancel,
    });
    let ClusterDecision::Begin(_) = cluster.broadcast(decided) else {
        return failed(refused.unwrap_or_default());
    };
    // All listen by now, so that the agreed start can be near.
    cluster.barrier();
    let from = cluster.agree_start(&clock);
    let span = Span { clock, from, until: from + traffic.duration };
    let connected = connected.expect("one that could not connect has said so");
    let is_observer = traffic.observers.contains(&cluster.rank());
    let reports = cluster.gather(ran(connected, span, is_observer));
    // A flow of another process may last longer.
    cluster.barrier();
    united(reports, traffic, machines)
}

/// Runs this rank's flows, and reads its machine's counters meanwhile if it is the machine's observer.
fn ran(connected: ConnectedPart, span: Span, is_observer: bool) -> RankReport {
    thread::scope(|scope| {
        // A machine without room for one more thread has no intervals.
        let observing = is_observer
            .then(|| thread::Builder::new().spawn_scoped(scope, move || intervals(span)).ok())
            .flatten();
        let ends = connected.run(span);
        let intervals = observing.map(|thread| thread.join().expect("it does not panic"));
        RankReport::Carried { ends, intervals: intervals.unwrap_or_default() }
    })
}

fn of_node(cluster: &dyn Cluster, error: &std::io::Error) -> String {
    format!("{}: {error}", cluster.node())
}

/// The destination of each flow.
fn where_to(
    reports: Vec<RankReport>,
    traffic: &NetworkTraffic,
    machines: &ReachedMachines,
) -> Result<Vec<SocketAddr>, String> {
    let mut ports = vec![0; traffic.flows.len()];
    for report in reports {
        let RankReport::Listens(said) = report else { continue };
        for (flow, port) in said? {
            ports[flow] = port;
        }
    }
    let to = |(flow, port): (&NetworkFlow, u16)| Some(SocketAddr::from((machines.address(flow.to)?, port)));
    let all: Option<Vec<SocketAddr>> = traffic.flows.iter().zip(ports).map(to).collect();
    all.ok_or_else(|| "a flow goes to a rank that is on no machine".into())
}

/// The connection errors of all ranks, joined by semicolons. `None` if there are none.
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

/// Combines the reports of all ranks. Each rank reports the ends of flows that it sends or receives, by flow
/// number, and one of each machine reports its traffic.
fn united(
    reports: Vec<RankReport>,
    traffic: &NetworkTraffic,
    machines: Option<&ReachedMachines>,
) -> CarriedTraffic {
    let flows = traffic.flows.iter().copied().map(between).collect();
    let mut carried = CarriedTraffic { flows, intervals: Vec::new() };
    for (rank, report) in (0..).zip(reports) {
        let RankReport::Carried { ends, intervals } = report else { continue };
        for end in ends {
            let flow = &mut carried.flows[end.flow];
            let side = if flow.from == rank { &mut flow.sent } else { &mut flow.received };
            *side = end;
        }
        let machine = machines.and_then(|machines| machines.number_of(rank)).unwrap_or_default();
        carried.intervals.extend(intervals.into_iter().map(|of| TrafficInterval { machine, ..of }));
    }
    carried
}
