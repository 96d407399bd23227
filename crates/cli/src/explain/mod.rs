//! `nilometer explain -- fio ...`: finds the assumptions behind a figure of another program. It measures the
//! cell of the program's line, and the same cell with one assumption changed at a time, in shuffled rounds.
//! It also runs the program itself, if that is installed.
//!
//! [`parse`] reads a line. [`variant`] makes cells of it, [`run`] measures them, and [`rounds`] reports.

mod own_figure;
mod reach;
mod rounds;
mod run;
mod tree_variant;
mod variant;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, ensure};
use clap::Args;
use nilometer_command_lines::{ForeignLine, ReadLine, parse};
use nilometer_model::{DirectIo, Nanos, TargetAddress, TargetDescription};
use nilometer_remote::describe_in_child;

use crate::{Blame, Outcome, tell};
use rounds::{Rounds, RoundsReport};
use run::{LineRuns, RunPlaces, record_of};
use variant::{AS_THE_LINE_SAYS, LineVariant, variants};

/// Find the assumptions behind a figure of fio, IOR or other programs
///
/// Takes lines of fio, dd, IOR, mdtest, elbencho and iozone. Measures the line's cell in rounds, beside the
/// same cell with one assumption changed at a time. Assumptions are sync, cache, data, depth, workers and
/// clock; for mdtest data, directories, trees, cache and workers. Nilometer works in a directory of its own
/// beside the line's file. Each round runs the line itself once.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Run this many rounds; fewer than six decide nothing
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Do not run the line itself
    #[arg(long)]
    ours_only: bool,
    /// Count no difference smaller than this, in percent
    #[arg(long, default_value_t = 5.0, value_parser = margin)]
    margin: f64,
    /// Keep the plan and the record of each round in this directory
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
    /// The line, after `--`. It may begin with `mpirun`, `srun`, `sudo`, `numactl` and the like
    #[arg(last = true, required = true, value_name = "LINE")]
    line: Vec<String>,
}

fn margin(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|percent| *percent > 0.0 && *percent < 100.0);
    number.ok_or_else(|| "write more than 0 and less than 100 percent".to_owned())
}

impl Explain {
    pub(crate) fn execute(&self) -> Outcome {
        let mut read = parse(&self.line).input()?;
        if !self.ours_only {
            reach::check(&read.reach()).input()?;
        }
        run::fit_to_machine(&mut read);
        let address: TargetAddress = read.line.directory.as_path().into();
        let target = describe_in_child(&address).map_err(anyhow::Error::from).input()?;
        let temporary = tempfile::tempdir().context("no temporary directory").run()?;
        let keep = self.kept(temporary.path()).input()?;
        let plan = keep.join("explain.toml");
        let mut variants = planned(&read.line, &target, &plan).input()?;
        let places = RunPlaces { words: &self.line, plan: &plan, keep: &keep };
        // Refuses a plan that can't be measured before the line itself fills the storage.
        if let Err(error) = places.of(&read).check() {
            if !read.line.is_by_processes {
                return Err(error).input();
            }
            read.line.without_mpi_io(&format!(
                "no cell of ours is measured by its launcher ({})",
                first_line(&error)
            ));
            variants = planned(&read.line, &target, &plan).input()?;
            places.of(&read).check().input()?;
        }
        let is_there = !self.ours_only && run::is_installed(&read, &self.line);
        self.measure_and_tell(&places.of(&read), &target, &variants, is_there)
    }

    /// The empty directory for the plan and the records.
    fn kept(&self, temporary: &Path) -> anyhow::Result<PathBuf> {
        let keep = self.keep.clone().unwrap_or_else(|| temporary.to_owned());
        fs::create_dir_all(&keep).with_context(|| keep.display().to_string())?;
        let taken = (0..self.rounds).map(|round| record_of(&keep, round)).find(|record| record.exists());
        match taken {
            Some(record) => Err(anyhow!("{} exists: name another directory", record.display())),
            None => Ok(keep),
        }
    }

    fn measure_and_tell(
        &self,
        runs: &LineRuns<'_>,
        target: &TargetDescription,
        variants: &[LineVariant],
        is_there: bool,
    ) -> Outcome {
        self.note_duration(&runs.read.line, variants.len() + usize::from(is_there));
        let mut rounds = Rounds::default();
        let ended = self.measure(runs, is_there, &mut rounds);
        if rounds.ours.is_empty() {
            return ended.run();
        }
        // The report covers the rounds before a failure too.
        rounds.theirs.resize(if is_there { rounds.ours.len() } else { 0 }, Vec::new());
        let ReadLine { line, .. } = runs.read;
        let report = RoundsReport { line, target, variants, rounds: &rounds, margin: self.margin };
        tell::result(report.text());
        ended.with_context(|| format!("ended after {} of {} rounds", rounds.ours.len(), self.rounds)).run()
    }

    /// Warns about a line with a time: it takes that time for each cell, in each round.
    fn note_duration(&self, line: &ForeignLine, cells: usize) {
        let Some(time) = line.time else { return };
        let seconds = time.seconds() * cells as f64 * f64::from(self.rounds);
        let all = Nanos::from_seconds(seconds.min(1e9));
        let advice = "write fewer --rounds or a shorter time in the line if that is too long";
        tell::note(format_args!("note: {} rounds of {cells} cells take up to {all}: {advice}", self.rounds));
    }

    /// Measures all rounds, or those before a failure.
    fn measure(&self, runs: &LineRuns<'_>, is_there: bool, rounds: &mut Rounds) -> anyhow::Result<()> {
        for round in 0..self.rounds {
            tell::note(format_args!("round {} of {}", round + 1, self.rounds));
            // The second one finds the traces of the first.
            if is_there && round % 2 == 0 {
                rounds.theirs.push(runs.own_rates()?);
            }
            rounds.ours.push(runs.measured(round)?);
            if is_there && round % 2 == 1 {
                rounds.theirs.push(runs.own_rates()?);
            }
            if is_there {
                rounds.sources.push(runs.source_rate());
            }
        }
        Ok(())
    }
}

/// Writes the plan of the cells that a target can have.
fn planned(line: &ForeignLine, target: &TargetDescription, plan: &Path) -> anyhow::Result<Vec<LineVariant>> {
    let variants: Vec<LineVariant> =
        variants(line).into_iter().filter(|variant| suits(&variant.line, target)).collect();
    let suits_itself = variants.first().is_some_and(|first| first.name == AS_THE_LINE_SAYS);
    ensure!(suits_itself, "{}", not_past_the_cache(target));
    fs::write(plan, variant::plan(&variants)).with_context(|| plan.display().to_string())?;
    Ok(variants)
}

fn first_line(error: &anyhow::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn not_past_the_cache(target: &TargetDescription) -> String {
    let TargetDescription { address, direct, .. } = target;
    format!(
        "{address}: the line goes past the page cache, which is not possible there with such blocks ({direct})"
    )
}

/// True if the target can have the cell: past the page cache, blocks must be multiples of its alignment.
fn suits(line: &ForeignLine, target: &TargetDescription) -> bool {
    match target.direct {
        DirectIo::Real { alignment } => !line.direct || line.block.0.is_multiple_of(u64::from(alignment)),
        _ => !line.direct,
    }
}
