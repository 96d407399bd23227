//! `nilometer evaluate`: its options, and the plan that they name.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::Args;
use nilometer_model::{Bytes, FileSystemKind, Instrument, Nanos, TargetAddress};
use nilometer_plan::{AppliedSetting, Cell, Condition, RankNodes, ResolvedPlan};

use crate::{
    plan::{Scale, load},
    progress::ProgressOptions,
    recordings::{RECORDED, Recordings},
    target_argument::target_argument,
};

/// Measure storage and report the instruments that it can carry
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Evaluate {
    /// Directories on the storage systems, or URLs: root://, nfs://, s3:// and hdfs:// need a build with their
    /// clients; `null:` discards all data
    #[arg(required_unless_present = "resume", value_parser = target_argument())]
    pub(crate) targets: Vec<TargetAddress>,
    /// Run this plan: a built-in name (see `nilometer plan list`), or the path of a .toml file. Repeat the
    /// option for several plans; `none` makes only the recordings of --for [default: quick]
    #[arg(long = "plan", value_name = "PLAN", help_heading = "Measurement")]
    pub(crate) plans: Vec<String>,
    /// Refuse targets on other file systems, such as the one below a missing mount. Give one type for all
    /// targets, or one for each, in their order: ext4, nfs, lustre and others; an unknown word lists them
    #[arg(long, value_name = "TYPE", value_delimiter = ',', help_heading = "Measurement")]
    pub(crate) expect: Vec<FileSystemKind>,
    /// Measure each cell and recording of a plan this many times, instead of the plan's number. Recordings of
    /// --for repeat as often as their answer needs
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Measurement")]
    pub(crate) repeats: Option<u32>,
    #[command(flatten)]
    pub(crate) scale: Scale,
    /// Copy from this directory, in plans that copy from a disk
    #[arg(long, value_name = "DIRECTORY", help_heading = "Measurement")]
    pub(crate) source: Option<PathBuf>,
    /// End after this time at the latest, instead of the plan's limit
    #[arg(long, help_heading = "Measurement")]
    pub(crate) time_limit: Option<Nanos>,
    /// Write the record to this file [default: evaluation.sqlite, or the next free number]
    #[arg(long, help_heading = "The record")]
    pub(crate) record: Option<PathBuf>,
    /// Sign the record with this SSH key when the campaign has ended. `check --signed-by` finds the signer
    #[arg(long, value_name = "KEY", help_heading = "The record")]
    pub(crate) sign: Option<PathBuf>,
    /// Continue the interrupted or killed campaign of the record, with the record's targets and plan
    #[arg(long, group = RECORDED, help_heading = "The record")]
    pub(crate) resume: bool,
    /// With --resume: run commands and read files named in the record's plan, even if another user or another
    /// machine made the record
    #[arg(long, requires = "resume", help_heading = "The record")]
    pub(crate) trust_record: bool,
    /// Seed all random decisions with this number, instead of the plan's
    #[arg(long, help_heading = "Measurement")]
    pub(crate) seed: Option<u64>,
    /// Keep this much space free on each target, instead of the plan's amount
    #[arg(long, value_name = "SIZE", help_heading = "Measurement")]
    pub(crate) reserve: Option<Bytes>,
    /// Start nothing: print the measurements, their duration and space, and the commands that conditions
    /// would run
    #[arg(long, short = 'n', conflicts_with = "resume", help_heading = "Measurement")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressOptions,
    // This field is the last: its heading applies to all options after it.
    #[command(flatten)]
    pub(crate) recordings: Recordings,
}

/// The text that `evaluate --help` prints about exit codes.
const EXIT_CODES: &str = "\
Exit codes:
  0  carried: no frame of any instrument was lost; without --for: measured
  1  a fault: a failure, hang or interruption of the storage or the campaign prevented an answer
  2  wrong input: nothing was started
  3  not carried: a target lost frames of an instrument, even if something else failed; with [accept] in the plan: FAIL
  4  not decided: the data don't show whether an instrument is carried; without --for: every figure of a stage is INVALID; with [accept] in the plan: NOT DECIDED";

/// The record to continue without `--record`.
const DEFAULT_RECORD: &str = "evaluation.sqlite";

impl Evaluate {
    /// The path of the record to continue.
    pub(crate) fn recorded_at(&self) -> PathBuf {
        self.record.clone().unwrap_or_else(|| DEFAULT_RECORD.into())
    }

    /// Merges the plans, as written, into one.
    pub(crate) fn plans(&self) -> anyhow::Result<ResolvedPlan> {
        if self.plans == [NO_PLAN] {
            ensure!(self.recordings.any(), "--plan none: name an instrument with --for, or another plan");
            let default = load(DEFAULT_PLAN, self.scale)?;
            let repeats = self.repeats.unwrap_or(default.repeats);
            let title = self.recordings.title();
            return Ok(ResolvedPlan { title, repeats, cells: Vec::new(), ..default });
        }
        ensure!(!self.plans.iter().any(|name| name == NO_PLAN), "--plan none: leave out the other plans");
        let names = if self.plans.is_empty() { vec![DEFAULT_PLAN.to_owned()] } else { self.plans.clone() };
        let plans = names.iter().map(|name| Ok((stem(name), load(name, self.scale)?)));
        let plans = plans.collect::<anyhow::Result<Vec<_>>>()?;
        let mut plan = ResolvedPlan::joined(plans).expect("there is at least the default");
        if let Some(repeats) = self.repeats {
            plan.set_repeats(repeats);
        }
        Ok(plan)
    }

    /// Replaces values of the plan by those of the command line.
    pub(crate) fn changed(&self, mut plan: ResolvedPlan, nodes: &RankNodes) -> ResolvedPlan {
        plan.seed = self.seed.unwrap_or(plan.seed);
        plan.time_limit = self.time_limit.unwrap_or(plan.time_limit);
        plan.reserve = self.reserve.unwrap_or(plan.reserve);
        plan = plan.on_processes(&nodes.counts());
        plan.mpi_io_ranks = nodes.mpi_io_counts();
        if !self.expect.is_empty() {
            plan.expect.clone_from(&self.expect);
        }
        let source = self.source.as_ref().map(|source| source.display().to_string());
        plan.source = source.or(plan.source);
        plan.copy_to = self.recordings.copy_to().or(plan.copy_to);
        plan
    }

    /// The conditions and instruments that the command line names, directly or through a plan.
    pub(crate) fn named(&self) -> anyhow::Result<(Vec<Condition>, Vec<Instrument>)> {
        let mut cells = self.recordings.cells()?;
        if !self.plans.is_empty() {
            cells.extend(self.plans()?.cells);
        }
        let runs = || cells.iter().filter_map(Cell::as_recording);
        let conditions = runs().filter_map(|run| run.condition.clone());
        let conditions = conditions.chain(self.recordings.condition()?).collect();
        let beside = cells.iter().filter_map(|cell| cell.background()?.recording());
        let instruments = runs().map(|run| run.instrument.clone());
        Ok((conditions, instruments.chain(beside.map(|run| run.instrument)).collect()))
    }

    /// The settings of the plans on the command line.
    pub(crate) fn named_settings(&self) -> anyhow::Result<Vec<AppliedSetting>> {
        if self.plans.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.plans()?.settings().cloned().collect())
    }

    /// The plan of this command line, with `recorded` for all that it leaves out; only its time limit may differ.
    pub(crate) fn plan_like(
        &self,
        recorded: &ResolvedPlan,
        nodes: &RankNodes,
    ) -> anyhow::Result<ResolvedPlan> {
        let mut plan = recorded.clone();
        if !self.plans.is_empty() {
            let ResolvedPlan { repeats, seed, reserve, .. } = *recorded;
            let source = recorded.source.clone();
            let expect = recorded.expect.clone();
            plan = ResolvedPlan { seed, reserve, source, expect, ..self.plans()? };
            // The first command line's number of repeats holds, unless this one has another.
            if self.repeats.is_none() && plan.repeats != repeats {
                plan.set_repeats(repeats);
            }
        } else if let Some(repeats) = self.repeats {
            plan.repeats = repeats;
        }
        if let Some(scale) = self.scale.given().filter(|_| self.plans.is_empty()) {
            plan.scale = scale;
        }
        // Recordings of --for follow the cells of the plans.
        if self.recordings.any() {
            let asked = self.recordings.cells()?;
            if self.plans.is_empty() {
                remove_last_recordings(&mut plan.cells, asked.len());
            }
            plan.cells.extend(asked);
        } else if !self.plans.is_empty() {
            let planned = plan.recordings().count();
            let asked = recorded.cells.iter().filter(|cell| cell.as_recording().is_some()).skip(planned);
            plan.cells.extend(asked.cloned());
        }
        Ok(ResolvedPlan { time_limit: recorded.time_limit, ..self.changed(plan, nodes) })
    }
}

/// Removes the last `count` recordings.
fn remove_last_recordings(cells: &mut Vec<Cell>, count: usize) {
    for _ in 0..count {
        if let Some(last) = cells.iter().rposition(|cell| cell.as_recording().is_some()) {
            cells.remove(last);
        }
    }
}

/// The plan that runs if the command line has none.
const DEFAULT_PLAN: &str = "quick";

/// The word in place of a plan for recordings alone.
const NO_PLAN: &str = "none";

/// A plan's name if there are several: its built-in name, or the stem of its file's name.
fn stem(name: &str) -> String {
    Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_campaign::difference;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        evaluate: Evaluate,
    }

    fn asked(options: &[&str]) -> Evaluate {
        let line = ["evaluate"].iter().chain(options);
        <Line as clap::Parser>::try_parse_from(line).expect("valid options").evaluate
    }

    #[test]
    fn recordings_may_be_named_again_whoever_named_those_of_the_plan() {
        let first = asked(&[".", "--plan", "desy", "--for", "pco-edge"]);
        let mut recorded = first.plans().expect("a plan that is built in");
        assert!(recorded.recordings().count() > 0, "the plan has recordings");
        recorded.cells.extend(first.recordings.cells().expect("an instrument of the catalogue"));
        let differs = |options: &[&str]| {
            let again = asked(options).plan_like(&recorded, &RankNodes::alone()).expect("valid options");
            difference(&recorded, &again)
        };
        assert_eq!(differs(&["--resume", "--for", "pco-edge"]), None);
        assert_eq!(differs(&["--resume", "--plan", "desy", "--for", "pco-edge"]), None);
        assert_eq!(differs(&["--resume"]), None);
        let other = differs(&["--resume", "--for", "pco-4000"]).expect("another instrument");
        assert!(other.contains("cells["), "{other}");
    }
}
