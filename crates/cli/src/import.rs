//! `nilometer import`: makes a record of results of other programs and of publications.

use std::path::PathBuf;

use clap::Args;
use nilometer_model::Moment;
use nilometer_record::import::{ImportOptions, import};

use crate::{Blame, Outcome, tell};

/// Make a record of results of fio, IOR, mdtest, elbencho or IO500, or of a table in CSV
///
/// Nilometer recognizes a file by its contents. The log of a job may hold the outputs of several programs.
/// Repeats are runs: further files of the same test, or rows of the same test in a table. You can report the
/// record, and compare it with others.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// JSON of fio, output of IOR (text, CSV, JSON) or mdtest, CSV or JSON of elbencho. Also a summary or a
    /// directory of IO500, or tidy CSV
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Write this new record
    #[arg(long, value_name = "FILE")]
    record: PathBuf,
    /// Name the target, instead of the names in the files
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Set the title, instead of the results' source
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Take rows of a table as one test despite different parameters: two sites may word them differently
    #[arg(long)]
    any_params: bool,
    /// Take the standard errors of a table as those of runs; by default they are those of the nodes of one
    /// run
    #[arg(long)]
    errors_of_runs: bool,
    /// Date results that have no date of their own, in UTC: histories need it
    #[arg(long, value_name = "TIME", value_parser = moment)]
    date: Option<Moment>,
    /// Take only results of this day: a record for each day of a table makes it a history
    #[arg(long, value_name = "DAY", value_parser = moment)]
    day: Option<Moment>,
}

/// Reads a day, or a moment of it.
fn moment(text: &str) -> Result<Moment, String> {
    let is_day = text.len() == "2026-01-31".len();
    let is_without_zone = text.len() == "2026-01-31T10:00:00".len();
    let whole = match text {
        day if is_day => format!("{day}T00:00:00Z"),
        time if is_without_zone => format!("{time}Z"),
        time => time.to_owned(),
    };
    whole.parse().map_err(|_| {
        "write a day, such as 2026-01-31, or a time in UTC, such as 2026-01-31T10:00:00Z".to_owned()
    })
}

impl Import {
    pub(crate) fn execute(&self) -> Outcome {
        let options = ImportOptions {
            target: self.target.clone(),
            title: self.title.clone(),
            any_parameters: self.any_params,
            errors_of_runs: self.errors_of_runs,
            date: self.date,
            day: self.day,
        };
        let imported = import(&self.files, &options).input()?;
        let count =
            |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
        let samples = count(imported.samples(), "sample");
        let cells = count(imported.cells(), "cell");
        let targets = count(imported.targets().count(), "target");
        let left_out = imported.left_out().to_vec();
        imported.write(&self.record).input()?;
        tell::note(format_args!("Record: {} ({samples} of {cells} on {targets})", self.record.display()));
        for (what, count) in left_out {
            tell::note(format_args!("  left out: {count} x {what}"));
        }
        Ok(())
    }
}
