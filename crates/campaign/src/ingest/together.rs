//! A recording by several processes: how they split it, and how they begin and end together. With one process
//! none of this takes any time.
//!
//! ```text
//! rank 0   Record ->        Ready -> Begin ->  start agreed ...........  Recorded -> one sample a cell
//! others   <- Record ->     Ready -> Begin ->  start agreed ...........  Recorded
//!          each prepares                       each records its part
//! ```

use nilometer_cluster::{
    CampaignRanks, Cluster, ClusterDecision, LoadReport, RankReport, dataset_fault, failed_on_any,
    loads_of_all, recorded_by_all,
};
use nilometer_model::{Invalid, Nanos, RankSample, Sample, Seed};
use nilometer_plan::{RecordingRun, recorded_together};
use nilometer_storage::Clock;

use super::{Job, PartRecorded, sample::company};
use crate::{
    background::{Loads, LoadsBeside},
    task::Run,
    together::of_rank,
};

/// The processes of a campaign that record together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordingRanks<'a> {
    pub(crate) cluster: &'a dyn Cluster,
    pub(crate) ranks: &'a CampaignRanks,
    /// The number of this repeat among all that the campaign makes together.
    pub(crate) attempt: u32,
}

/// The parts of each cell that this process records; `None` for a cell that others record.
pub(super) type OwnParts = Vec<Option<(RecordingRun, Seed)>>;

impl RecordingRanks<'_> {
    /// This process's parts of cells that are recorded at the same time.
    pub(super) fn own_parts(&self, cells: &[(RecordingRun, Seed)]) -> OwnParts {
        cells.iter().map(|(cell, seed)| self.own_part(cell, *seed)).collect()
    }

    fn own_part(&self, cell: &RecordingRun, seed: Seed) -> Option<(RecordingRun, Seed)> {
        let recorders = self.ranks.nodes.recorded_by(cell);
        let number = recorders.iter().position(|rank| *rank == self.cluster.rank())? as u32;
        let part = cell.part(number, recorders.len() as u32);
        // Parts of one dataset have the seed and the number of one recording.
        let is_of_all = number == 0 || part.dataset_turn().is_some();
        let seed = if is_of_all { seed } else { seed.named("part").part(number.into()) };
        Some((part, seed))
    }

    /// Agrees that all are ready, or on the reason why not. Returns `None` if the campaign is over before they
    /// begin.
    pub(super) fn all_ready(
        &self,
        failed: Option<&Invalid>,
        is_over: &dyn Fn() -> bool,
    ) -> Option<Result<(), Invalid>> {
        let reports = self.cluster.gather(RankReport::Ready(vec![failed.cloned()]));
        self.begins(failed_on_any(reports).pop().flatten(), is_over)
    }

    /// Agrees that all have opened the same dataset, or on the reason why not. `opened` has the dimensions that
    /// this process finds, or `None` if it reads nothing. Returns `None` if the campaign is over.
    pub(super) fn all_opened(
        &self,
        opened: Result<Option<Vec<u64>>, Invalid>,
        is_over: &dyn Fn() -> bool,
    ) -> Option<Result<(), Invalid>> {
        let reports = self.cluster.gather(RankReport::Opened(opened));
        self.begins(dataset_fault(&reports), is_over)
    }

    /// Returns rank 0's decision: all go on, or none does for the reason that rank 0 found. Returns `None` if the
    /// campaign is over.
    fn begins(&self, fault: Option<Invalid>, is_over: &dyn Fn() -> bool) -> Option<Result<(), Invalid>> {
        let decided = (self.cluster.rank() == 0)
            .then(|| if is_over() { ClusterDecision::Cancel } else { ClusterDecision::Begin(vec![fault]) });
        let ClusterDecision::Begin(failed) = self.cluster.broadcast(decided) else { return None };
        Some(failed.into_iter().next().flatten().map_or(Ok(()), Err))
    }

    /// The time at which all begin, on this process's clock.
    pub(super) fn agreed_start(&self, clock: &Clock) -> Nanos {
        self.cluster.barrier();
        self.cluster.agree_start(clock)
    }

    /// At rank 0 returns a sample for each cell, of all processes together. Returns `None` elsewhere, or if the
    /// recording was interrupted anywhere. `recorded` is this process's part.
    pub(super) fn united(
        &self,
        cells: &[(RecordingRun, Seed)],
        parts: &OwnParts,
        recorded: PartRecorded,
    ) -> Option<Vec<Sample>> {
        let PartRecorded { samples, began, load, .. } = recorded;
        let whole = samples.is_some();
        let mut samples = samples.into_iter().flatten();
        let own = parts.iter().map(|part| part.as_ref().and_then(|_| samples.next())).collect::<Vec<_>>();
        let samples =
            own.into_iter().map(|sample| sample.map(|sample| of_rank(self.cluster, sample, began))).collect();
        let reports = self.cluster.gather(RankReport::Recorded { whole, samples, load });
        let load = loads_of_all(&reports).pop().unwrap_or_default();
        let by_cell = recorded_by_all(reports).filter(|_| self.cluster.rank() == 0)?;
        let mut samples: Vec<Sample> =
            cells.iter().zip(by_cell).map(|((cell, _), parts)| joined(cell, parts)).collect();
        for ingest in samples.iter_mut().filter_map(|sample| sample.ingest.as_mut()) {
            ingest.company = company(cells);
        }
        for sample in &mut samples {
            load.clone().put(sample);
        }
        Some(samples)
    }

    /// The numbers of the cells in which this process has a part.
    pub(super) fn own_cells(&self, cells: &[(RecordingRun, Seed)]) -> Vec<usize> {
        let has_part =
            |(_, (cell, seed)): &(usize, &(RecordingRun, Seed))| self.own_part(cell, *seed).is_some();
        cells.iter().enumerate().filter(has_part).map(|(number, _)| number).collect()
    }

    /// Serves a job of which this process records nothing. It sends the streams that others await of it, works at
    /// its share of a load, and otherwise leaves the processor to them.
    pub(super) fn assist(&self, run: &Run, job: &Job<'_>, loads: &mut Loads) {
        let beside = LoadsBeside::renewed(loads, self.cluster, job.load(), run);
        let load = self.assisted(run, job, beside);
        let samples = vec![None; job.cells.len()];
        self.cluster.gather(RankReport::Recorded { whole: true, samples, load });
    }

    /// Assists from the agreed start to the end of the recordings, if they begin. Returns this process's share of
    /// the load.
    fn assisted(&self, run: &Run, job: &Job<'_>, mut beside: LoadsBeside<'_>) -> LoadReport {
        let streams = match self.all_ready(None, &|| run.is_over()) {
            Some(Ok(())) => self.streams(run, job.cells, Vec::new()),
            Some(Err(why)) => Some(Err(why)),
            None => None,
        };
        let Some(streams) = streams else { return LoadReport::default() };
        beside.begin();
        if let Ok(mut streams) = streams {
            let at = self.agreed_start(&run.clock);
            run.clock.sleep_until(at);
            beside.count();
            streams.begin();
            self.sent(run, streams);
        }
        beside.ended([job.number]).pop().unwrap_or_default()
    }
}

/// Merges the parts of a cell into one sample. A single part stays as it is.
fn joined(cell: &RecordingRun, mut parts: Vec<RankSample>) -> Sample {
    if parts.len() == 1 {
        return parts.remove(0).sample;
    }
    recorded_together(cell, parts)
}
