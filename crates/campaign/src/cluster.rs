//! One campaign in several processes: the seam between them. Rank 0 decides and keeps the record; the others do as they
//! are told ([`crate::follow`]). What is measured is the same for all: each phase begins at an agreed time, and what
//! the ranks report becomes one sample.

use std::fmt;

use nilometer_model::{
    Invalid, Nanos, RankSample, Seed,
    plan::{Phase, WorkloadRun},
};
use nilometer_storage::Clock;

/// The processes of a campaign, as one of them sees them. All call the same methods in the same order, but for
/// `broadcast`, to which only rank 0 has something to say. Whoever waits here sleeps: others may be measuring on the
/// same machine.
///
/// There are no errors: where a process is lost the campaign has ended, and is resumed from the record.
pub trait Cluster: fmt::Debug + Send + Sync {
    /// Which process this is, from 0.
    fn rank(&self) -> u32;
    /// How many there are.
    fn size(&self) -> u32;
    /// The name of this process's machine: what happens on it counts once for all ranks with the same.
    fn node(&self) -> String;
    /// How many nanoseconds this process's clock is ahead of that of rank 0.
    fn clock_offset(&self) -> i64;
    /// Returns when all have come here.
    fn barrier(&self);
    /// A moment not in the past that is the same for all, on this process's clock.
    fn agree_start(&self, clock: &Clock) -> Nanos;
    /// At rank 0 what all report, in the order of ranks; nothing elsewhere.
    fn gather(&self, mine: RankReport) -> Vec<RankReport>;
    /// What rank 0 decided, for all. Rank 0 gives it, the others none.
    fn broadcast(&self, decision: Option<ClusterDecision>) -> ClusterDecision;
}

/// What a process reports to rank 0.
#[derive(Debug, Clone)]
pub enum RankReport {
    /// Its workers are ready, but for those on targets where something failed; in the order of the phase's targets.
    Ready(Vec<Option<Invalid>>),
    /// What it measured.
    Measured {
        /// The phase was not cut short.
        whole: bool,
        /// In the order of the phase's targets.
        samples: Vec<RankSample>,
    },
}

/// What rank 0 decides for all.
#[derive(Debug, Clone, PartialEq)]
pub enum ClusterDecision {
    /// A repeat of a cell is next.
    Repeat {
        /// What is run.
        run: Box<WorkloadRun>,
        /// Of this repeat; each worker of each rank derives its own.
        seed: Seed,
        /// Numbers of the targets in the plan.
        targets: Vec<usize>,
    },
    /// A phase of it is next.
    Phase {
        /// Which.
        phase: Phase,
        /// Those that were not left out meanwhile.
        targets: Vec<usize>,
    },
    /// The phase begins, but on targets where it failed to on some rank; in the order of its targets.
    Begin(Vec<Option<Invalid>>),
    /// The phase does not begin: the campaign is over.
    Cancel,
    /// There is nothing more to do.
    End,
}

/// A campaign of one process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Cluster for Alone {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn node(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    fn clock_offset(&self) -> i64 {
        0
    }

    fn barrier(&self) {}

    fn agree_start(&self, clock: &Clock) -> Nanos {
        clock.now()
    }

    fn gather(&self, mine: RankReport) -> Vec<RankReport> {
        vec![mine]
    }

    fn broadcast(&self, decision: Option<ClusterDecision>) -> ClusterDecision {
        decision.expect("there is only rank 0, and it gives what it decided")
    }
}

/// Why each target must not be measured, if on any rank something failed there: the gravest.
pub(crate) fn failed_on_any(reports: Vec<RankReport>) -> Vec<Option<Invalid>> {
    let ready = reports.into_iter().filter_map(|report| match report {
        RankReport::Ready(failed) => Some(failed),
        RankReport::Measured { .. } => None,
    });
    let gravest = |all: Vec<Option<Invalid>>, of_rank: Vec<Option<Invalid>>| {
        all.into_iter().zip(of_rank).map(|(one, other)| Invalid::gravest(one, other)).collect()
    };
    ready.reduce(gravest).unwrap_or_default()
}

/// What each target's ranks measured, in the order of targets; none if the phase was cut short on any.
pub(crate) fn measured_by_all(reports: Vec<RankReport>) -> Option<Vec<Vec<RankSample>>> {
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
