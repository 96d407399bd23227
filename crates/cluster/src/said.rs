//! The messages that a campaign's processes exchange, and rank 0's evaluation of them.

use std::net::{IpAddr, SocketAddr};

use nilometer_model::{
    BackgroundDone, ByteRate, Bytes, CampaignMachine, CongestionControl, FlowEnd, Invalid,
    MpiIoImplementation, Nanos, NetworkTraffic, Phase, RankSample, Sample, Seed, SentPackets, TargetAddress,
    TargetDescription, TrafficInterval,
};
use nilometer_plan::{AppliedSetting, BackgroundLoad, RankNodes, RecordingRun, WorkloadRun};
use nilometer_storage::target::SharedRun;
use serde::{Deserialize, Serialize};

use crate::{SettingsReport, SharingDecision, SharingReport};

/// A process's report to rank 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum RankReport {
    /// The process is present, on the machine of this name.
    Present(String),
    /// Its implementation of MPI-IO, or the reason for its absence, which names the machine.
    MpiIo(Result<MpiIoImplementation, String>),
    /// For each target in the plan's order, the client through which the process reaches it; or the reason why
    /// it can't take part, which names the machine. Different clients have different caches. `None` means the
    /// client is unknown.
    Joined(Result<Vec<Option<String>>, String>),
    /// For each target of the phase, in order: workers are ready, or the reason why they failed.
    Ready(Vec<Option<Invalid>>),
    /// The dimensions of the dataset that the process has opened to read its part of it, slowest first; or the
    /// reason why it could not. `None` if it reads nothing.
    Opened(Result<Option<Vec<u64>>, Invalid>),
    /// The time at which the process closed its files; `None` if it could not, or had nothing to write.
    Closed(Option<CloseTime>),
    /// The results of a phase.
    Measured {
        /// True if the phase was not cut short.
        whole: bool,
        /// Samples in the order of the phase's targets.
        samples: Vec<RankSample>,
        /// The share of the process in the loads, in the order of the phase's targets; empty without a load.
        loads: Vec<LoadReport>,
    },
    /// The streams of packets that the process awaits, in the order of its recordings.
    Awaits(Vec<AwaitedStream>),
    /// Packets sent of each stream, or the reason for a failure. The numbers index the list of all awaited
    /// streams.
    Sent(Vec<(usize, Result<SentPackets, Invalid>)>),
    /// The recordings of a process, in the order of cells.
    Recorded {
        /// True if the recording was not cut short.
        whole: bool,
        /// Samples of the process's parts; `None` for a cell that it does not record.
        samples: Vec<Option<RankSample>>,
        /// The share of the process in the load.
        load: LoadReport,
    },
    /// A report about a recording that stays.
    Shared(Box<SharingReport>),
    /// The addresses of a process.
    Reachable {
        /// The name of its machine.
        node: String,
        /// Its addresses, or the reason why it has none.
        addresses: Result<Vec<LinkAddress>, String>,
        /// The settings that its sockets may have.
        sockets: SocketLimits,
    },
    /// The port at which the process awaits each flow, by the flow's number, or the reason why it can't.
    Listens(Result<Vec<(usize, u16)>, String>),
    /// The process has connected its flows, or failed to.
    Connected(Result<(), String>),
    /// The results of its flows.
    Carried {
        /// The ends of flows at the process.
        ends: Vec<FlowEnd>,
        /// The traffic of its machine, if the process observed it.
        intervals: Vec<TrafficInterval>,
    },
    /// The work of the process on the settings of its machine: none, unless it is the first process there.
    Settled(SettingsReport),
    /// Facts about the machine; `None` unless the process is the first on it.
    Machine(Option<CampaignMachine>),
}

impl SettingsReport {
    /// The reports of all processes as one.
    pub fn of_all(reports: Vec<RankReport>) -> Self {
        let mut all = SettingsReport::default();
        for report in reports {
            let RankReport::Settled(mut one) = report else {
                unreachable!("every rank reports on its machine, but one sent {report:?}")
            };
            all.notes.append(&mut one.notes);
            all.failed.append(&mut one.failed);
        }
        all
    }
}

/// The share of a process in the load beside a phase, on one target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Its work during the phase; `None` if the process has no share there.
    pub done: Option<BackgroundDone>,
    /// Why it did not last, if so.
    pub failed: Option<Invalid>,
}

impl LoadReport {
    /// Joins the shares of two processes: work adds up, and the graver failure holds for both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let done = match (self.done, other.done) {
            (Some(one), Some(another)) => Some(one.beside(another)),
            (one, another) => one.or(another),
        };
        LoadReport { done, failed: Invalid::gravest(self.failed, other.failed) }
    }

    /// Puts the load into a sample that was measured beside it.
    pub fn put(self, sample: &mut Sample) {
        sample.background = self.done;
        sample.invalid = Invalid::gravest(sample.invalid.take(), self.failed);
    }
}

/// An address of a process, with the link that has it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkAddress {
    /// The address.
    pub address: IpAddr,
    /// The speed of the link; `None` if unknown.
    pub speed: Option<ByteRate>,
}

/// The settings that a process may give its sockets of TCP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketLimits {
    /// The congestion controls that it may use.
    pub congestion: Vec<CongestionControl>,
    /// The largest buffer of a socket.
    pub buffer: Bytes,
}

/// A decision of rank 0 for all ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ClusterDecision {
    /// Each rank must report its implementation of MPI-IO.
    MpiIo,
    /// The campaign begins. Each rank joins rank 0's runs on the targets and reports success or failure.
    Join {
        /// Version of rank 0's program.
        version: String,
        /// Runs in the order of the plan; `None` for a target that is left out.
        targets: Vec<Option<JoinedRun>>,
        /// How long a worker may be silent beyond its time limit.
        hang_after: Nanos,
    },
    /// All ranks have joined, and the first repeat follows.
    Begun(CampaignRanks),
    /// The next repeat of a cell.
    Repeat {
        /// The workload to run.
        run: Box<WorkloadRun>,
        /// The seed of this repeat, from which each worker of each rank derives its own.
        seed: Seed,
        /// Number of the repeat from 1, counting all repeats of the campaign and those made again.
        attempt: u32,
        /// Numbers of the targets in the plan.
        targets: Vec<usize>,
    },
    /// Each rank lays out its share of a load, in its own place on each target, and reports success or failure.
    Load {
        /// The load of all ranks together.
        load: Box<BackgroundLoad>,
        /// The seed, from which each rank derives its own.
        seed: Seed,
        /// Numbers of the targets in the plan.
        targets: Vec<usize>,
        /// Time left until the campaign ends.
        left: Nanos,
    },
    /// Each rank removes its share of the load.
    Unload,
    /// The next phase of the repeat.
    Phase {
        /// The phase.
        phase: Phase,
        /// Targets that are still in use.
        targets: Vec<usize>,
        /// Time left until the campaign ends.
        left: Nanos,
    },
    /// The next recordings. All run at the same time, each in the processes that record it.
    Record {
        /// The recordings, each with its seed.
        cells: Vec<(RecordingRun, Seed)>,
        /// Number of the repeat from 1, counting all repeats of the campaign and those made again.
        attempt: u32,
        /// The number of the target in the plan.
        target: usize,
        /// Time left until the campaign ends.
        left: Nanos,
    },
    /// The processes that recorded a cell read it, each its part.
    ReadBack {
        /// The recording.
        cell: Box<RecordingRun>,
        /// Its seed.
        seed: Seed,
        /// Number of the repeat that recorded it.
        attempt: u32,
        /// The number of the target in the plan.
        target: usize,
        /// Time left until the campaign ends.
        left: Nanos,
    },
    /// All awaited streams of packets in the order of ranks. Each rank sends those assigned to it.
    Send(Vec<AwaitedStream>),
    /// Packets sent of each stream.
    Sent(Vec<(usize, Result<SentPackets, Invalid>)>),
    /// The phase begins, except on targets where some rank failed; in the order of its targets.
    Begin(Vec<Option<Invalid>>),
    /// One rank has closed its files; `None` if it failed to write them.
    Closed(Option<CloseTime>),
    /// The campaign is over: the phase does not begin, or stops.
    Cancel,
    /// A decision about a recording that stays.
    Share(Box<SharingDecision>),
    /// The first rank on each machine applies a setting there.
    Apply {
        /// The setting.
        setting: Box<AppliedSetting>,
        /// The number of the target in the plan.
        target: usize,
    },
    /// The first rank on each machine takes a setting back, if it has applied it.
    Undo {
        /// The setting.
        setting: Box<AppliedSetting>,
        /// The number of the target in the plan.
        target: usize,
    },
    /// The first rank on each machine takes back the settings that killed campaigns left there.
    Restore,
    /// Each rank must describe its machine.
    Describe,
    /// Each rank must report its addresses.
    Reach,
    /// Flows follow. Each rank listens for the flows sent to it.
    Traffic(NetworkTraffic),
    /// Each rank connects the flows that it sends.
    Connect(Vec<SocketAddr>),
    /// The campaign has ended.
    End,
}

/// A stream of packets that a rank waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AwaitedStream {
    /// The rank that awaits the stream.
    pub by: u32,
    /// Number of the cell among those recorded at the same time.
    pub cell: usize,
    /// The address, with the first port.
    pub to: SocketAddr,
    /// Time of the first frame, in seconds since 2000-01-01 00:00 UTC.
    pub begins: u64,
    /// Seed of the data.
    pub seed: Seed,
    /// Number of packets that are recorded as one unit.
    pub lot: u64,
}

/// The processes of a campaign, as known to all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignRanks {
    /// The node of each process.
    pub nodes: RankNodes,
    /// True for each target that every node reaches through its own client. Then no node has data in its cache
    /// that another node wrote.
    pub apart: Vec<bool>,
}

impl CampaignRanks {
    /// Makes the description of a single process.
    pub fn alone() -> Self {
        CampaignRanks { nodes: RankNodes::alone(), apart: Vec::new() }
    }

    /// Compares the clients through which each rank reaches the targets, in the order of ranks.
    pub fn of(nodes: RankNodes, clients: &[Vec<Option<String>>]) -> Self {
        let targets = clients.first().map_or(0, Vec::len);
        let apart = (0..targets).map(|target| {
            let client = |rank: usize| clients[rank].get(target).cloned().flatten();
            let known = (0..clients.len()).all(|rank| client(rank).is_some());
            known && nodes.share_nothing(|rank| client(rank as usize))
        });
        let apart = apart.collect();
        CampaignRanks { nodes, apart }
    }
}

/// The time at which a process had closed a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseTime {
    /// The time on rank 0's clock.
    pub at: Nanos,
    /// Error bound of the time.
    pub uncertainty: Nanos,
}

/// Rank 0's run on a target, for other ranks that work in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedRun {
    /// The target's description from rank 0.
    pub description: TargetDescription,
    /// The run on the target, or `None` if the target keeps nothing.
    pub run: Option<SharedRun>,
    /// The place of each rank's share of a load, or `None` if the target keeps nothing; empty without a load there.
    pub loads: Vec<Option<SharedRun>>,
    /// The directory that each rank copies from, on its own machine; `None` if nothing is copied.
    pub source: Option<TargetAddress>,
}

/// Returns the gravest failure on any rank for each target, which then must not be measured.
pub fn failed_on_any(reports: Vec<RankReport>) -> Vec<Option<Invalid>> {
    let ready = reports.into_iter().filter_map(|report| match report {
        RankReport::Ready(failed) => Some(failed),
        _ => None,
    });
    let gravest = |all: Vec<Option<Invalid>>, of_rank: Vec<Option<Invalid>>| {
        all.into_iter().zip(of_rank).map(|(one, other)| Invalid::gravest(one, other)).collect()
    };
    ready.reduce(gravest).unwrap_or_default()
}

/// Returns why the ranks can't read one dataset together: the gravest failure to open it, or two ranks that find
/// different dimensions. `None` if they can. The reports are in the order of ranks.
pub fn dataset_fault(reports: &[RankReport]) -> Option<Invalid> {
    let opened = reports.iter().enumerate().filter_map(|(rank, report)| match report {
        RankReport::Opened(opened) => Some((rank, opened)),
        _ => None,
    });
    let mut fault = None;
    let mut first: Option<(usize, &[u64])> = None;
    for (rank, opened) in opened {
        match (opened, first) {
            (Err(why), _) => fault = Invalid::gravest(fault, Some(why.clone())),
            (Ok(Some(found)), None) => first = Some((rank, found.as_slice())),
            (Ok(Some(found)), Some((other, expected))) if found != expected => {
                let [one, another] = [expected, found.as_slice()].map(in_words);
                let why =
                    format!("process {other} finds a dataset of {one}, and process {rank} one of {another}");
                fault = Invalid::gravest(fault, Some(Invalid::Refused(why)));
            }
            (Ok(_), _) => {}
        }
    }
    fault
}

/// Formats dimensions, for example `200x50x100`.
fn in_words(dimensions: &[u64]) -> String {
    dimensions.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}

/// The samples of all ranks, for each target or for each recorded cell.
pub type MeasuredTogether = Vec<Vec<RankSample>>;

/// Returns the samples of each target's ranks in the order of targets, or `None` if any rank's phase was cut
/// short. A rank that took no part has no samples.
pub fn measured_by_all(reports: Vec<RankReport>) -> Option<MeasuredTogether> {
    let mut by_target: Vec<Vec<RankSample>> = Vec::new();
    for report in reports {
        let RankReport::Measured { whole: true, samples, .. } = report else { return None };
        if samples.is_empty() {
            continue;
        }
        if by_target.is_empty() {
            by_target.resize_with(samples.len(), Vec::new);
        }
        assert_eq!(by_target.len(), samples.len(), "every rank measures every target of the phase");
        for (of_target, sample) in by_target.iter_mut().zip(samples) {
            of_target.push(sample);
        }
    }
    Some(by_target)
}

/// Returns the load on each target, or on the one of a recording, of all ranks together. Empty without a load.
pub fn loads_of_all(reports: &[RankReport]) -> Vec<LoadReport> {
    let mut all: Vec<LoadReport> = Vec::new();
    for report in reports {
        let loads = match report {
            RankReport::Measured { loads, .. } => loads.as_slice(),
            RankReport::Recorded { load, .. } => std::slice::from_ref(load),
            _ => &[],
        };
        all.resize_with(all.len().max(loads.len()), LoadReport::default);
        for (of_all, load) in all.iter_mut().zip(loads) {
            *of_all = std::mem::take(of_all).and(load.clone());
        }
    }
    all
}

/// Returns the samples of each cell's ranks in order, or `None` if any rank's recording was cut short.
pub fn recorded_by_all(reports: Vec<RankReport>) -> Option<MeasuredTogether> {
    let mut by_cell: Vec<Vec<RankSample>> = Vec::new();
    for report in reports {
        let RankReport::Recorded { whole: true, samples, .. } = report else { return None };
        by_cell.resize_with(by_cell.len().max(samples.len()), Vec::new);
        for (of_cell, sample) in by_cell.iter_mut().zip(samples) {
            of_cell.extend(sample);
        }
    }
    Some(by_cell)
}

#[cfg(test)]
mod tests;
