//! A plan: which workloads, over which parameters, how often. First as written (TOML), then as cells.
//!
//! Any parameter may be a list; a stage is then the matrix of all combinations. Unknown keys are refused at their own
//! line with the valid names, because a typo that passes is a measurement of something else.

mod accept;
mod background;
mod cell;
mod check;
mod choices;
mod error;
mod estimate;
mod imported;
mod ingest;
mod joined;
mod mpi_io;
mod network;
mod parameters;
mod planned;
mod process_count;
mod processes;
mod recording;
mod recording_part;
mod reference;
mod setting;
mod shift;
mod siblings;
mod sweep;
mod swept;
mod volumes;
mod workload;
mod written;

pub use accept::{
    AcceptTerms, Acceptance, CoresOf, Criterion, DURABLE_SHARE, InstrumentDemands, LossLimit, Requirement,
    StageDemands,
};
pub use background::{BackgroundLoad, BackgroundSweep, LoadWork, OfferedRate};
pub use cell::{Cell, Measurement, WorkloadRun};
pub use choices::{Access, BufferData, EngineKind, SyncPolicy};
pub use error::PlanError;
pub use estimate::{Estimate, EstimatedSpeed};
pub use imported::ImportedRun;
pub use ingest::{
    Condition, DURATION_LEAST, FRAMES_LEAST, Fill, Goal, Onto, RecordingRun, Route, USUAL_KEEP,
};
pub use mpi_io::{MpiIo, MpiIoCalls, MpiIoHints, MpiIoImplementation, MpiIoInForce, MpiIoSweep};
pub use network::{NetworkRun, NetworkSweep};
pub use parameters::{Footprint, Parameters, Work};
pub use planned::PlannedCampaign;
pub use process_count::ProcessCount;
pub use processes::{AskedProcesses, RankNodes};
pub use recording::{Catalogue, IngestGoal, IngestSweep};
pub use recording_part::RecordingSplit;
pub use reference::PlanKey;
pub use setting::{AppliedSetting, SettingSweep};
pub use shift::Shift;
pub use siblings::Siblings;
pub use sweep::Sweep;
pub use swept::{RecordedInstrument, Swept};
pub use volumes::Volumes;
pub use workload::*;
pub use written::{Plan, Stage};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Bytes, FileSystemKind, Nanos, StripeControl};

use background::PATIENCE;
use check::{check, check_head};

/// A plan as cells, ready to be resolved against targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResolvedPlan {
    /// The plan's title.
    pub title: String,
    /// How often each cell is measured.
    pub repeats: u32,
    /// Rounds before those, which count for nothing.
    pub warm_up: u32,
    /// No difference smaller than this counts as one, in percent.
    pub margin: f64,
    /// Beyond these, cells are repeated until half of the interval of each figure is no more than so many percent of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// Rounds with these together, at the most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeats_most: u32,
    /// The campaign ends after this time at the latest.
    pub time_limit: Nanos,
    /// No cell may need more space than this.
    pub space_limit: Option<Bytes>,
    /// What targets have to be on: all the same, or each by itself; nothing of none.
    #[serde(default)]
    pub expect: Vec<FileSystemKind>,
    /// The directory that copies come from.
    pub source: Option<String>,
    /// The directory that recordings are copied to while they are made.
    #[serde(default)]
    pub copy_to: Option<String>,
    /// What sizes were multiplied by.
    pub scale: f64,
    /// The seed of all random decisions.
    pub seed: u64,
    /// Space that stays free on each target.
    pub reserve: Bytes,
    /// Processes that measure together, each with the workers of a cell: as many as a launcher started.
    #[serde(default = "one_rank")]
    pub ranks: u32,
    /// How many of them each node has, in the order of the first rank on each; of none all are on one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_ranks: Vec<u32>,
    /// How many of them on each node have which implementation of MPI-IO, where a cell asks for one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mpi_io_ranks: BTreeMap<MpiIoImplementation, Vec<u32>>,
    /// How long a phase may be silent beyond its limit.
    pub hang_after: Nanos,
    /// What must be found for a target to be accepted.
    #[serde(default, skip_serializing_if = "Acceptance::is_empty")]
    pub accept: Acceptance,
    /// Every combination, in the order of the plan. Recordings are made after all rounds, in this order.
    pub cells: Vec<Cell>,
    /// What is measured of the network between machines, once for all targets, a stage each.
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

    /// All settings that its cells are measured under.
    pub fn settings(&self) -> impl Iterator<Item = &AppliedSetting> {
        self.cells.iter().flat_map(Cell::settings)
    }

    /// Its recordings, each with the index of its cell.
    pub fn recordings(&self) -> impl Iterator<Item = (usize, &RecordingRun)> {
        let cells = self.cells.iter().enumerate();
        cells.filter_map(|(index, cell)| Some((index, cell.as_recording()?)))
    }

    /// Whether a cell is measured on a target where the layout of files is chosen so, or can't be. Cells that differ only in
    /// what can't be chosen are one, and the first stands for all.
    pub fn applies(&self, cell: usize, control: Option<StripeControl>) -> bool {
        let chosen = |index: usize| {
            let cell = self.cells.get(index)?;
            Some((&cell.stage, cell.as_workload()?.where_chosen_by(control)))
        };
        let this = chosen(cell);
        let is_whole = self.cells.get(cell).and_then(Cell::as_workload) == this.as_ref().map(|(_, run)| run);
        is_whole || !(0..cell).any(|earlier| chosen(earlier) == this)
    }

    /// Whether a workload is measured where so many targets can do it. The first of them at once are not where there are
    /// fewer; nor where there are no more, and another cell of the stage is the same for all at once.
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

/// Reads a plan at a scale, which multiplies sizes and counts of items. `file` is what messages call it. A plan that
/// records an instrument needs a catalogue, see [`parse_with`].
pub fn parse(text: &str, file: &str, scale: f64) -> Result<ResolvedPlan, PlanError> {
    parse_with(text, file, scale, &|name| Err(format!("no instrument `{name}`: there is no catalogue here")))
}

/// Reads a plan whose recordings are of instruments in this catalogue.
pub fn parse_with(
    text: &str,
    file: &str,
    scale: f64,
    catalogue: Catalogue<'_>,
) -> Result<ResolvedPlan, PlanError> {
    let plan: Plan = toml::from_str(text)
        .map_err(|source| PlanError::Written { file: file.into(), source: Box::new(source) })?;
    check_head(&plan).map_err(|why| PlanError::Head { file: file.into(), why })?;
    let mut cells = Vec::new();
    let mut network = Vec::new();
    for stage in &plan.stage {
        let name = stage.name.get_ref();
        let added = stage.check_kind().and_then(|()| match (&stage.ingest, &stage.network) {
            (Some(ingest), _) => ingest
                .runs(plan.repeats, scale, catalogue)
                .and_then(|runs| stage.recordings(runs, scale, catalogue))
                .map(|runs| cells.extend(runs.into_iter().map(|run| Cell::recording(name, run)))),
            (None, Some(sweep)) => sweep.run(name).map(|run| network.push(run)),
            (None, None) => add_cells(stage, scale, catalogue, &mut cells),
        });
        added.map_err(|why| PlanError::Parameter {
            file: file.into(),
            line: line_of(text, stage.name.span().start),
            stage: stage.name.get_ref().clone(),
            why,
        })?;
    }
    check_patience(&plan, &cells).map_err(|why| PlanError::Head { file: file.into(), why })?;
    let accept = match &plan.accept {
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
    Ok(ResolvedPlan { network, ..resolved(plan, scale, accept, cells) })
}

/// Who waits until its next operation is due, or thinks, must not be taken for one that hangs.
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
        "hang_after = \"{hang_after}\": write more than {PATIENCE}, which a worker that is held to a rate, or thinks, may wait for"
    ))
}

/// The line in which a byte of a text stands, from 1.
fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
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
        expect: plan.expect.into_iter().collect(),
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
        cells,
        network: Vec::new(),
    }
}

/// The cells of a workload. At a small scale two sizes may become one.
fn add_cells(
    stage: &Stage,
    scale: f64,
    catalogue: Catalogue<'_>,
    cells: &mut Vec<Cell>,
) -> Result<(), String> {
    let Some(workload) = &stage.workload else {
        return Err("write what is measured: [stage.workload.NAME], [stage.ingest] or [stage.network]".into());
    };
    setting::check_settings(&stage.setting)?;
    for run in stage.runs(workload, scale, catalogue)? {
        let cell = Cell::workload(stage.name.get_ref(), at_scale(run, scale)?);
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    Ok(())
}

/// The cell as written must make sense, and so must what becomes of it.
fn at_scale(mut run: WorkloadRun, scale: f64) -> Result<WorkloadRun, String> {
    check(&run)?;
    if (scale - 1.0).abs() > f64::EPSILON {
        run.workload.parameters_mut().scale(scale);
        check(&run).map_err(|why| format!("at scale {scale}: {why}"))?;
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = r#"
title = "a test"
repeats = 2
[[stage]]
name = "large files"
workers = [1, 2]
[stage.workload.stream]
file_size = "64 MiB"
block_size = ["64 KiB", "1 MiB"]
access = "direct"
"#;

    fn refusal(text: &str) -> String {
        parse(text, "my.toml", 1.0).expect_err("must be refused").to_string()
    }

    #[test]
    fn pools_are_a_parameter_like_others_and_no_options_of_a_tool() {
        let of = |pools: &str| STREAM.replace("workers = [1, 2]", &format!("pool = {pools}"));
        let plan = parse(&of("[\"flash\", \"2\"]"), "my.toml", 1.0).expect("a valid plan");
        let pools: Vec<_> = plan.workloads().map(|(_, _, run)| run.layout().pool).collect();
        assert_eq!(pools, ["flash", "2", "flash", "2"].map(|pool| Some(pool.to_owned())));
        assert!(plan.cells[0].to_string().ends_with(", pool flash"), "{}", plan.cells[0]);
        // Where there are no pools, the cells that differ only in it are one.
        let without = (0..4).filter(|&cell| plan.applies(cell, None)).count();
        let with = (0..4).filter(|&cell| plan.applies(cell, Some(StripeControl::Lustre))).count();
        assert_eq!([without, with], [2, 4]);
        for wrong in ["\"\"", "\"-d\"", "\"a b\"", "\"a/b\"", "\"a\\nb\""] {
            assert!(refusal(&of(wrong)).contains("write the name of a pool"), "{wrong}");
        }
    }

    #[test]
    fn lists_make_a_matrix() {
        let plan = parse(STREAM, "my.toml", 1.0).expect("a valid plan");
        let keys: Vec<String> =
            plan.workloads().map(|(_, _, run)| format!("{} x{}", run.workload, run.workers)).collect();
        assert_eq!(
            keys,
            [
                "64 MiB by 64 KiB, direct x1",
                "64 MiB by 64 KiB, direct x2",
                "64 MiB by 1 MiB, direct x1",
                "64 MiB by 1 MiB, direct x2"
            ]
        );
    }

    #[test]
    fn several_plans_are_one_campaign() {
        let plan = |text: &str| parse(text, "my.toml", 1.0).expect("a valid plan");
        let (one, other) = (plan(STREAM), plan(&STREAM.replace("repeats = 2", "repeats = 5")));
        let joined =
            ResolvedPlan::joined(vec![("a".into(), one.clone()), ("b".into(), other)]).expect("two plans");
        assert_eq!((joined.repeats, joined.cells.len()), (5, 2 * one.cells.len()));
        assert_eq!(joined.cells[0].stage, "a: large files");
        assert_eq!(joined.cells[4].stage, "b: large files");
        assert_eq!(
            ResolvedPlan::joined(vec![("a".into(), one.clone())]),
            Some(one),
            "one plan stays as it is"
        );
        assert_eq!(ResolvedPlan::joined(Vec::new()), None);
    }

    #[test]
    fn a_typo_is_refused_at_its_own_line_with_the_valid_names() {
        let message = refusal(&STREAM.replace("block_size", "blok_size"));
        for part in ["my.toml", "line 9", "blok_size", "`block_size`", "`file_size`", "`access`"] {
            assert!(message.contains(part), "{part} is missing in: {message}");
        }
        let message = refusal(&STREAM.replace("workload.stream", "workload.straem"));
        assert!(
            message.contains("straem") && message.contains("`walk`") && message.contains("line 7"),
            "{message}"
        );
        let message = refusal(&STREAM.replace("\"direct\"", "\"dirct\""));
        assert!(
            message.contains("dirct") && message.contains("`buffered`") && message.contains("line 10"),
            "{message}"
        );
    }

    #[test]
    fn impossible_values_are_refused_with_their_place() {
        let message = refusal(&STREAM.replace("64 MiB", "-64 MiB"));
        assert!(message.contains("`-64 MiB` is negative") && message.contains("line 8"), "{message}");
        let message = refusal(&STREAM.replace("\"1 MiB\"", "\"1 K\""));
        assert!(message.contains("KiB") && message.contains("line 9"), "{message}");
        let message = refusal(&STREAM.replace("1 MiB", "3 MiB"));
        assert!(message.contains("my.toml:5") && message.contains("whole number of blocks"), "{message}");
        let message = refusal(&STREAM.replace("[1, 2]", "0"));
        assert!(message.contains("my.toml:5") && message.contains("1 to 1024"), "{message}");
        let message = refusal(&STREAM.replace("workers = [1, 2]", "depth = 8"));
        assert!(message.contains("io_uring"), "{message}");
        assert!(refusal("title = \"x\"").contains("no stage"));
    }

    /// The workload of the only stage as written in these lines.
    fn of(workload: &str) -> String {
        refusal(&format!(
            "title = \"a test\"\n[[stage]]\nname = \"s\"\nworkers = 4\n[stage.workload.{workload}"
        ))
    }

    #[test]
    fn a_stream_s_parameters_are_refused_with_what_would_do() {
        let stream = "stream]\nfile_size = \"8 MiB\"\nblock_size = \"1 MiB\"\naccess = \"best\"\n";
        for (line, parts) in [
            ("layout = \"stripes\"", &["line 9", "`stripes`", "`own`", "`segmented`", "`strided`"][..]),
            ("sync = \"often\"", &["line 9", "`often`", "`none`", "`close`", "`every`"]),
            ("sync = { every = 0 }", &["my.toml:3", "at least 1 block"]),
            ("files = 0", &["my.toml:3", "1 to 1000000"]),
            ("files = 3\nlayout = \"strided\"", &["my.toml:3", "files = 1"]),
            ("source = \"tape\"", &["line 9", "`tape`", "`memory`", "`disk`"]),
            ("preallocate = 1", &["line 9", "boolean"]),
        ] {
            let message = of(&format!("{stream}{line}\n"));
            assert!(parts.iter().all(|part| message.contains(part)), "{line}: {parts:?} in: {message}");
        }
        let far = stream.replace("8 MiB", "4194304 TiB");
        let message = of(&format!("{far}layout = \"segmented\"\n"));
        assert!(message.contains("8 EiB") && message.contains("4 workers"), "{message}");
    }

    #[test]
    fn a_random_s_parameters_are_refused_with_what_would_do() {
        let random = "random]\nfile_size = \"8 MiB\"\nblock_size = \"4 KiB\"\naccess = \"best\"\n";
        for (lines, parts) in [
            ("operations = 0", &["my.toml:3", "at least 1"][..]),
            ("operations = 9\nmode = \"both\"", &["line 10", "`both`", "`read`", "`write`", "`mix`"]),
            ("operations = 9\nmode = \"mix\"\nreads = 101", &["my.toml:3", "0 to 100 percent"]),
            ("operations = 9\ncoverage = \"all\"", &["line 10", "`all`", "`uniform`", "`full`"]),
        ] {
            let message = of(&format!("{random}{lines}\n"));
            assert!(parts.iter().all(|part| message.contains(part)), "{lines}: {parts:?} in: {message}");
        }
    }

    #[test]
    fn small_writes_parameters_are_refused_with_what_would_do() {
        for (lines, parts) in [
            ("total = \"1 MB\"\nwrite_size = \"0 B\"", &["my.toml:3", "1 B to 64 KiB"][..]),
            ("total = \"1 MB\"\nwrite_size = \"1 MB\"", &["my.toml:3", "1 B to 64 KiB"]),
            ("total = \"0 B\"", &["my.toml:3", "at least one"]),
            ("total = \"1001 B\"", &["my.toml:3", "whole number of writes of \"100 B\""]),
            (
                "total = \"1 MB\"\nway = \"collected\"\nbuffer = \"2 MB\"",
                &["my.toml:3", "buffer", "to 1 MiB"],
            ),
            (
                "total = \"1 MB\"\nway = \"collected\"\nbuffer = \"99 B\"",
                &["my.toml:3", "100 B (a write_size)"],
            ),
            (
                "total = \"1 MB\"\nway = \"slowly\"",
                &["line 7", "`slowly`", "`each`", "`collected`", "`at_once`"],
            ),
            ("totl = \"1 MB\"", &["line 6", "`totl`", "`total`", "`write_size`", "`way`"]),
        ] {
            let message = of(&format!("small_writes]\n{lines}\n"));
            assert!(parts.iter().all(|part| message.contains(part)), "{lines}: {parts:?} in: {message}");
        }
    }

    #[test]
    fn trees_that_make_no_sense_are_refused_with_what_would_do() {
        const TREE: &str = "directories = 10\nfiles = 100\nsize = \"1 MB\"\n";
        for (text, parts) in [
            ("walk]\ntotal_files = 7\n".to_owned(), &["my.toml:3", "write directories too"][..]),
            ("walk]\ndirectories = 7\n".to_owned(), &["my.toml:3", "files = 0: write at least 1"]),
            ("walk]\nfiles = 7\ncommand = \"find\"\n".to_owned(), &["`find`", "`ls`", "`du`"]),
            ("unpack]\nfiles = 7\nsize = \"1 MB\"\n".to_owned(), &["missing field `directories`"]),
            (format!("unpack]\n{}", TREE.replace("100", "40000000")), &["my.toml:3", "entries: at most"]),
            (format!("build]\n{TREE}units = 46\n"), &["my.toml:3", "units = 46: write 1 to 45"]),
            (format!("open_files]\n{TREE}operations = 0\n"), &["my.toml:3", "write at least 1"]),
        ] {
            let message = of(&text);
            assert!(parts.iter().all(|part| message.contains(part)), "{text}: {parts:?} in: {message}");
        }
    }

    #[test]
    fn combinations_of_a_workload_have_different_names() {
        let text = STREAM.replace("stream]\nfile_size = \"64 MiB\"\nblock_size = [\"64 KiB\", \"1 MiB\"]", "random]\nfile_size = [\"64 MiB\", \"1 GiB\"]\nblock_size = \"4 KiB\"\noperations = 10\nmode = [\"read\", \"write\", \"mix\"]\nreads = [10, 90]\ncoverage = [\"uniform\", \"full\"]");
        let plan = parse(&text, "my.toml", 1.0).expect("a valid plan");
        let names: std::collections::BTreeSet<_> =
            plan.workloads().map(|(_, _, run)| (run.to_string(), format!("{:?}", run.phases()))).collect();
        // The share of reads matters in a mix only.
        assert_eq!((plan.cells.len(), names.len()), (48, 2 * 2 * (1 + 1 + 2) * 2));
    }
}
