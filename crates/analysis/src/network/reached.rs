//! Compares storage figures with the network's rate. A target behind a network can't be faster, and a figure
//! close to the network's rate shows the network rather than the storage.

use std::fmt;

use nilometer_model::{
    ByteRate, Coldness, NetworkLink, NetworkResults, Phase, TrafficPattern, statistics::median,
};
use nilometer_plan::{Cell, Results, SyncPolicy, WorkloadCell, WorkloadRun};

use crate::{AcrossMachines, CellOutcome, NetworkOutcome, Quantity, StageFigures, letter, network_outcomes};

/// The storage figure of a target that is closest to the network's rate.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkShare {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// The stage.
    pub stage: String,
    /// The phase of the workload.
    pub phase: Phase,
    /// The rate of the storage, per machine if several took part.
    pub rate: ByteRate,
    /// Number of machines.
    pub machines: usize,
    /// The network's rate.
    pub limit: NetworkLimit,
}

/// The rate of the network from or to one machine.
#[derive(Debug, Clone, PartialEq)]
pub enum NetworkLimit {
    /// Measured by a stage of the plan between two machines: the median of all pairs, without options of sockets
    /// that hold flows back.
    Measured(ByteRate),
    /// The stated speed of the machine's fastest link; of several machines, that with the slowest such link.
    Link {
        /// Its name on that machine.
        link: String,
        /// The machine, if there are several.
        machine: Option<String>,
        /// Its speed.
        speed: ByteRate,
    },
}

impl NetworkLimit {
    fn rate(&self) -> ByteRate {
        match self {
            NetworkLimit::Measured(rate) | NetworkLimit::Link { speed: rate, .. } => *rate,
        }
    }

    /// Shares that show a network at its limit. Nothing is faster than its link. A measured rate can be exceeded
    /// a little: data wait in queues, and the storage may fill its packets better.
    fn near(&self) -> std::ops::RangeInclusive<f64> {
        match self {
            NetworkLimit::Measured(_) => 0.85..=1.15,
            NetworkLimit::Link { .. } => 0.85..=1.0,
        }
    }
}

impl NetworkShare {
    /// The storage's rate as a share of the network's.
    pub fn share(&self) -> f64 {
        self.rate.0 / self.limit.rate().0
    }

    /// Returns true if the figure shows the network.
    pub fn is_network(&self) -> bool {
        self.limit.near().contains(&self.share())
    }
}

impl fmt::Display for NetworkShare {
    /// `A, files, read: 1.1 GB/s a machine, 94 % of what the network carries from one machine to another (9.4
    /// Gbit/s): ...`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NetworkShare { target, stage, phase, rate, machines, limit } = self;
        let each = if *machines > 1 { " a machine" } else { "" };
        let percent = 100.0 * self.share();
        write!(f, "{}, {stage}, {}: {rate}{each}, {percent:.0} % of ", letter(*target), phase.name())?;
        match limit {
            NetworkLimit::Measured(carries) => {
                write!(f, "the network's rate from one machine to another ({})", carries.bits())?;
            }
            NetworkLimit::Link { link, machine, speed } => {
                let of = machine.as_ref().map(|machine| format!(" of {machine}")).unwrap_or_default();
                write!(f, "the {} of the link {link}{of}", speed.bits())?;
            }
        }
        let figure =
            if self.is_network() { ": this is the rate of the network, not of the storage" } else { "" };
        f.write_str(figure)
    }
}

/// The figure of each target behind a network that is closest to the network's rate. Other targets have none, and
/// there are none if the network's rate is unknown.
pub(crate) fn network_shares(results: &Results, stages: &[StageFigures<'_>]) -> Vec<NetworkShare> {
    let targets = results.targets.iter().enumerate();
    let behind = targets.filter(|(_, entry)| {
        entry.description.as_ref().is_some_and(nilometer_model::TargetDescription::is_behind_network)
    });
    let limits: Vec<NetworkLimit> = measured_limit(results).into_iter().chain(link_limit(results)).collect();
    behind.filter_map(|(target, _)| nearest(&figures(results, stages, target), &limits)).collect()
}

/// The first figure of a target that the network explains, else the fastest. A measured rate of the network is
/// preferred to the stated speed of a link, unless only the link explains the figure.
fn nearest(figures: &[StorageFigure], limits: &[NetworkLimit]) -> Option<NetworkShare> {
    let of_figure = |figure: &StorageFigure| limits.iter().map(|limit| figure.of(limit)).collect::<Vec<_>>();
    let shares: Vec<NetworkShare> = figures.iter().flat_map(of_figure).collect();
    let explained = shares.iter().find(|share| share.is_network());
    explained.or_else(|| shares.first()).cloned()
}

/// A figure of a target in bytes per second.
#[derive(Debug, Clone, PartialEq)]
struct StorageFigure {
    target: usize,
    stage: String,
    phase: Phase,
    rate: ByteRate,
    machines: usize,
}

impl StorageFigure {
    fn of(&self, limit: &NetworkLimit) -> NetworkShare {
        let StorageFigure { target, stage, phase, rate, machines } = self.clone();
        NetworkShare { target, stage, phase, rate, machines, limit: limit.clone() }
    }
}

/// The figures of a target that crossed the network, the fastest first.
fn figures(results: &Results, stages: &[StageFigures<'_>], target: usize) -> Vec<StorageFigure> {
    let of_stage = |stage: &StageFigures<'_>| {
        let here = stage.outcomes.iter().filter(|of| of.target == target && has_crossed(results, of));
        here.filter_map(|outcome| figure(stage, outcome)).collect::<Vec<_>>()
    };
    let mut all: Vec<StorageFigure> = stages.iter().flat_map(of_stage).collect();
    all.sort_by(|one, other| other.rate.0.total_cmp(&one.rate.0));
    all
}

/// Returns true if no cache of this machine can have affected the data. False for repeated reads or reads not
/// known to be cold, and for writes without a sync.
fn has_crossed(results: &Results, outcome: &CellOutcome<'_>) -> bool {
    let is_synced = |run: &WorkloadRun| match &run.workload {
        WorkloadCell::Stream(stream) => stream.sync != SyncPolicy::None,
        _ => true,
    };
    let run = results.cells.get(outcome.cell).and_then(Cell::as_workload);
    match outcome.phase {
        Phase::ReadAgain => false,
        Phase::Read => matches!(outcome.coldness, Some(Coldness::Proved | Coldness::NeverSeen)),
        _ => run.is_none_or(is_synced),
    }
}

fn figure(stage: &StageFigures<'_>, outcome: &CellOutcome<'_>) -> Option<StorageFigure> {
    let alone = outcome.summary(Quantity::Bytes)?.mean;
    let across = AcrossMachines::of(outcome, Quantity::Bytes);
    let (rate, machines) = across.map_or((alone, 1), |across| (across.mean, across.machines.len()));
    Some(StorageFigure {
        target: outcome.target,
        stage: stage.name.to_owned(),
        phase: outcome.phase,
        rate: ByteRate(rate),
        machines,
    })
}

/// The median over pairs of machines, with the number of flows and of processes that carried most. The
/// storage's client has sockets without a plan's buffer and congestion control: trials with them show no limit.
fn measured_limit(results: &Results) -> Option<NetworkLimit> {
    let rates = results.network.iter().flat_map(|stage| pair_medians(&stage.results));
    rates.max_by(f64::total_cmp).map(|rate| NetworkLimit::Measured(ByteRate(rate)))
}

fn pair_medians(results: &NetworkResults) -> Vec<f64> {
    let outcomes = network_outcomes(results);
    let is_pair = |of: &&NetworkOutcome| matches!(of.cell.pattern, TrafficPattern::Pair { .. });
    let pairs: Vec<_> =
        outcomes.iter().filter(is_pair).filter(|of| !of.cell.settings.may_throttle()).collect();
    let loads = pairs.chunk_by(|one, other| one.cell.has_load_of(&other.cell));
    let rates =
        |alike: &[&NetworkOutcome]| alike.iter().filter_map(|of| Some(of.rate?.mean)).collect::<Vec<_>>();
    loads.filter_map(|alike| median(&rates(alike))).collect()
}

/// `None` if a machine has no link with a known speed, because its storage may be behind that link.
fn link_limit(results: &Results) -> Option<NetworkLimit> {
    let is_known = |link: &&NetworkLink| link.is_card && link.speed.is_some();
    let mut slowest: Option<NetworkLimit> = None;
    for machine in &results.machines {
        let cards = machine.links.iter().filter(is_known);
        let fastest = cards.max_by(|one, other| speed_of(one).0.total_cmp(&speed_of(other).0))?;
        let name = (results.machines.len() > 1).then(|| machine.name.clone());
        let limit =
            NetworkLimit::Link { link: fastest.name.clone(), machine: name, speed: speed_of(fastest) };
        if slowest.as_ref().is_none_or(|known| limit.rate().0 < known.rate().0) {
            slowest = Some(limit);
        }
    }
    slowest
}

fn speed_of(link: &NetworkLink) -> ByteRate {
    link.speed.unwrap_or(ByteRate(0.0))
}

#[cfg(test)]
mod tests {
    use nilometer_model::{
        Bytes, CampaignMachine, FileSystemKind, FlowSettings, Nanos, Sample, StorageProfile,
    };
    use nilometer_plan::{Key, Measured, TargetEntry};

    use super::*;
    use crate::{
        made_up::{described, network_stage, writes},
        stage_figures::stage_figures,
    };

    /// Files written at `rate` bytes per second to a file system, by a machine with a link of 10 Gbit/s.
    fn results(kind: FileSystemKind, rate: u64) -> Results {
        let profile = StorageProfile { kind, ..StorageProfile::default() };
        let description = nilometer_model::TargetDescription { profile, ..described("/data") };
        let entry =
            TargetEntry { path: "/data".into(), description: Some(description), ..TargetEntry::default() };
        let sample = |repeat| {
            let key = Key { target: 0, cell: 0, repeat, phase: Phase::Write };
            let sample =
                Sample { bytes: rate, operations: 9, wall: Nanos(1_000_000_000), ..Sample::new(Nanos(0)) };
            Measured { key, sample }
        };
        let card = |name: &str, speed| NetworkLink {
            name: name.into(),
            is_card: true,
            speed: Some(ByteRate(speed)),
            ..NetworkLink::default()
        };
        let fiction = NetworkLink { is_card: false, ..card("veth0", 1e12) };
        let links = vec![card("eth0", 1.25e9), card("eth1", 1.25e8), fiction];
        Results {
            targets: vec![entry],
            cells: vec![writes("files", "1 MiB", 1)],
            samples: (0..3).map(sample).collect(),
            machines: vec![CampaignMachine { name: "a".into(), facts: Vec::new(), links }],
            repeats: 3,
            ..Results::default()
        }
    }

    fn shares(results: &Results) -> Vec<NetworkShare> {
        network_shares(results, &stage_figures(results))
    }

    #[test]
    fn the_rate_of_a_link_is_told_of_storage_behind_a_network_and_never_of_a_disk() {
        let near = shares(&results(FileSystemKind::Nfs, 1_170_000_000));
        assert!(near.len() == 1 && near[0].is_network());
        assert_eq!(
            near[0].to_string(),
            "A, files, write: 1.17 GB/s, 94 % of the 10 Gbit/s of the link eth0: this is the rate of the network, not of the \
             storage"
        );
        let far = shares(&results(FileSystemKind::Nfs, 300_000_000));
        assert!(far.len() == 1 && !far[0].is_network());
        let beyond = shares(&results(FileSystemKind::Nfs, 1_300_000_000));
        assert!(!beyond[0].is_network(), "no link carries more than its speed");
        for local in
            [FileSystemKind::Ext4, FileSystemKind::Tmpfs, FileSystemKind::Overlay, FileSystemKind::Virtiofs]
        {
            assert!(shares(&results(local, 1_170_000_000)).is_empty(), "{local:?}");
        }
    }

    #[test]
    fn flows_with_a_buffer_or_a_congestion_control_of_a_plan_show_no_limit() {
        let mut results = results(FileSystemKind::Lustre, 800_000_000);
        let throttled = |settings: FlowSettings, bytes| {
            let mut stage = network_stage(bytes);
            stage.results.cells.iter_mut().for_each(|cell| cell.settings = settings);
            stage
        };
        let buffer = FlowSettings { buffer: Some(Bytes(65_536)), ..FlowSettings::default() };
        let congestion = FlowSettings { congestion: "reno".parse().ok(), ..FlowSettings::default() };
        results.network = [buffer, congestion].map(|settings| throttled(settings, 800_000_000)).into();
        let found = shares(&results);
        assert!(matches!(found[0].limit, NetworkLimit::Link { .. }) && !found[0].is_network(), "{found:?}");
        let processes = FlowSettings { processes: Some(2), ..FlowSettings::default() };
        results.network.push(throttled(processes, 900_000_000));
        assert_eq!(shares(&results)[0].limit, NetworkLimit::Measured(ByteRate(9e8)));
    }

    #[test]
    fn what_was_measured_between_machines_comes_before_what_a_link_says() {
        let mut results = results(FileSystemKind::Lustre, 800_000_000);
        results.network = vec![network_stage(900_000_000)];
        let found = shares(&results);
        assert_eq!(found[0].limit, NetworkLimit::Measured(ByteRate(9e8)));
        assert!(found[0].is_network() && found[0].to_string().contains("89 % of the network's rate"));
        results.machines[0].links.clear();
        results.network.clear();
        assert!(shares(&results).is_empty(), "nothing is known of the network");
    }
}
