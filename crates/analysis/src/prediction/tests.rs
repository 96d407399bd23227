//! Predictions from made-up figures, with known margins.

use super::*;
use crate::{Study, made_up};
use nilometer_model::{Bytes, Frequency, Goal, Ingest, Invalid, Nanos, PacketTotals, Phase, Sample, Series};
use nilometer_plan::{Cell, Key, Measured, PlannedCampaign, RecordingRun, TargetEntry};

const SECOND: Nanos = Nanos(1_000_000_000);

/// An instrument of 100 frames of 1 MB a second.
fn camera(name: &str, more: &str) -> Instrument {
    let text = format!(
        "name = \"{name}\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"uint8\"\nframe_rate = \"100 Hz\"\n"
    );
    Instrument::parse(&(text + more), name).expect("valid")
}

fn catalogue() -> Vec<Instrument> {
    vec![
        camera("large", ""),
        camera("single", "recording.frames_per_file = 1"),
        camera("tenths", "recording.frames_per_file = 10"),
        camera("shared", "recording.storing = \"shared\""),
    ]
}

const WRITES: &str = "[[stage]]\nname = \"writes\"\n[stage.workload.stream]\nfile_size = \"4 MiB\"\nblock_size = \"1 MiB\"\naccess = \"direct\"\n";
const TREE: &str = "[[stage]]\nname = \"many files\"\n[stage.workload.tree]\nlevels = 1\nbranching = 1\nitems = 10\nfile_size = \"4 KiB\"\n";

/// The cells of a plan on one target, and none of their samples.
fn planned(stages: &str) -> Results {
    let plan =
        nilometer_plan::parse(&format!("title = \"t\"\n{stages}"), "t.toml", 1.0).expect("a valid plan");
    Results {
        cells: plan.cells.clone(),
        targets: vec![TargetEntry { path: "/a".into(), ..TargetEntry::default() }],
        campaign: Some(PlannedCampaign::new(plan, Vec::new())),
        ..Results::default()
    }
}

/// Adds repeats, one after the other, with these bytes and operations in a second each.
fn add(results: &mut Results, cell: usize, phase: Phase, repeats: &[(u64, u64)]) {
    for (repeat, &(bytes, operations)) in (0..).zip(repeats) {
        let sample = Sample { bytes, operations, wall: SECOND, ..Sample::new(Nanos(0)) };
        results.samples.push(Measured { key: Key { target: 0, cell, repeat, phase }, sample });
    }
}

/// A target that writes 250 MB/s and makes 50 files a second, more than this machine's memory could hold.
fn measured() -> Results {
    let mut results = planned(&format!("{WRITES}{TREE}"));
    add(&mut results, 0, Phase::Write, &[(250_000_000, 250); 3]);
    add(&mut results, 0, Phase::Read, &[(900_000_000, 900); 3]);
    add(&mut results, 1, Phase::CreateFiles, &[(0, 50); 3]);
    add(&mut results, 1, Phase::StatFiles, &[(0, 90_000); 3]);
    results.environment = vec![("dirty_bytes".into(), "4096".into())];
    results
}

/// The decision, and the margin in hundredths, by instrument, on the first target.
fn table(results: &Results) -> Vec<(String, Option<bool>, f64)> {
    let study = Study::of(results).with_catalogue(&catalogue());
    let row = |row: &Prospects| {
        let prospect = row.on[0].as_ref().ok()?;
        let margin = prospect.margin.expect("measured");
        Some((row.instrument.clone(), prospect.carried, (margin * 100.0).round() / 100.0))
    };
    study.predictions.rows.iter().filter_map(row).collect()
}

/// The reason for each instrument without a prediction.
fn reasons(results: &Results) -> Vec<String> {
    let study = Study::of(results).with_catalogue(&catalogue());
    let why = |row: &Prospects| Some(format!("{}: {}", row.instrument, row.on[0].as_ref().err()?));
    study.predictions.rows.iter().filter_map(why).collect()
}

fn says(name: &str, carried: bool, margin: f64) -> (String, Option<bool>, f64) {
    (name.into(), Some(carried), margin)
}

#[test]
fn bytes_or_files_limit_whichever_is_less() {
    assert_eq!(
        table(&measured()),
        [
            says("large", true, 2.5),
            says("single", false, 0.5),
            says("tenths", true, 2.5),
            says("shared", true, 2.5)
        ]
    );
    let results = measured();
    let study = Study::of(&results).with_catalogue(&catalogue());
    let stage = |row: usize| match study.predictions.rows[row].on[0].as_ref().expect("known").basis {
        Basis::Predicted(limit) => study.predictions.limits[limit].from.clone(),
        Basis::Recorded => LimitSource::Recording("itself".into()),
    };
    let expected = ["writes", "many files", "writes"].map(|stage| LimitSource::Stage(stage.into()));
    assert_eq!([0, 1, 2].map(stage), expected);
    assert_eq!(study.predictions.used().len(), 2);
}

#[test]
fn the_lower_end_of_the_interval_counts() {
    let mut results = planned(WRITES);
    add(&mut results, 0, Phase::Write, &[(240_000_000, 1), (250_000_000, 1), (260_000_000, 1)]);
    // 4.303 standard errors of 10 / sqrt 3 below the mean: 250 - 24.84.
    assert_eq!(table(&results)[0], says("large", true, 2.25));
    results.samples[1].sample.bytes = 10_000_000;
    assert_eq!(table(&results), [], "an interval that reaches zero allows no prediction");
    assert!(reasons(&results)[0].contains("repeats differ too much"), "{:?}", reasons(&results));
}

#[test]
fn it_says_no_only_where_the_upper_end_is_too_little() {
    let mut results = planned(WRITES);
    // The interval is 76 MB/s to 124 MB/s, and the instrument needs 100 MB/s.
    add(&mut results, 0, Phase::Write, &[(90_000_000, 1), (100_000_000, 1), (110_000_000, 1)]);
    assert_eq!(table(&results)[0], ("large".into(), None, 0.75));
    results.samples.iter_mut().for_each(|measured| measured.sample.bytes -= 40_000_000);
    assert_eq!(table(&results)[0], ("large".into(), Some(false), 0.35));
}

#[test]
fn too_few_repeats_and_invalid_ones_predict_nothing() {
    let mut results = measured();
    for (invalid, said) in
        [(0, ""), (1, "2 valid repeats, and 3 are needed (writes)"), (2, "1 valid repeat,")]
    {
        for (index, measured) in results.samples.iter_mut().take(3).enumerate() {
            measured.sample.invalid = (index < invalid).then_some(Invalid::Starved(None));
        }
        assert_eq!(table(&results).len(), if invalid == 0 { 4 } else { 0 });
        let reasons = reasons(&results);
        assert!(reasons.iter().all(|why| why.contains(said)), "{reasons:?}");
        assert_eq!(reasons.len(), if invalid == 0 { 0 } else { 4 }, "no instrument vanishes");
    }
    results.samples[2].sample.invalid = Some(Invalid::Starved(None));
    assert_eq!(reasons(&results)[0], "large: all repeats are INVALID (writes)");
    let mut files = measured();
    files.samples[6].sample.invalid = Some(Invalid::Starved(None));
    assert_eq!(
        reasons(&files),
        ["single", "tenths"].map(|name| format!("{name}: 2 valid repeats, and 3 are needed (many files)"))
    );
}

#[test]
fn a_small_scale_predicts_nothing() {
    let mut results = measured();
    results.campaign.as_mut().expect("planned").plan.scale = 0.001;
    assert_eq!(table(&results), []);
    assert!(reasons(&results)[0].contains("at scale 1/1000"), "{:?}", reasons(&results));
    results.campaign.as_mut().expect("planned").plan.scale = 1.0;
    assert_eq!(table(&results).len(), 4);
}

#[test]
fn less_than_a_cache_that_was_seen_predicts_nothing() {
    let mut results = measured();
    recording(&mut results, "fast", Goal::Limit, 400_000_000, 0);
    // 400 MB/s for the first second, then 40 MB/s: the cache took more than the 250 MB of the stage.
    let mut series = Series::new(Nanos(0));
    (0..1000)
        .for_each(|at| series.add(Nanos::from_millis(10 * at), if at < 100 { 4_000_000 } else { 400_000 }));
    results.samples.last_mut().expect("a sample").sample.series = series;
    let reasons = reasons(&results);
    assert!(reasons[0].contains("250 MB were written at a time, and a cache took 4"), "{reasons:?}");
}

#[test]
fn files_in_this_machines_memory_decide_nothing() {
    let mut results = measured();
    results.environment = vec![("memory".into(), "1000000 kB".into()), ("dirty_ratio".into(), "20".into())];
    results.samples[6..9].iter_mut().for_each(|measured| measured.sample.operations = 5000);
    let table = table(&results);
    assert_eq!(table[0], says("large", true, 2.5));
    assert_eq!(
        table[1],
        ("single".into(), None, 2.5),
        "50 times as many files as are needed, but not durable"
    );
    let study = Study::of(&results).with_catalogue(&catalogue());
    let single = study.predictions.rows[1].on[0].as_ref().expect("known");
    assert_eq!(single.without, [Without::FileSync]);
}

#[test]
fn no_prediction_carries_beside_a_recording_that_lost_frames_at_its_rate() {
    let prospect = |basis, carried| Ok(Prospect { carried, margin: Some(2.0), basis, without: Vec::new() });
    let row = |instrument: &str, rate, on| Prospects {
        instrument: instrument.into(),
        rate: ByteRate(rate),
        assumed: Vec::new(),
        by_storage_alone: true,
        on: vec![on, prospect(Basis::Predicted(0), Some(true))],
    };
    let predicted = || prospect(Basis::Predicted(0), Some(true));
    let mut rows = vec![
        row("slower", 50e6, predicted()),
        row("lost", 100e6, prospect(Basis::Recorded, Some(false))),
        row("as fast", 100e6, predicted()),
        row("recorded", 150e6, prospect(Basis::Recorded, Some(true))),
        row("faster", 200e6, predicted()),
    ];
    doubt_beside_losses(&mut rows, 0);
    doubt_beside_losses(&mut rows, 1);
    let on = |target: usize| {
        let known = rows.iter().map(move |row| row.on[target].as_ref().expect("known"));
        known.map(|known| (known.carried, known.without.len())).collect::<Vec<_>>()
    };
    let sure = (Some(true), 0);
    assert_eq!(on(0), [sure, (Some(false), 0), (None, 1), sure, (None, 1)]);
    assert_eq!(on(1), [sure; 5], "no frame was lost there");
}

/// An instrument of 164 MB/s that comes over a network.
const PACKETS: &str = "name = \"packets\"\ntitle = \"t\"\nsource = \"s\"\nshape = [8192]\npixel = \"uint8\"\n\
    frame_rate = \"20 kHz\"\npackets.port = 50000\n[packets.format.numbered]\nheader = \"8 B\"\npayload = \"8192 B\"\n\
    keep = \"all\"\nnumber = { at = { offset = 0, bytes = 8, endian = \"big\" } }\n";

#[test]
fn the_headline_names_the_instrument_that_is_recorded_next() {
    let packets = Instrument::parse(PACKETS, "packets").expect("valid");
    let tight = Instrument { frame_rate: Frequency(230.0), ..camera("tight", "") };
    let headline = |catalogue: &[&Instrument]| {
        let catalogue: Vec<Instrument> = catalogue.iter().map(|&instrument| instrument.clone()).collect();
        let results = measured();
        let study = Study::of(&results).with_catalogue(&catalogue);
        let carries = crate::headlines(&study).pop().expect("a headline").carries;
        let promising: Vec<_> = study.predictions.rows.iter().filter(|row| row.are_promising(0..1)).collect();
        (carries.expect("carried").row.instrument, promising.last().map(|row| row.instrument.clone()))
    };
    let large = camera("large", "");
    assert_eq!(headline(&[&large, &packets, &tight]), ("large".into(), Some("large".into())));
    // Without one it names an instrument with less margin, or one that depends on more than storage.
    assert_eq!(headline(&[&packets, &tight]), ("tight".into(), None));
    assert_eq!(headline(&[&packets]), ("packets".into(), None));
}

#[test]
fn what_is_not_measured_is_not_predicted() {
    let names = |stages: &str, cell, phase| {
        let mut results = planned(stages);
        add(&mut results, cell, phase, &[(200_000_000, 200); 3]);
        table(&results).into_iter().map(|(name, _, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(WRITES, 0, Phase::Write), ["large", "shared"]);
    assert_eq!(names(TREE, 0, Phase::CreateFiles), [""; 0]);
    assert_eq!(names(WRITES, 0, Phase::Read), [""; 0]);
    for not_durable_or_not_alone in ["sync = \"none\"", "source = \"disk\""] {
        assert_eq!(names(&format!("{WRITES}{not_durable_or_not_alone}\n"), 0, Phase::Write), [""; 0]);
    }
    let together = WRITES.replace("[stage.workload", "volumes = \"together\"\n[stage.workload");
    assert_eq!(names(&together, 0, Phase::Write), [""; 0]);
    let mut given_up = measured();
    given_up.targets[0].left_out = Some("it hung".into());
    assert_eq!(table(&given_up), []);
    assert_eq!(reasons(&given_up)[0], "large: Nilometer gave up the target");
    assert_eq!(Study::of(&measured()).predictions.rows, [], "no catalogue, no rows");
}

#[test]
fn a_shared_file_is_predicted_from_shared_files_where_there_are_some() {
    let shared = WRITES.replace("writes", "N to 1") + "layout = \"strided\"\n";
    let mut results =
        planned(&format!("{WRITES}{}", shared.replace("[stage.workload", "workers = 2\n[stage.workload")));
    add(&mut results, 0, Phase::Write, &[(250_000_000, 250); 3]);
    add(&mut results, 1, Phase::Write, &[(60_000_000, 60); 3]);
    assert_eq!(table(&results), [says("large", true, 2.5), says("shared", false, 0.6)]);
}

fn recording(results: &mut Results, instrument: &str, goal: Goal, taken: u64, lost: u64) {
    let mut series = Series::new(Nanos(0));
    (0..1000).for_each(|hundredth| series.add(Nanos::from_millis(10 * hundredth), taken / 100));
    let ingest = Ingest {
        count: 1,
        goal,
        frame_size: Bytes(1_000_000),
        period: Nanos::from_millis(10),
        due: 1000,
        written: Bytes(1_000_000_000),
        lost,
        ..Ingest::default()
    };
    let sample = Sample { series, wall: SECOND, ingest: Some(ingest), ..Sample::new(Nanos(0)) };
    let key = Key { target: 0, cell: results.cells.len(), repeat: 0, phase: Phase::Ingest };
    results.cells.push(Cell::recording(instrument, made_up::camera(instrument)));
    results.samples.push(Measured { key, sample });
}

#[test]
fn a_verdict_replaces_the_prediction() {
    let mut results = measured();
    recording(&mut results, "single", Goal::Limit, 400_000_000, 0);
    recording(&mut results, "single", Goal::Pace, 100_000_000, 0);
    recording(&mut results, "large", Goal::Pace, 90_000_000, 3);
    recording(&mut results, "mine", Goal::Pace, 100_000_000, 0);
    let study = Study::of(&results).with_catalogue(&catalogue());
    let of = |name: &str| {
        let row = study.predictions.rows.iter().find(|row| row.instrument == name).expect("a row");
        let prospect = row.on[0].as_ref().expect("known");
        (prospect.carried, prospect.margin.map(f64::round), prospect.basis == Basis::Recorded)
    };
    assert_eq!(of("single"), (Some(true), Some(4.0), true));
    assert_eq!(of("large"), (Some(false), None, true));
    assert_eq!(of("mine"), (Some(true), None, true));
    assert_eq!(
        of("tenths"),
        (None, Some(4.0), false),
        "as much as was recorded, and a recording lost frames"
    );
    assert_eq!(study.predictions.rows.len(), 5);
    assert!(study.predictions.predicts() && study.predictions.records());
}

#[test]
fn another_rate_is_another_instrument() {
    let mut results = measured();
    recording(&mut results, "large", Goal::Pace, 100_000_000, 0);
    let ingest = results.samples.last_mut().expect("a sample").sample.ingest.as_mut().expect("a recording");
    ingest.period = Nanos::from_millis(20);
    let study = Study::of(&results).with_catalogue(&catalogue());
    let rows: Vec<_> =
        study.predictions.rows.iter().map(|row| (row.instrument.as_str(), row.rate.0)).collect();
    assert_eq!(rows[..2], [("large", 50e6), ("large", 100e6)]);
}

#[test]
fn nothing_is_predicted_to_be_worse_than_what_was_recorded() {
    let mut results = measured();
    recording(&mut results, "mine", Goal::Limit, 900_000_000, 0);
    recording(&mut results, "mine", Goal::Pace, 100_000_000, 0);
    let study = Study::of(&results).with_catalogue(&catalogue());
    let large = study.predictions.rows.iter().find(|row| row.instrument == "large").expect("a row");
    let prospect = large.on[0].as_ref().expect("known");
    assert_eq!(prospect.margin.map(f64::round), Some(9.0), "9 times 100 MB/s were recorded");
    let Basis::Predicted(limit) = prospect.basis else { panic!("{prospect:?}") };
    assert_eq!(study.predictions.limits[limit].from, LimitSource::Recording("mine".into()));
    // If the stage wrote more than the recording, it counts.
    results.samples.truncate(12);
    recording(&mut results, "mine", Goal::Limit, 100_000_000, 0);
    recording(&mut results, "mine", Goal::Pace, 100_000_000, 0);
    assert!(table(&results).contains(&says("large", true, 2.5)), "{:?}", table(&results));
}

/// Regression test: a recording with 50 files per second gave instruments with 2000 files per second "?: 0.02 x".
#[test]
fn a_lower_bound_that_is_too_little_predicts_nothing() {
    let mut results = measured();
    // Stages are INVALID; a recording over a network gives only a lower bound for the target.
    results.samples.iter_mut().for_each(|measured| measured.sample.invalid = Some(Invalid::Starved(None)));
    recording(&mut results, "mine", Goal::Limit, 50_000_000, 0);
    recording(&mut results, "mine", Goal::Pace, 50_000_000, 0);
    let sample = &mut results.samples[12].sample;
    sample.ingest.as_mut().expect("a recording").packets = Some(PacketTotals::default());
    let predicted = table(&results).into_iter().filter(|row| row.0 != "mine" && row.2 < 1.0);
    assert_eq!(predicted.collect::<Vec<_>>(), [], "nothing is worse than a bound");
    let reasons = reasons(&results);
    assert!(reasons.iter().any(|why| why.contains("at least the rate of mine")), "{reasons:?}");
}

#[test]
fn a_rate_that_the_recorder_s_wait_lowered_predicts_no_failure() {
    let mut results = planned(WRITES);
    recording(&mut results, "mine", Goal::Limit, 50_000_000, 0);
    recording(&mut results, "mine", Goal::Pace, 50_000_000, 0);
    assert!(table(&results).contains(&says("large", false, 0.5)), "{:?}", table(&results));
    let sample = &mut results.samples[0].sample;
    sample.run_delay = Nanos::from_millis(150);
    assert!(table(&results).contains(&says("large", false, 0.5)), "59 MB/s are too little, too");
    results.samples[0].sample.run_delay = Nanos::from_millis(400);
    let is_worse = |row: &(String, Option<bool>, f64)| row.0 != "mine" && row.1 == Some(false);
    assert!(!table(&results).iter().any(is_worse), "{:?}", table(&results));
    let reasons = reasons(&results);
    let why = "the recorder waited 400 ms of 1 s for a processor: it may take more";
    assert!(reasons.iter().any(|reason| reason.ends_with(why)), "{reasons:?}");
}

/// Images of a byte a pixel in CBF: 100.5 MB/s of 400 MB/s.
fn detector(name: &str) -> Instrument {
    let text = format!(
        "name = \"{name}\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"int32\"\nframe_rate = \"100 Hz\"\n\
         recording.format = \"cbf\"\ndata = \"diffraction\"\nassumed = [\"data\"]\n"
    );
    Instrument::parse(&text, name).expect("valid")
}

/// A recording of it at full speed, packed to a quarter of its size.
fn packed(results: &mut Results, instrument: &Instrument, rate: u64, cores: f64) {
    recording(results, &instrument.name, Goal::Limit, rate, 0);
    let cell = RecordingRun {
        goal: Goal::Limit,
        duration: SECOND,
        buffer: Bytes(1 << 30),
        keep: Bytes(1 << 30),
        ..RecordingRun::new(instrument.clone())
    };
    *results.cells.last_mut().expect("a cell") = Cell::recording("packed", cell);
    let sample = &mut results.samples.last_mut().expect("a sample").sample;
    (sample.bytes, sample.user) = (rate, Nanos::from_seconds(cores));
    let ingest = sample.ingest.as_mut().expect("a recording");
    (ingest.frame_size, ingest.stored, ingest.written) =
        (Bytes(4_000_000), rate / 4_000_000, Bytes(rate / 4));
}

/// The written rate counts, 100.5 MB/s, not the 400 MB/s of the pixels; the cost of packing is unknown.
#[test]
fn what_is_packed_is_predicted_as_it_is_written() {
    let mut results = measured();
    results.samples[6..9].iter_mut().for_each(|measured| measured.sample.operations = 5000);
    let study = Study::of(&results).with_catalogue(&[detector("one")]);
    let row = &study.predictions.rows[0];
    assert!((row.rate.0 / 100.5e6 - 1.0).abs() < 1e-3, "{}", row.rate);
    assert_eq!(row.assumed, ["data"]);
    let prospect = row.on[0].as_ref().expect("known");
    assert_eq!((prospect.carried, &prospect.without[..]), (None, &[Without::Packing][..]));
    assert!(prospect.margin.is_some_and(|margin| (margin - 2.49).abs() < 0.01), "{prospect:?}");
}

#[test]
fn a_processor_that_packs_is_in_the_prediction_if_the_like_was_recorded() {
    let mut results = measured();
    results.samples[6..9].iter_mut().for_each(|measured| measured.sample.operations = 5000);
    packed(&mut results, &detector("recorded"), 600_000_000, 1.0);
    let of = |results: &Results| {
        let study = Study::of(results).with_catalogue(&[detector("other")]);
        let row = study.predictions.rows.iter().find(|row| row.instrument == "other").expect("a row");
        (row.rate.0.round(), row.on[0].clone().expect("known"))
    };
    let (rate, prospect) = of(&results);
    assert!((rate - 1e8).abs() < 1.0, "four times smaller, as was measured: {rate}");
    assert_eq!(
        prospect.margin.map(|margin| (margin * 100.0).round()),
        Some(150.0),
        "the processor packs 600 MB/s"
    );
    assert_eq!((prospect.carried, prospect.without.len()), (Some(true), 0));
    let sample = &mut results.samples.last_mut().expect("a sample").sample;
    sample.user = Nanos::from_seconds(2.5);
    let (_, prospect) = of(&results);
    assert_eq!(prospect.margin.map(|margin| (margin * 100.0).round()), Some(150.0), "2.5 processors did so");
    results.samples.last_mut().expect("a sample").sample.bytes /= 2;
    let (_, prospect) = of(&results);
    assert_eq!(prospect.carried, Some(false), "{prospect:?}");
}

/// With the headers of its packets 128.5 MB/s, without them 128 MB/s: one row.
#[test]
fn no_instrument_stands_twice() {
    let telescope =
        Instrument::parse(include_str!("../../../../instruments/fila10g-1g.toml"), "f").expect("valid");
    for instrument in [telescope.clone(), telescope.received().into_owned()] {
        let mut results = measured();
        recording(&mut results, "fila10g-1g", Goal::Pace, 128_000_000, 0);
        let sample = &mut results.samples.last_mut().expect("a sample").sample;
        let ingest = sample.ingest.as_mut().expect("a recording");
        (ingest.frame_size, ingest.period) = (instrument.frame_size(), instrument.period());
        let study = Study::of(&results).with_catalogue(std::slice::from_ref(&telescope));
        let [row] = &study.predictions.rows[..] else { panic!("{:?}", study.predictions.rows) };
        assert_eq!(row.on[0].as_ref().expect("known").basis, Basis::Recorded);
        assert_eq!(row.rate.to_string(), "129 MB/s");
    }
}

#[test]
fn what_a_detector_compresses_is_predicted_as_it_comes() {
    let eiger =
        Instrument::parse(include_str!("../../../../instruments/eiger2-16m.toml"), "e").expect("valid");
    let mut results = planned(WRITES);
    add(&mut results, 0, Phase::Write, &[(1_300_000_000, 250); 3]);
    let study = Study::of(&results).with_catalogue(&[eiger]);
    let row = &study.predictions.rows[0];
    assert_eq!(row.rate.to_string(), "507 MB/s", "not the 9.6 GB/s of its pixels");
    assert_eq!(row.on[0].as_ref().expect("known").carried, Some(true));
    assert_eq!(row.assumed, ["pixel", "frame_rate", "data"]);
}
