//! Runs of a line: the cells that stand for it, by this program, and the line itself.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};
use nilometer_command_lines::ReadLine;
use nilometer_plan::Results;

use super::{
    own_figure::{self, PrintedOutput, rate_of_dd},
    rounds::figures,
};
use crate::tell;

/// The words of a line, and the places of its plan and records.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunPlaces<'a> {
    pub(super) words: &'a [String],
    pub(super) plan: &'a Path,
    pub(super) keep: &'a Path,
}

impl<'a> RunPlaces<'a> {
    /// The runs of a line at these places.
    pub(super) fn of(self, read: &'a ReadLine) -> LineRuns<'a> {
        LineRuns { read, places: self }
    }
}

/// A line in measurement.
pub(super) struct LineRuns<'a> {
    pub(super) read: &'a ReadLine,
    places: RunPlaces<'a>,
}

/// Leaves out the parts of a line's front that this machine lacks, or in which this program does not start.
pub(super) fn fit_to_machine(read: &mut ReadLine) {
    let starts = |words: &[String]| {
        own_command(words).and_then(|mut command| Ok(command.arg("--version").output()?.status.success()))
    };
    if !read.front.around_ours.is_empty() && !starts(&read.front.around_ours).unwrap_or(false) {
        let around = read.front.around_ours.join(" ");
        read.front.around_ours.clear();
        read.line.leave(&around, "this program does not start in it here; our cells run without it");
    }
    if !read.line.is_by_processes {
        return;
    }
    if read.front.launcher.is_empty() {
        read.line.without_mpi_io("no launcher stands in front; here calls of POSIX");
    } else if !starts(&read.front.launcher).unwrap_or(false) {
        read.line.without_mpi_io("its launcher does not start this program here; here calls of POSIX");
    }
}

/// True if the program, and its launcher, are installed. A note names the missing one.
pub(super) fn is_installed(read: &ReadLine, words: &[String]) -> bool {
    let front = &read.front;
    let commands = [front.command.first(), front.launcher.first(), words.get(front.words)];
    let missing = commands.into_iter().flatten().find(|command| !is_there(command));
    if let Some(command) = missing {
        tell::note(format_args!("note: {command} is not installed: its own figure is missing"));
    }
    missing.is_none()
}

/// True if there is a program of this name, or at this path.
fn is_there(command: &str) -> bool {
    command.contains('/') && Path::new(command).is_file()
        || std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(command).is_file()))
}

/// The path of a round's record.
pub(super) fn record_of(keep: &Path, round: u32) -> PathBuf {
    keep.join(format!("round-{}.sqlite", round + 1))
}

/// This program behind the words of a front.
fn own_command(front: &[String]) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("can't find this program")?;
    Ok(match front.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        None => Command::new(program),
    })
}

impl LineRuns<'_> {
    /// `evaluate` on the line's directory, in the same surroundings as the line.
    fn evaluate(&self) -> anyhow::Result<Command> {
        let ReadLine { front, line } = self.read;
        let launcher: &[String] = if line.is_by_processes { &front.launcher } else { &[] };
        let mut command = own_command(&[&front.around_ours[..], launcher].concat())?;
        command.arg("evaluate").arg(&line.directory).arg("--plan").arg(self.places.plan);
        Ok(command)
    }

    /// Checks that our cells fit there and can be measured. The error has the reason of `evaluate`.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let ended = self.evaluate()?.arg("--dry-run").output().context("it can't be started")?;
        ensure!(ended.status.success(), "{}", said_by(&ended.stderr));
        Ok(())
    }

    /// Measures a round of ours: runs this program as any user would.
    pub(super) fn measured(&self, round: u32) -> anyhow::Result<Results> {
        let record = record_of(self.places.keep, round);
        let mut command = self.evaluate()?;
        command.arg("--record").arg(&record).args(["--seed", &round.to_string()]);
        let ended = command.output().context("it can't be started")?;
        let has_answered = matches!(ended.status.code(), Some(0 | 1 | 4)) && record.is_file();
        ensure!(has_answered, "{}", said_by(&ended.stderr));
        Ok(nilometer_record::read(&record)?)
    }

    /// Runs the line itself. Returns each of its figures, `None` if it prints no rate.
    pub(super) fn own_rates(&self) -> anyhow::Result<Vec<Option<f64>>> {
        let words = own_figure::command(self.read, self.places.words);
        let (first, rest) = words.split_first().context("the line is empty")?;
        let ended = Command::new(first).args(rest).output().with_context(|| first.clone())?;
        let printed = String::from_utf8_lossy(&ended.stdout);
        let told = String::from_utf8_lossy(&ended.stderr);
        ensure!(ended.status.success(), "{first}: {}: {}", ended.status, told.trim());
        let all = figures(&self.read.line);
        let names: Vec<&str> = all.iter().map(|figure| figure.name).collect();
        Ok(own_figure::rates(&self.read.line, &names, &PrintedOutput { stdout: &printed, stderr: &told }))
    }

    /// The rate of the device that makes the line's data, by dd without a file; `None` if there is no such
    /// device.
    pub(super) fn source_rate(&self) -> Option<f64> {
        let line = &self.read.line;
        let source = File::open(line.source.as_ref()?).ok()?;
        let blocks = (line.size.0.min(SOURCE_BYTES_MOST) / line.block.0).max(1);
        let mut command = Command::new("dd");
        command.args(["of=/dev/null".to_owned(), format!("bs={}", line.block.0), format!("count={blocks}")]);
        let ended = command.stdin(Stdio::from(source)).env("LC_ALL", "C").output().ok()?;
        rate_of_dd(&String::from_utf8_lossy(&ended.stderr))
    }
}

/// The bytes that suffice for the rate of a source.
const SOURCE_BYTES_MOST: u64 = 256 << 20;

/// The advice of `evaluate` if there is no room; its scale is no option here.
const LARGER: &str = ": name larger storage";

/// The error that this program printed, without its own name in front.
fn said_by(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    let text = text.strip_prefix("nilometer: ").unwrap_or(text);
    match text.split_once(LARGER) {
        Some((what, _)) => format!("{what}{LARGER}, or write a smaller size in the line"),
        None => text.to_owned(),
    }
}
