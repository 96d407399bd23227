//! Progress for programs: one JSON object a line, each with its `event`. Numbers have their unit in the key.

use nilometer_campaign::{CampaignStep, Now, Progress, SoFar};
use nilometer_model::{Nanos, NetworkResults, NetworkSample, Sample};
use nilometer_plan::{Measured, Results};
use serde_json::{Value, json};

/// The object for one moment of a campaign. `recent` is the work of about the last second.
pub(super) fn object(head: &Results, progress: &Progress<'_>, recent: SoFar) -> Value {
    match progress {
        Progress::Now(now) => running(head, now, recent),
        Progress::Measured { done, of, left, measured, trial } => json!({
            "event": "measured",
            "done": done,
            "of": of,
            "left_s": left.map(Nanos::seconds),
            "trial": trial,
            "sample": sample(head, measured),
        }),
        Progress::Searches { target, cell, bound } => json!({
            "event": "search_begins",
            "target": path(head, *target),
            "cell": head.cells[*cell].to_string(),
            "bound": bound.to_string(),
        }),
        Progress::Found { target, cell, found } => json!({
            "event": "search_ended",
            "target": path(head, *target),
            "cell": head.cells[*cell].to_string(),
            "found": found.to_string(),
        }),
        Progress::LeftOut { target, why } => {
            json!({ "event": "target_left_out", "target": path(head, *target), "why": why })
        }
        Progress::Network { stage, results, done, of } => json!({
            "event": "network",
            "stage": stage,
            "done": done,
            "of": of,
            "sample": results.samples.last().map(|sample| network_sample(results, sample)),
        }),
        Progress::Event(what) => json!({ "event": "note", "text": what }),
    }
}

fn network_sample(results: &NetworkResults, sample: &NetworkSample) -> Value {
    let cell = &results.cells[sample.cell];
    json!({
        "pattern": cell.pattern.words(&results.names()),
        "protocol": cell.protocol,
        "flows": cell.flows,
        "processes": cell.settings.processes,
        "congestion": cell.settings.congestion,
        "buffer_bytes": cell.settings.buffer.map(|bytes| bytes.0),
        "repeat": sample.repeat,
        "bytes_per_second": sample.rate().0,
        "sent_bytes_per_second": sample.asked.map(|_| sample.offered().0),
        "packets_lost": sample.asked.map(|_| sample.lost()),
        "failed": sample.failed(),
    })
}

fn path(head: &Results, target: usize) -> &str {
    &head.targets[target].path
}

fn running(head: &Results, now: &Now<'_>, recent: SoFar) -> Value {
    let seconds = recent.elapsed.seconds();
    let rate = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
    json!({
        "event": "running",
        "done": now.done,
        "of": now.of,
        "left_s": now.left.map(Nanos::seconds),
        "targets": now.targets.iter().map(|target| path(head, *target)).collect::<Vec<_>>(),
        "stage": head.cells[now.cell].stage,
        "cell": head.cells[now.cell].to_string(),
        "phase": now.phase.name(),
        "repeat": now.repeat,
        "step": step(now.so_far.step),
        "elapsed_s": now.so_far.elapsed.seconds(),
        "bytes": now.so_far.bytes,
        "operations": now.so_far.operations,
        "errors": now.so_far.errors,
        "frames_lost": now.so_far.buffer.map(|_| now.so_far.frames_lost),
        "bytes_per_second": rate(recent.bytes),
        "operations_per_second": rate(recent.operations),
        "mean_latency_s": super::mean_latency(recent).map(Nanos::seconds),
        "buffer_frames": now.so_far.buffer.map(|level| level.frames),
        "buffer_frames_most": now.so_far.buffer.map(|level| level.most),
        "buffer_frames_room": now.so_far.buffer.map(|level| level.room),
    })
}

const fn step(step: CampaignStep) -> &'static str {
    match step {
        CampaignStep::Working => "working",
        CampaignStep::Settling => "settling",
        CampaignStep::Preparing(_) => "preparing",
        CampaignStep::ReadingOn => "reading on",
        CampaignStep::ReadingBack(_) => "reading back",
    }
}

fn sample(head: &Results, Measured { key, sample }: &Measured) -> Value {
    let Sample { bytes, operations, wall, latency, invalid, ingest, errors, .. } = sample;
    let quantile = |share: f64| (latency.count() > 0).then(|| Nanos(latency.quantile(share)).seconds());
    json!({
        "target": path(head, key.target),
        "stage": head.cells[key.cell].stage,
        "cell": head.cells[key.cell].to_string(),
        "phase": key.phase.name(),
        "repeat": key.repeat,
        "bytes": bytes,
        "operations": operations,
        "wall_s": wall.seconds(),
        "latency_p50_s": quantile(0.5),
        "latency_p99_s": quantile(0.99),
        "latency_max_s": quantile(1.0),
        "errors": errors.values().sum::<u64>(),
        "frames_lost": ingest.as_ref().map(|ingest| ingest.lost),
        "invalid": invalid.as_ref().map(ToString::to_string),
    })
}
