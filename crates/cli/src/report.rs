//! `nilometer report`: prints or writes the report of a record, in one of nine formats.

use std::{
    ffi::OsStr,
    fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use nilometer_analysis::{MoveAmount, Study, observed::CorrectedLog};
use nilometer_model::{Bytes, catalogue};
use nilometer_plan::{BackgroundLoad, Cell, PublishedStudy, Results};
use nilometer_report::{
    Detail, Palette, TextLayout, csv, evaluation_metrics, figures_csv, html, json, markdown, papers_text,
    terminal, why_markdown, why_terminal,
};

use crate::{
    Blame, Failure, Outcome, acceptance,
    observed::ObservedFiles,
    page_file::{is_page_or_free, page_of, write_whole},
    tell,
};

/// Print or write the report of a record
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The record that `evaluate` wrote
    record: PathBuf,
    #[command(flatten)]
    observed: ObservedFiles,
    /// Write the report in this format
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Show all latencies, limits and parameters, and the properties of the storage (terminal, markdown; a
    /// page always does)
    #[arg(long)]
    all: bool,
    /// Show the margin of each instrument of the catalogue, predicted from the figures (terminal, markdown; a
    /// page and JSON always do)
    #[arg(long)]
    predict: bool,
    /// Show the samples behind a figure, and its derivation: STAGE/PHASE/TARGET, or INSTRUMENT/TARGET
    /// (terminal, markdown)
    #[arg(long, value_name = "FIGURE", conflicts_with_all = ["all", "predict"])]
    why: Option<String>,
    /// Forecast the time to move this much, in a record whose load copied (plan migration). Default: all files of the
    /// census that the copied tree is like, or 1 TB
    #[arg(long = "move", value_name = "SIZE")]
    moved: Option<Bytes>,
    /// With --move: the number of files. Default: files as large as the copied ones
    #[arg(long, value_name = "N", requires = "moved")]
    move_files: Option<u64>,
    /// Write to this file; `-` is standard output. Default: standard output; for html and acceptance, the
    /// record's name with .html or .acceptance.html in the current directory
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text as wide as the terminal, at most 100 columns
    Terminal,
    /// One file with charts, which opens offline
    Html,
    /// Text for an issue or a document
    Markdown,
    /// A row a sample
    Csv,
    /// A row a figure, over its repeats
    FiguresCsv,
    /// JSON for programs
    Json,
    /// The tables of the published study whose plan was measured, with your figures beside the published ones
    Study,
    /// Metrics for the textfile collector of Prometheus' node exporter
    Prometheus,
    /// The page of a plan with [accept], for your files
    Acceptance,
}

impl Report {
    pub(crate) fn execute(&self) -> Outcome {
        let results = nilometer_record::read(&self.record).input()?;
        let logs = self.logs(&results).input()?;
        self.check_extent().input()?;
        self.check_move(&results).input()?;
        let output = self.output.clone().or_else(|| self.default_output());
        let Some(path) = output.filter(|output| output != Path::new("-")) else {
            let text = self.text(&results, &logs, layout())?;
            match self.format {
                Format::Json => tell::json_result(text),
                // Names in them have no control characters.
                Format::Terminal | Format::Study | Format::Csv | Format::FiguresCsv | Format::Prometheus => {
                    tell::result_unchanged(text);
                }
                Format::Html | Format::Markdown | Format::Acceptance => tell::result_to_copy(text),
            }
            return Ok(());
        };
        refuse_the_record(&path, &self.record).input()?;
        if self.output.is_none() {
            refuse_foreign(&path).input()?;
        }
        let text = self.text(&results, &logs, TextLayout::plain())?;
        write_report(&path, &text).with_context(|| format!("can't write {}", path.display())).run()?;
        tell::note(format_args!("Report: {}", path.display()));
        Ok(())
    }

    /// The file of a page: no terminal can show one.
    fn default_output(&self) -> Option<PathBuf> {
        let name = PathBuf::from(self.record.file_stem().unwrap_or(self.record.as_os_str()));
        match self.format {
            Format::Html => Some(name.with_added_extension("html")),
            Format::Acceptance => Some(name.with_added_extension("acceptance.html")),
            _ => None,
        }
    }

    /// The looks of observed machines. Formats with a row a figure have no place for them.
    fn logs(&self, results: &Results) -> anyhow::Result<Vec<CorrectedLog>> {
        let has_place =
            matches!(self.format, Format::Terminal | Format::Html | Format::Markdown | Format::Json);
        ensure!(
            has_place || self.observed.is_empty(),
            "this format has no place for observations: choose --format terminal, html, markdown or json"
        );
        self.observed.logs(results)
    }

    /// Refuses these options unless a person reads the text: only such text leaves something out.
    fn check_extent(&self) -> anyhow::Result<()> {
        let is_chosen = self.all || self.predict || self.why.is_some();
        let has_choice = matches!(self.format, Format::Terminal | Format::Markdown);
        ensure!(
            has_choice || !is_chosen,
            "--all, --predict and --why apply only to texts: add --format terminal or markdown"
        );
        Ok(())
    }

    /// Refuses an amount to move if nothing was copied: there would be no forecast of it.
    fn check_move(&self, results: &Results) -> anyhow::Result<()> {
        let mut loads = results.cells.iter().filter_map(Cell::background);
        ensure!(
            self.moved.is_none() || loads.any(BackgroundLoad::migrates),
            "{}: no load of its plan copies, so it has no forecast of --move: see docs/migration.md",
            self.record.display()
        );
        Ok(())
    }

    const fn detail(&self) -> Detail {
        match (self.all, self.predict) {
            (true, _) => Detail::Full,
            (false, true) => Detail::Predicted,
            (false, false) => Detail::Short,
        }
    }

    fn text(&self, results: &Results, logs: &[CorrectedLog], layout: TextLayout) -> Result<String, Failure> {
        let study =
            Study::of(results).with_catalogue(&catalogue::instruments()).with_observed(logs).with_papers();
        let study = match self.moved {
            Some(bytes) => study.with_move(MoveAmount { bytes, files: self.move_files }),
            None => study,
        };
        if let Some(key) = &self.why {
            let is_markdown = self.format == Format::Markdown;
            let text =
                if is_markdown { why_markdown(&study, key) } else { why_terminal(&study, key, layout) };
            return text.input();
        }
        Ok(match self.format {
            Format::Terminal => terminal(&study, self.detail(), layout),
            Format::Html => html(&study),
            Format::Markdown => markdown(&study, self.detail()),
            Format::Csv => csv(&study),
            Format::FiguresCsv => figures_csv(&study),
            Format::Json => json(&study),
            Format::Study => papers_text(&with_own_study(study, &self.record).input()?, layout),
            Format::Prometheus => evaluation_metrics(&study),
            Format::Acceptance => {
                acceptance::page(&with_criteria(study, &self.record).input()?, &self.record).run()?
            }
        })
    }
}

/// Refuses a record that repeats no published study: it has no table of one.
fn with_own_study<'a>(study: Study<'a>, record: &Path) -> anyhow::Result<Study<'a>> {
    ensure!(
        !study.papers.is_empty(),
        "{}: no published study has such a table: measure one of the plans {}, or import a table of reference/",
        record.display(),
        PublishedStudy::plans().join(", ")
    );
    Ok(study)
}

/// Writes the report over an earlier one, whole or not at all: a collector may read metrics at any moment. A device or
/// a pipe takes the text as it comes.
fn write_report(path: &Path, text: &str) -> io::Result<()> {
    let is_file = fs::symlink_metadata(path).map_or(true, |found| found.is_file());
    if is_file { write_whole(path, text) } else { fs::write(path, text) }
}

/// Refuses a record whose plan has no criteria: nothing was to be accepted.
fn with_criteria<'a>(study: Study<'a>, record: &Path) -> anyhow::Result<Study<'a>> {
    let has_criteria =
        study.results.campaign.as_ref().is_some_and(|campaign| !campaign.plan.accept.is_empty());
    ensure!(
        has_criteria,
        "{}: its plan has no criteria of acceptance, so there is no such page: see docs/acceptance.md",
        record.display()
    );
    Ok(study)
}

/// Writes the page of a record beside it, over an earlier one, whole or not at all. Returns its path.
pub(crate) fn write_page(study: &Study<'_>, record: &Path) -> anyhow::Result<PathBuf> {
    let page = page_of(record);
    let shown = page.display();
    ensure!(
        is_page_or_free(&page),
        "{shown} exists and is no report of nilometer: `nilometer report` can write it elsewhere"
    );
    write_whole(&page, &html(study)).with_context(|| format!("can't write {shown}"))?;
    Ok(page)
}

/// Refuses the record as output, by any path: you can make a report again, a record not.
pub(crate) fn refuse_the_record(output: &Path, record: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let file = |path: &Path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let same = file(output).is_some_and(|output| Some(output) == file(record));
    ensure!(!same, "{} is the record itself: choose another --output", output.display());
    Ok(())
}

/// Refuses to overwrite a file that is no report, if the user did not name the page.
fn refuse_foreign(page: &Path) -> anyhow::Result<()> {
    let shown = page.display();
    ensure!(
        is_page_or_free(page),
        "{shown} exists and is no report of nilometer: move it away, or choose an --output"
    );
    Ok(())
}

/// The layout for the terminal of the results: its width, and colours. Without colours if no person reads,
/// the terminal has none, or the user opts out (<https://no-color.org>).
pub(crate) fn layout() -> TextLayout {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return TextLayout::plain();
    }
    let is =
        |name: &str, wanted: fn(&OsStr) -> bool| std::env::var_os(name).is_some_and(|value| wanted(&value));
    let refused = is("NO_COLOR", |value| !value.is_empty()) || is("TERM", |value| value == "dumb");
    let palette = if refused { Palette::Plain } else { Palette::Coloured };
    // A terminal that does not state its width has 0 columns here.
    let columns = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| usize::from(size.ws_col));
    TextLayout::new(palette, if columns == 0 { USUAL_COLUMNS } else { columns })
}

/// The layout for a terminal; a program that reads the results gets whole lines.
pub(crate) fn line_layout() -> TextLayout {
    if std::io::stdout().is_terminal() { layout() } else { TextLayout::unbroken() }
}

/// The columns of a terminal that does not state its width.
const USUAL_COLUMNS: usize = 80;
