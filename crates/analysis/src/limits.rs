//! What a record tells of one element: what a target took from one recorder, what that cost, and how long it stalled.
//! Sizing begins with these figures.

use std::collections::BTreeMap;

use nilometer_model::{
    ByteRate, Bytes, Ingest, Nanos, Results, Sample,
    plan::Goal,
    sizing::{Figure, Origin},
    sustained::sustained,
};

/// The figures that sizing can use. Each is none where the record does not tell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredLimits {
    /// What the target took in the long run when nobody read: the least over all recordings as fast as it took them, of as
    /// many recorders at once as got the most of it.
    pub write: Option<Figure<ByteRate>>,
    /// What one recorder got of that: by itself, if one was measured.
    pub writer: Option<Figure<ByteRate>>,
    /// Processor seconds of the recorder and the file system's client for a gigabyte: the most over the same recordings.
    pub cost: Option<Figure<f64>>,
    /// The longest stall while frames came when due.
    pub stall: Option<Figure<Nanos>>,
    /// Processors of the machine.
    pub cores: Option<Figure<f64>>,
    /// Half of the machine's memory: the other half is for everything else.
    pub memory: Option<Figure<Bytes>>,
}

/// Takes them from valid recordings on one target. `record` is what the origin of a figure calls the record.
pub fn measured_limits(results: &Results, target: usize, record: &str) -> MeasuredLimits {
    let here = results.samples.iter().filter(|measured| measured.key.target == target);
    let valid = here.map(|measured| &measured.sample).filter(|sample| sample.invalid.is_none());
    let recordings: Vec<(&Sample, &Ingest)> =
        valid.filter_map(|sample| Some((sample, sample.ingest.as_ref()?))).collect();
    let path = results.targets.get(target).map_or("", |target| &target.path);
    let with = |ingest: &Ingest, what: &str| {
        Origin::Measured(format!("{record}: {path}, {}, {what}", named(ingest)))
    };
    let unpaced =
        || recordings.iter().filter(|(_, ingest)| ingest.goal == Goal::Limit && ingest.readers.is_empty());
    let rates = unpaced().filter_map(|(sample, ingest)| Some((sustained(&[&sample.series])?.rate, *ingest)));
    let rates = least_of_each(rates);
    let taken = |value, ingest| Figure { value, from: with(ingest, "as fast as it took frames") };
    let write = rates.values().max_by(|a, b| a.0.0.total_cmp(&b.0.0));
    let writer = rates.first_key_value();
    let costs =
        unpaced().filter(|(sample, _)| sample.bytes > 0).map(|(sample, ingest)| (cost(sample), *ingest));
    let stalls = recordings.iter().filter(|(_, ingest)| ingest.goal == Goal::Pace);
    let stall = stalls.max_by_key(|(_, ingest)| ingest.longest_stall);
    MeasuredLimits {
        write: write.map(|(rate, ingest)| taken(*rate, *ingest)),
        writer: writer.map(|(count, (rate, ingest))| taken(ByteRate(rate.0 / f64::from(*count)), *ingest)),
        cost: costs.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(value, ingest)| Figure {
            value,
            from: with(ingest, "receiving from a network not included"),
        }),
        stall: stall
            .map(|(_, ingest)| Figure { value: ingest.longest_stall, from: with(ingest, "at its own pace") }),
        cores: fact(results, "processors").and_then(|text| text.parse().ok()).map(|value| Figure {
            value,
            from: Origin::Measured(format!("{record}: processors of its machine")),
        }),
        memory: fact(results, "memory").and_then(half_of_memory).map(|value| Figure {
            value,
            from: Origin::Measured(format!("{record}: half of its machine's memory")),
        }),
    }
}

/// What the record says of the machine that measured.
pub(crate) fn fact<'a>(results: &'a Results, key: &str) -> Option<&'a str> {
    results.environment.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

/// The least rate for each number of recorders that worked at once.
fn least_of_each<'a>(
    rates: impl Iterator<Item = (ByteRate, &'a Ingest)>,
) -> BTreeMap<u32, (ByteRate, &'a Ingest)> {
    let mut least = BTreeMap::new();
    for (rate, ingest) in rates {
        let known: &mut (ByteRate, &Ingest) = least.entry(ingest.count.max(1)).or_insert((rate, ingest));
        if rate.0 < known.0.0 {
            *known = (rate, ingest);
        }
    }
    least
}

/// `6 of pilatus-6m`.
fn named(ingest: &Ingest) -> String {
    let Ingest { instrument, count, .. } = ingest;
    if *count > 1 { format!("{count} of {instrument}") } else { instrument.clone() }
}

/// Processor seconds for a gigabyte.
fn cost(sample: &Sample) -> f64 {
    (sample.user + sample.system + sample.client).seconds() / (sample.bytes as f64 * 1e-9)
}

/// Half of what the kernel calls `kB` and counts in units of 1024 bytes.
fn half_of_memory(text: &str) -> Option<Bytes> {
    let number: u64 = text.strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(number * 512))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{Invalid, Key, Measured, ReaderTotals, Series, TargetEntry, plan::Phase};

    fn recording(target: usize, paced: bool, rate: u64, seconds: f64) -> Measured {
        let mut series = Series::new(Nanos(0));
        for hundredth in 0..1000 {
            series.add(Nanos::from_millis(10 * hundredth), rate / 100);
        }
        let longest_stall = Nanos::from_millis(if paced { 310 } else { 9000 });
        let goal = if paced { Goal::Pace } else { Goal::Limit };
        let ingest =
            Ingest { instrument: "camera".into(), count: 1, goal, longest_stall, ..Ingest::default() };
        let sample = Sample {
            bytes: 10 * rate,
            user: Nanos::from_seconds(seconds),
            client: Nanos::from_seconds(seconds),
            series,
            ingest: Some(ingest),
            ..Sample::new(Nanos(0))
        };
        Measured { key: Key { target, cell: 0, repeat: 0, phase: Phase::Ingest }, sample }
    }

    fn results() -> Results {
        let fact = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let target = |path: &str| TargetEntry { path: path.into(), ..TargetEntry::default() };
        let mut starved = recording(0, false, 1_000_000, 9.0);
        starved.sample.invalid = Some(Invalid::Starved(None));
        Results {
            targets: vec![target("/a"), target("/b")],
            samples: vec![
                recording(0, false, 300_000_000, 0.3),
                recording(0, false, 200_000_000, 0.1),
                recording(0, true, 100_000_000, 5.0),
                recording(1, false, 50_000_000, 0.0),
                starved,
            ],
            environment: vec![fact("processors", "8"), fact("memory", "1000 kB")],
            ..Results::default()
        }
    }

    #[test]
    fn the_worst_of_valid_recordings_counts() {
        let limits = measured_limits(&results(), 0, "r.sqlite");
        let write = limits.write.expect("measured");
        assert!((write.value.0 / 2e8 - 1.0).abs() < 0.02, "{}", write.value);
        assert_eq!(write.from, Origin::Measured("r.sqlite: /a, camera, as fast as it took frames".into()));
        let cost = limits.cost.expect("measured").value;
        assert!((cost - 0.2).abs() < 1e-9, "0.6 s for 3 GB, not {cost}");
        assert_eq!(limits.stall.expect("measured").value, Nanos::from_millis(310));
        assert!((limits.cores.expect("known").value - 8.0).abs() < 1e-9);
        assert_eq!(limits.memory.expect("known").value, Bytes(512_000));
    }

    #[test]
    fn several_recorders_show_what_the_target_takes_and_readers_do_not_count() {
        let mut results = results();
        let mut three = recording(0, false, 450_000_000, 0.1);
        three.sample.ingest.as_mut().expect("a recording").count = 3;
        let mut read = recording(0, false, 1_000_000, 0.1);
        read.sample.ingest.as_mut().expect("a recording").readers = vec![ReaderTotals::default()];
        results.samples.extend([three, read]);
        let limits = measured_limits(&results, 0, "r.sqlite");
        let rate = |figure: Option<Figure<ByteRate>>| (figure.expect("measured").value.0 / 1e7).round();
        assert!((rate(limits.write.clone()) - 45.0).abs() < 2.0, "{:?}", limits.write);
        assert!((rate(limits.writer.clone()) - 20.0).abs() < 1.0, "{:?}", limits.writer);
        let from = limits.write.expect("measured").from;
        assert_eq!(from, Origin::Measured("r.sqlite: /a, 3 of camera, as fast as it took frames".into()));
    }

    #[test]
    fn what_a_record_does_not_tell_is_none() {
        let limits = measured_limits(&results(), 1, "r.sqlite");
        assert!(limits.write.is_some() && limits.stall.is_none());
        assert_eq!(measured_limits(&Results::default(), 0, "r.sqlite"), MeasuredLimits::default());
    }
}
