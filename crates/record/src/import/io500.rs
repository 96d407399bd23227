//! IO500: the rate and the time of each phase, from its summary (`result_summary.txt`, and the same lines in a
//! job's log) or from `result.txt`.
//!
//! IO500 runs IOR and mdtest and repeats their figures. For a directory of IO500, import takes them from the
//! programs' outputs, and only `find` from the summary ([`super::directory`]).

use nilometer_model::{Nanos, Phase};
use nilometer_plan::ImportedRun;

use super::{
    Fault, dates,
    gathered::{Gathered, GivenFigure, GivenWork},
    table::number,
};

/// IO500 prints GiB a second, also in versions that call it GB/s: it divides MiB a second by 1024.
pub(super) const GIBI: f64 = 1024.0 * 1024.0 * 1024.0;

/// The note of figures that IO500 calls invalid.
pub(super) const INVALID_MARK: &str =
    "marks of IO500 that a phase is INVALID by its rules (the figure is taken)";

/// Returns true if such a summary begins with a line.
pub(super) fn is_head(line: &str) -> bool {
    let is_version = line.starts_with("version") && line.contains("io500-");
    line.starts_with("IO500 version ") || line.starts_with("[RESULT") || is_version
}

/// A phase of IO500 with its score.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Io500Phase {
    /// With hyphens, also if an old version writes `ior_easy_write`.
    pub(super) name: String,
    /// GiB a second of IOR, thousands of operations a second of everything else.
    pub(super) score: f64,
    pub(super) seconds: f64,
    pub(super) started: Nanos,
    /// IO500 marked it: a rule of the list was broken, such as a time below 300 s.
    pub(super) is_invalid: bool,
    pub(super) line: u64,
}

/// All phases of a summary, and its version.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Io500Summary {
    pub(super) version: String,
    pub(super) phases: Vec<Io500Phase>,
}

/// The actions that names of phases end with, and the phases of workloads.
const ACTIONS: [(&str, Phase, Phase); 4] = [
    ("-write", Phase::Write, Phase::CreateFiles),
    ("-read", Phase::Read, Phase::ReadFiles),
    ("-stat", Phase::Given, Phase::StatFiles),
    ("-delete", Phase::Given, Phase::RemoveFiles),
];

impl Io500Phase {
    pub(super) fn is_of_bytes(&self) -> bool {
        self.name.starts_with("ior")
    }

    /// Bytes or operations a second.
    pub(super) fn rate(&self) -> f64 {
        if self.is_of_bytes() { self.score * GIBI } else { self.score * 1e3 }
    }

    /// The part of the benchmark, such as `ior-easy`, and the phase.
    fn parts(&self) -> (&str, Phase) {
        let action = ACTIONS.iter().find_map(|(ending, of_bytes, of_files)| {
            let stage = self.name.strip_suffix(ending)?;
            Some((stage, if self.is_of_bytes() { *of_bytes } else { *of_files }))
        });
        action.unwrap_or((&self.name, Phase::Given))
    }

    /// The phase of a workload that measures the same.
    pub(super) fn of_workload(&self) -> Phase {
        self.parts().1
    }

    fn figure(&self, version: &str) -> Result<GivenFigure, Fault> {
        let did = if self.is_of_bytes() {
            GivenWork::of_byte_rate(self.rate(), self.line)?
        } else {
            GivenWork::of_operation_rate(self.rate(), self.line)?
        };
        let (stage, phase) = self.parts();
        let run = ImportedRun {
            source: format!("IO500 {version}").trim_end().to_owned(),
            task: String::new(),
            parameters: Vec::new(),
            figure: String::new(),
        };
        let did = GivenWork { started: self.started, ..did };
        Ok(GivenFigure { target: "IO500".into(), stage: stage.to_owned(), run, phase, did })
    }
}

pub(super) fn parse(text: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let summary = read(text)?;
    if summary.phases.is_empty() {
        return Err(Fault::whole("a summary of IO500 without a phase"));
    }
    summary.phases.iter().try_for_each(|phase| add(phase, &summary.version, gathered))
}

/// Adds a phase that no output of a program is at hand for.
pub(super) fn add(phase: &Io500Phase, version: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    if phase.score <= 0.0 {
        gathered.leave_out("phases of IO500 with a score of zero");
        return Ok(());
    }
    if phase.is_invalid {
        gathered.leave_out(INVALID_MARK);
    }
    let figure = phase.figure(version)?;
    gathered.add(figure);
    Ok(())
}

pub(super) fn read(text: &str) -> Result<Io500Summary, Fault> {
    let mut summary = Io500Summary::default();
    for (line, text) in (1..).zip(text.lines()) {
        let words = text.trim();
        if let Some(version) = words.strip_prefix("IO500 version ") {
            version.split(' ').next().unwrap_or_default().clone_into(&mut summary.version);
        } else if words.starts_with("[RESULT") {
            summary.phases.push(result_line(words, line)?);
        } else if let Some(name) = section_name(words) {
            summary.phases.push(Io500Phase {
                name: hyphens(name),
                score: 0.0,
                seconds: 0.0,
                started: Nanos(0),
                is_invalid: false,
                line,
            });
        } else if let Some((key, value)) = words.split_once('=') {
            summary.take_key(key.trim(), value.trim(), line)?;
        }
    }
    // `result.txt` has a section for every phase, and no score in those that measure nothing.
    let is_measured = |phase: &Io500Phase| phase.seconds > 0.0 && phase.name != "timestamp";
    summary.phases.retain(|phase| phase.score > 0.0 || is_measured(phase));
    Ok(summary)
}

fn hyphens(name: &str) -> String {
    name.replace('_', "-")
}

/// `[RESULT]  ior-easy-write  15.4 GiB/s : time 363.3 seconds [INVALID]`, and before 2020
/// `[RESULT] BW   phase 1  ior_easy_write  15.4 GB/s : time 363.3 seconds`.
fn result_line(text: &str, line: u64) -> Result<Io500Phase, Fault> {
    let wrong = || Fault::at(line, "write `[RESULT] NAME SCORE GiB/s : time SECONDS seconds`");
    let (head, rest) = text.split_once(']').ok_or_else(wrong)?;
    let (figures, time) = rest.split_once(" : time ").ok_or_else(wrong)?;
    let words: Vec<&str> = figures.split_whitespace().collect();
    let [.., name, score, unit] = words[..] else { return Err(wrong()) };
    let seconds = time.split_whitespace().next().and_then(number).ok_or_else(wrong)?;
    let phase = Io500Phase {
        name: hyphens(name),
        score: number(score).ok_or_else(wrong)?,
        seconds,
        started: Nanos(0),
        is_invalid: head.len() > "[RESULT".len() || time.contains("INVALID"),
        line,
    };
    let is_known = if phase.is_of_bytes() {
        ["GiB/s", "GB/s"].contains(&unit)
    } else {
        unit.eq_ignore_ascii_case("kiops")
    };
    if is_known { Ok(phase) } else { Err(Fault::at(line, format!("`{unit}` is no unit of IO500"))) }
}

/// `[ior-easy-write]` of `result.txt`; `None` of `[SCORE]` and of other lines.
fn section_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('[')?.strip_suffix(']')?;
    let is_phase = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    (is_phase && !name.starts_with("SCORE")).then_some(name)
}

impl Io500Summary {
    fn take_key(&mut self, key: &str, value: &str, line: u64) -> Result<(), Fault> {
        if key == "version" && self.version.is_empty() {
            value.clone_into(&mut self.version);
        }
        let figure = || number(value).ok_or_else(|| Fault::at(line, format!("{key} `{value}` is no number")));
        let Some(phase) = self.phases.last_mut() else { return Ok(()) };
        match key {
            "score" => phase.score = figure()?,
            "t_delta" => phase.seconds = figure()?,
            "t_start" => phase.started = dates::iso(value).unwrap_or_default(),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_ages_are_read() {
        let new = "[RESULT]       ior-easy-write       15.432100 GiB/s : time 363.299 seconds [INVALID]";
        let old =
            "[RESULT] BW   phase 1            ior_easy_write               15.432 GB/s : time 363.30 seconds";
        for (text, is_invalid) in [(new, true), (old, false)] {
            let phase = result_line(text, 1).expect("valid");
            assert_eq!((phase.name.as_str(), phase.is_invalid), ("ior-easy-write", is_invalid));
            assert!((phase.rate() - 15.432 * GIBI).abs() < 1e-4 * phase.rate(), "{phase:?}");
        }
        let find = "[RESULT] IOPS phase 3                      find              100.110 kiops : time  11.00 seconds";
        assert!((result_line(find, 1).expect("valid").rate() - 100_110.0).abs() < 1e-6);
        assert!(result_line("[RESULT] ior-easy-write 3 kIOPS : time 1 seconds", 1).is_err());
        assert!(result_line("[RESULT] killed", 1).is_err());
    }

    #[test]
    fn sections_of_result_txt_are_phases() {
        let text = "version         = io500-sc22_v2\n[ior-easy-write]\nt_start = 2023-05-15 12:49:42\nscore = 2.5\n\
                    t_delta = 363.5\n[timestamp]\nt_delta = 0.1\n[SCORE]\nMD = 3\nSCORE = 4\n";
        let summary = read(text).expect("valid");
        assert_eq!(summary.version, "io500-sc22_v2");
        assert_eq!(summary.phases[0].parts(), ("ior-easy", Phase::Write));
        assert!((summary.phases[0].score - 2.5).abs() < 1e-9 && summary.phases[0].started.0 > 0);
        assert_eq!(summary.phases.len(), 1, "{summary:?}");
    }
}
