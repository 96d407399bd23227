//! The words by which processes of a campaign agree on times, and the sample of a phase in which they do.

use nilometer_cluster::{CloseTime, Cluster, ClusterDecision, RankReport};
use nilometer_model::{Histogram, Invalid, Nanos, Sample, WorkerTotals};
use nilometer_storage::Clock;

use crate::task::Run;

/// What one of all said; none if it had nothing to say.
pub(crate) struct SaidTime(pub(crate) Option<CloseTime>);

/// What processes say to each other.
pub(crate) struct Speech<'a> {
    pub(crate) run: &'a Run,
    pub(crate) cluster: &'a dyn Cluster,
}

impl Speech<'_> {
    /// Returns when all have come here, with clocks compared anew: they drift. Who is early sleeps first; while clocks are
    /// compared nobody does.
    pub(crate) fn begin_step(&self) {
        self.cluster.barrier();
        self.cluster.agree_start(&self.run.clock);
    }

    /// How far this process's clock may be wrong.
    pub(crate) fn uncertainty(&self) -> Nanos {
        Nanos(self.cluster.clock_uncertainty())
    }

    /// A time of rank 0's clock on this process's.
    pub(crate) fn here(&self, there: Nanos) -> Nanos {
        Nanos(there.0.saturating_add_signed(self.cluster.clock_offset()))
    }

    /// One says when something was done, by its clock, and all hear it; none if the campaign has ended.
    pub(crate) fn said(&self, at: Option<Nanos>) -> Option<SaidTime> {
        let there = at.map(|at| CloseTime {
            at: Nanos(at.0.saturating_add_signed(-self.cluster.clock_offset())),
            uncertainty: self.uncertainty(),
        });
        let reports = self.cluster.gather(RankReport::Closed(there));
        let said = reports.into_iter().find_map(|report| match report {
            RankReport::Closed(at) => at,
            _ => None,
        });
        let decided = (self.cluster.rank() == 0).then(|| {
            if self.run.is_over() { ClusterDecision::Cancel } else { ClusterDecision::Closed(said) }
        });
        match self.cluster.broadcast(decided) {
            ClusterDecision::Closed(at) => Some(SaidTime(at)),
            _ => None,
        }
    }
}

/// What a process gathers of such a phase on one target.
pub(crate) struct TalkSample {
    sample: Sample,
    latency: Histogram,
    used: bool,
}

impl TalkSample {
    /// Nothing yet; of a process that the cell does not use there will be nothing.
    pub(crate) fn new(clock: &Clock, used: bool) -> Self {
        TalkSample { sample: Sample::new(clock.now()), latency: Histogram::default(), used }
    }

    /// Whether this process still has a part in it.
    pub(crate) fn goes_on(&self) -> bool {
        self.used && self.sample.invalid.is_none()
    }

    /// This process has no part in it any more.
    pub(crate) fn end(&mut self, why: Invalid) {
        self.sample.invalid = Some(why);
    }

    /// An operation failed.
    pub(crate) fn failed(&mut self, errno: i32) {
        *self.sample.errors.entry(errno).or_default() += 1;
    }

    /// One that was waited for came, after so long.
    pub(crate) fn add(&mut self, after: Nanos) {
        self.sample.operations += 1;
        self.latency.add(after.0);
    }

    /// All of it, since the phase began.
    pub(crate) fn sample(self, clock: &Clock, start: Nanos) -> Sample {
        let TalkSample { mut sample, latency, .. } = self;
        let wall = clock.now().since(start);
        let operations = sample.operations;
        let worker =
            WorkerTotals { operations, first_done: wall, last_done: wall, ..WorkerTotals::default() };
        let failed = (!sample.errors.is_empty()).then_some(Invalid::Errors);
        let invalid = sample.invalid.take().or(failed);
        Sample { wall, latency, workers: vec![worker], invalid, ..sample }
    }
}
