//! The directory that a run of IO500 leaves: an output of IOR or mdtest for each phase, and a summary that
//! repeats their rates and adds those of `find`.
//!
//! All of it becomes one target, the directory in which IO500 worked, with a stage for each part, such as
//! `ior-easy`. Import refuses a summary with a rate that differs from the one in the program's output.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{
    Fault, ImportError,
    agreement::SameFigure,
    gathered::{BenchmarkPart, Gathered},
    io500::{self, Io500Phase, Io500Summary},
    parse, text_of,
};

/// The files of a directory, by their kinds.
#[derive(Debug, Default)]
struct RunFiles {
    /// Outputs of phases by their names, such as `ior-easy-write`.
    outputs: BTreeMap<String, PathBuf>,
    summary: Option<PathBuf>,
    /// Files that are not read, by the endings of their names.
    others: BTreeMap<String, u64>,
}

/// Names of summaries. The first one found counts.
const SUMMARIES: [&str; 2] = ["result_summary.txt", "result.txt"];
/// Programs whose outputs IO500 keeps.
const PROGRAMS: [&str; 2] = ["ior-", "mdtest-"];
const ACTIONS: [&str; 4] = ["-write", "-read", "-stat", "-delete"];

/// Takes the results of a run of IO500.
pub(super) fn take(directory: &Path, gathered: &mut Gathered<'_>) -> Result<(), ImportError> {
    let files = RunFiles::of(directory)?;
    if files.outputs.is_empty() && files.summary.is_none() {
        let why = "a directory without results of IO500: neither result_summary.txt nor result.txt nor ior-easy-write.txt \
                   and the like";
        return Err(Fault::whole(why).in_file(directory));
    }
    let mut outputs = BTreeMap::new();
    for (name, path) in &files.outputs {
        outputs.insert(name.as_str(), text_of(path)?);
    }
    let target = place(outputs.values().map(String::as_str)).unwrap_or_else(|| "IO500".to_owned());
    let summary = files.summary()?;
    for (name, text) in &outputs {
        let phase = summary.phases.iter().find(|phase| phase.name == **name);
        let taken = take_output(name, text, phase, &target, gathered);
        taken.map_err(|fault| fault.in_file(&files.outputs[*name]))?;
    }
    let rest = summary.phases.iter().filter(|phase| !outputs.contains_key(phase.name.as_str()));
    for phase in rest {
        gathered.part = Some(BenchmarkPart { target: target.clone(), stage: stage(&phase.name).to_owned() });
        let added = io500::add(phase, &summary.version, gathered);
        added.map_err(|fault| fault.in_file(files.summary.as_deref().unwrap_or(directory)))?;
    }
    gathered.part = None;
    for (ending, count) in files.others {
        gathered.leave_out_many(format!("files of IO500 ({ending})"), count);
    }
    Ok(())
}

fn take_output(
    name: &str,
    text: &str,
    phase: Option<&Io500Phase>,
    target: &str,
    gathered: &mut Gathered<'_>,
) -> Result<(), Fault> {
    if text.trim().is_empty() {
        gathered.leave_out("empty outputs of phases of IO500");
        return Ok(());
    }
    gathered.part = Some(BenchmarkPart { target: target.to_owned(), stage: stage(name).to_owned() });
    let before = gathered.count();
    parse(text, gathered)?;
    let Some(phase) = phase else { return Ok(()) };
    if phase.is_invalid {
        gathered.leave_out(io500::INVALID_MARK);
    }
    let Some(rate) = gathered.rate_since(before, phase.of_workload()) else { return Ok(()) };
    let (unit, factor) = if phase.is_of_bytes() { ("GiB/s", 1.0 / io500::GIBI) } else { ("kIOPS", 1e-3) };
    let figure = SameFigure {
        name: &format!("{name} in IO500's summary"),
        given: phase.score,
        source: "this output",
        follows: rate * factor,
        unit,
        // The summary has three decimals in old versions.
        slack: 1e-3,
    };
    figure.check(0)
}

impl RunFiles {
    fn of(directory: &Path) -> Result<Self, ImportError> {
        let unreadable = |source| ImportError::Unreadable { path: directory.to_owned(), source };
        let mut files = RunFiles::default();
        for entry in fs::read_dir(directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            // Links are not followed: the directory may be somebody else's.
            if entry.file_type().map_err(unreadable)?.is_file() {
                files.sort_in(entry.path());
            } else {
                files.count_other("directories and links");
            }
        }
        files.choose_summary();
        Ok(files)
    }

    fn sort_in(&mut self, path: PathBuf) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let phase = name.strip_suffix(".txt").map(|stem| stem.replace('_', "-"));
        if SUMMARIES.contains(&name.as_str()) {
            self.outputs.insert(name, path);
        } else if let Some(phase) = phase.filter(|phase| is_output(phase)) {
            self.outputs.insert(phase, path);
        } else {
            let ending = path
                .extension()
                .map_or("no ending".into(), |ending| format!(".{}", ending.to_string_lossy()));
            self.count_other(&ending);
        }
    }

    fn count_other(&mut self, kind: &str) {
        *self.others.entry(kind.to_owned()).or_insert(0) += 1;
    }

    /// Both summaries say the same.
    fn choose_summary(&mut self) {
        for name in SUMMARIES {
            let Some(path) = self.outputs.remove(name) else { continue };
            if self.summary.is_none() {
                self.summary = Some(path);
            } else {
                self.count_other(name);
            }
        }
    }

    fn summary(&self) -> Result<Io500Summary, ImportError> {
        let Some(path) = &self.summary else { return Ok(Io500Summary::default()) };
        io500::read(&text_of(path)?).map_err(|fault| fault.in_file(path))
    }
}

/// Returns true if import reads the output of the phase's program.
fn is_output(phase: &str) -> bool {
    let is_of_program = PROGRAMS.iter().any(|program| phase.starts_with(program));
    is_of_program && ACTIONS.iter().any(|action| phase.ends_with(action))
}

/// The part of the benchmark that a phase belongs to: `ior-easy` of `ior-easy-write`.
fn stage(phase: &str) -> &str {
    ACTIONS.iter().find_map(|action| phase.strip_suffix(action)).unwrap_or(phase)
}

/// The directory in which all phases worked, as their outputs name their paths. IO500 makes one for each run,
/// named by its time; runs are repeats, so that this last part of the path does not count.
fn place<'a>(outputs: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut common: Option<Vec<&str>> = None;
    for path in outputs.flat_map(paths) {
        let parts: Vec<&str> = path.split('/').collect();
        // The last part is the file, or the directory of the phase.
        let parent = &parts[..parts.len().saturating_sub(1)];
        let known = common.get_or_insert_with(|| parent.to_vec());
        let same = known.iter().zip(parent).take_while(|(one, other)| one == other).count();
        known.truncate(same);
    }
    let mut common = common?;
    if common.last().is_some_and(|part| is_time(part)) {
        common.pop();
    }
    let place = common.join("/");
    (!place.is_empty()).then_some(place)
}

fn paths(output: &str) -> impl Iterator<Item = &str> {
    let named = output.lines().filter_map(|line| line.trim().split_once([':', '=']));
    let is_path = |key: &str| ["Path", "test filename"].contains(&key.trim());
    named.filter(move |(key, _)| is_path(key)).map(|(_, path)| path.trim())
}

/// `2023.05.15-12.49.42`.
fn is_time(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    part.len() == 19 && digits == 14
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_run_is_common_to_all_phases_and_to_all_runs() {
        let easy = "Path                : /p/io500/2023.05.14-01.13.12/ior-easy/ior_file_easy.00000000\n";
        let files = "Path                : /p/io500/2023.05.14-01.13.12/mdtest-easy\nPathology: 3\n";
        assert_eq!(place([easy, files].into_iter()).as_deref(), Some("/p/io500"));
        assert_eq!(place(["Path: /a/b\n", "Path: /c/d\n"].into_iter()), None);
        assert_eq!(place(["no path\n"].into_iter()), None);
    }
}
