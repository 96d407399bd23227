//! The delay of frames at the instrument's pace until the slot was free, the frame was readable, durable, or
//! read.

use nilometer_model::{Histogram, Nanos};
use nilometer_plan::{Measured, TargetEntry};

use nilometer_analysis::{Study, letter};

use super::super::latency::{DelayAxes, Distribution, Extent, extent, quantiles};
use crate::chart::{Chart, clipped};

/// First colour after those of the targets, because a line here is a kind and not a target.
const FIRST_SERIES: usize = 4;

/// Draws a chart for each target, all with the same time axis. The time that the buffer covers is a reference
/// line.
pub(super) fn charts(study: &Study<'_>, samples: &[&Measured]) -> Vec<Chart> {
    let of_targets: Vec<(&Measured, Vec<Distribution<'_>>)> =
        samples.iter().map(|measured| (*measured, kinds(study, measured))).collect();
    let all: Vec<Distribution<'_>> = of_targets.iter().flat_map(|(_, kinds)| kinds.clone()).collect();
    let extent = extent(&all);
    of_targets.iter().filter_map(|(measured, kinds)| chart(measured, kinds, extent)).collect()
}

fn chart(measured: &Measured, kinds: &[Distribution<'_>], extent: Extent) -> Option<Chart> {
    let ingest = measured.sample.ingest.as_ref()?;
    let buffer = Nanos(ingest.slots * ingest.period.0);
    let title = format!("{}: delay of frames", letter(measured.key.target));
    let delay = format!("delay from due until {}", ends(kinds));
    let axes = DelayAxes { what: "frames", delay: &clipped(&delay, AXIS_LETTERS) };
    quantiles(&title, axes, kinds, Some(buffer), extent)
}

/// Number of letters that fit above a chart as the name of its axis.
const AXIS_LETTERS: usize = 62;

/// The events at which the delays end: `slot free, readable, durable or read`.
fn ends(kinds: &[Distribution<'_>]) -> String {
    // "synced, in memory" is explained at its line.
    let names = kinds.iter().map(|kind| kind.name.split(',').next().unwrap_or_default());
    match names.collect::<Vec<_>>().split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Returns the delays measured in a recording.
fn kinds<'a>(study: &Study<'a>, measured: &'a Measured) -> Vec<Distribution<'a>> {
    let results = study.results;
    let volatile = results.targets.get(measured.key.target).is_some_and(TargetEntry::is_volatile);
    let Some(ingest) = &measured.sample.ingest else { return Vec::new() };
    let all: [(&str, Option<&'a Histogram>); 4] = [
        ("slot free", results.latencies.get(&measured.key.group())),
        ("readable", Some(&ingest.readable)),
        // Data synced to memory do not survive a loss of power.
        (if volatile { "synced, in memory" } else { "durable" }, Some(&ingest.durable)),
        ("read", Some(&ingest.read)),
    ];
    let there = all.into_iter().enumerate().filter_map(|(place, (name, histogram))| {
        let histogram = histogram.filter(|histogram| histogram.count() > 0)?;
        Some(Distribution { series: FIRST_SERIES + place, name: name.into(), histogram })
    });
    there.collect()
}

/// Describes the delay of the source itself, which is not the storage's fault. Returns `None` if it is unknown.
pub(super) fn source(samples: &[&Measured]) -> Option<String> {
    let late = samples.iter().filter(|measured| measured.sample.lateness.count() > 0).map(|measured| {
        let lateness = &measured.sample.lateness;
        let [most, longest] = [0.99, 1.0].map(|fraction| Nanos(lateness.quantile(fraction)));
        format!("{} {most} for 99 %, {longest} at the most", letter(measured.key.target))
    });
    let late: Vec<String> = late.collect();
    (!late.is_empty())
        .then(|| format!("The simulated source itself was late, not the storage: {}.", late.join("; ")))
}
