//! `nilometer explain -- fio ...`: what a figure of another program rests on. The cell that its line asks for is measured beside
//! the same with one assumption turned round at a time, in shuffled rounds, and so is the program itself where it is there.

mod line;
mod tree_line;
mod variant;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, anyhow, ensure};
use clap::Args;
use nilometer_analysis::{LineDifference, NamedRates, Quantity};
use nilometer_model::{DirectIo, Invalid, Results, Sample, TargetAddress, TargetDescription, plan::Phase};
use nilometer_remote::describe_in_child;
use serde_json::Value;

use crate::{Blame, Outcome, tell};
use line::{ForeignLine, ForeignProgram, Way, without_launcher};
use tree_line::rate_of_mdtest;
use variant::{ALL, AS_THE_LINE_SAYS, LineVariant, variants};

/// Says what a figure of fio, dd, IOR or mdtest rests on
///
/// The cell that the line asks for is measured in rounds beside the same with one assumption turned round at a time (sync,
/// cache, data, depth, workers, clock; of mdtest data, directories, trees, cache, workers), in a directory of its own beside the
/// line's file, and each round runs the line itself once.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Rounds; six are the fewest that decide anything
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Do not run the line itself
    #[arg(long)]
    ours_only: bool,
    /// No difference smaller than this counts as one, in percent
    #[arg(long, default_value_t = 5.0, value_parser = margin)]
    margin: f64,
    /// Keep the plan and the record of each round in this directory
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
    /// The line, behind `--`; of IOR and mdtest also as `mpirun -n N ...`
    #[arg(last = true, required = true, value_name = "LINE")]
    line: Vec<String>,
}

/// Whether there is a program of this name, or path.
fn is_there(command: &str) -> bool {
    command.contains('/') && Path::new(command).is_file()
        || std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(command).is_file()))
}

fn margin(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|percent| *percent > 0.0 && *percent < 100.0);
    number.ok_or_else(|| "write more than 0 and less than 100 percent".to_owned())
}

impl Explain {
    pub(crate) fn execute(&self) -> Outcome {
        let line = ForeignLine::parse(&self.line).input()?;
        let address: TargetAddress = line.directory.as_path().into();
        let target = describe_in_child(&address).map_err(anyhow::Error::from).input()?;
        let variants: Vec<LineVariant> =
            variants(&line).into_iter().filter(|variant| suits(&variant.line, &target)).collect();
        let suits_itself = variants.first().is_some_and(|first| first.name == AS_THE_LINE_SAYS);
        suits_itself.then_some(()).ok_or_else(|| not_past_the_cache(&target)).input()?;
        let is_there = !self.ours_only && self.is_installed();
        let temporary = tempfile::tempdir().context("no temporary directory").run()?;
        let keep = self.keep.clone().unwrap_or_else(|| temporary.path().to_owned());
        fs::create_dir_all(&keep).with_context(|| keep.display().to_string()).input()?;
        let taken = (0..self.rounds).map(|round| record_of(&keep, round)).find(|record| record.exists());
        let exists = |record: PathBuf| anyhow!("{} exists: name another directory", record.display());
        taken.map_or(Ok(()), |record| Err(exists(record))).input()?;
        let plan = keep.join("explain.toml");
        fs::write(&plan, variant::plan(&variants)).with_context(|| plan.display().to_string()).input()?;
        // What can't be measured is said before the line itself fills the storage.
        can_be_measured(&line, &plan).input()?;
        let mut rounds = Rounds { ours: Vec::new(), theirs: Vec::new() };
        let ended = self.measure(&line, is_there, &plan, &keep, &mut rounds);
        if rounds.ours.is_empty() {
            return ended.run();
        }
        // What was measured before something failed is told all the same.
        rounds.theirs.resize(if is_there { rounds.ours.len() } else { 0 }, Vec::new());
        tell::result(self.told(&line, &target, &variants, &rounds));
        ended.with_context(|| format!("ended after {} of {} rounds", rounds.ours.len(), self.rounds)).run()
    }

    /// All rounds, or those before something failed.
    fn measure(
        &self,
        line: &ForeignLine,
        is_there: bool,
        plan: &Path,
        keep: &Path,
        rounds: &mut Rounds,
    ) -> anyhow::Result<()> {
        for round in 0..self.rounds {
            tell::note(format_args!("round {} of {}", round + 1, self.rounds));
            // Whoever comes second finds what the first one left.
            if is_there && round % 2 == 0 {
                rounds.theirs.push(self.run_line(line)?);
            }
            rounds.ours.push(measured(line, plan, keep, round)?);
            if is_there && round % 2 == 1 {
                rounds.theirs.push(self.run_line(line)?);
            }
        }
        Ok(())
    }

    fn is_installed(&self) -> bool {
        // The launcher, and what it starts.
        let behind = without_launcher(&self.line).ok().and_then(|(_, line)| line.first());
        let missing = self.line.first().into_iter().chain(behind).find(|command| !is_there(command));
        if let Some(command) = missing {
            tell::note(format_args!("note: {command} is not installed: its own figure is missing"));
        }
        missing.is_none()
    }

    /// The line itself: each of its figures, none where it gives no rate.
    fn run_line(&self, line: &ForeignLine) -> anyhow::Result<Vec<Option<f64>>> {
        let mut command = Command::new(&self.line[0]);
        command.args(&self.line[1..]);
        if line.program == ForeignProgram::Fio {
            command.arg("--output-format=json");
        }
        let ended = command.output().with_context(|| self.line[0].clone())?;
        let stdout = String::from_utf8_lossy(&ended.stdout);
        let stderr = String::from_utf8_lossy(&ended.stderr);
        ensure!(ended.status.success(), "{}: {}: {}", self.line[0], ended.status, stderr.trim());
        Ok(match line.program {
            ForeignProgram::Fio => vec![rate_of_fio(&stdout)],
            ForeignProgram::Dd => vec![rate_of_dd(&stderr)],
            ForeignProgram::Ior => vec![rate_of_ior(&stdout)],
            ForeignProgram::Mdtest => {
                figures(line).into_iter().map(|figure| rate_of_mdtest(&stdout, figure.name)).collect()
            }
        })
    }

    fn told(
        &self,
        line: &ForeignLine,
        target: &TargetDescription,
        variants: &[LineVariant],
        rounds: &Rounds,
    ) -> String {
        let what = match &line.tree {
            Some(tree) => format!("{} items a directory", tree.items),
            None => format!("{} by {}", line.size, line.block),
        };
        let on = format!("{} ({})", target.address, target.file_system);
        let mut lines = vec![format!("{on}, {what}, {} rounds", rounds.ours.len())];
        for (number, figure) in figures(line).iter().enumerate() {
            let heading = if figure.name.is_empty() { String::new() } else { format!("{}\n", figure.name) };
            let difference = rounds.difference(line, figure, number, variants);
            lines.push(format!("\n{heading}{}", difference.text(self.margin)));
        }
        lines.extend(variants.iter().filter_map(|variant| not_valid(line, rounds, variant.name)));
        lines.extend(line.not_taken.iter().map(|what| format!("Not taken over from the line: {what}.")));
        lines.join("\n") + "\n"
    }
}

/// What the time of a cell is taken until.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineClock {
    /// The last file is closed, and synced where that is asked for.
    UntilClosed,
    /// The last block is written.
    UntilWritten,
}

/// The clock turned round.
const CLOCK: &str = "the clock stops at the last write";

/// A figure that a line gives.
struct LineFigure {
    /// As the program prints it; empty for its only one.
    name: &'static str,
    /// The phase of ours; none for the last one that moves data.
    phase: Option<Phase>,
    quantity: Quantity,
}

fn figures(line: &ForeignLine) -> Vec<LineFigure> {
    match &line.tree {
        None => vec![LineFigure { name: "", phase: None, quantity: Quantity::Bytes }],
        Some(tree) => {
            let of = |(name, phase)| LineFigure { name, phase: Some(phase), quantity: Quantity::Operations };
            tree.figures().into_iter().map(of).collect()
        }
    }
}

/// Whether our cells have room there, and can be measured otherwise: what `evaluate` refuses, if not.
fn can_be_measured(line: &ForeignLine, plan: &Path) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("this program is not to be found")?;
    let mut command = Command::new(program);
    command.arg("evaluate").arg(&line.directory).arg("--plan").arg(plan).arg("--dry-run");
    let ended = command.output().context("it can't be started")?;
    ensure!(ended.status.success(), "{}", said_by(&ended.stderr));
    Ok(())
}

/// What `evaluate` advises where there is no room; its scale is no option here.
const LARGER: &str = ": name larger storage";

/// What this program said of an error, without its own name in front.
fn said_by(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    let text = text.strip_prefix("nilometer: ").unwrap_or(text);
    match text.split_once(LARGER) {
        Some((what, _)) => format!("{what}{LARGER}, or write a smaller size in the line"),
        None => text.to_owned(),
    }
}

/// In how many rounds a cell has no valid figure, and why the first has none.
fn not_valid(line: &ForeignLine, rounds: &Rounds, stage: &str) -> Option<String> {
    let figures = figures(line);
    let is_known = |results: &&Results| {
        figures.iter().all(|figure| rate(results, stage, figure, LineClock::UntilClosed).is_some())
    };
    let without: Vec<&Results> = rounds.ours.iter().filter(|results| !is_known(results)).collect();
    let results = without.first()?;
    let cell = results.cells.iter().position(|cell| cell.stage == stage)?;
    let mut of_cell = results.samples.iter().filter(|of| (of.key.cell, of.key.target) == (cell, 0));
    let why = of_cell.find_map(|of| of.sample.invalid.as_ref().map(|why| reason(why, &of.sample)));
    let why = why.unwrap_or_else(|| "it was not measured".to_owned());
    Some(format!("No figure of \"{stage}\" in {} of {} rounds: {why}.", without.len(), rounds.ours.len()))
}

/// Why a figure is INVALID, with the kernel's words for operations that failed.
fn reason(why: &Invalid, sample: &Sample) -> String {
    match sample.errors.keys().find(|errno| **errno > 0) {
        Some(errno) => format!("{why}: {}", std::io::Error::from_raw_os_error(*errno)),
        None => why.to_string(),
    }
}

/// A round of ours: this program, as anybody would call it.
fn measured(line: &ForeignLine, plan: &Path, keep: &Path, round: u32) -> anyhow::Result<Results> {
    let record = record_of(keep, round);
    let program = std::env::current_exe().context("this program is not to be found")?;
    let mut command = Command::new(program);
    command.arg("evaluate").arg(&line.directory).arg("--plan").arg(plan).arg("--record").arg(&record);
    let ended = command.args(["--seed", &round.to_string()]).output().context("it can't be started")?;
    let has_answered = matches!(ended.status.code(), Some(0 | 1 | 4)) && record.is_file();
    ensure!(has_answered, "{}", said_by(&ended.stderr));
    Ok(nilometer_record::read(&record)?)
}

fn not_past_the_cache(target: &TargetDescription) -> anyhow::Error {
    let TargetDescription { address, direct, .. } = target;
    anyhow!(
        "{address}: the line goes past the page cache, which is not possible there with such blocks ({direct})"
    )
}

/// Where the record of a round is kept.
fn record_of(keep: &Path, round: u32) -> PathBuf {
    keep.join(format!("round-{}.sqlite", round + 1))
}

/// What was found, by round.
struct Rounds {
    ours: Vec<Results>,
    /// Each figure of the line.
    theirs: Vec<Vec<Option<f64>>>,
}

impl Rounds {
    /// A figure of the line beside what it is with each assumption turned round.
    fn difference(
        &self,
        line: &ForeignLine,
        figure: &LineFigure,
        number: usize,
        variants: &[LineVariant],
    ) -> LineDifference {
        let by_clock = |name: &str, stage: &str, clock: LineClock| NamedRates {
            name: name.to_owned(),
            rates: self.ours.iter().map(|results| rate(results, stage, figure, clock)).collect(),
        };
        let of = |variant: &LineVariant| by_clock(variant.name, variant.name, LineClock::UntilClosed);
        let named = |name: &str| variants.iter().find(|variant| variant.name == name).map(of);
        let others = variants.iter().filter(|variant| ![AS_THE_LINE_SAYS, ALL].contains(&variant.name));
        let program = format!("{} itself", line.program.name());
        let theirs = self.theirs.iter().map(|round| round.get(number).copied().flatten());
        // The same measurement by another clock.
        let is_written = line.tree.is_none() && matches!(line.way, Way::Write | Way::RandomWrite);
        let clock = is_written.then(|| by_clock(CLOCK, AS_THE_LINE_SAYS, LineClock::UntilWritten));
        LineDifference {
            quantity: figure.quantity,
            own: of(&variants[0]),
            program: (!self.theirs.is_empty()).then(|| NamedRates { name: program, rates: theirs.collect() }),
            turned: others.map(of).chain(clock).collect(),
            all: named(ALL),
        }
    }
}

/// Whether a cell can be measured there: blocks past the page cache are multiples of what the target asks for.
fn suits(line: &ForeignLine, target: &TargetDescription) -> bool {
    match target.direct {
        DirectIo::Real { alignment } => !line.direct || line.block.0.is_multiple_of(u64::from(alignment)),
        _ => !line.direct,
    }
}

/// The rate of a stage's phase on the target; none if it is INVALID for more than the machine's being busy.
fn rate(results: &Results, stage: &str, figure: &LineFigure, clock: LineClock) -> Option<f64> {
    let cell = results.cells.iter().position(|cell| cell.stage == stage)?;
    let wanted = |phase: Phase| match figure.phase {
        Some(wanted) => phase == wanted,
        None => matches!(phase, Phase::Write | Phase::Read | Phase::Mix),
    };
    let mut found =
        results.samples.iter().filter(|of| (of.key.cell, of.key.target) == (cell, 0) && wanted(of.key.phase));
    let sample = &found.next_back()?.sample;
    let usable = sample.invalid.as_ref().is_none_or(Invalid::is_spoilt);
    let rate = match clock {
        LineClock::UntilClosed => figure.quantity.of(sample),
        LineClock::UntilWritten => rate_until_written(sample)?,
    };
    (usable && rate > 0.0).then_some(rate)
}

/// Over the time until the last block was written, to within one of the bins that work over time is kept in.
fn rate_until_written(sample: &Sample) -> Option<f64> {
    let last = sample.series.bins().iter().rposition(|bin| bin.bytes > 0)?;
    let until = sample.series.width().seconds() * (last + 1) as f64;
    Some(sample.bytes as f64 / until.min(sample.wall.seconds()))
}

/// Of all jobs together.
fn rate_of_fio(stdout: &str) -> Option<f64> {
    let document: Value = serde_json::from_str(&stdout[stdout.find('{')?..]).ok()?;
    let of = |job: &Value, way: &str| job[way]["bw_bytes"].as_f64().unwrap_or(0.0);
    let sum: f64 = document["jobs"].as_array()?.iter().map(|job| of(job, "read") + of(job, "write")).sum();
    (sum > 0.0).then_some(sum)
}

/// `67108864 bytes (67 MB, 64 MiB) copied, 0.0406 s, 1.7 GB/s`.
fn rate_of_dd(stderr: &str) -> Option<f64> {
    let line = stderr.lines().rfind(|line| line.contains(" copied, "))?;
    let bytes: f64 = line.split(' ').next()?.parse().ok()?;
    let (_, behind) = line.split_once(" copied, ")?;
    let seconds: f64 = behind.split(' ').next()?.replace(',', ".").parse().ok()?;
    (seconds > 0.0).then(|| bytes / seconds)
}

/// `Max Write: 1234.56 MiB/sec (1294.54 MB/sec)`; of both ways what was written.
fn rate_of_ior(stdout: &str) -> Option<f64> {
    let of = |what: &str| {
        let line = stdout.lines().find(|line| line.trim_start().starts_with(what))?;
        let (_, figure) = line.split_once(':')?;
        figure.trim().split(' ').next()?.parse::<f64>().ok()
    };
    let mebibytes = of("Max Write").filter(|rate| *rate > 0.0).or_else(|| of("Max Read"))?;
    Some(mebibytes * f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_each_program_are_read() {
        let fio = "note: both\n{\"jobs\": [{\"write\": {\"bw_bytes\": 1000}, \"read\": {\"bw_bytes\": 0}}, {\"write\": {\"bw_bytes\": 500}}]}";
        assert_eq!(rate_of_fio(fio), Some(1500.0));
        let dd =
            "64+0 records in\n64+0 records out\n67108864 bytes (67 MB, 64 MiB) copied, 0,5 s, 1.7 GB/s\n";
        assert_eq!(rate_of_dd(dd), Some(134_217_728.0));
        let ior = "Max Write: 100.00 MiB/sec (104.86 MB/sec)\nMax Read:  200.00 MiB/sec (209.72 MB/sec)\n";
        assert_eq!(rate_of_ior(ior), Some(104_857_600.0));
        assert_eq!((rate_of_fio("none"), rate_of_dd(""), rate_of_ior("")), (None, None, None));
    }
}
