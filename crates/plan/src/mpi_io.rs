//! `engine = "mpi_io"`: the calls that write and read files, the implementation, and the hints.

use std::collections::BTreeMap;

use nilometer_model::{MpiIoHints, MpiIoImplementation};
use serde::{Deserialize, Serialize};

use super::{Sweep, plan_table::plan_table};

/// Do processes exchange data before they write and after they read?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MpiIoCalls {
    /// `MPI_File_write_at` and `MPI_File_read_at`: each process by itself.
    #[default]
    Independent,
    /// `MPI_File_write_at_all` and `MPI_File_read_at_all`: all processes of the cell together.
    Collective,
}

plan_table! {
    /// `[stage.mpi_io]` as written: each parameter may be a list.
    #[derive(Debug, Clone, Default)]
    MpiIoSweep {
        /// Calls of each process alone (`MPI_File_write_at`, `MPI_File_read_at`), or of all together
        /// (`_all`).
        calls: Sweep<MpiIoCalls> = Sweep::default(),
        /// Use processes with this implementation, the first N of them by `processes`. Default: any.
        implementation: Option<Sweep<MpiIoImplementation>>,
        /// Open files with these hints. The record's environment has those in force.
        hints: Sweep<MpiIoHints> = Sweep::default(),
    }
}

/// One combination.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MpiIo {
    /// Independent or collective calls.
    pub calls: MpiIoCalls,
    /// The implementation that processes must have; `None` means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementation: Option<MpiIoImplementation>,
    /// The hints for opening files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hints: MpiIoHints,
}

impl MpiIoCalls {
    /// The word in plans and reports.
    pub const fn name(self) -> &'static str {
        match self {
            MpiIoCalls::Independent => "independent",
            MpiIoCalls::Collective => "collective",
        }
    }
}

impl MpiIoSweep {
    /// Each combination, in the order of the plan.
    pub(super) fn ways(&self) -> Vec<MpiIo> {
        let ways = self.calls.over(vec![MpiIo::default()], |way, calls| way.calls = calls);
        let ways = match &self.implementation {
            Some(sweep) => sweep.over(ways, |way, which| way.implementation = Some(which)),
            None => ways,
        };
        self.hints.over(ways, |way, hints| way.hints = hints)
    }
}

/// The longest key and value of a hint that every implementation takes: Open MPI's limits, without the end of
/// the text.
const KEY_MAX: usize = 35;
const VALUE_MAX: usize = 255;

impl MpiIo {
    /// The phrases in reports, to be joined with commas.
    pub(super) fn phrases(&self) -> Vec<String> {
        let mut phrases = vec![format!("MPI-IO {}", self.calls.name())];
        phrases.extend(self.implementation.map(|which| which.name().to_owned()));
        phrases.extend(self.hints.iter().map(|(key, value)| format!("{key} = {value}")));
        phrases
    }

    /// Checks hints, which go to the library unchanged. One that contains a path could lead it out of the
    /// run's directory.
    ///
    /// # Errors
    /// An invalid hint, in words.
    pub fn check(&self) -> Result<(), String> {
        let is_letter = |letter: char| letter.is_ascii_graphic() || letter == ' ';
        for (key, value) in &self.hints {
            let known = (1..=KEY_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
            let said = (1..=VALUE_MAX).contains(&value.len()) && value.chars().all(is_letter);
            if !known || !said || value.contains('/') {
                return Err(format!(
                    "mpi_io.hints: {key:?} = {value:?}: write a key of 1 to {KEY_MAX} letters and a value of 1 to \
                     {VALUE_MAX}, in which there is no path"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    const PLAN: &str = r#"
title = "a test"
[[stage]]
name = "one file"
engine = ["sync", "mpi_io"]
[stage.mpi_io]
calls = ["independent", "collective"]
implementation = ["ompio", "romio"]
hints = [{}, { cb_nodes = "1", romio_cb_write = "enable" }]
[stage.workload.stream]
file_size = "1 MiB"
block_size = "64 KiB"
access = "buffered"
layout = "strided"
"#;

    fn cells(text: &str) -> Vec<String> {
        let plan = parse(text, "my.toml", 1.0).expect("a valid plan");
        plan.cells.iter().map(ToString::to_string).collect()
    }

    fn refused(from: &str, to: &str) -> String {
        assert!(PLAN.contains(from), "{from}");
        parse(&PLAN.replace(from, to), "my.toml", 1.0).expect_err("it is refused").to_string()
    }

    #[test]
    fn posix_stands_beside_calls_implementations_and_hints_as_one_matrix() {
        let cells = cells(PLAN);
        assert_eq!(cells.len(), 1 + 2 * 2 * 2, "{cells:?}");
        assert!(cells[0].ends_with("N-to-1 strided, 1 worker"), "{}", cells[0]);
        assert!(cells[1].ends_with("1 worker, MPI-IO independent, ompio"), "{}", cells[1]);
        assert!(
            cells[8].ends_with("MPI-IO collective, romio, cb_nodes = 1, romio_cb_write = enable"),
            "{}",
            cells[8]
        );
    }

    #[test]
    fn without_a_table_calls_are_independent_and_a_table_without_the_engine_is_refused() {
        let (before, rest) = PLAN.split_once("[stage.mpi_io]").expect("it is there");
        let (_, workload) = rest.split_once("[stage.workload.stream]").expect("it is there");
        let cells = cells(&format!("{before}[stage.workload.stream]{workload}"));
        assert!(cells.len() == 2 && cells[1].ends_with("MPI-IO independent"), "{cells:?}");
        let why = refused("engine = [\"sync\", \"mpi_io\"]", "engine = \"sync\"");
        assert!(why.contains("mpi_io: only the engine `mpi_io` uses it: add the engine"), "{why}");
    }

    #[test]
    fn what_mpi_io_can_not_do_is_refused_with_what_would_do() {
        for (from, to, said) in [
            ("engine =", "workers = 4\nengine =", "start more processes (processes = 4)"),
            ("engine =", "depth = 2\nengine =", "depth = 2"),
            ("engine =", "volumes = \"together\"\nengine =", "write volumes = \"alone\""),
            ("engine =", "time_limit = \"5 s\"\nengine =", "time_limit: all processes make the same calls"),
            ("engine =", "stonewall = true\nengine =", "stonewall: all processes make the same calls"),
            ("engine =", "rate = \"5 MB/s\"\nengine =", "rate: all processes make the same calls"),
            ("\"buffered\"", "\"direct\"", "write access = \"buffered\""),
            (
                "\"strided\"",
                "\"own\"",
                "write calls = \"independent\", or layout = \"segmented\" or \"strided\"",
            ),
            ("\"strided\"", "\"strided\"\npreallocate = true", "preallocate = true"),
            ("cb_nodes = \"1\"", "cb_nodes = \"\"", "\"cb_nodes\" = \"\""),
            ("cb_nodes = \"1\"", "e10_cache_path = \"/home\"", "there is no path"),
            ("\"ompio\"", "\"ompi\"", "`ompio`"),
            ("calls =", "cals =", "`implementation`"),
        ] {
            let why = refused(from, to);
            assert!(why.contains(said) && why.contains("my.toml"), "{to}: {why}");
        }
        let (before, _) = PLAN.split_once("[stage.workload.stream]").expect("it is there");
        let walk = "[stage.workload.walk]\nlevels = 1\nbranching = 1\nfiles = 1\n";
        let why = parse(&format!("{before}{walk}"), "my.toml", 1.0).expect_err("no data").to_string();
        assert!(why.contains("engine = \"mpi_io\": this workload can't use it: write `stream`"), "{why}");
    }
}
