//! `nilometer report`: the report of a record, in one of five formats.

use std::{
    fs,
    io::IsTerminal,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use nilometer_analysis::{
    Study,
    report::{Palette, csv, html, json, markdown, terminal},
};
use nilometer_model::{Results, catalogue};
use nilometer_storage::user_file;

use crate::{Blame, Outcome, tell};

/// Prints or writes the report of a record
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The record that `evaluate` wrote
    record: PathBuf,
    /// How it is written
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Where it goes [default: for html, the record's name with .html in the current directory; else standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text of at most 100 columns
    Terminal,
    /// One file with charts, which opens offline
    Html,
    /// For an issue or a document
    Markdown,
    /// A row a sample
    Csv,
    /// For programs
    Json,
}

impl Report {
    pub(crate) fn execute(&self) -> Outcome {
        let results = nilometer_record::read(&self.record).input()?;
        let output = self.output.clone().or_else(|| self.default_output());
        let Some(path) = output else {
            tell::result(self.text(&results, palette()));
            return Ok(());
        };
        refuse_the_record(&path, &self.record).input()?;
        if self.output.is_none() {
            refuse_foreign(&path).input()?;
        }
        fs::write(&path, self.text(&results, Palette::Plain))
            .with_context(|| format!("can't write {}", path.display()))
            .run()?;
        tell::note(format_args!("Report: {}", path.display()));
        Ok(())
    }

    /// A page is not for a terminal to print.
    fn default_output(&self) -> Option<PathBuf> {
        let name = self.record.file_stem().unwrap_or(self.record.as_os_str());
        (self.format == Format::Html).then(|| PathBuf::from(name).with_added_extension("html"))
    }

    fn text(&self, results: &Results, palette: Palette) -> String {
        let study = Study::of(results).with_catalogue(&catalogue::instruments());
        match self.format {
            Format::Terminal => terminal(&study, palette),
            Format::Html => html(&study),
            Format::Markdown => markdown(&study),
            Format::Csv => csv(&study),
            Format::Json => json(&study),
        }
    }
}

/// A report can be made again, a record can't: it is never overwritten, by whatever name.
fn refuse_the_record(output: &Path, record: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let file = |path: &Path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let same = file(output).is_some_and(|output| Some(output) == file(record));
    ensure!(!same, "{} is the record itself: choose another --output", output.display());
    Ok(())
}

/// A page that nobody asked for by its name takes the place of another report only.
fn refuse_foreign(page: &Path) -> anyhow::Result<()> {
    if page.symlink_metadata().is_err() {
        return Ok(());
    }
    let begins = user_file::beginning(page).unwrap_or_default();
    let shown = page.display();
    ensure!(
        begins.starts_with("<!DOCTYPE html>") && begins.contains("– Nilometer</title>"),
        "{shown} exists and is no report of nilometer: move it away, or choose an --output"
    );
    Ok(())
}

/// Colours only where a person reads them, and only if they did not ask for none (<https://no-color.org>).
pub(crate) fn palette() -> Palette {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if std::io::stdout().is_terminal() && !refused { Palette::Coloured } else { Palette::Plain }
}
