//! A plan: which workloads, over which parameters, how often. First as written (TOML), then as cells.
//!
//! Any parameter may be a list; a stage is then the matrix of all combinations. Unknown keys are refused at their own
//! line with the valid names, because a typo that passes is a measurement of something else.

mod cell;
mod sweep;

pub use cell::{Cell, IngestCell, Phase, RandomCell, StreamCell, WalkCell, WorkloadCell};
pub use sweep::Sweep;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::{Bytes, Nanos};

/// A campaign as written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What the plan is for, in a line.
    pub title: String,
    /// How often each cell is measured.
    #[serde(default = "three")]
    pub repeats: u32,
    /// The seed of all random decisions.
    #[serde(default)]
    pub seed: u64,
    /// Space that stays free on each target.
    #[serde(default = "one_gib")]
    pub reserve: Bytes,
    /// How long no operation may be completed before the workers are given up as hung.
    #[serde(default = "one_minute")]
    pub hang_after: Nanos,
    /// What is measured.
    #[serde(default)]
    pub stage: Vec<Stage>,
}

const fn three() -> u32 {
    3
}

const fn one_gib() -> Bytes {
    Bytes(1 << 30)
}

const fn one_minute() -> Nanos {
    Nanos::from_millis(60_000)
}

/// A workload over a matrix of parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Its name in the report.
    pub name: Spanned<String>,
    /// Threads, each with an engine of its own.
    #[serde(default = "one")]
    pub workers: Sweep<u32>,
    /// How operations are issued.
    #[serde(default)]
    pub engine: Sweep<EngineKind>,
    /// Operations in flight a worker.
    #[serde(default = "one")]
    pub depth: Sweep<u32>,
    /// A phase ends after this time at the latest.
    pub time_limit: Option<Nanos>,
    /// What the workers do.
    pub workload: WorkloadSweep,
}

fn one() -> Sweep<u32> {
    Sweep::from(1)
}

/// How operations are issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// One system call at a time.
    #[default]
    Sync,
    /// Linux `io_uring`, with registered buffers and files.
    IoUring,
    /// Threads with a sync engine each.
    Pool,
}

/// Through the page cache or past it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Through the page cache.
    Buffered,
    /// `O_DIRECT`.
    Direct,
    /// `O_DIRECT` where the target really has it, else through the page cache.
    Best,
}

/// When written data is made durable inside the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncPolicy {
    /// Never: the figure is that of the cache, and is named so.
    None,
    /// Once, before the file is closed.
    Close,
}

/// A workload with its parameters, each of which may be a list.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadSweep {
    /// Sequential write of a file a worker, then a cold sequential read.
    Stream(StreamSweep),
    /// Aligned random reads of a file a worker.
    Random(RandomSweep),
    /// What `ls -lR` does: list every directory, stat every entry.
    Walk(WalkSweep),
}

/// Parameters of [`WorkloadSweep::Stream`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamSweep {
    /// Bytes a file; a whole number of blocks.
    pub file_size: Sweep<Bytes>,
    /// Bytes an operation.
    pub block_size: Sweep<Bytes>,
    /// Through the page cache or past it.
    pub access: Sweep<Access>,
    /// When written data is made durable.
    #[serde(default = "at_close")]
    pub sync: Sweep<SyncPolicy>,
}

fn at_close() -> Sweep<SyncPolicy> {
    Sweep::from(SyncPolicy::Close)
}

/// Parameters of [`WorkloadSweep::Random`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomSweep {
    /// Bytes a file; a whole number of blocks.
    pub file_size: Sweep<Bytes>,
    /// Bytes an operation.
    pub block_size: Sweep<Bytes>,
    /// Through the page cache or past it.
    pub access: Sweep<Access>,
    /// Operations a worker.
    pub operations: Sweep<u64>,
}

/// Parameters of [`WorkloadSweep::Walk`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WalkSweep {
    /// Levels of directories below the first.
    pub levels: Sweep<u32>,
    /// Directories in each directory but the lowest.
    pub branching: Sweep<u32>,
    /// Files in each directory.
    pub files: Sweep<u32>,
}

/// A plan that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No valid TOML, or not of this shape; the source shows line, word and choices.
    #[error("{file}: {source}")]
    Written {
        /// The file as the user named it.
        file: String,
        /// With line and valid names.
        source: Box<toml::de::Error>,
    },
    /// A parameter that makes no sense.
    #[error("{file}:{line}: stage `{stage}`: {why}")]
    Parameter {
        /// The file as the user named it.
        file: String,
        /// The line of the stage's name.
        line: usize,
        /// The stage's name.
        stage: String,
        /// What is wrong, with the valid values.
        why: String,
    },
    /// The plan measures nothing.
    #[error("{file}: the plan has no stage: add a [[stage]] with a name and a workload")]
    Empty {
        /// The file as the user named it.
        file: String,
    },
}

/// A plan as cells, ready to be resolved against targets.
#[derive(Debug, Clone, Serialize)]
pub struct Cells {
    /// The plan's title.
    pub title: String,
    /// How often each cell is measured.
    pub repeats: u32,
    /// The seed of all random decisions.
    pub seed: u64,
    /// Space that stays free on each target.
    pub reserve: Bytes,
    /// How long a phase may be silent beyond its limit.
    pub hang_after: Nanos,
    /// Every combination, in the order of the plan.
    pub cells: Vec<Cell>,
    /// What is recorded after all rounds, in this order.
    pub ingests: Vec<IngestCell>,
}

/// Reads a plan. `file` is what messages call it.
pub fn parse(text: &str, file: &str) -> Result<Cells, PlanError> {
    let plan: Plan = toml::from_str(text)
        .map_err(|source| PlanError::Written { file: file.into(), source: Box::new(source) })?;
    let mut cells = Vec::new();
    for stage in &plan.stage {
        for cell in stage.cells() {
            check(&cell).map_err(|why| PlanError::Parameter {
                file: file.into(),
                line: 1 + text[..stage.name.span().start].matches('\n').count(),
                stage: stage.name.get_ref().clone(),
                why,
            })?;
            cells.push(cell);
        }
    }
    if cells.is_empty() {
        return Err(PlanError::Empty { file: file.into() });
    }
    let Plan { title, repeats, seed, reserve, hang_after, .. } = plan;
    Ok(Cells { title, repeats, seed, reserve, hang_after, cells, ingests: Vec::new() })
}

impl Stage {
    /// The matrix, in the order of the plan.
    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for workload in self.workload.cells() {
            cells.push(Cell {
                stage: self.name.get_ref().clone(),
                workers: 1,
                engine: EngineKind::Sync,
                depth: 1,
                time_limit: self.time_limit,
                workload,
            });
        }
        let cells = self.workers.over(cells, |cell, value| cell.workers = value);
        let cells = self.engine.over(cells, |cell, value| cell.engine = value);
        self.depth.over(cells, |cell, value| cell.depth = value)
    }
}

/// What no target could run.
fn check(cell: &Cell) -> Result<(), String> {
    if cell.workers == 0 || cell.workers > 1024 {
        return Err(format!("workers = {}: write 1 to 1024", cell.workers));
    }
    if cell.depth == 0 || cell.depth > 4096 {
        return Err(format!("depth = {}: write 1 to 4096", cell.depth));
    }
    if cell.engine == EngineKind::Sync && cell.depth > 1 {
        let depth = cell.depth;
        return Err(format!(
            "depth = {depth}: the engine `sync` has depth 1; write engine = \"io_uring\" or \"pool\""
        ));
    }
    cell.workload.check()
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
        parse(text, "my.toml").expect_err("must be refused").to_string()
    }

    #[test]
    fn lists_make_a_matrix() {
        let plan = parse(STREAM, "my.toml").expect("a valid plan");
        let keys: Vec<String> =
            plan.cells.iter().map(|cell| format!("{} x{}", cell.workload, cell.workers)).collect();
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
}
