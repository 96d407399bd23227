//! Numbers and words for people and for programs: each report is one function from a [`nilometer_analysis::Study`] to text.

mod acceptance;
mod against;
mod chart;
mod compared;
mod compared_network;
mod csv;
mod figures_csv;
mod growth;
mod html;
mod interference;
mod json;
mod latency_columns;
mod limiting;
mod markdown;
mod network;
mod network_samples;
mod observed;
mod optimum;
mod packets;
mod prospects;
mod siblings;
mod sizing;
mod storage_rows;
mod terminal;
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
pub use markdown::markdown;
pub use network::{network_json, network_text};
pub use sizing::{Checked, Sized, sizing_json, sizing_text};
pub use terminal::{Palette, TextLayout, terminal};
pub use units_in_keys::units_in_keys;
