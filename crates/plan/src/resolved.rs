//! A plan as cells, and how one that is written becomes it.

use std::collections::BTreeMap;

use nilometer_model::{Bytes, FileSystemKind, MpiIoImplementation, Nanos, StripeControl, read_toml};
use serde::{Deserialize, Serialize};

use crate::{
    Acceptance, AppliedSetting, BackgroundLoad, Catalogue, Cell, Measurement, NetworkRun, Plan, PlanError,
    RecordingRun, Stage, Volumes, WorkloadRun,
    censuses::{CensusReader, RefusedStage, read_censuses},
    check::{check, check_head},
    offered_rate::PATIENCE,
    places::line_of,
    setting,
};

/// A plan as cells, ready to be resolved against targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResolvedPlan {
    /// The plan's title.
    pub title: String,
    /// The number of measurements of each cell.
    pub repeats: u32,
    /// Rounds before those, which count for nothing.
    pub warm_up: u32,
    /// No difference smaller than this counts as one, in percent.
    pub margin: f64,
    /// Cells are repeated further until half of the interval of each figure is within this percentage of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// Rounds with these together, at the most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeats_most: u32,
    /// The campaign ends after this time at the latest.
    pub time_limit: Nanos,
    /// No cell may need more space than this.
    pub space_limit: Option<Bytes>,
    /// The expected file systems of targets: one for all, or one for each; empty means any.
    #[serde(default)]
    pub expect: Vec<FileSystemKind>,
    /// The source directory of copies.
    pub source: Option<String>,
    /// The directory that recordings are copied to while they are made.
    #[serde(default)]
    pub copy_to: Option<String>,
    /// The factor for sizes.
    pub scale: f64,
    /// The seed of all random decisions.
    pub seed: u64,
    /// Space that stays free on each target.
    pub reserve: Bytes,
    /// Processes that measure together, each with the workers of a cell: as many as a launcher started.
    #[serde(default = "one_rank")]
    pub ranks: u32,
    /// The number of processes on each node, in the order of the first rank on each. If it is empty, all are
    /// on one node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_ranks: Vec<u32>,
    /// Number of ranks on each node with each implementation of MPI-IO, if a cell asks for one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mpi_io_ranks: BTreeMap<MpiIoImplementation, Vec<u32>>,
    /// The longest silence of a phase beyond its limit.
    pub hang_after: Nanos,
    /// The criteria for accepting a target.
    #[serde(default, skip_serializing_if = "Acceptance::is_empty")]
    pub accept: Acceptance,
    /// Cells left out because they do the same work as another one at this scale: each in words, with its
    /// substitute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// Every combination, in the order of the plan. Recordings are made after all rounds, in this order.
    pub cells: Vec<Cell>,
    /// The network measurements, once for all targets, a stage each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<NetworkRun>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

const fn one_rank() -> u32 {
    1
}

impl ResolvedPlan {
    /// Its workloads, each with the index of its cell and its stage.
    pub fn workloads(&self) -> impl Iterator<Item = (usize, &str, &WorkloadRun)> {
        let cells = self.cells.iter().enumerate();
        cells.filter_map(|(index, cell)| Some((index, cell.stage.as_str(), cell.as_workload()?)))
    }

    /// True if a load copies from the targets to other storage.
    pub fn migrates(&self) -> bool {
        self.cells.iter().filter_map(Cell::background).any(BackgroundLoad::migrates)
    }

    /// Measures each cell so often, and makes each of its recordings so often.
    pub fn set_repeats(&mut self, repeats: u32) {
        self.repeats = repeats;
        for cell in &mut self.cells {
            if let Measurement::Recording(run) = &mut cell.measurement {
                run.repeats = repeats;
            }
        }
    }

    /// Number of its workloads that equal others if the layout of files can't be chosen.
    pub fn cells_by_layout(&self) -> usize {
        self.workloads().filter(|(cell, ..)| !self.applies(*cell, None)).count()
    }

    /// The settings under which its cells are measured.
    pub fn settings(&self) -> impl Iterator<Item = &AppliedSetting> {
        self.cells.iter().flat_map(Cell::settings)
    }

    /// Its recordings, each with the index of its cell.
    pub fn recordings(&self) -> impl Iterator<Item = (usize, &RecordingRun)> {
        let cells = self.cells.iter().enumerate();
        cells.filter_map(|(index, cell)| Some((index, cell.as_recording()?)))
    }

    /// Returns true if a cell is measured on a target with this way to choose layouts, or none. Cells that
    /// differ only in choices missing there are one; the first stands for all.
    pub fn applies(&self, cell: usize, control: Option<StripeControl>) -> bool {
        let chosen = |index: usize| {
            let cell = self.cells.get(index)?;
            Some((&cell.stage, cell.as_workload()?.where_chosen_by(control)))
        };
        let this = chosen(cell);
        let is_whole = self.cells.get(cell).and_then(Cell::as_workload) == this.as_ref().map(|(_, run)| run);
        is_whole || !(0..cell).any(|earlier| chosen(earlier) == this)
    }

    /// Returns true if a workload is measured when `able` targets can do it.
    ///
    /// A workload for the first N at once needs N targets. With exactly N it is skipped if another cell of
    /// the stage does the same for all at once.
    pub fn is_measured_on(&self, cell: usize, able: usize) -> bool {
        let Some(run) = self.cells.get(cell).and_then(Cell::as_workload) else { return false };
        let Volumes::First(count) = run.volumes else { return able > 0 };
        let count = count as usize;
        let all = WorkloadRun { volumes: Volumes::Together, ..run.clone() };
        let stage = &self.cells[cell].stage;
        let said_so = || self.workloads().any(|(_, of, other)| of == stage && *other == all);
        count < able || count == able && !said_so()
    }
}

/// Reads a plan at a scale, which multiplies sizes and counts of items. Messages call the plan `file`. A plan
/// that records an instrument needs a catalogue; see [`parse_with`].
pub fn parse(text: &str, file: &str, scale: f64) -> Result<ResolvedPlan, PlanError> {
    parse_with(text, file, scale, &|name| Err(format!("no instrument `{name}`: there is no catalogue here")))
}

/// Reads a plan whose recordings are of instruments in this catalogue. A plan that names a census needs files; see
/// [`parse_from`].
pub fn parse_with(
    text: &str,
    file: &str,
    scale: f64,
    catalogue: Catalogue<'_>,
) -> Result<ResolvedPlan, PlanError> {
    let censuses = &|_: &str| Err("there are no files here".to_owned());
    parse_from(text, file, scale, &PlanSources { catalogue, censuses })
}

/// The sources of instruments and censuses that a plan names.
#[expect(missing_debug_implementations, reason = "it has functions alone")]
#[derive(Clone, Copy)]
pub struct PlanSources<'a> {
    /// Instruments, by name or path.
    pub catalogue: Catalogue<'a>,
    /// Censuses, by path.
    pub censuses: CensusReader<'a>,
}

/// Reads a plan whose instruments and censuses come from these sources.
pub fn parse_from(
    text: &str,
    file: &str,
    scale: f64,
    sources: &PlanSources<'_>,
) -> Result<ResolvedPlan, PlanError> {
    let mut plan: Plan =
        read_toml(text).map_err(|source| PlanError::Written { file: file.into(), source })?;
    check_head(&plan).map_err(|why| PlanError::Head { file: file.into(), why })?;
    let refused = read_censuses(&mut plan, text, sources.censuses);
    refused.map_err(|RefusedStage { stage, why }| in_stage(&plan.stage[stage], text, file, why))?;
    let catalogue = sources.catalogue;
    let mut cells = Vec::new();
    let mut merged = Vec::new();
    let mut network = Vec::new();
    for stage in &plan.stage {
        let name = stage.name.get_ref();
        let added = stage.check_kind().and_then(|()| match (&stage.ingest, &stage.network) {
            (Some(ingest), _) => ingest
                .runs(plan.repeats, scale, catalogue)
                .and_then(|runs| stage.recordings(runs, scale, catalogue))
                .map(|runs| cells.extend(runs.into_iter().map(|run| Cell::recording(name, run)))),
            (None, Some(sweep)) => sweep.run(name, scale).map(|run| network.push(run)),
            (None, None) => add_cells(stage, scale, catalogue, &mut cells).map(|again| merged.extend(again)),
        });
        added.map_err(|why| in_stage(stage, text, file, why))?;
    }
    check_patience(&plan, &cells).map_err(|why| PlanError::Head { file: file.into(), why })?;
    let accept = match &plan.accept {
        Some(_) if has_recordings_over_several(&cells) => {
            let why =
                "volumes: each offer is judged by itself, and a recording lies on several: leave volumes out";
            return Err(PlanError::Accept { file: file.into(), line: None, why: why.into() });
        }
        Some(terms) => {
            terms.resolve(plan.repeats, catalogue, &mut cells).map_err(|refused| PlanError::Accept {
                file: file.into(),
                line: refused.at.map(|at| line_of(text, at)),
                why: refused.why,
            })?
        }
        None => Acceptance::default(),
    };
    if cells.is_empty() && network.is_empty() {
        return Err(PlanError::Empty { file: file.into() });
    }
    Ok(ResolvedPlan { merged, network, ..resolved(plan, scale, accept, cells) })
}

fn in_stage(stage: &Stage, text: &str, file: &str, why: String) -> PlanError {
    PlanError::Parameter {
        file: file.into(),
        line: line_of(text, stage.name.span().start),
        stage: stage.name.get_ref().clone(),
        why,
    }
}

/// Checks that `hang_after` exceeds the longest wait of a worker for its next operation, or to think.
fn check_patience(plan: &Plan, cells: &[Cell]) -> Result<(), String> {
    let is_held = |cell: &Cell| {
        let load = cell.background().is_some_and(|load| !load.offered.is_none());
        load || cell.as_workload().is_some_and(|run| !run.offered.is_none() || run.thinks())
    };
    if plan.hang_after > PATIENCE || !cells.iter().any(is_held) {
        return Ok(());
    }
    let hang_after = plan.hang_after;
    Err(format!(
        "hang_after = \"{hang_after}\": write more than {PATIENCE}: a worker with a rate or a think time \
         may wait that long"
    ))
}

fn has_recordings_over_several(cells: &[Cell]) -> bool {
    cells.iter().filter_map(Cell::as_recording).any(|run| !run.volumes.is_empty())
}

fn resolved(plan: Plan, scale: f64, accept: Acceptance, cells: Vec<Cell>) -> ResolvedPlan {
    ResolvedPlan {
        title: plan.title,
        repeats: plan.repeats,
        warm_up: plan.warm_up,
        margin: plan.margin,
        precision: plan.precision,
        repeats_most: if plan.precision.is_some() { plan.repeats_most.max(plan.repeats) } else { 0 },
        time_limit: plan.time_limit,
        space_limit: plan.space_limit,
        expect: plan.expect.map(|expected| expected.0).into_iter().collect(),
        source: plan.source,
        copy_to: None,
        scale,
        seed: plan.seed,
        reserve: plan.reserve,
        ranks: 1,
        node_ranks: Vec::new(),
        mpi_io_ranks: BTreeMap::new(),
        hang_after: plan.hang_after,
        accept,
        merged: Vec::new(),
        cells,
        network: Vec::new(),
    }
}

/// Adds the cells of a workload. At a small scale two sizes may become one: those that are left out, in words.
fn add_cells(
    stage: &Stage,
    scale: f64,
    catalogue: Catalogue<'_>,
    cells: &mut Vec<Cell>,
) -> Result<Vec<String>, String> {
    let Some(workload) = &stage.workload else {
        return Err("write the measurement: [stage.workload.NAME], [stage.ingest] or [stage.network]".into());
    };
    setting::check_settings(&stage.setting)?;
    let name = stage.name.get_ref();
    let mut merged = Vec::new();
    for run in stage.runs(workload, scale, catalogue)? {
        let written = Cell::workload(name, run.clone());
        let cell = Cell::workload(name, at_scale(run, scale)?);
        if cells.contains(&cell) {
            merged.push(format!("{name}: {written}: the same as {cell}"));
        } else {
            cells.push(cell);
        }
    }
    Ok(merged)
}

impl WorkloadRun {
    /// The same workload at a scale; `None` if a plan would refuse it there.
    pub fn at_scale(&self, scale: f64) -> Option<WorkloadRun> {
        at_scale(self.clone(), scale).ok()
    }
}

/// Scales a cell. It must make sense both as written and scaled.
fn at_scale(mut run: WorkloadRun, scale: f64) -> Result<WorkloadRun, String> {
    check(&run)?;
    if (scale - 1.0).abs() > f64::EPSILON {
        run.workload.parameters_mut().scale(scale);
        check(&run).map_err(|why| format!("at scale {scale}: {why}"))?;
    }
    Ok(run)
}
