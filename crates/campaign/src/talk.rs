//! The messages by which processes of a campaign agree on times, and the sample of a phase with such messages.

use nilometer_cluster::{CloseTime, Cluster, ClusterDecision, RankReport};
use nilometer_model::{Histogram, Invalid, Nanos, Sample, WorkerTotals};
use nilometer_storage::Clock;

use crate::task::Run;

/// The time that one of all processes reported; `None` if it had none to report.
pub(crate) struct SaidTime(pub(crate) Option<CloseTime>);

/// The exchange of messages between processes.
pub(crate) struct Speech<'a> {
    pub(crate) run: &'a Run,
    pub(crate) cluster: &'a dyn Cluster,
}

impl Speech<'_> {
    /// Returns when all processes have called it. Their clocks, which drift, are compared again. Early
    /// processes sleep first; during the comparison none does.
    pub(crate) fn begin_step(&self) {
        self.cluster.barrier();
        self.cluster.agree_start(&self.run.clock);
    }

    /// The uncertainty of this process's clock.
    pub(crate) fn uncertainty(&self) -> Nanos {
        Nanos(self.cluster.clock_uncertainty())
    }

    /// Converts a time of rank 0's clock to this process's.
    pub(crate) fn here(&self, there: Nanos) -> Nanos {
        Nanos(there.0.saturating_add_signed(self.cluster.clock_offset()))
    }

    /// One process reports the time of an event, by its clock, and all receive it. Returns `None` if the
    /// campaign has ended.
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

/// The results of a process in such a phase on one target.
pub(crate) struct TalkSample {
    sample: Sample,
    latency: Histogram,
    used: bool,
}

impl TalkSample {
    /// Begins with no results. A process that the cell does not use never gets any.
    pub(crate) fn new(clock: &Clock, used: bool) -> Self {
        TalkSample { sample: Sample::new(clock.now()), latency: Histogram::default(), used }
    }

    /// Returns true if this process still has a part in the phase.
    pub(crate) fn goes_on(&self) -> bool {
        self.used && self.sample.invalid.is_none()
    }

    /// Ends this process's part in the phase.
    pub(crate) fn end(&mut self, why: Invalid) {
        self.sample.invalid = Some(why);
    }

    /// Records a failed operation.
    pub(crate) fn failed(&mut self, errno: i32) {
        *self.sample.errors.entry(errno).or_default() += 1;
    }

    /// Records an awaited event that came after this time.
    pub(crate) fn add(&mut self, after: Nanos) {
        self.sample.operations += 1;
        self.latency.add(after.0);
    }

    /// The results since the phase began, as a sample.
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
