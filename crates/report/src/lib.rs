//! Numbers and words for people and for programs: each report is one function from a [`nilometer_analysis::Study`] to text.

#![forbid(unsafe_code)]

mod acceptance;
mod against;
mod chart;
mod compared;
mod compared_network;
mod csv;
mod document;
mod figures_csv;
mod growth;
mod html;
mod interference;
mod json;
mod limiting;
mod network;
mod network_samples;
mod observed;
mod optimum;
mod order;
mod packets;
mod prospects;
mod render;
mod sections;
mod siblings;
mod sizing;
#[cfg(test)]
mod tests;
mod units_in_keys;
mod verdicts;
mod words;

pub use acceptance::{AcceptanceProof, acceptance_page};
pub use against::against_text;
pub use compared::compared_text;
pub use csv::csv;
pub use figures_csv::figures_csv;
pub use html::{compared_html, html};
pub use json::{COMPARISON_VERSION, FORMAT_VERSION, compared_json, json};
pub use network::{network_json, network_text};
pub use render::{Palette, TextLayout};
pub use sizing::{Checked, Sized, sizing_json, sizing_text};
pub use units_in_keys::units_in_keys;

use nilometer_analysis::Study;

use document::Detail;
use order::{Answers, document};

/// The report in a terminal: as wide as that is, units everywhere, the answers last, where they are seen.
pub fn terminal(study: &Study<'_>, layout: TextLayout) -> String {
    render::terminal_text(&document(study, Answers::Last, Detail::Short), layout)
}

/// The report in GitHub's Markdown, the answers first.
pub fn markdown(study: &Study<'_>) -> String {
    render::markdown_text(&document(study, Answers::First, Detail::Full))
}
