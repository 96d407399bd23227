//! `nilometer compare`: records beside each other, of different targets, dates or machines; and against a
//! baseline.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
};

use anyhow::{anyhow, ensure};
use clap::{Args, ValueEnum};
use nilometer_analysis::{AgainstBaseline, NamedRecord, RecordsCompared};
use nilometer_plan::Results;
use nilometer_report::{against_text, compared_html, compared_json, compared_markdown, compared_text};

use crate::{
    Blame, Failure, Outcome, page_file,
    percentage::percent,
    report::{layout, refuse_the_record},
    tell,
};

/// Compare records: targets, dates or machines; against a baseline, or as a history
///
/// Compares each target of each record cell by cell, in the words of a report. If three or more records
/// measured a target, it shows the runs in time, and names the step among them, if there is one.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Records that `evaluate` wrote: two or more, or one and a baseline
    #[arg(required = true)]
    records: Vec<PathBuf>,
    /// Compare the records with this baseline. Exit code 3: a figure got worse by more than its noise and the
    /// threshold. Exit code 4: some figures could not be compared or decided
    ///
    /// Give several baselines of different days: then the spread from run to run counts too, which one
    /// baseline does not show.
    #[arg(long, value_name = "RECORD")]
    against: Vec<PathBuf>,
    /// Count a loss from this share on, such as "5 %" [default: the plan's margin]
    #[arg(long, value_name = "PERCENT", requires = "against", value_parser = threshold)]
    threshold: Option<f64>,
    /// End with exit code 0 even if only this share of the baseline's figures could be decided, such as "80
    /// %"
    #[arg(long, value_name = "PERCENT", requires = "against", default_value = "100 %", value_parser = share)]
    compared_least: f64,
    /// Print nothing if nothing got worse and enough could be compared
    #[arg(long, short, requires = "against", conflicts_with = "json")]
    quiet: bool,
    /// Print in this format
    #[arg(long, value_enum, default_value_t = ComparedFormat::Terminal, conflicts_with = "json")]
    format: ComparedFormat,
    /// The same as --format json
    #[arg(long)]
    json: bool,
    /// Write a page with charts, which opens offline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The format of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ComparedFormat {
    /// Text as wide as the terminal, at most 100 columns
    Terminal,
    /// Text for an issue or a document
    Markdown,
    /// JSON for programs
    Json,
}

/// Reads `5` or `5 %`.
fn threshold(text: &str) -> Result<f64, String> {
    percent(text, PERCENT_MOST, "5 %")
}

const PERCENT_MOST: f64 = 1000.0;

/// Reads `80 %` as 0.8.
fn share(text: &str) -> Result<f64, String> {
    percent(text, 100.0, "80 %").map(|percent| percent / 100.0)
}

impl Compare {
    pub(crate) fn execute(&self) -> Outcome {
        self.check_format().input()?;
        let paths = self.paths().input()?;
        page_file::check_option(self.html.as_deref()).input()?;
        let results = read_all(&paths).input()?;
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let records = names.iter().zip(&results).map(|(name, results)| NamedRecord { name, results });
        let compared = RecordsCompared::of(&records.collect::<Vec<_>>());
        let compared = compared.with_baselines(self.against.len().max(1)).with_papers();
        let against = self.held_against(&compared)?;
        page_file::write_option(self.html.as_deref(), || compared_html(&compared)).run()?;
        let ended = ended(&compared, against.as_ref(), self.compared_least);
        if self.json || self.format == ComparedFormat::Json {
            tell::json_result(compared_json(&compared, against.as_ref()));
        } else if let Some(against) = against.as_ref().filter(|_| ended.is_err() || !self.quiet) {
            tell::result(against_text(&compared, against));
        } else if self.format == ComparedFormat::Markdown {
            tell::result_to_copy(compared_markdown(&compared));
        } else if against.is_none() {
            tell::result_unchanged(compared_text(&compared, layout()));
        }
        ended
    }

    /// Refuses Markdown for a comparison with a baseline, which prints a few lines without a format.
    fn check_format(&self) -> anyhow::Result<()> {
        ensure!(
            self.against.is_empty() || self.format != ComparedFormat::Markdown,
            "--format markdown: --against prints lines; write --format terminal or json, or --html FILE"
        );
        Ok(())
    }

    /// The records, the baseline first, each once.
    fn paths(&self) -> anyhow::Result<Vec<&Path>> {
        let paths: Vec<&Path> = self.against.iter().chain(&self.records).map(PathBuf::as_path).collect();
        ensure!(
            paths.len() > 1,
            "{}: one record is no comparison: name another one, or --against a baseline; `nilometer report` compares the \
             targets of one",
            paths[0].display()
        );
        let mut seen = Vec::new();
        for path in &paths {
            if let Some(html) = &self.html {
                refuse_the_record(html, path)?;
            }
            let Ok(metadata) = fs::metadata(path) else { continue };
            let file = (metadata.dev(), metadata.ino());
            ensure!(!seen.contains(&file), "{}: you named this record twice: name each once", path.display());
            seen.push(file);
        }
        Ok(paths)
    }

    fn held_against(&self, compared: &RecordsCompared<'_>) -> Result<Option<AgainstBaseline>, Failure> {
        let Some(baseline) = self.against.last() else { return Ok(None) };
        let against = compared.against(self.threshold.unwrap_or(compared.margin));
        Ok(Some(against.ok_or_else(|| no_target_of(baseline, compared)).input()?))
    }
}

fn no_target_of(baseline: &Path, compared: &RecordsCompared<'_>) -> anyhow::Error {
    let baseline_results = compared.records[compared.baselines - 1].results;
    let targets = baseline_results.targets.iter();
    let paths: Vec<&str> = targets.map(|target| target.path.as_str()).collect();
    let baseline = baseline.display();
    anyhow!("{baseline}: none of its targets is in the other records: it has {}", paths.join(", "))
}

/// Reads each record by a thread of its own, as many at once as there are processors.
fn read_all(paths: &[&Path]) -> anyhow::Result<Vec<Results>> {
    let at_once = thread::available_parallelism().map_or(1, Into::into);
    let mut all = Vec::new();
    for some in paths.chunks(at_once) {
        let read = thread::scope(|scope| {
            let begun: Vec<_> =
                some.iter().map(|path| scope.spawn(move || nilometer_record::read_figures(path))).collect();
            begun.into_iter().map(|thread| thread.join().expect("it returns its errors")).collect::<Vec<_>>()
        });
        for results in read {
            all.push(results?);
        }
    }
    Ok(all)
}

/// The outcome of the comparison. `least` is the share of the baseline's figures that must be decided.
fn ended(compared: &RecordsCompared<'_>, against: Option<&AgainstBaseline>, least: f64) -> Outcome {
    let Some(against) = against else {
        let says = compared.says_anything();
        let nothing = || {
            anyhow!(
                "nothing could be compared: the records have no cell and no recording in common with valid repeats in each"
            )
        };
        return if says { Ok(()) } else { Err(Failure::NotDecided(nothing())) };
    };
    let AgainstBaseline { worse, compared: count, figures, threshold, .. } = against;
    if !worse.is_empty() {
        let count = worse.len();
        return Err(Failure::NotCarried(anyhow!(
            "{count} of {figures} figures got worse by more than their noise and {threshold} %"
        )));
    }
    if *count == 0 || against.share() < least {
        return Err(Failure::NotDecided(anyhow!(
            "only {count} of {figures} figures of the baseline could be compared and decided: measure more repeats, \
             raise --threshold, or lower --compared-least"
        )));
    }
    Ok(())
}
