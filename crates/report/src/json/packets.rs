//! The cost of recording packets, for programs.

use std::collections::BTreeMap;

use nilometer_model::{ByteRate, Nanos};
use nilometer_plan::Measured;
use serde::Serialize;
use serde_json::Value as Json;

use crate::packets::FIGURES;
use nilometer_analysis::{Study, letter, processor_cost};

/// A recording of packets that came over loopback.
#[derive(Serialize)]
pub(super) struct Packets {
    instrument: String,
    target: String,
    cell: String,
    /// `pace`: at its own rate; `search`, `buffer`: one trial of many.
    goal: &'static str,
    /// The requested rate.
    bytes_per_second: f64,
    /// The recorder's processor time for each stored packet.
    cpu_per_packet_s: Option<f64>,
    invalid: Option<String>,
    #[serde(flatten)]
    figures: BTreeMap<&'static str, Json>,
}

pub(super) fn packets(study: &Study<'_>) -> Vec<Packets> {
    study.results.samples.iter().filter_map(|measured| packets_of(study, measured)).collect()
}

/// Returns `None` if a sample has no packets.
fn packets_of(study: &Study<'_>, measured: &Measured) -> Option<Packets> {
    let ingest = measured.sample.ingest.as_ref()?;
    let packets = ingest.packets.as_ref()?;
    Some(Packets {
        instrument: study.results.recording(measured.key)?.label(),
        target: letter(measured.key.target),
        cell: study.results.cells.get(measured.key.cell)?.to_string(),
        goal: ingest.goal.name(),
        bytes_per_second: ByteRate::of(ingest.frame_size.0, ingest.period).0,
        cpu_per_packet_s: processor_cost(&measured.sample, packets).map(Nanos::seconds),
        invalid: measured.sample.invalid.as_ref().map(ToString::to_string),
        figures: FIGURES.iter().map(|(name, value)| (*name, value(packets))).collect(),
    })
}
