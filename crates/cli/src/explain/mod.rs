//! `nilometer explain -- fio ...`: what a figure of another program rests on. The cell that its line asks for is measured beside
//! the same with one assumption turned round at a time, in shuffled rounds, and so is the program itself where it is there.

mod line;
mod variant;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, anyhow, ensure};
use clap::Args;
use nilometer_analysis::{LineDifference, NamedRates};
use nilometer_model::{DirectIo, Invalid, Results, TargetAddress, TargetDescription, plan::Phase};
use nilometer_remote::describe_in_child;
use serde_json::Value;

use crate::{Blame, Outcome, tell};
use line::{ForeignLine, ForeignProgram};
use variant::{ALL, AS_THE_LINE_SAYS, LineVariant, variants};

/// Says what a figure of fio, dd or IOR rests on
///
/// The cell that the line asks for is measured in rounds beside the same with one assumption turned round at a time (sync,
/// cache, data, depth, workers), in a directory of its own beside the line's file, and each round runs the line itself once.
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
    /// The line, behind `--`; of IOR without mpirun
    #[arg(last = true, required = true, value_name = "LINE")]
    line: Vec<String>,
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
        let mut rounds = Rounds { ours: Vec::new(), theirs: Vec::new() };
        for round in 0..self.rounds {
            tell::note(format_args!("round {} of {}", round + 1, self.rounds));
            // Whoever comes second finds what the first one left.
            if is_there && round % 2 == 0 {
                rounds.theirs.push(self.run_line(line.program).run()?);
            }
            rounds.ours.push(measured(&line, &plan, &keep, round).run()?);
            if is_there && round % 2 == 1 {
                rounds.theirs.push(self.run_line(line.program).run()?);
            }
        }
        tell::result(self.told(&line, &target, &variants, &rounds));
        Ok(())
    }

    fn is_installed(&self) -> bool {
        let command = &self.line[0];
        let there = command.contains('/') && Path::new(command).is_file()
            || std::env::var_os("PATH").is_some_and(|path| {
                std::env::split_paths(&path).any(|folder| folder.join(command).is_file())
            });
        if !there {
            tell::note(format_args!("note: {command} is not installed: its own figure is missing"));
        }
        there
    }

    /// The line itself; none if it gives no rate.
    fn run_line(&self, program: ForeignProgram) -> anyhow::Result<Option<f64>> {
        let mut command = Command::new(&self.line[0]);
        command.args(&self.line[1..]);
        if program == ForeignProgram::Fio {
            command.arg("--output-format=json");
        }
        let ended = command.output().with_context(|| self.line[0].clone())?;
        let stdout = String::from_utf8_lossy(&ended.stdout);
        let stderr = String::from_utf8_lossy(&ended.stderr);
        ensure!(ended.status.success(), "{}: {}: {}", self.line[0], ended.status, stderr.trim());
        Ok(match program {
            ForeignProgram::Fio => rate_of_fio(&stdout),
            ForeignProgram::Dd => rate_of_dd(&stderr),
            ForeignProgram::Ior => rate_of_ior(&stdout),
        })
    }

    fn told(
        &self,
        line: &ForeignLine,
        target: &TargetDescription,
        variants: &[LineVariant],
        rounds: &Rounds,
    ) -> String {
        let of = |variant: &LineVariant| NamedRates {
            name: variant.name.to_owned(),
            rates: rounds.ours.iter().map(|results| rate(results, variant.name)).collect(),
        };
        let named = |name: &str| variants.iter().find(|variant| variant.name == name).map(of);
        let others = variants.iter().filter(|variant| ![AS_THE_LINE_SAYS, ALL].contains(&variant.name));
        let program =
            format!("{} itself", Path::new(&self.line[0]).file_name().unwrap_or_default().to_string_lossy());
        let difference = LineDifference {
            own: of(&variants[0]),
            program: (!rounds.theirs.is_empty())
                .then(|| NamedRates { name: program, rates: rounds.theirs.clone() }),
            turned: others.map(of).collect(),
            all: named(ALL),
        };
        let mut lines = vec![format!(
            "{} ({}), {} by {}, {} rounds\n\n{}",
            target.address,
            target.file_system,
            line.size,
            line.block,
            self.rounds,
            difference.text(self.margin)
        )];
        lines.extend(line.not_taken.iter().map(|what| format!("Not taken over from the line: {what}.")));
        lines.join("\n") + "\n"
    }
}

/// A round of ours: this program, as anybody would call it.
fn measured(line: &ForeignLine, plan: &Path, keep: &Path, round: u32) -> anyhow::Result<Results> {
    let record = record_of(keep, round);
    let program = std::env::current_exe().context("this program is not to be found")?;
    let mut command = Command::new(program);
    command.arg("evaluate").arg(&line.directory).arg("--plan").arg(plan).arg("--record").arg(&record);
    let ended = command.args(["--seed", &round.to_string()]).output().context("it can't be started")?;
    let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
    ensure!(matches!(ended.status.code(), Some(0 | 1 | 4)) && record.is_file(), "{said}");
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
    theirs: Vec<Option<f64>>,
}

/// Whether a cell can be measured there: blocks past the page cache are multiples of what the target asks for.
fn suits(line: &ForeignLine, target: &TargetDescription) -> bool {
    match target.direct {
        DirectIo::Real { alignment } => !line.direct || line.block.0.is_multiple_of(u64::from(alignment)),
        _ => !line.direct,
    }
}

/// The rate of a stage's last phase on the target; none if it is INVALID for more than the machine's being busy.
fn rate(results: &Results, stage: &str) -> Option<f64> {
    let cell = results.cells.iter().position(|cell| cell.stage == stage)?;
    let wanted = |phase: Phase| matches!(phase, Phase::Write | Phase::Read | Phase::Mix);
    let mut found =
        results.samples.iter().filter(|of| (of.key.cell, of.key.target) == (cell, 0) && wanted(of.key.phase));
    let sample = &found.next_back()?.sample;
    let usable = sample.invalid.as_ref().is_none_or(Invalid::is_spoilt);
    usable.then(|| sample.rate().0)
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
