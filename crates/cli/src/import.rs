//! `nilometer import`: results of other programs and of publications, as a record like any other.

use std::path::PathBuf;

use clap::Args;
use nilometer_model::Moment;
use nilometer_record::import::{ImportOptions, import};

use crate::{Blame, Outcome, tell};

/// Makes a record of results of fio, IOR, mdtest, elbencho, IO500, or of a table in CSV
///
/// A file says by its contents what it is. The log of a job may hold the outputs of several programs. Repeats are runs: further files of the same test, or rows of the same test in a
/// table. The record can be reported, and compared with others.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// JSON of fio, output of IOR (text, CSV, JSON) or mdtest, CSV or JSON of elbencho, a summary or a directory of IO500, or
    /// tidy CSV
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The record to make; it must not exist
    #[arg(long, value_name = "FILE")]
    record: PathBuf,
    /// What was measured, instead of what the files say
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// The title, instead of where the results come from
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Take rows of a table as one test whatever their parameters are, where two sites wrote them in other words
    #[arg(long)]
    any_params: bool,
    /// Take the standard errors of a table as those of runs; they are of the nodes of one run otherwise
    #[arg(long)]
    errors_of_runs: bool,
    /// When results without a date of their own were measured, in UTC: histories need it
    #[arg(long, value_name = "TIME", value_parser = moment)]
    date: Option<Moment>,
    /// Take only results of this day: a record for each day of a table makes it a history
    #[arg(long, value_name = "DAY", value_parser = moment)]
    day: Option<Moment>,
}

/// A day, or a moment of it.
fn moment(text: &str) -> Result<Moment, String> {
    let is_day = text.len() == "2026-01-31".len();
    let whole = if is_day { format!("{text}T00:00:00Z") } else { text.to_owned() };
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
