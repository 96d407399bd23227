//! Criteria of recordings. Events in a recording are facts without an interval, so the worst of its repeats
//! counts.

use nilometer_model::{
    Goal, Histogram, Ingest, Nanos, Sample,
    statistics::{poisson_lower, poisson_upper},
};
use nilometer_plan::{CoresOf, DURABLE_SHARE, LossLimit, RecordingRun, Requirement};

use super::{Evidence, Found, cores_at_most};

/// The kind of recordings that a criterion needs.
pub(super) fn goal(demand: Requirement) -> Goal {
    if matches!(demand, Requirement::Rate(_)) { Goal::Limit } else { Goal::Pace }
}

/// The answer to a criterion from the recordings of a cell.
pub(super) fn found(evidence: Evidence<'_>, cell: usize, run: &RecordingRun) -> Found {
    let samples: Vec<&Sample> = evidence.samples(cell).into_iter().map(|measured| &measured.sample).collect();
    let made: Vec<&Ingest> = samples.iter().filter_map(|sample| sample.ingest.as_ref()).collect();
    if made.is_empty() {
        return Found::undecided("nothing was recorded");
    }
    match evidence.criterion.demand {
        Requirement::Lost(limit) => lost(limit, &made, run),
        Requirement::Rate(least) => at_least(least.0, &samples),
        Requirement::LongestStall(most) => {
            let longest = made.iter().map(|ingest| ingest.longest_stall).max().unwrap_or_default();
            Found::of(longest <= most, longest > most, format!("the longest was {longest}"))
        }
        Requirement::Durable(most) => durable(most, &made),
        Requirement::Cores { of, most } => cores(of, most, &samples),
        Requirement::SyncFlushes => flushes(evidence, &samples, &made),
        Requirement::Operations(_) | Requirement::Latency { .. } => {
            Found::undecided("a recording has no such figure")
        }
    }
}

fn lost(limit: LossLimit, made: &[&Ingest], run: &RecordingRun) -> Found {
    let packets = made.iter().any(|ingest| ingest.packets.is_some());
    let what = if packets { "packets" } else { "frames" };
    let due: u64 = made.iter().map(|ingest| ingest.packets.map_or(ingest.due, |packets| packets.due)).sum();
    let lost: u64 = made.iter().map(|ingest| ingest.losses()).sum();
    let time = Nanos(made.iter().map(|ingest| ingest.due * ingest.period.0).sum());
    let planned = Nanos(run.duration.0 * made.len() as u64);
    let counted =
        format!("{} of {due} {what} in {time}", if lost == 0 { "none".into() } else { lost.to_string() });
    // A recording ends with its last frame, and may be one frame shorter.
    if time.seconds() < 0.99 * planned.seconds() {
        return Found::undecided(format!("{counted}, of {planned} that were to be recorded"));
    }
    match limit {
        LossLimit::None if lost > 0 => Found::violated(counted),
        LossLimit::None if made.iter().any(|ingest| ingest.is_filling()) => Found::undecided(format!(
            "{counted}, but the buffer was still filling when the recording ended: record longer"
        )),
        LossLimit::None => Found::met(counted),
        LossLimit::AtMost { count, within } => {
            let share = within.seconds() / time.seconds().max(f64::MIN_POSITIVE);
            let low = poisson_lower(lost) * share;
            let high = poisson_upper(lost) * share;
            let words = if lost == 0 {
                format!("{counted}, which proves fewer than {high:.3} losses in {within} (95 %)")
            } else {
                format!("{counted}: fewer than {high:.3} in {within} (95 %), if losses are independent")
            };
            Found::of(high <= count, low > count, words)
        }
    }
}

fn at_least(least: f64, samples: &[&Sample]) -> Found {
    let Some(found) = Sample::long_run(samples) else {
        return Found::undecided(
            "its sustained rate is unknown: the recordings at full speed were too short",
        );
    };
    // A wait for a processor only lowers a rate: it never makes a criterion violated.
    let is_too_slow = found.most().is_some_and(|most| most.0 < least);
    let words = format!("sustained {} ({} to {})", found.rate, found.low, found.high);
    let is_hidden = !is_too_slow && (found.high.0 < least || found.is_lower_bound());
    let words = if is_hidden { format!("{words}, but {}: it may be more", found.waited) } else { words };
    match found.trend {
        Some(trend) => {
            let moves = if trend > 0.0 { "rose" } else { "fell" };
            let percent = 100.0 * trend.abs();
            // Like the verdict: a falling rate may keep falling, and a rising one may keep rising.
            let low = if trend < 0.0 { found.low.0 * (1.0 + 2.0 * trend) } else { found.low.0 };
            let words = format!("{words}, and still {moves} by {percent:.0} % within a recording");
            Found::of(low >= least, trend < 0.0 && is_too_slow, words)
        }
        None => Found::of(found.low.0 >= least, is_too_slow, words),
    }
}

fn durable(most: Nanos, made: &[&Ingest]) -> Found {
    if made.iter().any(|ingest| ingest.durable.count() == 0) {
        return Found::undecided("the record does not show when frames became durable");
    }
    let shares: Vec<DurableShare> = made.iter().map(|ingest| DurableShare::of(ingest, most)).collect();
    let least = shares.iter().map(|share| share.least).fold(1.0, f64::min);
    let most_of = shares.iter().map(|share| share.most).fold(1.0, f64::min);
    let words = format!("{:.2} % within it; losses count as never", 100.0 * least);
    Found::of(least >= DURABLE_SHARE, most_of < DURABLE_SHARE, words)
}

/// The share of frames that were durable in time, as precisely as the buckets of a histogram allow.
struct DurableShare {
    least: f64,
    most: f64,
}

impl DurableShare {
    fn of(ingest: &Ingest, time: Nanos) -> Self {
        let all = (ingest.durable.count() + ingest.lost).max(1) as f64;
        DurableShare {
            least: below(&ingest.durable, 1, time) as f64 / all,
            most: below(&ingest.durable, 0, time) as f64 / all,
        }
    }
}

/// The number of values in buckets whose lower edge (`edge` 0), or whose next bucket's lower edge (1), is no
/// later than `time`.
fn below(times: &Histogram, edge: u16, time: Nanos) -> u64 {
    let within = times.buckets().filter(|(bucket, _)| Histogram::lowest(bucket + edge) <= time.0);
    within.map(|(_, count)| count).sum()
}

fn cores(of: CoresOf, most: f64, samples: &[&Sample]) -> Found {
    let busy = samples.iter().map(|sample| busy(of, sample)).max_by(f64::total_cmp);
    cores_at_most(most, &busy.into_iter().collect::<Vec<_>>())
}

/// Processors kept busy over the wall time of a sample.
pub(super) fn busy(of: CoresOf, sample: &Sample) -> f64 {
    let time = match of {
        CoresOf::Process => sample.user + sample.system,
        CoresOf::Client => sample.client,
        CoresOf::Machine => sample.machine,
    };
    time.seconds() / sample.wall.seconds().max(1e-9)
}

/// Checks that syncs reached the device. A device that never gets a flush of its cache loses acknowledged data
/// with the power.
fn flushes(evidence: Evidence<'_>, samples: &[&Sample], made: &[&Ingest]) -> Found {
    if made.iter().any(|ingest| ingest.durable.count() == 0) {
        return Found::undecided("nothing was synced");
    }
    let counts: Option<Vec<u64>> =
        samples.iter().map(|sample| sample.device.and_then(|device| device.flushes)).collect();
    if let Some(fewest) = counts.and_then(|counts| counts.into_iter().min()) {
        return match fewest {
            0 => Found::violated(
                "frames were synced, but the device got no flush of its cache: a power loss may take \
                 acknowledged frames",
            ),
            fewest => Found::met(format!("at least {fewest} flushes at the device")),
        };
    }
    let description = evidence.results.targets[evidence.target].description.as_ref();
    let layers = description.map(|description| description.profile.layers.as_slice()).unwrap_or_default();
    if !layers.is_empty() && layers.iter().all(|layer| layer.write_cache == Some(false)) {
        return Found::met("the device reports that it has no volatile write cache");
    }
    Found::undecided("this machine does not see the device's flushes")
}
