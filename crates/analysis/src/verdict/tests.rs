//! Verdicts on made-up recordings.

mod waits;

use super::*;
use crate::{
    losses::fewer_losses,
    made_up::{camera, cameras},
};
use nilometer_model::{Invalid, Phase, Series};
use nilometer_plan::{Cell, Key};

const SECOND: Nanos = Nanos(1_000_000_000);

fn measured(cell: usize, paced: bool, rate: u64, lost: u64) -> Measured {
    let ingest = Ingest {
        goal: if paced { Goal::Pace } else { Goal::Limit },
        count: 1,
        frame_size: Bytes(1_000_000),
        period: Nanos::from_millis(10),
        duration: Nanos(60 * SECOND.0),
        due: 6000,
        stored: 6000 - lost,
        written: Bytes((6000 - lost) * 1_000_000),
        lost,
        slots: 100,
        slots_high: 50,
        longest_stall: Nanos::from_millis(310),
        ..Ingest::default()
    };
    let mut series = Series::new(Nanos(0));
    for hundredth in 0..6000 {
        series.add(Nanos::from_millis(10 * hundredth), rate / 100);
    }
    let sample = Sample {
        wall: Nanos(60 * SECOND.0),
        user: SECOND,
        series,
        ingest: Some(ingest),
        ..Sample::new(Nanos(0))
    };
    Measured { key: Key { target: 0, cell, repeat: 0, phase: Phase::Ingest }, sample }
}

fn sentence(samples: Vec<Measured>) -> (String, bool) {
    let verdicts = verdicts(&Results { samples, cells: cameras("camera", 9), ..Results::default() });
    assert_eq!(verdicts.len(), 1);
    (verdicts[0].to_string(), verdicts[0].decision() == Decision::Carries)
}

#[test]
fn no_loss_is_carried_with_its_uncertainty() {
    let (text, carried) =
        sentence(vec![measured(0, false, 240_000_000, 0), measured(1, true, 100_000_000, 0)]);
    assert!(carried);
    for part in [
        "carries 2.4 times the instrument's rate (2.4 to 2.4)",
        "no frame lost in 60 s: fewer than 180 losses an hour are proved (95 %)",
        "to prove fewer than one a day, record 72 h",
        "310 ms",
        "50 MB covers",
        "the recorder used 0.02 cores",
    ] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}

#[test]
fn a_recorder_that_was_hardly_busy_did_not_use_zero_cores() {
    let used = |millis: u64| {
        let mut paced = measured(1, true, 100_000_000, 0);
        paced.sample.user = Nanos::from_millis(millis);
        sentence(vec![measured(0, false, 240_000_000, 0), paced]).0
    };
    // A hundredth of a core over 60 s is 600 ms.
    assert!(used(620).contains("; the recorder used 0.01 cores"), "{}", used(620));
    assert!(used(300).contains("; the recorder used less than 0.01 cores"), "{}", used(300));
    assert!(!used(0).contains("cores"), "nobody measured it: {}", used(0));
}

#[test]
fn the_client_of_the_file_system_counts_beside_the_recorder() {
    let used = |millis: u64| {
        let mut paced = measured(1, true, 100_000_000, 0);
        paced.sample.client = Nanos::from_millis(millis);
        sentence(vec![measured(0, false, 240_000_000, 0), paced]).0
    };
    let text = used(21_600);
    assert!(text.contains("the recorder used 0.02 cores, and the file system's client 0.36 more"), "{text}");
    assert!(!used(300).contains("client"), "{}", used(300));
}

#[test]
fn loss_is_not_carried_and_says_how_much() {
    let (text, carried) =
        sentence(vec![measured(0, false, 48_000_000, 0), measured(1, true, 48_000_000, 72)]);
    assert!(!carried);
    for part in
        ["does not carry it: at 100 MB/s 1.20 %", "72 of 6000", "buffer of 100 MB", "it sustains 48 MB/s"]
    {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}

#[test]
fn loss_in_spite_of_a_higher_limit_is_put_down_to_stalls() {
    let (text, carried) =
        sentence(vec![measured(0, false, 200_000_000, 0), measured(1, true, 99_000_000, 9)]);
    assert!(
        !carried && text.contains("it sustains 200 MB/s (199 MB/s to 201 MB/s), so its stalls cost"),
        "{text}"
    );
}

#[test]
fn a_buffer_that_hides_a_slow_storage_is_found_out() {
    let mut filling = measured(1, true, 100_000_000, 0);
    let levels = &mut filling.sample.ingest.as_mut().expect("a recording").levels;
    (0..6000).for_each(|at| levels.set(Nanos::from_millis(10 * at), at / 10));
    let (text, carried) = sentence(vec![measured(0, false, 90_000_000, 0), filling.clone()]);
    assert!(!carried && text.starts_with("does not carry it: it sustains 0.90 times"), "{text}");
    let open = one(vec![filling]);
    assert_eq!(open.decision(), Decision::NotDecided, "{open}");
    assert!(open.to_string().contains("the buffer was still filling"), "{open}");
    assert!(!open.to_string().contains("proves"), "losses that are to come are not rare by chance: {open}");
}

#[test]
fn nothing_is_green_without_evidence() {
    for (due, period, why) in [(0, 10, "0 frames"), (19, 10, "19 frames"), (50, 1, "in 50 ms")] {
        let short = changed(&measured(1, true, 100_000_000, 0), |ingest| {
            (ingest.due, ingest.period) = (due, Nanos::from_millis(period));
        });
        let verdict = one(vec![short]);
        assert_eq!(verdict.decision(), Decision::NotDecided, "{verdict}");
        assert!(verdict.to_string().contains(why) && verdict.to_string().contains("too few"), "{verdict}");
    }
    // The passes at full speed are too short to give a rate.
    let mut pass = measured(0, false, 240_000_000, 0);
    pass.sample.series = Series::new(Nanos(0));
    let verdict = one(vec![pass, measured(1, true, 100_000_000, 0)]);
    assert_eq!(verdict.decision(), Decision::NotDecided, "{verdict}");
}

/// The verdict of recordings on a target with `cache` bytes of page cache, through it or past it.
fn through(cache: u64, layout: &str, samples: Vec<Measured>) -> Verdict {
    let cells = cameras("camera", 9);
    let layouts =
        cells.iter().filter_map(|cell| Some((cell.as_recording()?.layout_key("/a"), layout.to_owned())));
    let mut environment: Vec<_> = layouts.collect();
    environment.push(("dirty_bytes".into(), cache.to_string()));
    let target = TargetEntry { path: "/a".into(), file_system: "xfs".into(), ..TargetEntry::default() };
    let results = Results { samples, cells, environment, targets: vec![target], ..Results::default() };
    verdicts(&results).into_iter().next().expect("a verdict")
}

/// `frames` frames of 1 MB at 100 MB/s with a buffer of 100 MB, and no pass at full speed.
fn of_a_plan(frames: u64) -> Measured {
    changed(&measured(1, true, 100_000_000, 0), |ingest| ingest.due = frames)
}

#[test]
fn what_fits_into_the_buffer_shows_nothing() {
    let past = |frames: u64| through(1 << 40, "files; past the cache", vec![of_a_plan(frames)]);
    let verdict = past(100);
    assert_eq!(verdict.decision(), Decision::NotDecided);
    let why = "not decided: all of it fitted into the buffer of 100 MB; record at least 10 s";
    assert!(verdict.to_string().starts_with(why), "{verdict}");
    let verdict = past(1000);
    assert_eq!(verdict.decision(), Decision::NotDecided);
    let why = "not decided: 1 GB are too little to show whether the storage fills a buffer of 100 MB; record at least 10 s";
    assert!(verdict.to_string().starts_with(why), "{verdict}");
    assert_eq!(past(1001).decision(), Decision::Carries);
}

#[test]
fn a_page_cache_has_to_be_filled_several_times_unless_files_are_synced() {
    let layout = "files; through the cache";
    let of = |frames: u64| through(20_000_000, layout, vec![of_a_plan(frames)]);
    assert_eq!(of(1400).decision(), Decision::NotDecided);
    assert!(
        of(1400).to_string().contains("a buffer of 100 MB behind 20 MB of page cache; record at least 14 s"),
        "{}",
        of(1400)
    );
    assert_eq!(of(1401).decision(), Decision::Carries);
    let synced =
        |durable: Nanos, frames: u64| changed(&of_a_plan(frames), |ingest| ingest.durable.add(durable.0));
    // At most 10 MB were not durable at any time, at any limit of the machine.
    let durable = Nanos::from_millis(100);
    let of = |frames: u64| through(1 << 40, layout, vec![synced(durable, frames)]).decision();
    assert_eq!((of(1180), of(1230)), (Decision::NotDecided, Decision::Carries));
}

#[test]
fn a_ring_that_grows_slowly_carries_nothing_where_nothing_else_tells_the_rate() {
    // 1 of 100 frames stays in the buffer.
    let grows = changed(&of_a_plan(6000), |ingest| {
        ingest.slots = 500;
        (0..6000).for_each(|at| ingest.levels.set(Nanos::from_millis(10 * at), at / 100));
    });
    let verdict = through(0, "past the cache", vec![grows]);
    assert_eq!(verdict.decision(), Decision::NotDecided);
    assert!(verdict.to_string().contains("the buffer was still filling"), "{verdict}");
}

#[test]
fn passes_at_full_speed_that_fit_into_the_page_cache_say_nothing_of_the_storage() {
    let samples = || vec![measured(0, false, 240_000_000, 0), measured(1, true, 100_000_000, 0)];
    // Each pass wrote 6 GB.
    let of = |cache: u64, layout: &str| through(cache, layout, samples());
    let cached = of(4_000_000_000, "through the cache");
    assert_eq!(cached.decision(), Decision::NotDecided);
    let why = "at full speed 4 GB of page cache may hold most of the 6 GB written";
    assert!(cached.to_string().contains(why), "{cached}");
    assert_eq!(of(2_900_000_000, "through the cache").decision(), Decision::Carries);
    assert_eq!(of(4_000_000_000, "past the cache").decision(), Decision::Carries);
}

#[test]
fn a_margin_that_is_not_known_is_not_called_close() {
    let passes = |rates: [u64; 2]| {
        let mut samples: Vec<Measured> = rates.map(|rate| measured(0, false, rate, 0)).into();
        samples.push(measured(1, true, 100_000_000, 0));
        one(samples)
    };
    let [close, unknown] = [passes([100_000_000, 103_000_000]), passes([60_000_000, 240_000_000])];
    assert!(close.to_string().contains("is too close to decide"), "{close}");
    assert!(unknown.to_string().contains("differ too much to decide"), "{unknown}");
}

#[test]
fn losses_are_told_in_the_readers_terms() {
    let seconds = |seconds: u64| Nanos(seconds * SECOND.0);
    for (duration, expected) in [
        (40, "fewer than 270 losses an hour are proved (95 %); to prove fewer than one a day, record 72 h"),
        (3600, "fewer than 3 losses an hour are proved (95 %); to prove fewer than one a day, record 72 h"),
        (86_400, "fewer than 3 losses a day are proved (95 %); to prove fewer than one a day, record 72 h"),
        (72 * 3600, "fewer than 370 losses a year are proved (95 %)"),
    ] {
        assert_eq!(fewer_losses(seconds(duration)).join("; "), expected);
    }
}

#[test]
fn a_limit_below_the_rate_or_an_invalid_trial_decides_nothing() {
    let (text, carried) =
        sentence(vec![measured(0, false, 90_000_000, 0), measured(1, true, 100_000_000, 0)]);
    assert!(!carried && text.starts_with("not decided: at full speed the storage took less"), "{text}");
    assert!(text.contains("it sustains 0.90 times the instrument's rate"), "{text}");
    let mut starved = measured(1, true, 100_000_000, 5);
    starved.sample.invalid = Some(Invalid::Starved(None));
    let (text, carried) = sentence(vec![starved]);
    assert!(!carried && text.contains("waited for a processor"), "{text}");
}

/// A copy of the recording with a change.
fn changed(measured: &Measured, change: impl FnOnce(&mut Ingest)) -> Measured {
    let mut measured = measured.clone();
    change(measured.sample.ingest.as_mut().expect("a recording"));
    measured
}

fn one(samples: Vec<Measured>) -> Verdict {
    let results = Results { samples, cells: cameras("camera", 9), ..Results::default() };
    verdicts(&results).into_iter().next().expect("one was recorded")
}

#[test]
fn what_readers_cost_is_said_both_ways() {
    let reader = ReaderTotals { frames: 6000, bytes: 6_000_000_000, wall: SECOND, ..ReaderTotals::default() };
    let pass = |cell: usize, rate: u64, round: u32| {
        let pass = measured(cell, false, rate, 0);
        Measured { key: Key { repeat: round, ..pass.key }, ..pass }
    };
    let paced = measured(2, true, 100_000_000, 0);
    let read = changed(&paced, |ingest| {
        ingest.readers = vec![reader, ReaderTotals { after: true, wall: Nanos(SECOND.0 / 2), ..reader }];
        (1..=100).for_each(|ms| ingest.read.add(ms * 1_000_000));
        ingest.longest_stall = Nanos::from_millis(500);
    });
    let beside = |rate, round| changed(&pass(1, rate, round), |ingest| ingest.readers = vec![reader]);
    // Each round is slower than the one before, with readers and without: pairs come from one round.
    let rounds = [(0, 220_000_000), (1, 200_000_000), (2, 180_000_000)];
    let alone = rounds.map(|(round, rate)| pass(0, rate, round));
    let slower = rounds.map(|(round, rate)| beside(rate / 4 * 3, round));
    let few = one([alone[0].clone(), slower[0].clone(), paced.clone(), read.clone()].into());
    assert!(
        few.more().join("\n").contains("to the writer is not decided: too few pairs"),
        "{:?}",
        few.more()
    );
    let verdict = one([&alone[..], &slower[..], &[paced.clone(), read.clone()]].concat());
    assert_eq!(verdict.decision(), Decision::Carries, "{verdict}");
    assert!(verdict.by_itself);
    let [beside] = &verdict.read[..] else { panic!("{:?}", verdict.read) };
    assert_eq!((beside.readers.count, beside.readers.copied, beside.missed), (1, false, 0));
    assert!((beside.got.0 - 6e9).abs() < 1.0 && (beside.alone.expect("read back").0 - 12e9).abs() < 1.0);
    let more = verdict.more().join("\n");
    for part in [
        "beside 1 reader: no frame lost, the longest stall was 500 ms (alone 310 ms)",
        "1 reader cost the writer 25 % (25 to 25 %): 150 MB/s instead of 200 MB/s",
        "latency from due until read p50",
        "none was missed; 6 GB/s in all; one alone, afterwards (possibly from the page cache): 12 GB/s",
    ] {
        assert!(more.contains(part), "{part} is missing in: {more}");
    }
    // A reader that falls behind in one repeat of several is not hidden by the others.
    let mut behind = changed(&read, |ingest| ingest.readers[0].missed = 31);
    behind.key.repeat = 1;
    let more = one([&alone[..], &slower[..], &[paced, read, behind]].concat()).more().join("\n");
    assert!(
        more.contains("; 31 were removed before they were read, or not read until 2 s after the end; "),
        "{more}"
    );
}

#[test]
fn a_finding_with_readers_only_says_so_and_names_what_failed() {
    let read = changed(&measured(1, true, 100_000_000, 0), |ingest| {
        let writer = ReaderTotals { copies: true, hung: true, ..ReaderTotals::default() };
        ingest.readers = vec![ReaderTotals { hung: false, failed: 3, frames: 1, ..writer }, writer];
        ingest.read.add(1);
    });
    let verdict = one(vec![read]);
    let more = verdict.more().join("\n");
    assert!(
        !verdict.by_itself && more.contains("all its recordings had readers, other instruments"),
        "{more}"
    );
    assert!(more.contains("3 of its reads or writes failed"), "{more}");
    assert!(more.contains("the copy hung, and the recorder went on"), "{more}");
}

#[test]
fn who_is_hurt_by_the_others_is_named() {
    let alone = measured(1, true, 100_000_000, 0);
    let mut crowded = changed(&measured(2, true, 100_000_000, 60), |ingest| {
        ingest.company = "camera + other".into();
    });
    let verdict = one(vec![measured(0, false, 200_000_000, 0), alone.clone(), crowded.clone()]);
    assert_eq!((verdict.decision_alone(), verdict.decision()), (Decision::Carries, Decision::DoesNotCarry));
    let text = verdict.to_string();
    let first = "does not carry it together with the others (camera + other): 1.00 % of frames (60 of 6000)";
    assert!(text.starts_with(first) && text.contains("by itself it carries 2.0 times"), "{text}");
    let more = verdict.more().join("\n");
    let part = "together with the others (camera + other): 1.00 % of frames (60 of 6000) were lost";
    assert!(more.contains(part) && more.contains("the others hurt it"), "{more}");
    // Too close to decide alone, and lost in company: the first words are those of the decision.
    let close = one(vec![measured(0, false, 100_000_000, 0), alone.clone(), crowded.clone()]);
    assert_eq!(close.decision(), Decision::DoesNotCarry, "{close}");
    assert!(close.to_string().starts_with("does not carry it together"), "{close}");
    assert!(close.to_string().contains("by itself not decided: "), "{close}");
    crowded.sample.invalid = Some(Invalid::Starved(None));
    let open = one(vec![alone, crowded]);
    assert!(open.more().join(" ").contains("not decided"), "{open}");
    assert_eq!(open.decision(), Decision::NotDecided, "{open}");
}

#[test]
fn of_several_recordings_the_worst_counts() {
    let (good, bad) = (measured(1, true, 100_000_000, 0), measured(1, true, 100_000_000, 5));
    for samples in [vec![good.clone(), bad.clone()], vec![bad, good]] {
        assert!(matches!(one(samples).finding, Finding::Lost(TrialVerdict { lost: 5, .. })));
    }
    let (mut wrong, clean) = (measured(1, true, 100_000_000, 0), measured(1, true, 100_000_000, 0));
    wrong.sample.invalid = Some(Invalid::Wrong);
    let verdict = one(vec![clean.clone(), wrong, clean]);
    assert_eq!(verdict.decision(), Decision::NotDecided, "data that are wrong once: {verdict}");
}

#[test]
fn stalls_durability_and_what_was_read_back_are_said() {
    let told = changed(&measured(1, true, 100_000_000, 0), |ingest| {
        ingest.allowance = Nanos::from_millis(40);
        (ingest.late, ingest.stall_count, ingest.stalled) = (7, 2, Nanos::from_millis(90));
        (0..100).for_each(|_| ingest.durable.add(1_000_000_000));
        ingest.readers = vec![ReaderTotals { after: true, frames: 2000, ..ReaderTotals::default() }];
    });
    let more = one(vec![told]).more().join(" ");
    for part in [
        "7 of 6000 frames",
        "2 stalls longer than that, 90 ms in all",
        "durable within",
        "2000 kept frames were re-read and verified",
    ] {
        assert!(more.contains(part), "{part} is missing in: {more}");
    }
    assert!(!more.contains("compressed"), "{more}");
    let unread = changed(&measured(1, true, 100_000_000, 0), |ingest| {
        ingest.readers = vec![ReaderTotals { after: true, ..ReaderTotals::default() }];
    });
    let more = one(vec![unread]).more().join(" ");
    assert!(more.contains("no kept frame was re-read in time"), "{more}");
    let squeezed =
        changed(&measured(1, true, 100_000_000, 0), |ingest| ingest.written = Bytes(1_500_000_000));
    let more = one(vec![squeezed]).more().join(" ");
    assert!(more.contains("compressed 4.0 times: the storage got 25 MB/s"), "{more}");
    let synced = one(vec![measured(1, true, 100_000_000, 0)]).more().join(" ");
    assert!(synced.contains("not the loss of power"), "{synced}");
}

#[test]
fn nothing_is_called_durable_in_memory() {
    let synced = changed(&measured(1, true, 100_000_000, 0), |ingest| ingest.durable.add(1_000_000));
    let on = |file_system: &str| {
        let target = TargetEntry { file_system: file_system.into(), ..TargetEntry::default() };
        let results = Results {
            samples: vec![synced.clone()],
            cells: cameras("camera", 9),
            targets: vec![target],
            ..Results::default()
        };
        verdicts(&results)[0].more().join(" ")
    };
    assert!(on("xfs").contains("99 % durable within"), "{}", on("xfs"));
    assert!(!on("tmpfs").contains("durable") && on("tmpfs").contains("is memory"), "{}", on("tmpfs"));
}

/// A search for the highest rate of the camera.
fn search_cell() -> RecordingRun {
    RecordingRun {
        goal: Goal::Search,
        duration: SECOND,
        buffer: Bytes(100 << 20),
        keep: Bytes(1 << 30),
        ..camera("camera")
    }
}

/// All trials of a search, in the cell of this number, on storage that carries up to `carries` bytes per second.
fn trials(cell: usize, carries: f64) -> Vec<Measured> {
    let (searching, mut made, mut trials) = (search_cell(), Vec::new(), Vec::new());
    while let Advice::Next(next) = search::advise(&searching, searching.rate(), &trials) {
        let mut trial = measured(cell, true, 100_000_000, 0);
        trial.key.repeat = made.len() as u32;
        let ingest = trial.sample.ingest.as_mut().expect("a recording");
        (ingest.goal, ingest.period, ingest.due) = (Goal::Search, next.instrument.period(), 100);
        ingest.lost = u64::from(next.rate().0 > carries);
        trials.extend(SearchTrial::of(&trial.sample));
        made.push(trial);
    }
    made
}

#[test]
fn each_search_has_its_own_trials() {
    let highest = |samples: Vec<Measured>| {
        let cells = vec![Cell::recording("camera", search_cell()); 3];
        let found = verdicts(&Results { samples, cells, ..Results::default() });
        found.into_iter().next().expect("one was recorded").highest
    };
    let paced = measured(2, true, 100_000_000, 0);
    let first: Vec<_> = trials(0, 150e6).into_iter().chain([paced]).collect();
    let alone = highest(first.clone()).expect("it came to its end");
    let limit = alone.to_string();
    assert_eq!(highest(first.into_iter().chain(trials(1, 60e6)).collect()), Some(alone), "{limit}");
}
