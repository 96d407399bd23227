//! Reads a plan: from its text to cells at a scale, with every value checked.

use std::collections::BTreeMap;

use nilometer_model::read_toml;

use crate::{
    Acceptance, Catalogue, Cell, Plan, PlanError, ResolvedPlan, Stage, WorkloadRun,
    censuses::{CensusReader, RefusedStage, read_censuses},
    check::check,
    offered_rate::PATIENCE,
    places::line_of,
    setting,
};

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

/// Refuses values that no campaign could use.
fn check_head(plan: &Plan) -> Result<(), String> {
    if plan.repeats == 0 || plan.repeats > 1000 {
        return Err(format!("repeats = {}: write 1 to 1000", plan.repeats));
    }
    if plan.warm_up > 1000 {
        return Err(format!("warm_up = {}: write 0 to 1000", plan.warm_up));
    }
    if plan.precision.is_some_and(|precision| !(0.1..100.0).contains(&precision)) {
        let precision = plan.precision.unwrap_or_default();
        return Err(format!("precision = {precision}: write 0.1 to less than 100 percent"));
    }
    if plan.repeats_most == 0 || plan.repeats_most > 1000 {
        return Err(format!("repeats_most = {}: write 1 to 1000", plan.repeats_most));
    }
    if !(plan.margin > 0.0 && plan.margin < 100.0) {
        return Err(format!("margin = {}: write more than 0 and less than 100 percent", plan.margin));
    }
    Ok(())
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
