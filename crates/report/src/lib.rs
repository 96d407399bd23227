//! Figures and words for people and for programs. Each report is one function from a
//! [`nilometer_analysis::Study`] to text.

#![forbid(unsafe_code)]

mod acceptance;
mod against;
mod census;
mod chart;
mod compared;
mod compared_charts;
mod compared_document;
mod compared_network;
mod csv;
mod described;
mod document;
mod evaluation_metrics;
mod figure_key;
mod figures_csv;
mod growth;
mod in_line;
mod interference;
mod json;
mod limiting;
mod machine_check;
mod migration;
mod network;
mod network_samples;
mod observed;
mod optimum;
mod order;
mod packets;
mod prospects;
mod recall;
mod recording_findings;
mod render;
mod sections;
mod siblings;
mod sizing;
#[cfg(test)]
mod tests;
mod units_in_keys;
mod verdicts;
mod why;
mod words;

pub use acceptance::{AcceptanceProof, acceptance_page};
pub use against::against_text;
pub use census::census_json;
pub use csv::csv;
pub use evaluation_metrics::evaluation_metrics;
pub use figures_csv::figures_csv;
pub use in_line::in_line;
pub use json::{COMPARISON_VERSION, FORMAT_VERSION, compared_json, json};
pub use machine_check::{MachineFinding, Sufficiency, WantedPackets};
use machine_check::{machine_document, machine_value};
pub use network::network_json;
pub use recall::recall_json;
pub use recording_findings::{GrowingDocument, GrowingForm, RecordingFindings};
pub use render::{Palette, TextLayout};
pub use sizing::{Checked, InstrumentRooms, Sized, rooms_json, sizing_json};
use sizing::{rooms_document, sizing_document};
pub use units_in_keys::units_in_keys;
pub use why::UnknownFigure;

use nilometer_analysis::{RecordsCompared, Study};
use nilometer_model::{Census, NetworkResults, RecalledFile, TargetDescription};

use compared_document::compared_document;
pub use document::{Detail, NamedFact, Tone};
use order::{Answers, document, papers_document};

/// Writes the report for a terminal of this width, with units everywhere. The answers come last, where the
/// reader sees them.
pub fn terminal(study: &Study<'_>, detail: Detail, layout: TextLayout) -> String {
    render::terminal_text(&document(study, Answers::Last, detail), layout)
}

/// Writes the report in GitHub's Markdown, the answers first.
pub fn markdown(study: &Study<'_>, detail: Detail) -> String {
    render::markdown_text(&document(study, Answers::First, detail))
}

/// Writes the report as one HTML file with charts, the answers first. It opens offline and without scripts, on
/// a phone and on paper.
pub fn html(study: &Study<'_>) -> String {
    render::html_text(&document(study, Answers::First, Detail::Page))
}

/// Writes the tables of the published studies that a campaign measured again, for a terminal: in the studies' lines,
/// columns and units.
pub fn papers_text(study: &Study<'_>, layout: TextLayout) -> String {
    render::terminal_text(&papers_document(study), layout)
}

/// Writes the network between machines for a terminal: a row for each pattern, and the conclusions. `left_out` has the
/// trials that were left out, see [`nilometer_plan::NetworkRun::left_out`].
pub fn network_text(results: &NetworkResults, left_out: &[String], layout: TextLayout) -> String {
    let section = sections::between_machines(results, left_out, "The network between machines", Detail::Full);
    render::terminal_text(&document::Document { sections: vec![section], ..Default::default() }, layout)
}

/// Writes the counts of a tree for a terminal.
pub fn census_text(census: &Census, layout: TextLayout) -> String {
    render::terminal_text(&census::census_document(census), layout)
}

/// Writes the counts of a tree in Markdown.
pub fn census_markdown(census: &Census) -> String {
    render::markdown_text(&census::census_document(census))
}

/// Writes the times of files that came back from tape, for a terminal.
pub fn recall_text(files: &[RecalledFile], layout: TextLayout) -> String {
    render::terminal_text(&recall::recall_document(files), layout)
}

/// Writes the times of files that came back from tape in Markdown.
pub fn recall_markdown(files: &[RecalledFile]) -> String {
    render::markdown_text(&recall::recall_document(files))
}

/// Writes the times of files that came back from tape as one HTML file, which opens offline.
pub fn recall_html(files: &[RecalledFile]) -> String {
    render::html_text(&recall::recall_document(files))
}

/// Writes the check of a machine for a terminal.
pub fn machine_text(wanted: WantedPackets, findings: &[MachineFinding], layout: TextLayout) -> String {
    render::terminal_text(&machine_document(wanted, findings, String::new()), layout)
}

/// Writes the check of a machine in Markdown.
pub fn machine_markdown(wanted: WantedPackets, findings: &[MachineFinding]) -> String {
    render::markdown_text(&machine_document(wanted, findings, String::new()))
}

/// Writes the check of a machine as one HTML file, which opens offline.
/// `origin` names the machine and the time.
pub fn machine_html(wanted: WantedPackets, findings: &[MachineFinding], origin: String) -> String {
    render::html_text(&machine_document(wanted, findings, origin))
}

/// Writes the check of a machine as a JSON document.
pub fn machine_json(wanted: WantedPackets, findings: &[MachineFinding]) -> String {
    format!("{:#}\n", machine_value(wanted, findings))
}

/// Writes the description of a storage system for a terminal. `is_first` is false for a further one, which follows
/// without a title.
pub fn described_text(description: &TargetDescription, is_first: bool, layout: TextLayout) -> String {
    let document = described::described_document(std::slice::from_ref(description));
    let title = if is_first { document.title } else { String::new() };
    render::terminal_text(&document::Document { title, ..document }, layout)
}

/// Writes descriptions of storage systems in Markdown.
pub fn described_markdown(all: &[TargetDescription]) -> String {
    render::markdown_text(&described::described_document(all))
}

/// Writes descriptions of storage systems as one HTML file, which opens offline.
pub fn described_html(all: &[TargetDescription]) -> String {
    render::html_text(&described::described_document(all))
}

/// Writes a sizing for a terminal.
pub fn sizing_text(sized: &Sized<'_>, layout: TextLayout) -> String {
    render::terminal_text(&sizing_document(sized, Detail::Full), layout)
}

/// Writes a sizing in Markdown.
pub fn sizing_markdown(sized: &Sized<'_>) -> String {
    render::markdown_text(&sizing_document(sized, Detail::Page))
}

/// Writes a sizing as one HTML file, which opens offline.
pub fn sizing_html(sized: &Sized<'_>) -> String {
    render::html_text(&sizing_document(sized, Detail::Page))
}

/// Writes the room of directories for a terminal.
pub fn rooms_text(all: &InstrumentRooms, layout: TextLayout) -> String {
    render::terminal_text(&rooms_document(all), layout)
}

/// Writes the room of directories in Markdown.
pub fn rooms_markdown(all: &InstrumentRooms) -> String {
    render::markdown_text(&rooms_document(all))
}

/// Writes the room of directories as one HTML file, which opens offline.
pub fn rooms_html(all: &InstrumentRooms) -> String {
    render::html_text(&rooms_document(all))
}

/// Writes the comparison of records for a terminal, the answers last.
pub fn compared_text(compared: &RecordsCompared<'_>, layout: TextLayout) -> String {
    render::terminal_text(&compared_document(compared, Answers::Last, Detail::Full), layout)
}

/// Writes the comparison of records in Markdown, the answers first.
pub fn compared_markdown(compared: &RecordsCompared<'_>) -> String {
    render::markdown_text(&compared_document(compared, Answers::First, Detail::Full))
}

/// Writes the comparison of records as one HTML file with charts.
pub fn compared_html(compared: &RecordsCompared<'_>) -> String {
    render::html_text(&compared_document(compared, Answers::First, Detail::Page))
}

/// Writes the samples behind a figure, and how it follows from them, for a terminal. The key is
/// `STAGE/PHASE/TARGET` or `INSTRUMENT/TARGET`. Add the cell after the stage to choose one of several.
///
/// # Errors
///
/// Returns an error if no figure has this key.
pub fn why_terminal(study: &Study<'_>, key: &str, layout: TextLayout) -> Result<String, UnknownFigure> {
    Ok(render::terminal_text(&why::why_document(study, key)?, layout))
}

/// Writes the samples behind a figure in Markdown.
///
/// # Errors
///
/// Returns an error if no figure has this key.
pub fn why_markdown(study: &Study<'_>, key: &str) -> Result<String, UnknownFigure> {
    Ok(render::markdown_text(&why::why_document(study, key)?))
}
