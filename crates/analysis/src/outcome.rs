//! The result of a phase of a cell on a target, over its repeats.

use nilometer_model::{
    ByteRate, Coldness, Histogram, Invalid, Nanos, Phase, Sample, Series, statistics::Summary,
};
use nilometer_plan::{Group, Measured, Results};

use crate::{
    facts::fact,
    reason::{Reason, reasons},
    stream_cell::is_stream,
};

/// A phase of a cell on a target.
#[derive(Debug, Clone)]
pub struct CellOutcome<'a> {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// Index into [`Results::cells`].
    pub cell: usize,
    /// The phase.
    pub phase: Phase,
    /// All its repeats, in order.
    pub samples: Vec<&'a Measured>,
    /// True if the workload moves data from one end of files to the other. Its rate is in bytes per second, even
    /// for small operations.
    pub streams: bool,
    /// Bytes per second, over valid repeats; `None` if no data are moved, or no repeat is valid.
    pub rate: Option<Summary>,
    /// Operations per second, over valid repeats.
    pub operations: Option<Summary>,
    /// Processors kept busy; `None` if no repeat is valid, or if repeats are too short for the kernel's
    /// accounting.
    pub cores: Option<Cores>,
    /// The division of the time; `None` if no repeat is valid.
    pub times: Option<Times>,
    /// Time in which workers neither computed nor were in the kernel, as a share of their time.
    pub wait: f64,
    /// Latencies from issue to completion, all valid repeats together.
    pub latency: Option<&'a Histogram>,
    /// The series of the median repeat.
    pub series: Option<&'a Series>,
    /// Number of valid repeats.
    pub valid: usize,
    /// The reasons why others are invalid.
    pub invalid: Vec<Reason>,
    /// A lower bound, if no repeat is valid.
    pub at_least: Option<LowerBound>,
    /// The times when the first and the last worker finished, as means over repeats; `None` for a single worker.
    pub finished: Option<(Nanos, Nanos)>,
    /// The coldness of a read: the weakest evidence among its valid repeats.
    pub coldness: Option<Coldness>,
}

/// A lower bound for a target: the mean over repeats in which the tool itself waited for a processor. Otherwise
/// it would have asked for more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowerBound {
    /// Bytes a second.
    pub rate: f64,
    /// Operations a second.
    pub operations: f64,
}

/// Processors kept busy over the wall time, means over valid repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cores {
    /// Busy in this process.
    pub own: f64,
    /// Busy in the parts of the file system on this machine: kernel threads, its daemon.
    pub client: f64,
    /// Busy in the whole machine, above its idle level. The kernel counts it in steps of 10 ms.
    pub machine: f64,
    /// Processor seconds of the whole machine per GB; `None` if no data are moved.
    pub for_gigabyte: Option<f64>,
}

/// The division of a repeat's time, as in the shell's `time`: means over valid repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Wall time.
    pub real: Nanos,
    /// Time of this process in user space.
    pub user: Nanos,
    /// Time of this process in the kernel.
    pub system: Nanos,
    /// `real x workers - user - system`.
    pub wait: Nanos,
}

/// The unit of rates. All figures beside each other have the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Bytes a second.
    Bytes,
    /// Operations a second.
    Operations,
    /// The time of an operation. Values are still operations per second, so that more is better;
    /// [`Quantity::show`] turns them into times.
    Time,
}

impl Quantity {
    /// Smaller operations are shown per operation, larger ones per byte. All figures beside each other have the
    /// same quantity.
    const SMALL: f64 = 65_536.0;

    /// Bytes if every outcome moves data, and one of them in large operations or as a stream. Times if one of
    /// them is the time of a task, or if all do less than one operation per second.
    pub fn for_all(outcomes: &[&CellOutcome<'_>]) -> Quantity {
        let means = outcomes.iter().filter_map(|outcome| {
            let (rate, operations) = match (outcome.operations, outcome.at_least) {
                // Bytes with an unknown number of operations.
                (None, None) if outcome.rate.is_some() => return Some(f64::INFINITY),
                (Some(operations), _) => (outcome.rate.map_or(0.0, |rate| rate.mean), operations.mean),
                (None, Some(bound)) => (bound.rate, bound.operations),
                (None, None) => return None,
            };
            Some(rate / operations.max(f64::MIN_POSITIVE))
        });
        let (least, most) = means.fold((f64::INFINITY, 0.0_f64), |(l, m), mean| (l.min(mean), m.max(mean)));
        let streams = outcomes.iter().any(|outcome| outcome.streams);
        if least > 0.0 && (streams || most >= Self::SMALL) {
            return Quantity::Bytes;
        }
        let is_task = outcomes.iter().any(|outcome| outcome.is_task());
        let rates = || outcomes.iter().filter_map(|outcome| Some(outcome.operations?.mean));
        let is_slow = rates().next().is_some() && rates().all(|rate| rate < 1.0);
        if is_task || is_slow { Quantity::Time } else { Quantity::Operations }
    }

    /// The rate of a sample.
    pub fn of(self, sample: &Sample) -> f64 {
        match self {
            Quantity::Bytes => sample.sustained_rate().0,
            Quantity::Operations | Quantity::Time => sample.operation_rate(),
        }
    }

    /// A rate with its unit.
    pub fn show(self, rate: f64) -> String {
        match self {
            Quantity::Bytes => ByteRate(rate).to_string(),
            Quantity::Operations => format!("{}/s", thousands(rate)),
            Quantity::Time if rate > 0.0 => Nanos::from_seconds(1.0 / rate).to_string(),
            Quantity::Time => "no end".to_owned(),
        }
    }

    /// Two rates with their unit, as a range: the smaller figure first.
    pub fn show_range(self, low: f64, high: f64) -> [String; 2] {
        let ends = if self == Quantity::Time { [high, low] } else { [low, high] };
        ends.map(|rate| self.show(rate))
    }

    /// A rate as it appears in charts: times in nanoseconds.
    pub fn drawn(self, rate: f64) -> f64 {
        if self == Quantity::Time { 1e9 / rate.max(f64::MIN_POSITIVE) } else { rate }
    }

    /// The ends of an interval as they appear in charts. A time without an upper end reaches twice the time of
    /// the middle rate.
    pub fn drawn_interval(self, low: f64, high: f64) -> (f64, f64) {
        if self != Quantity::Time {
            return (low, high);
        }
        let middle = f64::midpoint(low, high);
        (self.drawn(high), self.drawn(low.max(middle / 2.0)))
    }
}

/// A count with its decimal prefix.
fn thousands(count: f64) -> String {
    match count {
        count if count >= 999_500.0 => format!("{:.2} M", count / 1e6),
        count if count >= 999.5 => format!("{:.1} k", count / 1e3),
        count if count >= 9.95 || count <= 0.0 => format!("{count:.0} "),
        count if count >= 0.995 => format!("{count:.2} "),
        count if count >= 0.01 => format!("{count:.3} "),
        count => format!("{count:.1e} "),
    }
}

impl CellOutcome<'_> {
    /// The summary in a quantity.
    pub fn summary(&self, quantity: Quantity) -> Option<Summary> {
        match quantity {
            Quantity::Bytes => self.rate,
            Quantity::Operations | Quantity::Time => self.operations,
        }
    }

    /// The lower bound in a quantity, if no repeat is valid.
    pub fn lower_bound(&self, quantity: Quantity) -> Option<f64> {
        let bound = self.at_least?;
        let rate = match quantity {
            Quantity::Bytes => bound.rate,
            Quantity::Operations | Quantity::Time => bound.operations,
        };
        (rate > 0.0).then_some(rate)
    }

    /// Returns true if each repeat is one task without bytes: its figure is the time of the task.
    fn is_task(&self) -> bool {
        let is_one = |sample: &Sample| sample.operations == 1 && sample.bytes == 0;
        self.valid > 0 && self.usable().all(|measured| is_one(&measured.sample))
    }

    /// The valid repeats.
    pub fn usable(&self) -> impl Iterator<Item = &Measured> + '_ {
        self.samples.iter().copied().filter(|measured| measured.sample.invalid.is_none())
    }

    /// A quantile of the latency; `None` if no latency was recorded.
    pub fn quantile(&self, fraction: f64) -> Option<Nanos> {
        self.latency.filter(|latency| latency.count() > 0).map(|latency| Nanos(latency.quantile(fraction)))
    }
}

/// All results except recordings, by cell, phase and target in the plan's order.
pub fn outcomes(results: &Results) -> Vec<CellOutcome<'_>> {
    let mut samples: Vec<&Measured> =
        results.samples.iter().filter(|measured| measured.key.phase != Phase::Ingest).collect();
    samples.sort_by_key(|measured| (measured.key.group(), measured.key.repeat));
    let same = |a: &&Measured, b: &&Measured| a.key.group() == b.key.group();
    samples.chunk_by(same).map(|group| outcome(results, group)).collect()
}

fn outcome<'a>(results: &'a Results, samples: &[&'a Measured]) -> CellOutcome<'a> {
    let group @ Group { cell, phase, target } = samples[0].key.group();
    let valid: Vec<&'a Sample> =
        samples.iter().map(|measured| &measured.sample).filter(|sample| sample.invalid.is_none()).collect();
    let summary =
        |value: fn(&Sample) -> f64| Summary::of(&valid.iter().map(|s| value(s)).collect::<Vec<_>>());
    // Missing processor times of another program are not zero.
    let is_imported = results.cells.get(cell).is_some_and(|cell| cell.as_imported().is_some());
    let is_known = |times: &Times| !is_imported || times.user.0 + times.system.0 > 0;
    CellOutcome {
        target,
        cell,
        phase,
        streams: results.cells.get(cell).is_some_and(is_stream),
        rate: summary(|sample| sample.sustained_rate().0).filter(|summary| summary.mean > 0.0),
        operations: summary(Sample::operation_rate).filter(|summary| summary.mean > 0.0),
        cores: cores(&valid, processors(results)).filter(|_| !is_imported),
        times: times(&valid).filter(is_known),
        wait: wait(&valid),
        latency: results.latencies.get(&group),
        series: valid.iter().map(|sample| &sample.series).find(|series| !series.bins().is_empty()),
        valid: valid.len(),
        invalid: reasons(samples.iter().map(|measured| &measured.sample)),
        at_least: if valid.is_empty() { lower_bound(samples) } else { None },
        finished: finished(&valid),
        coldness: valid.iter().filter_map(|sample| sample.coldness).max_by_key(|coldness| *coldness as u8),
        samples: samples.to_vec(),
    }
}

fn total(samples: &[&Sample], time: fn(&Sample) -> Nanos) -> f64 {
    samples.iter().map(|sample| time(sample).seconds()).sum()
}

/// The kernel counts the machine's processor time in steps of this many seconds, separately for each processor.
const TICK: f64 = 0.01;
/// Steps that each repeat must have, at the least: an error of a tenth.
const TICKS_LEAST: f64 = 10.0;

/// Processors of the machine that measured; one if the record does not contain the number.
pub(crate) fn processors(results: &Results) -> f64 {
    fact(results, "processors").and_then(|text| text.parse().ok()).unwrap_or(1.0)
}

fn cores(samples: &[&Sample], processors: f64) -> Option<Cores> {
    let wall = total(samples, |sample| sample.wall);
    if wall * processors < samples.len() as f64 * TICKS_LEAST * TICK {
        return None;
    }
    let bytes = samples.iter().map(|sample| sample.bytes as f64).sum::<f64>();
    let machine = total(samples, |sample| sample.machine);
    (wall > 0.0).then(|| Cores {
        own: total(samples, |sample| sample.user + sample.system) / wall,
        client: total(samples, |sample| sample.client) / wall,
        machine: machine / wall,
        for_gigabyte: (bytes > 0.0).then(|| machine / bytes * 1e9),
    })
}

fn times(samples: &[&Sample]) -> Option<Times> {
    let mean = |time: fn(&Sample) -> Nanos| Nanos::from_seconds(total(samples, time) / samples.len() as f64);
    (!samples.is_empty()).then(|| Times {
        real: mean(|sample| sample.wall),
        user: mean(|sample| sample.user),
        system: mean(|sample| sample.system),
        wait: mean(Sample::wait),
    })
}

fn wait(samples: &[&Sample]) -> f64 {
    let workers = samples.iter().map(|sample| sample.wall.seconds() * sample.workers.len().max(1) as f64);
    total(samples, Sample::wait) / workers.sum::<f64>().max(f64::MIN_POSITIVE)
}

/// The mean times at which the first and the last worker finished.
fn finished(samples: &[&Sample]) -> Option<(Nanos, Nanos)> {
    let several: Vec<&Sample> = samples.iter().copied().filter(|sample| sample.workers.len() > 1).collect();
    let count = u64::try_from(several.len()).ok().filter(|count| *count > 0)?;
    let done = |sample: &Sample| {
        let times = sample.workers.iter().map(|worker| worker.last_done);
        (times.clone().min().unwrap_or_default(), times.max().unwrap_or_default())
    };
    let sum = several.into_iter().map(done).fold((Nanos(0), Nanos(0)), |a, b| (a.0 + b.0, a.1 + b.1));
    Some((Nanos(sum.0.0 / count), Nanos(sum.1.0 / count)))
}

/// The lower bound from repeats in which the tool waited for a processor. A read from the cache or a failure
/// bounds nothing.
fn lower_bound(samples: &[&Measured]) -> Option<LowerBound> {
    let starved = |sample: &&Sample| sample.wall.0 > 0 && matches!(sample.invalid, Some(Invalid::Starved(_)));
    let starved: Vec<&Sample> = samples.iter().map(|measured| &measured.sample).filter(starved).collect();
    let mean = |value: fn(&Sample) -> f64| {
        starved.iter().map(|sample| value(sample)).sum::<f64>() / starved.len() as f64
    };
    (!starved.is_empty()).then(|| LowerBound {
        rate: mean(|sample| sample.rate().0),
        operations: mean(Sample::operation_rate),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::WorkerTotals;
    use nilometer_plan::Key;

    const SECOND: Nanos = Nanos(1_000_000_000);

    fn measured(repeat: u32, bytes: u64, invalid: Option<Invalid>) -> Measured {
        let key = Key { target: 0, cell: 0, repeat, phase: Phase::Write };
        Measured { key, sample: Sample { bytes, wall: SECOND, invalid, ..Sample::new(Nanos(0)) } }
    }

    #[test]
    fn invalid_repeats_are_named_and_left_out_of_the_mean() {
        let samples =
            vec![measured(0, 100, None), measured(1, 300, None), measured(2, 9, Some(Invalid::WarmRead))];
        let results = Results { samples, ..Results::default() };
        let outcomes = outcomes(&results);
        assert_eq!(outcomes.len(), 1);
        let outcome = &outcomes[0];
        assert_eq!(
            (outcome.valid, outcome.rate.expect("two repeats").mean.to_bits()),
            (2, 200_f64.to_bits())
        );
        let why: Vec<_> = outcome.invalid.iter().map(|reason| (&reason.worst, reason.count)).collect();
        assert_eq!(why, [(&Invalid::WarmRead, 1)]);
        assert_eq!(outcome.samples.len(), 3);
    }

    #[test]
    fn starved_repeats_bound_what_the_storage_takes_where_no_other_is_left() {
        let starved = || Some(Invalid::Starved(None));
        let of =
            |samples| outcomes(&Results { samples, ..Results::default() })[0].lower_bound(Quantity::Bytes);
        let spoilt = vec![measured(0, 100, starved()), measured(1, 300, starved())];
        assert_eq!(of(spoilt.clone()).map(f64::to_bits), Some(200_f64.to_bits()));
        let warm = measured(2, 10_000, Some(Invalid::WarmRead));
        assert_eq!(
            of([spoilt.clone(), vec![warm.clone()]].concat()).map(f64::to_bits),
            Some(200_f64.to_bits())
        );
        assert_eq!(of([spoilt, vec![measured(2, 100, None)]].concat()), None, "a valid one says more");
        assert_eq!(of(vec![warm]), None, "a read from the cache bounds nothing");
    }

    #[test]
    fn processors_waiting_and_stragglers_are_counted() {
        let mut one = measured(0, 2_000_000_000, None);
        let worker = |last| WorkerTotals { last_done: Nanos(last), ..WorkerTotals::default() };
        let sample = &mut one.sample;
        (sample.user, sample.client, sample.machine) = (Nanos(SECOND.0 / 2), Nanos(1), SECOND);
        sample.workers = vec![worker(400), worker(1000)];
        let results = Results { samples: vec![one], ..Results::default() };
        let outcome = &outcomes(&results)[0];
        let cores = outcome.cores.expect("a valid repeat");
        assert!((cores.own - 0.5).abs() < 1e-9 && (cores.machine - 1.0).abs() < 1e-9, "{cores:?}");
        assert_eq!(cores.for_gigabyte.map(f64::to_bits), Some(0.5_f64.to_bits()));
        assert!((outcome.wait - 0.75).abs() < 1e-9, "{}", outcome.wait);
        assert_eq!(outcome.finished, Some((Nanos(400), Nanos(1000))));
    }

    /// Regression test: "7.34 cores" for one worker on two processors, in phases of some microseconds.
    #[test]
    fn processors_are_not_counted_in_less_time_than_the_kernel_counts_it() {
        let of = |wall: u64, processors: Option<&str>| {
            let mut samples: Vec<Measured> = (0..40).map(|repeat| measured(repeat, 100, None)).collect();
            for one in &mut samples {
                let sample = &mut one.sample;
                (sample.wall, sample.user) = (Nanos::from_millis(wall), Nanos::from_millis(20));
            }
            let fact = |text: &str| ("processors".into(), text.into());
            let environment = processors.map(fact).into_iter().collect();
            let results = Results { samples, environment, ..Results::default() };
            let outcome = &outcomes(&results)[0];
            (outcome.rate.is_some(), outcome.times.is_some(), outcome.cores.is_some())
        };
        assert_eq!(of(3, Some("2")), (true, true, false));
        assert_eq!(of(60, Some("2")), (true, true, true));
        assert_eq!(of(60, None), (true, true, false), "with one processor it is not long enough");
        assert_eq!(of(110, None), (true, true, true));
    }

    #[test]
    fn times_are_means_over_valid_repeats() {
        let with = |repeat, wall, user, system, invalid| {
            let mut one = measured(repeat, 1, invalid);
            let sample = &mut one.sample;
            [sample.wall, sample.user, sample.system] = [wall, user, system].map(Nanos::from_millis);
            one
        };
        let mut samples = vec![with(0, 4000, 500, 1500, None), with(1, 2000, 300, 500, None)];
        samples.push(with(2, 90_000, 0, 0, Some(Invalid::WarmRead)));
        let results = Results { samples, ..Results::default() };
        let [real, user, system, wait] = [3000, 400, 1000, 1600].map(Nanos::from_millis);
        assert_eq!(outcomes(&results)[0].times, Some(Times { real, user, system, wait }));
        let none = Results { samples: vec![measured(0, 1, Some(Invalid::Hung))], ..Results::default() };
        assert_eq!(outcomes(&none)[0].times, None);
    }

    #[test]
    fn times_of_tasks_stay_times_below_a_second_and_beside_rates() {
        let of = |wall, operations| {
            let mut one = measured(0, 0, None);
            one.sample.operations = operations;
            one.sample.wall = Nanos::from_millis(wall);
            Results { samples: vec![one], ..Results::default() }
        };
        let (long, short, files, slow) = (of(13_000, 1), of(500, 1), of(1000, 100), of(1_000_000, 755));
        let [long, short, files, slow] =
            [&long, &short, &files, &slow].map(|results| outcomes(results).remove(0));
        for together in [vec![&long, &short], vec![&short], vec![&short, &files], vec![&slow]] {
            assert_eq!(Quantity::for_all(&together), Quantity::Time);
        }
        assert_eq!(Quantity::for_all(&[&files, &slow]), Quantity::Operations);
        let shown =
            [&long, &short].map(|outcome| Quantity::Time.show(outcome.operations.expect("a rate").mean));
        assert_eq!(shown, ["13 s", "500 ms"]);
    }

    #[test]
    fn what_stands_together_has_one_quantity() {
        let of = |bytes, operations| {
            let mut one = measured(0, bytes, None);
            one.sample.operations = operations;
            Results { samples: vec![one], ..Results::default() }
        };
        let (large, small, none) = (of(1 << 30, 1000), of(4096 * 1000, 1000), of(0, 1000));
        let [large, small, none] = [&large, &small, &none].map(|results| outcomes(results).remove(0));
        assert_eq!(Quantity::for_all(&[&large, &small]), Quantity::Bytes);
        assert_eq!(Quantity::for_all(&[&small]), Quantity::Operations);
        assert_eq!(Quantity::for_all(&[&large, &none]), Quantity::Operations);
        assert_eq!(Quantity::for_all(&[]), Quantity::Operations);
        assert_eq!(Quantity::Operations.show(10_000.0), "10.0 k/s");
        assert_eq!(Quantity::Operations.show(0.5), "0.500 /s");
        assert_eq!(Quantity::Time.show(1.0 / 94.0), "94 s");
        assert_eq!(Quantity::Time.show_range(0.5, 4.0), ["250 ms", "2 s"]);
        assert_eq!(Quantity::Bytes.show(2e9), "2 GB/s");
    }
}
