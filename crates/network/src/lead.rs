//! Measures the network: rank 0 leads, and the others follow.

use std::sync::atomic::{AtomicBool, Ordering};

use nilometer_cluster::{Cluster, ClusterDecision};
use nilometer_model::{NetworkResults, NetworkSample, NetworkTraffic};
use nilometer_plan::{NetworkTrial, NetworkTrials};
use nilometer_storage::Clock;

use crate::{
    ReachedMachines, reached_machines, say_reachable, take_part,
    together::{CarriedTraffic, carried},
};

/// Progress after a measurement.
#[derive(Debug)]
pub struct NetworkProgress<'a> {
    /// The results so far.
    pub results: &'a NetworkResults,
    /// Number of finished trials. A search counts as one.
    pub done: usize,
    /// Number of all trials.
    pub of: usize,
}

/// Takes part in the measurements that rank 0 leads, to their end.
pub fn follow_network(cluster: &dyn Cluster) {
    let clock = Clock::start();
    loop {
        match cluster.broadcast(None) {
            ClusterDecision::Reach => say_reachable(cluster),
            ClusterDecision::Traffic(traffic) => take_part(cluster, clock, &traffic),
            _ => return,
        }
    }
}

/// Measures at rank 0. The others follow, even if it fails.
///
/// # Errors
/// If there is nothing to measure: all are on one machine, one can't be reached, or they can't make the trials.
pub fn lead_network(
    cluster: &dyn Cluster,
    trials: &NetworkTrials,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&NetworkProgress<'_>),
) -> Result<NetworkResults, String> {
    let clock = Clock::start();
    let reached = reached_machines(cluster, trials.run.network)
        .and_then(|machines| machines.check(&trials.run).map(|()| machines));
    let led = reached.map(|machines| {
        let mut lead = NetworkLead::new(trials.clone(), machines, NetworkResults::default());
        while !stop.load(Ordering::Relaxed) && lead.measure(cluster, clock, trials.rounds).is_some() {
            tell(&lead.progress());
        }
        lead.results
    });
    cluster.broadcast(Some(ClusterDecision::End));
    led
}

/// The state of rank 0.
#[derive(Debug)]
pub struct NetworkLead {
    trials: NetworkTrials,
    machines: ReachedMachines,
    results: NetworkResults,
}

impl NetworkLead {
    /// Continues from earlier results, if there are any.
    pub fn new(trials: NetworkTrials, machines: ReachedMachines, before: NetworkResults) -> Self {
        let cells = trials.run.cells(machines.count());
        let results = NetworkResults { machines: machines.known(), cells, samples: before.samples };
        NetworkLead { trials, machines, results }
    }

    /// All results, including earlier ones.
    pub fn results(&self) -> &NetworkResults {
        &self.results
    }

    /// The name of the stage to which it belongs.
    pub fn stage(&self) -> &str {
        &self.trials.run.stage
    }

    /// Returns true if any trial of the first `rounds` rounds is due.
    pub fn is_due(&self, rounds: u32) -> bool {
        self.trials.next(&self.results, rounds).is_some()
    }

    /// Its progress.
    pub fn progress(&self) -> NetworkProgress<'_> {
        let NetworkLead { results, trials, .. } = self;
        let [done, of] = trials.progress(results);
        NetworkProgress { results, done, of }
    }

    /// Makes the next trial of the first `rounds` rounds, together with the others. `None` if there is none.
    pub fn measure(&mut self, cluster: &dyn Cluster, clock: Clock, rounds: u32) -> Option<&NetworkSample> {
        let next = self.trials.next(&self.results, rounds)?;
        let sample = self.sample(cluster, clock, next);
        self.results.samples.push(sample);
        self.results.samples.last()
    }

    fn sample(&self, cluster: &dyn Cluster, clock: Clock, next: NetworkTrial) -> NetworkSample {
        let NetworkTrial { cell: number, repeat, rate } = next;
        let cell = self.results.cells[number];
        let seed = self.trials.seed.named("trial").part(number as u64).part(u64::from(repeat));
        let traffic = NetworkTraffic {
            flows: self.machines.flows(&cell),
            protocol: cell.protocol,
            duration: self.trials.run.duration,
            rate: rate.unwrap_or_default(),
            trial: seed.0,
            version_six: self.machines.version_six(),
            settings: cell.settings,
            observers: self.machines.observers(&cell),
        };
        cluster.broadcast(Some(ClusterDecision::Traffic(traffic.clone())));
        let CarriedTraffic { flows, intervals } = carried(cluster, clock, &traffic, Some(&self.machines));
        NetworkSample { cell: number, repeat, asked: rate, flows, intervals }
    }
}
