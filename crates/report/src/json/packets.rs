//! The cost of recording packets, for programs.

use std::collections::BTreeMap;

use nilometer_model::{ByteRate, Nanos};
use nilometer_plan::{Measured, Results};
use serde::Serialize;
use serde_json::Value as Json;

use crate::packets::{FIGURES, begins};
use nilometer_analysis::{AtRate, Curve, letter, processor_cost};

/// Packets of one size at several rates, on one target.
#[derive(Serialize)]
pub(super) struct PacketCurve {
    target: String,
    /// True if nothing was stored: writes did nothing and always succeeded.
    onto_nothing: bool,
    packet_bytes: u64,
    /// The lowest rate first.
    rates: Vec<PacketCurvePoint>,
    /// The highest rate below the loss at which no repeat lost packets.
    carried_bytes_per_second: Option<f64>,
    /// The lowest rate at which most repeats lost packets; null if none did.
    lost_bytes_per_second: Option<f64>,
    sentence: String,
}

/// All repeats at one rate.
#[derive(Serialize)]
struct PacketCurvePoint {
    /// The planned rate.
    bytes_per_second: f64,
    /// The recorder's processor time for each stored packet, over the valid repeats.
    cpu_per_packet_s: Option<f64>,
    /// The share of lost packets, over the valid repeats.
    lost_share: f64,
    valid: u32,
    /// Valid repeats with loss.
    lossy: u32,
    /// The reason why the other repeats can't be used.
    invalid: Option<String>,
}

pub(super) fn packet_curve(curve: &Curve) -> PacketCurve {
    let loss = curve.loss_begins();
    PacketCurve {
        target: letter(curve.target),
        onto_nothing: curve.onto_nothing,
        packet_bytes: curve.size.0,
        rates: curve.rates.iter().map(point).collect(),
        carried_bytes_per_second: loss.and_then(|loss| loss.carried).map(|rate| rate.0),
        lost_bytes_per_second: loss.map(|loss| loss.lost.0),
        sentence: begins(curve),
    }
}

fn point(at: &AtRate) -> PacketCurvePoint {
    PacketCurvePoint {
        bytes_per_second: at.rate.0,
        cpu_per_packet_s: at.cost.map(Nanos::seconds),
        lost_share: at.lost,
        valid: at.valid,
        lossy: at.lossy,
        invalid: at.invalid.as_ref().map(ToString::to_string),
    }
}

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

pub(super) fn packets(results: &Results) -> Vec<Packets> {
    results.samples.iter().filter_map(|measured| packets_of(results, measured)).collect()
}

/// Returns `None` if a sample has no packets.
fn packets_of(results: &Results, measured: &Measured) -> Option<Packets> {
    let ingest = measured.sample.ingest.as_ref()?;
    let packets = ingest.packets.as_ref()?;
    Some(Packets {
        instrument: results.recording(measured.key)?.label(),
        target: letter(measured.key.target),
        cell: results.cells.get(measured.key.cell)?.to_string(),
        goal: ingest.goal.name(),
        bytes_per_second: ByteRate::of(ingest.frame_size.0, ingest.period).0,
        cpu_per_packet_s: processor_cost(&measured.sample, packets).map(Nanos::seconds),
        invalid: measured.sample.invalid.as_ref().map(ToString::to_string),
        figures: FIGURES.iter().map(|(name, value)| (*name, value(packets))).collect(),
    })
}
