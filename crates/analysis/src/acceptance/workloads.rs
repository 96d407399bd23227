//! Criteria of workloads: means of repeats with their intervals, in each cell of a stage.

use nilometer_model::{ByteRate, Nanos, Sample, statistics::Summary};
use nilometer_plan::{Group, Requirement};

use super::{Evidence, Found, cores_at_most, recordings::busy};
use crate::Quantity;

/// The answer to a criterion from a workload.
pub(super) fn found(evidence: Evidence<'_>, cell: usize) -> Found {
    let samples = evidence.samples(cell);
    let valid: Vec<&Sample> =
        samples.iter().map(|measured| &measured.sample).filter(|sample| sample.invalid.is_none()).collect();
    let values =
        |value: &dyn Fn(&Sample) -> f64| valid.iter().map(|sample| value(sample)).collect::<Vec<f64>>();
    match evidence.criterion.demand {
        Requirement::Rate(ByteRate(least)) => {
            at_least(Quantity::Bytes, least, &values(&|sample| sample.sustained_rate().0))
        }
        Requirement::Operations(least) => {
            at_least(Quantity::Operations, least, &values(&Sample::operation_rate))
        }
        Requirement::Cores { of, most } => cores_at_most(most, &values(&|sample| busy(of, sample))),
        Requirement::Latency { share, most } => {
            let phase = samples.first().map(|measured| measured.key.phase);
            let group = phase.map(|phase| Group { cell, phase, target: evidence.target });
            latency(evidence, group, share, most)
        }
        Requirement::Lost(_)
        | Requirement::LongestStall(_)
        | Requirement::Durable(_)
        | Requirement::SyncFlushes => Found::undecided("a workload has no such figure"),
    }
}

fn at_least(quantity: Quantity, least: f64, values: &[f64]) -> Found {
    let summary = Summary::of(values).and_then(|summary| Some((summary, summary.half_width()?)));
    let Some((summary, half)) = summary else {
        return Found::undecided(format!("{} valid repeats have no interval", values.len()));
    };
    let low = (summary.mean - half).max(0.0);
    let high = summary.mean + half;
    let [from, to] = quantity.show_range(low, high);
    let words = format!("{} ({from} to {to})", quantity.show(summary.mean));
    Found::of(low >= least, high < least, words)
}

fn latency(evidence: Evidence<'_>, group: Option<Group>, share: f64, most: Nanos) -> Found {
    let latencies = group.and_then(|group| evidence.results.latencies.get(&group));
    let count = latencies.map_or(0, nilometer_model::Histogram::count);
    // With fewer values, the quantile is the greatest of all, and means little.
    let least = (1.0 / (1.0 - share)).round();
    if (count as f64) < least {
        return Found::undecided(format!("{count} operations are too few: this share takes {least}"));
    }
    let range = latencies.map(|latencies| latencies.quantile_range(share)).unwrap_or_default();
    let words = format!("{} of {count} operations", Nanos(range.start));
    Found::of(range.end <= most.0, range.start > most.0, words)
}
