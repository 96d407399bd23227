//! What the processes of a campaign say to each other, and what rank 0 makes of it.

use std::net::{IpAddr, SocketAddr};

use nilometer_model::{
    FlowEnd, Invalid, Nanos, NetworkTraffic, RankSample, Seed, TargetDescription,
    plan::{Phase, WorkloadRun},
};
use nilometer_storage::target::SharedRun;
use serde::{Deserialize, Serialize};

/// What a process reports to rank 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum RankReport {
    /// It takes part, or why it can't, in words that name its machine.
    Joined(Result<(), String>),
    /// Its workers are ready, but for those on targets where something failed; in the order of the phase's targets.
    Ready(Vec<Option<Invalid>>),
    /// What it measured.
    Measured {
        /// The phase was not cut short.
        whole: bool,
        /// In the order of the phase's targets.
        samples: Vec<RankSample>,
    },
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
}

/// What rank 0 decides for all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ClusterDecision {
    /// The campaign begins: each joins what rank 0 made on the targets, and reports whether it could.
    Join {
        /// Of rank 0's program.
        version: String,
        /// In the order of the plan; none for one that is left out.
        targets: Vec<Option<JoinedRun>>,
        /// How long a worker may be silent beyond its time limit.
        hang_after: Nanos,
    },
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
    /// The phase begins, but on targets where it failed to on some rank; in the order of its targets.
    Begin(Vec<Option<Invalid>>),
    /// The phase does not begin: the campaign is over.
    Cancel,
    /// Flows are next: each rank listens for those that come to it.
    Traffic(NetworkTraffic),
    /// Each rank connects the flows that it sends.
    Connect(Vec<SocketAddr>),
    /// There is nothing more to do.
    End,
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

/// Of each target, what each rank measured there.
pub type MeasuredTogether = Vec<Vec<RankSample>>;

/// What each target's ranks measured, in the order of targets; none if the phase was cut short on any.
pub fn measured_by_all(reports: Vec<RankReport>) -> Option<MeasuredTogether> {
    let mut by_target: Vec<Vec<RankSample>> = Vec::new();
    for report in reports {
        let RankReport::Measured { whole: true, samples } = report else { return None };
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
            let of_rank = RankSample { rank, node, clock_offset: 0, sample };
            RankReport::Measured { whole, samples: vec![of_rank.clone(), of_rank] }
        };
        assert!(measured_by_all(vec![report(0, true), report(1, false)]).is_none());
        let by_target = measured_by_all(vec![report(0, true), report(1, true)]).expect("both are whole");
        let ranks: Vec<Vec<u32>> =
            by_target.iter().map(|of| of.iter().map(|one| one.rank).collect()).collect();
        assert_eq!(ranks, [[0, 1], [0, 1]]);
    }
}
