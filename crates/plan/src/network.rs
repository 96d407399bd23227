//! Network measurements in a stage of a plan, as written and resolved. They are no cells: no target takes
//! part, and each round measures them once.

use std::fmt;

use nilometer_model::{Nanos, NetworkCell, NetworkProtocol, PatternKind, Subnet, TrafficPattern};
use serde::{Deserialize, Serialize};

use super::{ResolvedPlan, Sweep, plan_table::plan_table};

plan_table! {
    /// Measures the network between machines.
    #[derive(Debug, Clone, PartialEq)]
    NetworkSweep {
        /// Measure streams at full speed, or search for the highest rate of packets without loss. Both go
        /// from each machine to each other.
        protocol: Sweep<NetworkProtocol> = Sweep::default(),
        /// The senders and receivers at the same time. Default: all patterns except the ring. Pairs of more
        /// than 8 machines are a ring.
        pattern: Option<Sweep<PatternKind>>,
        /// Streams from a machine to another, shared out among its processes. Default: 1 and 4.
        flows: Option<Sweep<u32>>,
        /// Send for this time in each trial.
        duration: Nanos = DURATION,
        /// Use this network, if machines are in several.
        network: Option<Subnet>,
    }
}

/// The default duration.
const DURATION: Nanos = Nanos::from_millis(1000);
/// The least duration; shorter streams consist of their start only.
const DURATION_LEAST: Nanos = Nanos::from_millis(10);
/// The most streams: more would measure threads.
const FLOWS_MAX: u32 = 1024;

/// A measurement of the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkRun {
    /// The stage's name.
    pub stage: String,
    /// The protocols, each once.
    pub protocols: Vec<NetworkProtocol>,
    /// The patterns of senders and receivers, each once.
    pub patterns: Vec<PatternKind>,
    /// Streams between two machines; each of these numbers.
    pub flows: Vec<u32>,
    /// The time for which each trial sends.
    pub duration: Nanos,
    /// The network to measure, if machines are in several.
    pub network: Option<Subnet>,
}

impl NetworkRun {
    /// The default measurement.
    pub fn usual(stage: &str) -> Self {
        NetworkRun {
            stage: stage.into(),
            protocols: vec![NetworkProtocol::Tcp],
            patterns: PatternKind::USUAL.into(),
            flows: vec![1, 4],
            duration: DURATION,
            network: None,
        }
    }

    /// Returns the run if it makes sense; else a message that says how to correct it.
    ///
    /// # Errors
    /// It is too short, or has no flows or too many.
    pub fn checked(mut self) -> Result<Self, String> {
        let NetworkRun { duration, .. } = self;
        if duration < DURATION_LEAST {
            return Err(format!("duration = \"{duration}\": at least {DURATION_LEAST} are needed"));
        }
        if let Some(wrong) = self.flows.iter().find(|count| !(1..=FLOWS_MAX).contains(*count)) {
            return Err(format!("flows = {wrong}: write 1 to {FLOWS_MAX}"));
        }
        self.flows.sort_unstable();
        self.flows.dedup();
        self.protocols.sort_unstable();
        self.protocols.dedup();
        Ok(self)
    }

    /// The cells for this many machines: streams by number of flows, then a search for each pair.
    pub fn cells(&self, machines: usize) -> Vec<NetworkCell> {
        let mut cells = Vec::new();
        for &protocol in &self.protocols {
            let (patterns, flows) = match protocol {
                NetworkProtocol::Tcp => (self.patterns.as_slice(), self.flows.as_slice()),
                NetworkProtocol::Udp => (self.searched(), &[1][..]),
            };
            let patterns = TrafficPattern::all_of(patterns, machines);
            for &flows in flows {
                cells.extend(patterns.iter().map(|&pattern| NetworkCell { pattern, protocol, flows }));
            }
        }
        cells
    }

    /// The patterns of searches: from one machine to another.
    fn searched(&self) -> &[PatternKind] {
        let is_ring =
            self.patterns.contains(&PatternKind::Ring) && !self.patterns.contains(&PatternKind::Pairs);
        if is_ring { &[PatternKind::Ring] } else { &[PatternKind::Pairs] }
    }

    /// The least time of this many rounds between this many machines, with a single trial for each search.
    fn least_time(&self, machines: usize, rounds: u32) -> Nanos {
        let all = self.cells(machines);
        let (streams, searches): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|cell| cell.protocol == NetworkProtocol::Tcp);
        let trials = streams.len() as u64 * u64::from(rounds) + searches.len() as u64;
        Nanos(self.duration.0.saturating_mul(trials))
    }
}

impl fmt::Display for NetworkRun {
    /// `TCP, pairs and all_to_all, 1 and 4 flows, 1 s each`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |all: Vec<String>| all.join(" and ");
        let protocols = words(self.protocols.iter().map(ToString::to_string).collect());
        let patterns: Vec<&str> = self.patterns.iter().map(|pattern| pattern.name()).collect();
        write!(f, "{protocols}, {}", patterns.join(", "))?;
        let flows = words(self.flows.iter().map(ToString::to_string).collect());
        write!(f, ", {flows} flows, {} each", self.duration)?;
        self.network.map_or(Ok(()), |network| write!(f, ", in {network}"))
    }
}

impl NetworkSweep {
    /// The run of this table, for the stage of this name.
    pub(super) fn run(&self, stage: &str) -> Result<NetworkRun, String> {
        let mut run = NetworkRun {
            protocols: self.protocol.values().into(),
            duration: self.duration,
            network: self.network,
            ..NetworkRun::usual(stage)
        };
        if let Some(patterns) = &self.pattern {
            run.patterns = patterns.values().into();
        }
        if let Some(flows) = &self.flows {
            run.flows = flows.values().into();
        }
        run.checked()
    }
}

impl ResolvedPlan {
    /// The number of machines of its processes.
    pub fn machines(&self) -> usize {
        self.node_ranks.len().max(1)
    }

    /// The least time that measuring the network takes.
    pub(super) fn network_time(&self) -> Nanos {
        let rounds = self.warm_up + self.repeats;
        let machines = self.machines();
        let times = self.network.iter().map(|run| run.least_time(machines, rounds));
        times.fold(Nanos(0), |sum, time| Nanos(sum.0.saturating_add(time.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const PLAN: &str = "title = \"a test\"\nrepeats = 2\n[[stage]]\nname = \"network\"\n[stage.network]\n";

    fn plan(lines: &str) -> ResolvedPlan {
        parse(&format!("{PLAN}{lines}"), "my.toml", 1.0).expect("a valid plan")
    }

    #[test]
    fn a_network_is_no_cell_and_has_its_usual_values() {
        let plan = plan("");
        assert_eq!((plan.cells.len(), &plan.network), (0, &vec![NetworkRun::usual("network")]));
        assert_eq!(plan.network[0].cells(2).len(), 2 * 3);
        assert_eq!(plan.network[0].cells(3).len(), 2 * 16);
        let on_three = ResolvedPlan { ranks: 3, node_ranks: vec![1, 1, 1], ..plan };
        assert_eq!(on_three.network_time(), Nanos::from_millis(2 * 32 * 1000));
    }

    #[test]
    fn what_is_written_is_measured_and_nothing_else() {
        let lines = "protocol = [\"udp\", \"tcp\"]\npattern = [\"ring\", \"all_to_all\"]\nflows = [4, 1, 4]\n\
                     duration = \"100 ms\"\nnetwork = \"10.1.0.0/16\"\n";
        let run = plan(lines).network.remove(0);
        let words = "TCP and UDP, ring, all_to_all, 1 and 4 flows, 100 ms each, in 10.1.0.0/16";
        assert_eq!(run.to_string(), words);
        let cells = run.cells(3);
        assert_eq!(cells.len(), 2 * 4 + 3, "and a search of each pair of the ring");
        assert!(cells[8..].iter().all(|cell| cell.protocol == NetworkProtocol::Udp && cell.flows == 1));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_would() {
        for (lines, parts) in [
            ("duration = \"1 ms\"", &["my.toml:4", "at least 10 ms"][..]),
            ("flows = 0", &["my.toml:4", "flows = 0: write 1 to 1024"]),
            ("pattern = \"star\"", &["line 6", "`star`", "`ring`", "`all_to_all`"]),
            ("protocol = \"sctp\"", &["line 6", "`sctp`", "`tcp`", "`udp`"]),
            ("network = \"here\"", &["line 6", "`here` is no network"]),
            ("flow = 1", &["line 6", "`flow`", "`flows`"]),
        ] {
            let refused = parse(&format!("{PLAN}{lines}"), "my.toml", 1.0).expect_err(lines).to_string();
            assert!(parts.iter().all(|part| refused.contains(part)), "{lines}: {refused}");
        }
        let with_workers = PLAN.replace("[stage.network]", "workers = 2\n[stage.network]");
        let refused = parse(&with_workers, "my.toml", 1.0).expect_err("no workers").to_string();
        assert!(refused.contains("workers: the network has none, leave it out"), "{refused}");
        let both = format!("{PLAN}[stage.workload.walk]\nlevels = 1\nbranching = 1\nfiles = 1\n");
        let refused = parse(&both, "my.toml", 1.0).expect_err("two kinds").to_string();
        assert!(refused.contains("has a workload and a network: write one of them"), "{refused}");
    }
}
