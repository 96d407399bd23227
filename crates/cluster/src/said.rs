//! What the processes of a campaign say to each other, and what rank 0 makes of it.

use std::net::{IpAddr, SocketAddr};

use nilometer_model::{
    CampaignMachine, FlowEnd, Invalid, MpiIoImplementation, Nanos, NetworkTraffic, Phase, RankSample, Seed,
    SentPackets, TargetDescription,
};
use nilometer_plan::{RankNodes, RecordingRun, WorkloadRun};
use nilometer_storage::target::SharedRun;
use serde::{Deserialize, Serialize};

use crate::{SharingDecision, SharingReport};

/// What a process reports to rank 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum RankReport {
    /// It is there, on the machine of this name.
    Present(String),
    /// Which implementation of MPI-IO it has; or why none, in words that name its machine.
    MpiIo(Result<MpiIoImplementation, String>),
    /// It takes part, and what it reaches each target by, in the order of the plan; or why it can't, in words that name its
    /// machine. Who reaches a target by another client has another cache of it; none where that is not known.
    Joined(Result<Vec<Option<String>>, String>),
    /// Its workers are ready, but for those on targets where something failed; in the order of the phase's targets.
    Ready(Vec<Option<Invalid>>),
    /// It has closed what it wrote; none of one that could not, or had nothing to write.
    Closed(Option<CloseTime>),
    /// What it measured.
    Measured {
        /// The phase was not cut short.
        whole: bool,
        /// In the order of the phase's targets.
        samples: Vec<RankSample>,
    },
    /// The streams of packets that it waits for, in the order of what it records.
    Awaits(Vec<AwaitedStream>),
    /// What it sent of streams, by their numbers among those that all await; or why it could not.
    Sent(Vec<(usize, Result<SentPackets, Invalid>)>),
    /// What it recorded, in the order of cells; none of a cell of which it has no part.
    Recorded {
        /// The recording was not cut short.
        whole: bool,
        /// Of its parts.
        samples: Vec<Option<RankSample>>,
    },
    /// Of a recording that stays.
    Shared(Box<SharingReport>),
    /// Where it can be reached.
    Reachable {
        /// The name of its machine.
        node: String,
        /// At these addresses, or why at none.
        addresses: Result<Vec<IpAddr>, String>,
    },
    /// Where it waits for the flows that come to it, by the number of the flow; or why it can't.
    Listens(Result<Vec<(usize, u16)>, String>),
    /// Its flows are connected, or why they are not.
    Connected(Result<(), String>),
    /// What came of them.
    Carried(Vec<FlowEnd>),
    /// What its machine is; none of a rank that is not the first there.
    Machine(Option<CampaignMachine>),
}

/// What rank 0 decides for all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ClusterDecision {
    /// Each rank says what it has of MPI-IO.
    MpiIo,
    /// The campaign begins: each joins what rank 0 made on the targets, and reports whether it could.
    Join {
        /// Of rank 0's program.
        version: String,
        /// In the order of the plan; none for one that is left out.
        targets: Vec<Option<JoinedRun>>,
        /// How long a worker may be silent beyond its time limit.
        hang_after: Nanos,
    },
    /// All have joined: the first repeat comes next.
    Begun(CampaignRanks),
    /// A repeat of a cell is next.
    Repeat {
        /// What is run.
        run: Box<WorkloadRun>,
        /// Of this repeat; each worker of each rank derives its own.
        seed: Seed,
        /// Counted from 1 over all repeats of the campaign, also those that are made again.
        attempt: u32,
        /// Numbers of the targets in the plan.
        targets: Vec<usize>,
    },
    /// A phase of it is next.
    Phase {
        /// Which.
        phase: Phase,
        /// Those that were not left out meanwhile.
        targets: Vec<usize>,
        /// The campaign ends after this time at the latest.
        left: Nanos,
    },
    /// Instruments are recorded next, all of them at the same time, each by those processes that record it.
    Record {
        /// What, with the seed of each.
        cells: Vec<(RecordingRun, Seed)>,
        /// Counted from 1 over all repeats of the campaign, also those that are made again.
        attempt: u32,
        /// The number of the target in the plan.
        target: usize,
        /// The campaign ends after this time at the latest.
        left: Nanos,
    },
    /// All streams of packets that some await, in the order of ranks: each rank sends those that it is to send.
    Send(Vec<AwaitedStream>),
    /// What was sent of each.
    Sent(Vec<(usize, Result<SentPackets, Invalid>)>),
    /// The phase begins, but on targets where it failed to on some rank; in the order of its targets.
    Begin(Vec<Option<Invalid>>),
    /// What one rank wrote is closed; none if it could not be written.
    Closed(Option<CloseTime>),
    /// The phase does not begin, or goes no further: the campaign is over.
    Cancel,
    /// Of a recording that stays.
    Share(Box<SharingDecision>),
    /// Each rank says what its machine is.
    Describe,
    /// Each rank says where it can be reached.
    Reach,
    /// Flows are next: each rank listens for those that come to it.
    Traffic(NetworkTraffic),
    /// Each rank connects the flows that it sends.
    Connect(Vec<SocketAddr>),
    /// There is nothing more to do.
    End,
}

/// A stream of packets that a rank waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AwaitedStream {
    /// Who waits for it.
    pub by: u32,
    /// Of which cell, of those that are recorded at the same time.
    pub cell: usize,
    /// Where, at the first port.
    pub to: SocketAddr,
    /// When its first frame is, in seconds since 2000-01-01 00:00 UTC.
    pub begins: u64,
    /// Of its data.
    pub seed: Seed,
    /// Packets that make up what is recorded at once.
    pub lot: u64,
}

/// The processes of a campaign, as all of them know them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignRanks {
    /// On which node each is.
    pub nodes: RankNodes,
    /// Of each target, whether every node reaches it by a client of its own: what one node wrote no other has in a cache.
    pub apart: Vec<bool>,
}

impl CampaignRanks {
    /// One process by itself.
    pub fn alone() -> Self {
        CampaignRanks { nodes: RankNodes::alone(), apart: Vec::new() }
    }

    /// Of what each rank said, in order, that it reaches the targets by.
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

/// When a process had closed a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseTime {
    /// On rank 0's clock.
    pub at: Nanos,
    /// It may be so much earlier or later.
    pub uncertainty: Nanos,
}

/// What rank 0 made on a target, for those that work in it too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedRun {
    /// The target, as rank 0 found it.
    pub description: TargetDescription,
    /// Its run there; none where nothing is kept.
    pub run: Option<SharedRun>,
}

/// Why each target must not be measured, if on any rank something failed there: the gravest.
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

/// Of each target, or of each cell that is recorded, what each rank measured.
pub type MeasuredTogether = Vec<Vec<RankSample>>;

/// What each target's ranks measured, in the order of targets; none if the phase was cut short on any. A rank that had no part
/// in it has no samples.
pub fn measured_by_all(reports: Vec<RankReport>) -> Option<MeasuredTogether> {
    let mut by_target: Vec<Vec<RankSample>> = Vec::new();
    for report in reports {
        let RankReport::Measured { whole: true, samples } = report else { return None };
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

/// Of each cell, what the ranks that record it recorded, in their order; none if it was cut short on any.
pub fn recorded_by_all(reports: Vec<RankReport>) -> Option<MeasuredTogether> {
    let mut by_cell: Vec<Vec<RankSample>> = Vec::new();
    for report in reports {
        let RankReport::Recorded { whole: true, samples } = report else { return None };
        by_cell.resize_with(by_cell.len().max(samples.len()), Vec::new);
        for (of_cell, sample) in by_cell.iter_mut().zip(samples) {
            of_cell.extend(sample);
        }
    }
    Some(by_cell)
}

#[cfg(test)]
mod tests {
    use nilometer_model::Sample;

    use super::*;

    #[test]
    fn a_target_that_fails_on_one_rank_is_measured_by_none() {
        let ready = |failed: [Option<Invalid>; 2]| RankReport::Ready(failed.into());
        let refused = || Some(Invalid::Refused("no space".into()));
        assert_eq!(failed_on_any(vec![ready([None, None]), ready([None, refused()])]), [None, refused()]);
        let both = vec![ready([refused(), None]), ready([Some(Invalid::Hung), None])];
        assert_eq!(failed_on_any(both), [Some(Invalid::Hung), None], "the gravest");
    }

    #[test]
    fn what_is_cut_short_anywhere_is_no_sample() {
        let report = |rank, whole| {
            let node = String::from("a");
            let sample = Sample { bytes: u64::from(rank), ..Sample::new(Nanos(0)) };
            let (clock_offset, clock_uncertainty, began) = (0, 0, Nanos(0));
            let of_rank = RankSample { rank, node, clock_offset, clock_uncertainty, began, sample };
            RankReport::Measured { whole, samples: vec![of_rank.clone(), of_rank] }
        };
        assert!(measured_by_all(vec![report(0, true), report(1, false)]).is_none());
        let by_target = measured_by_all(vec![report(0, true), report(1, true)]).expect("both are whole");
        let ranks: Vec<Vec<u32>> =
            by_target.iter().map(|of| of.iter().map(|one| one.rank).collect()).collect();
        assert_eq!(ranks, [[0, 1], [0, 1]]);
        let asleep = RankReport::Measured { whole: true, samples: Vec::new() };
        let by_target = measured_by_all(vec![report(0, true), asleep]).expect("the one that worked");
        assert!(by_target.iter().all(|of_target| of_target.len() == 1));
    }

    #[test]
    fn a_recording_is_of_those_that_have_a_part_of_it() {
        let of_rank = |rank| RankSample {
            rank,
            node: "a".into(),
            clock_offset: 0,
            clock_uncertainty: 0,
            began: Nanos(0),
            sample: Sample::new(Nanos(0)),
        };
        let recorded =
            |whole, samples: [Option<RankSample>; 2]| RankReport::Recorded { whole, samples: samples.into() };
        let both = vec![
            recorded(true, [Some(of_rank(0)), None]),
            recorded(true, [Some(of_rank(1)), Some(of_rank(1))]),
        ];
        let by_cell = recorded_by_all(both).expect("all are whole");
        let ranks: Vec<Vec<u32>> = by_cell.iter().map(|of| of.iter().map(|one| one.rank).collect()).collect();
        assert_eq!(ranks, [vec![0, 1], vec![1]]);
        let cut = vec![recorded(true, [Some(of_rank(0)), None]), recorded(false, [None, None])];
        assert!(recorded_by_all(cut).is_none());
    }

    #[test]
    fn nodes_are_apart_where_no_two_reach_a_target_by_the_same_client() {
        let nodes = RankNodes::of(&["a", "a", "b"].map(String::from));
        let said = |clients: [[&str; 2]; 3]| {
            let of_rank =
                |of: [&str; 2]| of.map(|client| Some(client.to_owned()).filter(|id| !id.is_empty()));
            let all: Vec<Vec<_>> = clients.into_iter().map(|of| of_rank(of).into()).collect();
            CampaignRanks::of(nodes.clone(), &all).apart
        };
        assert_eq!(
            said([["1", "x"], ["1", "y"], ["2", "z"]]),
            [true, true],
            "processes of a node may share one"
        );
        assert_eq!(said([["1", "x"], ["2", "y"], ["2", "x"]]), [false, false]);
        assert_eq!(said([["1", ""], ["1", "y"], ["2", "z"]]), [true, false], "one is not known");
    }
}
