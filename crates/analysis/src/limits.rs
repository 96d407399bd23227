//! The limits of one target in a record: the rate of a recorder, its cost, and its longest stall. Sizing begins
//! with these figures.

use std::collections::BTreeMap;

use nilometer_model::{ByteRate, Bytes, Goal, Instrument, Nanos};
use nilometer_plan::{
    RecordedInstrument, Results,
    sizing::{Figure, LimitOrigin},
};

use crate::{
    evidence::{Evidence, evidence},
    facts::fact,
    prediction::staged_limit,
};

/// The figures for sizing. Each is `None` if the record does not contain it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredLimits {
    /// The long-term rate of the target without readers. It is the least over all recordings at full speed with
    /// the number of recorders that reached the highest rate. Recordings that waited for a processor or a network
    /// are left out. If all did, it is the rate of a stage, at the lower end of its interval.
    pub write: Option<Figure<ByteRate>>,
    /// The rate of one recorder: alone, if there is such a recording, else its part.
    pub writer: Option<Figure<ByteRate>>,
    /// The longest stall at the instrument's rate.
    pub stall: Option<Figure<Nanos>>,
    /// Processors of the machine.
    pub cores: Option<Figure<f64>>,
    /// Half of the machine's memory: the other half is for everything else.
    pub memory: Option<Figure<Bytes>>,
    /// The figures of each requested instrument, in the same order.
    pub kinds: Vec<MeasuredKind>,
    /// The recordings on the target, with their storage format.
    pub recorded: Vec<String>,
    /// The recordings limited by a processor or a network.
    pub bound_elsewhere: Vec<String>,
}

/// The figures of an instrument from recordings of the same format, storing and data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredKind {
    /// Processor seconds of the recorder and the file system's client per GB of frames: the most over recordings
    /// at full speed.
    pub cost: Option<Figure<f64>>,
    /// The factor by which written frames were smaller than received ones: the least.
    pub packing: Option<f64>,
}

/// Derives the limits from valid recordings on one target. `record` is the record's name in the origin of
/// figures.
pub fn measured_limits(
    results: &Results,
    target: usize,
    record: &str,
    instruments: &[Instrument],
) -> MeasuredLimits {
    let mut recordings = evidence(results);
    recordings.retain(|of| of.target == target);
    let path = results.targets.get(target).map_or("", |target| &target.path);
    let place = Place { record, path };
    let rates = least_of_each(recordings.iter().filter(|of| of.is_limit() && !of.is_bound_elsewhere()));
    let write = rates.values().max_by(|a, b| a.0.0.total_cmp(&b.0.0));
    let writer = rates.first_key_value();
    let taken = |value, of: &Evidence<'_>| place.recorded(value, of, "at full speed");
    let staged = || place.staged(results, target);
    MeasuredLimits {
        write: write.map(|(rate, of)| taken(*rate, of)).or_else(staged),
        writer: writer.map(|(count, (rate, of))| taken(ByteRate(rate.0 / f64::from(*count)), of)),
        stall: longest_stall(&recordings)
            .map(|of| place.recorded(of.ingest.longest_stall, of, "at its own pace")),
        cores: fact(results, "processors").and_then(|text| text.parse().ok()).map(|value| Figure {
            value,
            from: LimitOrigin::Measured(format!("{record}: processors of its machine")),
        }),
        memory: fact(results, "memory").and_then(half_of_memory).map(|value| Figure {
            value,
            from: LimitOrigin::Measured(format!("{record}: half of its machine's memory")),
        }),
        kinds: instruments.iter().map(|instrument| measured_kind(&recordings, instrument, &place)).collect(),
        recorded: distinct(recordings.iter().map(described)),
        bound_elsewhere: bound_elsewhere(&recordings),
    }
}

/// The recordings at full speed whose rate is not that of the storage.
fn bound_elsewhere(recordings: &[Evidence<'_>]) -> Vec<String> {
    let bound = recordings.iter().filter(|of| of.is_limit() && of.is_bound_elsewhere());
    distinct(bound.map(|of| named(&of.instrument)))
}

/// The origin of figures.
struct Place<'a> {
    record: &'a str,
    path: &'a str,
}

impl Place<'_> {
    fn recorded<T>(&self, value: T, of: &Evidence<'_>, what: &str) -> Figure<T> {
        let Place { record, path } = self;
        Figure {
            value,
            from: LimitOrigin::Measured(format!("{record}: {path}, {}, {what}", named(&of.instrument))),
        }
    }

    fn staged(&self, results: &Results, target: usize) -> Option<Figure<ByteRate>> {
        let (value, stage) = staged_limit(results, target)?;
        let from = LimitOrigin::Measured(format!("{}: {}, {stage}", self.record, self.path));
        Some(Figure { value, from })
    }
}

fn longest_stall<'a>(recordings: &'a [Evidence<'a>]) -> Option<&'a Evidence<'a>> {
    let paced = recordings.iter().filter(|of| of.ingest.goal == Goal::Pace);
    paced.max_by_key(|of| of.ingest.longest_stall)
}

fn measured_kind(recordings: &[Evidence<'_>], instrument: &Instrument, place: &Place<'_>) -> MeasuredKind {
    let alike: Vec<&Evidence<'_>> = recordings.iter().filter(|of| of.is_like(instrument)).collect();
    let at_limit = alike.iter().filter(|of| of.is_limit());
    let costs = at_limit.filter_map(|of| Some((of.cost()?, of)));
    let cost = costs.max_by(|a, b| a.0.total_cmp(&b.0));
    // The cost of packets is only included if the recording received packets.
    let cost = cost.map(|(cost, of)| {
        let network = if of.ingest.packets.is_some() { "included" } else { "not included" };
        place.recorded(cost, of, &format!("receiving from a network {network}"))
    });
    let packing = alike.iter().filter(|of| of.packs()).filter_map(|of| of.packing()).min_by(f64::total_cmp);
    MeasuredKind { cost, packing }
}

/// `pco-edge (raw, files, tomography)`.
fn described(of: &Evidence<'_>) -> String {
    let name = named(&of.instrument);
    let stored = &of.stored;
    format!(
        "{name} ({}, {}, {})",
        stored.recording.format.name(),
        stored.recording.storing.name(),
        stored.data.kind
    )
}

fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// The least rate for each number of simultaneous recorders, in written bytes.
fn least_of_each<'a>(
    recordings: impl Iterator<Item = &'a Evidence<'a>>,
) -> BTreeMap<u32, (ByteRate, &'a Evidence<'a>)> {
    let mut least: BTreeMap<u32, (ByteRate, &Evidence<'_>)> = BTreeMap::new();
    for of in recordings {
        let frames = of.sample.sustained_rate();
        let rate = ByteRate(frames.0 / of.packing().unwrap_or(1.0));
        let known = least.entry(of.ingest.count.max(1)).or_insert((rate, of));
        if rate.0 < known.0.0 {
            *known = (rate, of);
        }
    }
    least
}

/// `6 of pilatus-6m`.
fn named(instrument: &RecordedInstrument) -> String {
    let label = instrument.label();
    if instrument.count > 1 { format!("{} of {label}", instrument.count) } else { label }
}

/// Half of a number in the kernel's `kB`, which are units of 1024 bytes.
fn half_of_memory(text: &str) -> Option<Bytes> {
    let number: u64 = text.strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(number * 512))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{Bytes, Ingest, Invalid, Phase, ReaderTotals, Sample, Series};
    use nilometer_plan::{Cell, Key, Measured, RecordingRun, TargetEntry};

    const RAW: &str = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [500, 500]\npixel = \"int32\"\n\
                       frame_rate = \"100 Hz\"\ndata = \"diffraction\"\n";

    fn instrument(more: &str) -> Instrument {
        Instrument::parse(&format!("{RAW}{more}"), "camera").expect("valid")
    }

    /// Cells for raw frames, CBF files, and raw frames of three recorders.
    fn cells() -> Vec<Cell> {
        let cell = |more: &str| RecordingRun {
            duration: Nanos::from_millis(10_000),
            buffer: Bytes(1 << 30),
            keep: Bytes(1 << 30),
            ..RecordingRun::new(instrument(more))
        };
        let three = RecordingRun { count: 3, ..cell("") };
        [cell(""), cell("recording.format = \"cbf\"\n"), three]
            .map(|run| Cell::recording("images", run))
            .into()
    }

    fn recording(target: usize, paced: bool, rate: u64, seconds: f64) -> Measured {
        let mut series = Series::new(Nanos(0));
        for hundredth in 0..1000 {
            series.add(Nanos::from_millis(10 * hundredth), rate / 100);
        }
        let longest_stall = Nanos::from_millis(if paced { 310 } else { 9000 });
        let goal = if paced { Goal::Pace } else { Goal::Limit };
        let ingest = Ingest { count: 1, goal, longest_stall, ..Ingest::default() };
        let sample = Sample {
            bytes: 10 * rate,
            wall: Nanos::from_millis(10_000),
            user: Nanos::from_seconds(seconds),
            client: Nanos::from_seconds(seconds),
            series,
            ingest: Some(ingest),
            ..Sample::new(Nanos(0))
        };
        Measured { key: Key { target, cell: 0, repeat: 0, phase: Phase::Ingest }, sample }
    }

    /// The same into CBF files, four times smaller than raw frames.
    fn packed(rate: u64, seconds: f64) -> Measured {
        let mut packed = recording(0, false, rate, seconds);
        packed.key.cell = 1;
        let ingest = packed.sample.ingest.as_mut().expect("a recording");
        (ingest.frame_size, ingest.stored) = (Bytes(1_000_000), 10 * rate / 1_000_000);
        ingest.written = Bytes(10 * rate / 4);
        packed
    }

    fn results() -> Results {
        let fact = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let target = |path: &str| TargetEntry { path: path.into(), ..TargetEntry::default() };
        let mut starved = recording(0, false, 1_000_000, 9.0);
        starved.sample.invalid = Some(Invalid::Starved(None));
        Results {
            targets: vec![target("/a"), target("/b")],
            cells: cells(),
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

    fn limits(results: &Results, asked: &[Instrument]) -> MeasuredLimits {
        measured_limits(results, 0, "r.sqlite", asked)
    }

    #[test]
    fn the_worst_of_valid_recordings_counts() {
        let limits = limits(&results(), &[instrument("")]);
        let write = limits.write.expect("measured");
        assert!((write.value.0 / 2e8 - 1.0).abs() < 0.02, "{}", write.value);
        assert_eq!(write.from, LimitOrigin::Measured("r.sqlite: /a, camera, at full speed".into()));
        let cost = limits.kinds[0].cost.as_ref().expect("measured").value;
        assert!((cost - 0.2).abs() < 1e-9, "0.6 s for 3 GB, not {cost}");
        assert_eq!(limits.stall.expect("measured").value, Nanos::from_millis(310));
        assert!((limits.cores.expect("known").value - 8.0).abs() < 1e-9);
        assert_eq!(limits.memory.expect("known").value, Bytes(512_000));
    }

    #[test]
    fn several_recorders_show_what_the_target_takes_and_readers_do_not_count() {
        let mut results = results();
        let mut three = recording(0, false, 450_000_000, 0.1);
        three.key.cell = 2;
        three.sample.ingest.as_mut().expect("a recording").count = 3;
        let mut read = recording(0, false, 1_000_000, 0.1);
        read.sample.ingest.as_mut().expect("a recording").readers = vec![ReaderTotals::default()];
        results.samples.extend([three, read]);
        let limits = limits(&results, &[]);
        let rate = |figure: Option<Figure<ByteRate>>| (figure.expect("measured").value.0 / 1e7).round();
        assert!((rate(limits.write.clone()) - 45.0).abs() < 2.0, "{:?}", limits.write);
        assert!((rate(limits.writer.clone()) - 20.0).abs() < 1.0, "{:?}", limits.writer);
        let from = limits.write.expect("measured").from;
        assert_eq!(from, LimitOrigin::Measured("r.sqlite: /a, 3 of camera, at full speed".into()));
    }

    #[test]
    fn what_recording_costs_is_measured_from_the_like_only() {
        let growing = "recording.storing = \"growing\"\n";
        let other = RAW.replace("\"diffraction\"", "\"tomography\"");
        let asked = [
            instrument(""),
            instrument("recording.format = \"cbf\"\n"),
            instrument(growing),
            Instrument::parse(&other, "camera").expect("valid"),
        ];
        let limits = limits(&results(), &asked);
        let known: Vec<bool> = limits.kinds.iter().map(|kind| kind.cost.is_some()).collect();
        assert_eq!(known, [true, false, false, false], "another format, storing or data says nothing");
        assert_eq!(limits.recorded, ["camera (raw, files, diffraction)"]);
    }

    #[test]
    fn a_processor_that_is_busy_says_nothing_of_a_server() {
        let mut results = results();
        results.samples = vec![packed(600_000_000, 9.9)];
        let asked = [instrument("recording.format = \"cbf\"\n")];
        let found = limits(&results, &asked);
        assert_eq!((&found.write, &found.writer), (&None, &None), "it packed all the time");
        assert_eq!(found.bound_elsewhere, ["camera"]);
        let kind = &found.kinds[0];
        assert!(kind.packing.is_some_and(|packing| (packing - 4.0).abs() < 1e-9), "{kind:?}");
        assert!(kind.cost.as_ref().is_some_and(|cost| (cost.value - 3.3).abs() < 1e-9), "{kind:?}");
        // It had idle processor time, so it waited for the storage: a quarter of the frames' bytes were written.
        results.samples = vec![packed(600_000_000, 5.0)];
        let write = limits(&results, &asked).write.expect("it waited for the storage").value;
        assert!((write.0 / 150e6 - 1.0).abs() < 0.02, "{write}");
    }

    #[test]
    fn a_recorder_that_waited_for_a_processor_says_nothing_of_a_server() {
        let mut valid = recording(0, false, 200_000_000, 0.1);
        let mut waited = recording(0, false, 100_000_000, 0.1);
        waited.sample.run_delay = Nanos::from_millis(4000);
        let mut results = Results { samples: vec![waited.clone()], ..results() };
        let found = limits(&results, &[]);
        assert_eq!((&found.write, found.bound_elsewhere), (&None, vec!["camera".to_owned()]));
        valid.key.repeat = 1;
        results.samples = vec![waited, valid];
        let rate = limits(&results, &[]).write.expect("one had its processors").value;
        assert!((rate.0 / 2e8 - 1.0).abs() < 0.02, "{rate}");
    }

    #[test]
    fn what_a_record_does_not_tell_is_none() {
        let limits = measured_limits(&results(), 1, "r.sqlite", &[]);
        assert!(limits.write.is_some() && limits.stall.is_none());
        assert_eq!(measured_limits(&Results::default(), 0, "r.sqlite", &[]), MeasuredLimits::default());
    }
}
